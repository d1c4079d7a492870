"""SmoothQuant on a model: one smoothing for each fold; the maths is in numerics/algorithms/smoothquant.py."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

import torch

from workbench.errors import MissingResultError
from workbench.models.batches import Data, token_mask
from workbench.models.model import Model
from workbench.numerics.algorithms.smoothquant import Consumer, choose_smoothing
from workbench.numerics.formats import parse_scheme
from workbench.numerics.granularity import PerTensor
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.transforms.folds import Fold, find_folds
from workbench.planning.transforms.rewrite import Draft
from workbench.planning.transforms.transform import Change, Outcome, Setting

ROWS = 512
"""So many inputs of each layer are kept to measure the error on,"""
CELLS = 1 << 19
"""but no more than so many numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothQuant:
    """Moves outliers from activations into weights where the plan quantizes both, as far as the outputs gain."""

    name: str = "smoothquant"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Search one smoothing for each fold whose inputs the plan quantizes; see the Transform contract."""
        found = find_folds(setting.trace, draft.summary).require(draft.summary)
        folds, notes = [], []
        for fold in found:
            if not any(setting.assignments[name].inputs for name in fold.columns):
                continue
            bad = draft.finite(fold)
            if bad is not None:
                notes.append(f"{bad} holds NaN or infinite values: smoothquant left {', '.join(fold.consumers)} alone")
            else:
                folds.append(fold)
        if not folds:
            notes.append("the plan quantizes no inputs that could be smoothed: smoothquant changed nothing")
            return Outcome(changes=(), notes=tuple(notes))
        if setting.data is None:
            raise MissingResultError(
                "smoothquant needs calibration data to see the inputs of layers; calibrate first, or take smoothquant "
                "out of the plan's transforms"
            )
        layers = {name for fold in folds for name in fold.columns}
        seen = observe(draft.changes().apply(draft.model), setting.data, layers, setting.batch_size)
        return Outcome(changes=tuple(self._smooth(draft, setting, fold, seen) for fold in folds), notes=tuple(notes))

    def _smooth(self, draft: Draft, setting: Setting, fold: Fold, seen: dict[str, Inputs]) -> Change:
        reached = [name for name in fold.columns if name in seen]
        consumers = [_consumer(draft, fold, name, setting.assignments[name], seen[name]) for name in reached]
        before = torch.zeros(fold.free.numel())
        for name in reached:
            used = fold.columns[name] >= 0
            before.scatter_reduce_(0, fold.columns[name][used], seen[name].absmax[used], reduce="amax")
        choice = choose_smoothing(consumers, before, fold.free)
        if choice.alpha is not None:
            draft.scale(fold, choice.scale)
        return Change(
            transform=self.name, source=fold.name, layers=fold.consumers, alpha=choice.alpha, before=choice.before,
            after=choice.after, inputs_before=before.numpy(), inputs_after=(before / choice.scale).numpy(),
            measure="largest magnitude",
        )  # fmt: skip


@dataclass(slots=True, kw_only=True, eq=False)
class Inputs:
    """What a layer was given: each channel's smallest and largest value ``[columns]``, and some of the rows."""

    low: torch.Tensor
    high: torch.Tensor
    rows: list[torch.Tensor] = field(default_factory=list)

    @property
    def absmax(self) -> torch.Tensor:
        """The largest magnitude of each channel."""
        return torch.maximum(-self.low, self.high)


def observe(model: Model, data: Data, layers: Collection[str], batch_size: int) -> dict[str, Inputs]:
    """Return what ``layers`` are given over ``data``; inputs of a batch that hold NaN or infinity are left out."""
    found: dict[str, Inputs] = {}
    batches = -(-len(data) // batch_size)
    for batch in data.batches(batch_size):
        mask = token_mask(batch)

        def tap(name: str, tensor: torch.Tensor, _: torch.Tensor, mask: torch.Tensor | None = mask) -> None:
            real = tensor[mask] if mask is not None and tensor.shape[:2] == mask.shape else tensor
            rows = real.reshape(-1, real.shape[-1]).float()
            if rows.numel() and bool(rows.isfinite().all()):
                wanted = max(min(ROWS, CELLS // rows.shape[1]) // batches, 1)
                _add(found, name, rows, wanted)

        with torch.no_grad():
            model.run(batch, tap=tap, layers=tuple(layers))
    return found


def _add(found: dict[str, Inputs], name: str, rows: torch.Tensor, wanted: int) -> None:
    low, high = torch.aminmax(rows, dim=0)
    some = rows[torch.linspace(0, rows.shape[0] - 1, min(wanted, rows.shape[0])).round().long()].clone()
    old = found.get(name)
    if old is None:
        found[name] = Inputs(low=low, high=high, rows=[some])
    else:
        old.low, old.high = torch.minimum(old.low, low), torch.maximum(old.high, high)
        old.rows.append(some)


def _consumer(draft: Draft, fold: Fold, name: str, given: Assignment, seen: Inputs) -> Consumer:
    weight = draft.weight(name)
    curvature = draft.curvature.get(name)
    importance = torch.ones(weight.shape[0]) if curvature is None else torch.from_numpy(curvature.rows).float()
    identity: Callable[[torch.Tensor], torch.Tensor] = lambda matrix: matrix  # noqa: E731
    return Consumer(
        weight=weight, inputs=torch.cat(seen.rows), channels=fold.columns[name], importance=importance,
        quantize=identity if given.weights == KEEP else parse_scheme(given.weights).quantize,
        quantize_inputs=partial(_quantized, given.inputs, seen),
    )  # fmt: skip


def _quantized(scheme: str | None, seen: Inputs, rows: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Return ``rows`` as the plan would quantize them; a static range spans what was seen, divided by ``factor``."""
    if scheme is None:
        return rows
    format_ = parse_scheme(scheme)
    if isinstance(format_.granularity, PerTensor) and format_.family != "half":
        low, high = float((seen.low / factor).min()), float((seen.high / factor).max())
        return format_.round(rows, format_.fit_range(min(low, 0.0), max(high, 0.0)))
    return format_.quantize(rows)
