"""A few whole plans of several sizes, measured on a part of the calibration's samples.

What they say about all others is in :mod:`workbench.sensitivity.checks.plan_checks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from workbench.measurement.divergence import sample_divergence
from workbench.measurement.finite_batches import FiniteBatches
from workbench.measurement.gradients import fitting_batch
from workbench.memory import Footprint, Spill, available_memory, give_back, put_away_again
from workbench.models.data.batches import Data, samples_of, units_of
from workbench.models.data.record import DataRecord
from workbench.models.model import Batch, Model
from workbench.models.summary import OutputKind, embeddings
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding.round_weight import round_weight
from workbench.sensitivity.checks.plan_checks import PlanChecks
from workbench.sensitivity.interaction import FEWEST, interaction_of
from workbench.sensitivity.refine import price_within
from workbench.sensitivity.scoring import Scoring
from workbench.sensitivity.table import Sensitivity

BITS = (2.5, 3.0, 4.0, 5.5)
"""The bits per weight of the plans that are measured, as far as the table's schemes reach."""

SHARE = 4
"""One of so many samples is measured on, but no fewer than FEWEST, or ENOUGH where a sample has one answer, a choice: a
few that change carry the loss.  (Distances of embeddings are known to 3 % from 250 sentences.)"""

ENOUGH = 128

MOST = 256
"""No more samples than that are measured on."""

ROOM = 0.5
"""A plan's weights may take so much of the free memory; else nothing is measured, and ranges stay wide."""

OUTPUT_BYTES = 1 << 25
"""The most bytes of logits that are compared at once."""

UNSURE = 0.6
"""A measured loss of a larger relative standard error says nothing: a few samples carry it all."""

SMALLEST = 1e-9
"""A loss below this is rounding of float32."""

Plan = dict[str, str]
"""The scheme of each layer."""


class Row(NamedTuple):
    """A plan's second-order loss, its measured one, that one's relative standard error, and its bits per weight."""

    predicted: float
    measured: float
    error: float
    bits: float


