"""SmoothQuant on a model: one smoothing for each fold; the maths is in numerics/equivalences/smoothquant.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from workbench.errors import MissingResultError
from workbench.numerics.equivalences.smoothquant import Consumer, choose_smoothing
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP, Assignment
from workbench.quantization.transforms.folds import Fold, find_folds
from workbench.quantization.transforms.observe import Inputs, observe, quantized_inputs
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothQuant:
    """Moves outliers from activations into weights where the plan quantizes both, as far as the outputs gain."""

    name: str = "smoothquant"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Search one smoothing for each fold whose inputs the plan quantizes; see the Transform contract."""
        all_folds = find_folds(setting.trace, draft.summary).require(draft.summary)
        folds, notes = [], []
        for fold in all_folds:
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

    def _smooth(self, draft: Draft, setting: Setting, fold: Fold, seen: dict[str, Inputs]) -> FoldReport:
        reached = [name for name in fold.columns if name in seen]
        consumers = [_consumer(draft, fold, name, setting.assignments[name], seen[name]) for name in reached]
        before = torch.zeros(fold.free.numel())
        for name in reached:
            used = fold.columns[name] >= 0
            before.scatter_reduce_(0, fold.columns[name][used], seen[name].absmax[used], reduce="amax")
        choice = choose_smoothing(consumers, before, fold.free)
        if choice.alpha is not None:
            draft.scale(fold, choice.scale)
        return FoldReport(
            transform=self.name, source=fold.name, layers=fold.consumers, alpha=choice.alpha, before=choice.before,
            after=choice.after, inputs_before=before.numpy(), inputs_after=(before / choice.scale).numpy(),
            measure="largest magnitude",
        )  # fmt: skip


def _consumer(draft: Draft, fold: Fold, name: str, given: Assignment, seen: Inputs) -> Consumer:
    weight = draft.weight(name)
    curvature = draft.curvature.get(name)
    importance = torch.ones(weight.shape[0]) if curvature is None else torch.from_numpy(curvature.rows).float()
    identity: Callable[[torch.Tensor], torch.Tensor] = lambda matrix: matrix  # noqa: E731
    return Consumer(
        weight=weight, inputs=torch.cat(seen.rows), channels=fold.columns[name], importance=importance,
        quantize=identity if given.weights == KEEP else parse_scheme(given.weights).quantize,
        quantize_inputs=partial(quantized_inputs, given.inputs, seen),
    )  # fmt: skip
