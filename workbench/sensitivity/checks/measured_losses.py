"""The losses of quantized weights on a part of the calibration's samples, measured to check what was predicted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from workbench.measurement.divergence import sample_divergence
from workbench.measurement.finite_batches import FiniteBatches
from workbench.measurement.gradients import fitting_batch
from workbench.memory import GROWN_IN_LIMIT, Footprint, Spill, give_back, put_away_again
from workbench.models.data.batches import Data, samples_of, units_of
from workbench.models.data.even_samples import EvenSamples
from workbench.models.model import Batch
from workbench.models.summary import OutputKind
from workbench.numerics.formats import parse_scheme
from workbench.numerics.rounding.round_weight import round_weight
from workbench.progress import Progress, part_of, silent
from workbench.sensitivity.checks.plan_checks import PlanChecks
from workbench.sensitivity.interaction import FEWEST
from workbench.sensitivity.scoring import Scoring

SHARE = 4
"""One of so many samples is measured on, but no fewer than FEWEST, or more where a sample has one answer."""

CHOICES, DISTANCES = 128, 40
"""So many samples at the least of answers that choose, where a few that change carry the loss, and of others: 40
sentences tell an embedding's distance to 8 %, 250 to 3 %."""

MOST = 256
"""No more samples than that are measured on."""

OUTPUT_BYTES = 1 << 24
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

    @property
    def tells(self) -> bool:
        """Whether the loss was measured well enough to say anything."""
        return self.measured > SMALLEST and self.error <= UNSURE


def samples_measured(count: int, output: OutputKind) -> int:
    """Return how many of ``count`` samples are measured on; 0 where they are too few to tell anything."""
    fewest = FEWEST if output.per_token else min(count, CHOICES if output.is_logits else DISTANCES)
    return min(max(count // SHARE, fewest), MOST) * (count >= FEWEST)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """Some of the samples, and what the model as it is gives for them."""

    scoring: Scoring
    batches: list[Batch]
    outputs: InFiles

    @staticmethod
    def of(scoring: Scoring, data: Data, count: int, weights: int, progress: Progress = silent) -> Reference:
        """Run the model on ``count`` samples of ``data``; so many ``weights`` will be in memory with the outputs."""
        model, batches, outputs = scoring.model, list[Batch](), InFiles(0)
        part = EvenSamples(data, count, model.inputs.batch)
        most = OUTPUT_BYTES * (len(data) // count)
        size = fitting_batch(scoring.batch_size, data, model, gradients=False, most=most)
        give_back()
        for _, batch, output in FiniteBatches(model=model).of(part, size):
            if not batches:
                outputs = InFiles(output.nbytes * -(-count // samples_of(batch)) + 4 * weights)
            outputs.add(str(len(batches)), output)
            batches.append(batch)
            progress(min(sum(map(samples_of, batches)) / count, 1.0), "checking the prediction by a few measurements")
        return Reference(scoring=scoring, batches=batches, outputs=outputs)

    def checks(self, rows: Iterable[Row]) -> PlanChecks | None:
        """Return what the rows tell, the smallest prediction first; None for rows that tell nothing."""
        distinct = sorted({row.predicted: row for row in rows if row.tells}.values())
        if not distinct:
            return None
        predicted, measured, error, bits = np.array(distinct).T.copy()
        samples = sum(map(samples_of, self.batches))
        return PlanChecks(predicted=predicted, measured=measured, error=error, bits=bits, samples=samples)

    @torch.no_grad()
    def measured(self, plan: Plan, loss: float, progress: Progress = silent, text: str = "") -> Row:
        """Quantize the model by a plan of that predicted ``loss`` and measure it; ``text`` is what progress says."""
        rounding, running = part_of(progress, 0.0, 0.5), part_of(progress, 0.5, 1.0)
        scoring = self.scoring
        model, losses, units, kind = scoring.model, list[torch.Tensor](), 0, scoring.model.summary.output
        give_back()  # what the table's cells or the plan before left
        rounded = InFiles(4 * sum(model.summary.by_name[name].parameters for name in plan))
        footprint = Footprint(GROWN_IN_LIMIT)
        for done, (name, scheme) in enumerate(plan.items()):
            rounding(done / len(plan), text)
            known = scoring.known(name)
            rounded.add(name, round_weight(name, model.weight(name), scheme, scoring.algorithm, known).values)
            footprint.settle()
        give_back()
        view, away, footprint = model.with_weights(rounded.tensors), rounded.away, Footprint(GROWN_IN_LIMIT)
        pairs = zip(self.outputs.tensors.items(), self.batches, strict=True)
        for done, ((number, output), batch) in enumerate(pairs):
            running(done / len(self.batches), text)
            divergence = sample_divergence(  # the logits have no name: they would stay while the next ones are made
                output, view.run(batch, tap=lambda name, *_: rounded.leave(name), layers=away), batch, kind
            )
            losses.append(divergence.double().cpu())
            units += units_of(batch, model.summary)
            self.outputs.leave(number)
            footprint.settle()
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
