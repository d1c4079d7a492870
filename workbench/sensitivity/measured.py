"""Scores that run the model with one layer quantized at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from workbench.measurement.finite_batches import FiniteBatches
from workbench.models.data.batches import Data, numbered_batches, tappable, units_of
from workbench.models.execution.network import NetworkModel
from workbench.models.execution.resume import Resumable, layer_outputs
from workbench.models.model import Batch, Model
from workbench.numerics.curvature import output_energy
from workbench.numerics.rounding.round_weight import round_weight
from workbench.sensitivity.scoring import Row, Scoring
from workbench.sensitivity.single_layer_runs import SingleLayerRuns, Tick
from workbench.sensitivity.stacked_rounding import in_groups, rounded_layers

ROUNDED_BYTES = 1 << 29
"""Layers of one block are measured together while their rounded weights take at most so much."""

Matrices = Mapping[str, Mapping[str, torch.Tensor]]
"""By layer and key."""


def measured_rows(
    scoring: Scoring, data: Data, cells: Mapping[str, Sequence[str]], tick: Tick, errors: dict[str, float] | None = None
) -> Iterator[Row]:
    """Yield (layer, scheme to KL(reference || one layer quantized)): nats per token or per sample.

    Each run begins at the changed layer, with what ran before it taken from memory.  Models without logits: half the
    squared distance of the outputs, per sample.  ``errors`` gets each layer's relative standard error, as
    :func:`replaced_rows` says.
    """

    def rounded(names: Sequence[str]) -> Matrices:
        part = {name: cells[name] for name in names}
        return dict(rounded_layers(scoring.model, part, scoring.algorithm, scoring.curvature))

    return replaced_rows(
        scoring.model, cells, rounded, data, batch_size=scoring.batch_size, tick=tick, finite=scoring.finite,
        errors=errors,
    )  # fmt: skip


def replaced_rows(
    model: Model, cells: Mapping[str, Sequence[str]], matrices_of: Callable[[Sequence[str]], Matrices], data: Data, *,
    batch_size: int, tick: Tick, finite: FiniteBatches, errors: dict[str, float] | None = None,
) -> Iterator[Row]:  # fmt: skip
    """Yield the same for any replacement: ``matrices_of(layers)`` gives those of each key.

    NaN for a layer that no data reached: its loss is not known, and not zero.  Batches on which the model gives NaN or
    infinity are left out; ``finite`` says which.  ``errors`` gets the relative standard error of a layer's losses by
    how batches scatter, the median of the keys; none of fewer than two batches.  Raises DataError if none is left.
    """
    runs = SingleLayerRuns(model=model, resumable=Resumable(model) if isinstance(model, NetworkModel) else None)
    for group in in_groups(model.summary, cells, ROUNDED_BYTES, runs.together):
        matrices = matrices_of(group)
        parts: dict[str, dict[str, list[float]]] = {name: {key: [] for key in cells[name]} for name in group}
        units = list[int]()
        for _, batch, _ in finite.of(data, batch_size, partial(runs.begin, group)):
            units.append(units_of(batch, model.summary))
            for name in group:
                for key, loss in runs.losses(name, matrices[name], batch, tick):
                    parts[name][key].append(loss)
        runs.end()
        for name in group:
            sums = {key: math.fsum(losses) for key, losses in parts[name].items()}
            lost = runs.unreached(name, sums.values())
            if errors is not None and not lost and not math.isnan(error := _scatter(parts[name].values(), units)):
                errors[name] = error
            yield name, {key: math.nan if lost else loss / sum(units) for key, loss in sums.items()}


def _scatter(losses: Iterable[Sequence[float]], units: Sequence[int]) -> float:
    """Return the relative standard error of sums of ``losses`` over batches of so many ``units``, a ratio's; the median
    of those that are not 0, NaN where there is none."""
    count, errors = len(units), list[float]()
    for each in losses:
        total = math.fsum(each)
        if count > 1 and total > 0:
            apart = np.array(each) - total / sum(units) * np.array(units)
            errors.append(math.sqrt(count / (count - 1) * float(apart @ apart)) / total)
    return float(np.median(errors)) if errors else math.nan


def running(
    model: Model, layers: Sequence[str], data: Data, batch_size: int, finite: FiniteBatches
) -> frozenset[str]:  # fmt: skip
    """Return those of ``layers`` that run on any row of ``data``; one pass, none without layers."""
    reached: set[str] = set()

    def tap(name: str, x: torch.Tensor, output: torch.Tensor) -> None:
        reached.update([name] if x.numel() else ())

    def run(_: int, batch: Batch) -> torch.Tensor:
        with torch.no_grad():
            return model.run(batch, tap=tap, layers=tuple(layers))

    for _ in finite.of(data, batch_size, run) if layers else ():
        pass
    return frozenset(reached)


def output_rows(scoring: Scoring, cells: Mapping[str, Sequence[str]], tick: Tick) -> Iterator[Row]:
    """Yield (layer, scheme to ``sum |D x|**2 / sum |W x|**2``) over the layer's calibration inputs.

    From the second moment ``A`` of the inputs where it was collected (``tr(D A D') / tr(W A W')``), else from the
    layer run alone on its own inputs, which one pass catches.  A layer without either stays open (NaN).
    A note names each batch that is left out because the layer's own output on it is not finite.
    """
    model = scoring.model
    tapped = {layer.name for layer in tappable(model)}
    for name, schemes in cells.items():
        weight = model.held_weight(name).float()
        moment = scoring.curvature.get(name)
        rounded = {}
        for scheme in schemes:
            tick(f"{name} as {scheme}")
            rounded[scheme] = round_weight(name, weight, scheme, scoring.algorithm, scoring.known(name)).values
        if moment is not None and moment.full is not None and (moment.by_loss is None or name not in tapped):
            yield name, _errors_by_moment(weight, rounded, torch.from_numpy(moment.full))
        elif scoring.dataset is not None and name in tapped:
            yield name, _tapped_errors(scoring, scoring.dataset, name, weight, rounded)
        elif moment is not None and not moment.has_gradients:
            yield name, _errors_by_importance(weight, rounded, torch.from_numpy(moment.importance()))
        else:
            yield name, dict.fromkeys(schemes, math.nan)


def _errors_by_moment(
    weight: torch.Tensor, rounded: Mapping[str, torch.Tensor], full: torch.Tensor
) -> dict[str, float]:
    energy = output_energy(weight, full).sum().clamp_min(1e-300)
    return {scheme: float(output_energy(matrix - weight, full).sum() / energy) for scheme, matrix in rounded.items()}


def _errors_by_importance(
    weight: torch.Tensor, rounded: Mapping[str, torch.Tensor], importance: torch.Tensor
) -> dict[str, float]:
    energy = float((weight.square() * importance).sum(dtype=torch.float64)) or math.nan
    errors = {s: (matrix - weight).square() * importance for s, matrix in rounded.items()}
    return {scheme: float(error.sum(dtype=torch.float64)) / energy for scheme, error in errors.items()}


def _tapped_errors(
    scoring: Scoring, data: Data, name: str, weight: torch.Tensor, rounded: Mapping[str, torch.Tensor]
) -> dict[str, float]:
    """Return each scheme's error at the layer's output, its input being that of the model as it is."""
    matrices = [weight, torch.zeros_like(weight), *rounded.values()]
    energy, errors = 0.0, [0.0] * len(rounded)
    with torch.no_grad():
        for number, batch in numbered_batches(scoring.model, data, scoring.batch_size):
            exact, bias, *others = layer_outputs(scoring.model, batch, name, matrices)
            if not all(bool(output.isfinite().all()) for output in exact):
                scoring.finite.notes.append(
                    f"batch {number + 1} was left out: the output of {name} holds NaN or infinite values"
                )
                continue
            energy += _distance(exact, bias)
            for index, other in enumerate(others):
                errors[index] += _distance(other, exact)
    return {s: error / energy if energy else math.nan for s, error in zip(rounded, errors, strict=True)}


def _distance(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> float:
    return sum(float((a.double() - b.double()).square().sum()) for a, b in zip(some, others, strict=True))