def measured_plans(scoring: Scoring, data: Data) -> PlanChecks | None:
    """Measure the best plans of a few sizes by the table so far; None where that is not possible.

    Takes ``1 + len(BITS)`` passes over a quarter of the samples, and rounds all weights for each plan.  Embeddings, and
    what is not quantized by default, stay as they are.
    """
    table, model = scoring.snapshot(), scoring.model
    count = samples_measured(len(data), model.summary.output)
    names = _searched(scoring)
    weights = sum(model.summary.by_name[name].parameters for name in names)
    if not names or count < FEWEST or 4 * weights > ROOM * available_memory():
        return None
    part = EvenSamples(data, count, model.inputs.batch)
    size = fitting_batch(scoring.batch_size, data, model, gradients=False, most=OUTPUT_BYTES * (len(data) // count))
    give_back()
    finite, batches, outputs = FiniteBatches(model=model), list[Batch](), InFiles(0)
    for _, batch, output in finite.of(part, size):
        if not batches:
            outputs = InFiles(output.nbytes * -(-count // samples_of(batch)) + 4 * weights)
        outputs.add(str(len(batches)), output)
        batches.append(batch)
    rows: list[Row] = []
    for number, plan in enumerate(_plans(table, model, names)):
        scoring.progress(number / len(BITS), f"measuring whole plans, number {number + 1}")
        loss = second_order(table, plan)
        if SMALLEST < loss < math.inf:
            rows.append(_row(scoring, plan, loss, batches, outputs))
    distinct = sorted({row.predicted: row for row in rows if row.measured > SMALLEST and row.error <= UNSURE}.values())
    if not distinct:
        return None
    predicted, measured, error, bits = np.array(distinct).T.copy()
    samples = sum(map(samples_of, batches))
    return PlanChecks(predicted=predicted, measured=measured, error=error, bits=bits, samples=samples)


def samples_measured(count: int, output: OutputKind) -> int:
    """Return how many of ``count`` samples are measured on; 0 where they are too few to tell anything."""
    fewest = FEWEST if output.per_token or not output.is_logits else min(count, ENOUGH)
    return min(max(count // SHARE, fewest), MOST) * (count >= FEWEST)


def second_order(table: Sensitivity, plan: Mapping[str, str]) -> float:
    """Return the second-order loss of a plan as the totals of a plan add it up (see ``planning.totals``)."""
    rerouted = [table.rerouting_of(*cell) for cell in plan.items()]
    own = math.fsum(table.of(*cell) for cell in plan.items()) - math.fsum(rerouted)
    together = interaction_of(table.slopes(*cell) for cell in plan.items())
    return max(own + math.hypot(*rerouted) + together, 0.0)


def _searched(scoring: Scoring) -> list[str]:
    """Return the layers that a plan quantizes by default and whose losses are known, in the order of the table."""
    table, summary = scoring.table, scoring.model.summary
    tables = embeddings(summary.layers)
    return [
        name for name in table.layers
        if name not in table.unused and name not in tables and not summary.by_name[name].keep
        and np.isfinite(table.score[table.row[name]]).any()
    ]  # fmt: skip


def _plans(table: Sensitivity, model: Model, names: list[str]) -> Iterator[Plan]:
    """Yield the plan of the least second-order loss for each of BITS, or the closest; each plan once."""
    layers, schemes = [model.summary.by_name[name] for name in names], [parse_scheme(name) for name in table.schemes]
    bits = np.array([[float(scheme.bits(layer.matrix)) for scheme in schemes] for layer in layers])
    loss = table.cells(names, table.schemes)
    loss = np.where(np.isnan(loss), np.inf, loss)
    weights, seen = sum(layer.parameters for layer in layers), set[tuple[int, ...]]()
    for budget in BITS:
        picks = (loss + price_within(loss, bits, budget * weights) * bits).argmin(axis=1).tolist()
        if tuple(picks) not in seen:
            seen.add(tuple(picks))
            yield {name: table.schemes[pick] for name, pick in zip(names, picks, strict=True)}


@torch.no_grad()
def _row(scoring: Scoring, plan: Plan, loss: float, batches: list[Batch], outputs: InFiles) -> Row:
    """Quantize the model by a plan and measure it against the ``outputs`` of the model for the ``batches``."""
    model, losses, units = scoring.model, list[torch.Tensor](), 0
    rounded = InFiles(4 * sum(model.summary.by_name[name].parameters for name in plan))
    footprint = Footprint()
    for name, scheme in plan.items():
        known = scoring.curvature.get(name)
        rounded.add(name, round_weight(name, model.weight(name), scheme, scoring.algorithm, known).values)
        footprint.settle()
    give_back()
    view, away = model.with_weights(rounded.tensors), rounded.away
    for (number, output), batch in zip(outputs.tensors.items(), batches, strict=True):
        losses.append(sample_divergence(
            output, view.run(batch, tap=lambda name, *_: rounded.leave(name), layers=away), batch, model.summary.output
        ).double().cpu())  # fmt: skip
        units += units_of(batch, model.summary)
        outputs.leave(number)
    each = torch.cat(losses).numpy()
    stored = [model.summary.by_name[name] for name in plan]
    bits = sum(parse_scheme(plan[layer.name]).bits(layer.matrix) for layer in stored)
    mean = float(each.mean())
    return Row(
        predicted=loss, measured=float(each.sum()) / max(units, 1),
        error=float(each.std(ddof=1)) / mean / math.sqrt(each.size) if mean > 0 else 0.0,
        bits=bits / sum(layer.parameters for layer in stored),
    )  # fmt: skip


class InFiles:
    """Tensors by name, in files where the disk has room for ``nbytes``: they take memory from a use to ``leave``."""

    def __init__(self, nbytes: int) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self._spill, self._octets = Spill.in_files(nbytes), dict[str, np.ndarray]()

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Keep a tensor."""
        tensor = tensor.detach()
        if tensor.device.type == "cpu":
            raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
            away = self._spill.put_away(raw)
            if away is not raw:
                self._octets[name] = away
                tensor = torch.from_numpy(away).view(tensor.dtype).reshape(tensor.shape)
        self.tensors[name] = tensor

    @property
    def away(self) -> tuple[str, ...]:
        """The names of the tensors that lie in files."""
        return tuple(self._octets)

    def leave(self, name: str) -> None:
        """Have a tensor that lies in a file leave the memory until it is read."""
        if name in self._octets:
            put_away_again(self._octets[name])


@dataclass(frozen=True)
class EvenSamples:
    """``count`` samples evenly through ``data``; about as many where the model takes ``fixed`` batches."""

    data: Data
    count: int
    fixed: int | None = None

    @property
    def record(self) -> DataRecord:
        """The record of all of the data."""
        return self.data.record

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.count

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield what is chosen of each batch of all samples, as far as anything is."""
        total, start = len(self.data), 0
        for number, batch in enumerate(self.data.batches(batch_size)):
            size = samples_of(batch)
            rows = (torch.arange(start, start + size) * self.count % total < self.count).nonzero().flatten()
            if self.fixed:
                rows = torch.arange(size if number % max(total // self.count, 1) == 0 else 0)
            start += size
            if len(rows):
                yield {name: tensor[rows] for name, tensor in batch.items()}
