"""AWQ on a model: one scale for each place where it can be folded; the maths is in numerics/equivalences/awq.py."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from workbench.errors import MissingResultError
from workbench.numerics.curvature import Curvature
from workbench.numerics.equivalences.awq import Consumer, choose_scale
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP
from workbench.quantization.transforms.cost import difference_cost
from workbench.quantization.transforms.folds import Fold, find_folds
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Awq:
    """Scales each fold's channels by the power of their magnitude that costs the layers' outputs least."""

    name: str = "awq"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Search one scale for each fold whose layers the plan quantizes; see the Transform contract."""
        folds = find_folds(setting.trace, draft.summary)
        changes, notes = [], []
        for fold in folds.require(draft.summary):
            quantized = [name for name in fold.columns if setting.assignments[name].weights != KEEP]
            if not quantized:
                continue
            bad = draft.finite(fold)
            if bad is not None:
                notes.append(f"{bad} holds NaN or infinite values: awq left {', '.join(fold.consumers)} alone")
                continue
            changes.append(self._scale(draft, setting, fold, quantized))
        return Outcome(changes=tuple(changes), notes=tuple(notes))

    def _scale(self, draft: Draft, setting: Setting, fold: Fold, quantized: list[str]) -> FoldReport:
        consumers = [
            Consumer(
                weight=draft.weight(name), channels=fold.columns[name],
                quantize=parse_scheme(setting.assignments[name].weights).quantize,
                loss=partial(difference_cost, _curvature(draft, name)),
            )
            for name in quantized
        ]  # fmt: skip
        before = magnitudes(draft, fold)
        choice = choose_scale(consumers, before, fold.free)
        if choice.alpha:
            draft.scale(fold, choice.scale)
        return FoldReport(
            transform=self.name, source=fold.name, layers=fold.consumers, alpha=choice.alpha or None,
            before=choice.before, after=choice.after, inputs_before=before.numpy(),
            inputs_after=magnitudes(draft, fold).numpy(), measure="root mean square",
        )  # fmt: skip


def _curvature(draft: Draft, layer: str) -> Curvature:
    curvature = draft.curvature.get(layer)
    if curvature is None:
        raise MissingResultError(
            f"awq needs the second moment of the inputs of {layer}, which was not collected; calibrate with curvature "
            "first, or take awq out of the plan's transforms"
        )
    return curvature


def magnitudes(draft: Draft, fold: Fold) -> torch.Tensor:
    """Return the root mean square of each channel where layers take it, float32 ``[channels]``."""
    largest = torch.zeros(fold.free.numel())
    for name, channels in fold.columns.items():
        used = channels >= 0
        values = torch.from_numpy(_curvature(draft, name).columns).clamp_min(0).sqrt().float()
        largest.scatter_reduce_(0, channels[used], values[used], reduce="amax")
    return largest
