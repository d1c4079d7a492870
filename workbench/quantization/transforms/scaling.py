"""AWQ and SmoothQuant on a model: one scale for each fold; the maths is in numerics/equivalences/scaling.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from workbench.errors import MissingResultError
from workbench.numerics.curvature import Curvature
from workbench.numerics.equivalences.scaling import (
    Choice,
    Consumer,
    awq_scales,
    choose_scale,
    largest,
    smoothing_scales,
)
from workbench.numerics.formats import parse_scheme
from workbench.planning.plan import KEEP, Assignment
from workbench.quantization.transforms.cost import Inputs, difference_cost, observe, quantized_inputs
from workbench.quantization.transforms.folds import Fold, find_folds
from workbench.quantization.transforms.rewrite import Draft
from workbench.quantization.transforms.transform import FoldReport, Outcome, Setting, non_finite_note


@dataclass(frozen=True, slots=True, kw_only=True)
class Awq:
    """Scales each fold's channels by the power of their magnitude that costs the layers' outputs least."""

    name: str = "awq"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Search one scale for each fold whose layers the plan quantizes; see the Transform contract."""
        folds, notes = _folds(draft, setting, self.name, lambda assignment: assignment.weights != KEEP)
        return Outcome(changes=tuple(self._scale(draft, setting, fold) for fold in folds), notes=tuple(notes))

    def _scale(self, draft: Draft, setting: Setting, fold: Fold) -> FoldReport:
        quantized = [name for name in fold.columns if setting.assignments[name].weights != KEEP]
        consumers = [_rounded(draft, setting.assignments[name], fold, name) for name in quantized]
        squares = {name: torch.from_numpy(_curvature(draft, name).columns) for name in fold.columns}
        magnitudes = largest(fold.free.numel(), (
            (channels, squares[name].clamp_min(0).sqrt().float()) for name, channels in fold.columns.items()
        ))  # fmt: skip
        choice = choose_scale(consumers, awq_scales(magnitudes, fold.free))
        return _scaled(draft, self.name, fold, choice)


def _rounded(draft: Draft, assignment: Assignment, fold: Fold, name: str) -> Consumer:
    weight, curvature = draft.weight(name), _curvature(draft, name)
    return Consumer(
        weight=weight, channels=fold.columns[name], quantize=parse_scheme(assignment.weights).quantize,
        loss=lambda rounded, factor: difference_cost(curvature, rounded / factor - weight),
    )  # fmt: skip


def _curvature(draft: Draft, layer: str) -> Curvature:
    curvature = draft.curvature.get(layer)
    if curvature is None:
        raise MissingResultError(
            f"awq needs the second moment of the inputs of {layer}, which was not collected; calibrate with curvature "
            "first, or take awq out of the plan's transforms"
        )
    return curvature


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothQuant:
    """Moves outliers from activations into weights where the plan quantizes both, as far as the outputs gain."""

    name: str = "smoothquant"

    def rewrite(self, draft: Draft, setting: Setting) -> Outcome:
        """Search one smoothing for each fold whose inputs the plan quantizes; see the Transform contract."""
        folds, notes = _folds(draft, setting, self.name, lambda assignment: bool(assignment.inputs))
        if not folds:
            notes.append("the plan quantizes no inputs that could be smoothed: smoothquant changed nothing")
            return Outcome(notes=tuple(notes))
        if setting.data is None:
            raise MissingResultError(
                "smoothquant needs calibration data to see the inputs of layers; calibrate first, or take smoothquant "
                "out of the plan's transforms"
            )
        layers = {name for fold in folds for name in fold.columns}
        seen = observe(draft.changes().apply(draft.model), setting.data, layers, setting.batch_size)
        return Outcome(changes=tuple(self._smooth(draft, setting, fold, seen) for fold in folds), notes=tuple(notes))

    def _smooth(self, draft: Draft, setting: Setting, fold: Fold, seen: dict[str, Inputs]) -> FoldReport:
        reached = {name: channels for name, channels in fold.columns.items() if name in seen}
        size = fold.free.numel()
        inputs = largest(size, ((channels, seen[name].absmax) for name, channels in reached.items()))
        weights = largest(size, ((channels, draft.weight(n).abs().amax(dim=0)) for n, channels in reached.items()))
        consumers = [_smoothed(draft, setting.assignments[name], fold, name, seen[name]) for name in reached]
        choice = choose_scale(consumers, smoothing_scales(inputs, weights, fold.free))
        return _scaled(draft, self.name, fold, choice)


def _smoothed(draft: Draft, assignment: Assignment, fold: Fold, name: str, seen: Inputs) -> Consumer:
    weight, curvature, inputs = draft.weight(name), draft.curvature.get(name), torch.cat(seen.rows)
    known = curvature is not None and curvature.has_gradients
    importance = torch.from_numpy(curvature.rows).float() if curvature and known else torch.ones(weight.shape[0])

    def output_error(rounded: torch.Tensor, factor: torch.Tensor) -> float:
        error = quantized_inputs(assignment.inputs, seen, inputs / factor, factor) @ rounded.T - inputs @ weight.T
        return float((error.square().mean(dim=0).double() * importance.double()).sum())

    quantize: Callable[[torch.Tensor], torch.Tensor] = lambda matrix: matrix  # noqa: E731
    if assignment.weights != KEEP:
        quantize = parse_scheme(assignment.weights).quantize
    return Consumer(weight=weight, channels=fold.columns[name], quantize=quantize, loss=output_error)


def _folds(
    draft: Draft, setting: Setting, transform: str, concerns: Callable[[Assignment], bool]
) -> tuple[list[Fold], list[str]]:
    """Return the finite folds with a layer whose assignment ``concerns`` the transform, and notes on the others."""
    folds, notes = [], []
    for fold in find_folds(setting.trace, draft.summary).require(draft.summary):
        if any(concerns(setting.assignments[name]) for name in fold.columns):
            tensor = draft.non_finite(fold.layers, fold.vectors)
            if tensor is None:
                folds.append(fold)
            else:
                notes.append(non_finite_note(tensor, transform, fold.consumers))
    return folds, notes


def _scaled(draft: Draft, transform: str, fold: Fold, choice: Choice) -> FoldReport:
    """Scale the fold where that costs less than leaving it as it is, and report it."""
    if choice.alpha:
        draft.scale(fold, choice.scale)
    return FoldReport(
        transform=transform, source=fold.name, layers=fold.consumers, alpha=choice.alpha or None,
        before=choice.before, after=choice.after,
    )  # fmt: skip
