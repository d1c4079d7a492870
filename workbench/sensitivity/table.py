"""Layer x scheme scores: what a scheme would cost each layer.  Higher is worse, always."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from workbench.measurement.units import NATS
from workbench.sensitivity.checks.plan_checks import PlanChecks
from workbench.sensitivity.confidence import coarseness, higher_orders
from workbench.sensitivity.interaction import Directions


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensitivity:
    """``score[layer, scheme]`` (float64; NaN: not computed) for quantizing that one layer's weight alone (its input, or
    keys or values, by an activation metric).

    ``directions`` say how errors of several layers add up, where the loss was predicted sample by sample.
    ``algorithm`` names how the weights were rounded; ``samples`` and ``seed`` say what was measured on; ``data_hash``
    on which data.  ``unused`` are layers that the model's output does not depend on: their scores are 0.
    ``error`` (float64 ``[layers]``) is the relative standard error of a layer's scores, by how samples scatter; NaN, or
    None, where that is not known.  ``rerouting`` (float64 ``[layers, schemes]``) is the part of the scores that tokens
    cost which are sent to other experts, None for none: of several layers these parts add up in squares.
    ``one_token`` is what a single one of these tokens costs: how many there are is a matter of chance.
    ``measured`` are layers of a predicted table whose losses were measured, since no gradient tells what they decide.
    ``checks`` are whole plans that were measured: what the sum of scores of a plan is predicted to cost (None: as it
    is).  ``uncorrected`` (float64 ``[layers, schemes]``) are the scores before cells of the layer were measured, NaN
    where none was; None for no layer.  ``complete`` is False for what a cancelled scoring left: its open cells wait.
    """

    metric: str
    unit: str
    layers: tuple[str, ...]
    schemes: tuple[str, ...]
    score: np.ndarray
    samples: int
    seed: int
    algorithm: str = "rtn-clip"
    data_hash: str = ""
    directions: Directions | None = None
    unused: tuple[str, ...] = ()
    error: np.ndarray | None = None
    rerouting: np.ndarray | None = None
    one_token: float = 0.0
    measured: tuple[str, ...] = ()
    checks: PlanChecks | None = None
    uncorrected: np.ndarray | None = None
    complete: bool = True

    @cached_property
    def row(self) -> dict[str, int]:
        """Index of each layer."""
        return {name: index for index, name in enumerate(self.layers)}

    @cached_property
    def column(self) -> dict[str, int]:
        """Index of each scheme."""
        return {name: index for index, name in enumerate(self.schemes)}

    def of(self, layer: str, scheme: str) -> float:
        """Return the cell's score, NaN where it was not computed."""
        if layer not in self.row or scheme not in self.column:
            return float("nan")
        return float(self.score[self.row[layer], self.column[scheme]])

    def cell(self, layer: str, scheme: str) -> tuple[float, float]:
        """Return a cell's score and its standard error."""
        return self.of(layer, scheme), self.error_of(layer, scheme)

    def rerouting_of(self, layer: str, scheme: str) -> float:
        """Return the part of a cell's score that adds up in squares; 0 where it has none."""
        if self.rerouting is None or math.isnan(score := self.of(layer, scheme)):
            return 0.0
        return min(float(self.rerouting[self.row[layer], self.column[scheme]]), score)

    def chance(self, rerouted: float) -> float:
        """Return the standard error of a loss that tokens cost which are sent to other experts, by their number."""
        return math.sqrt(rerouted * self.one_token)

    def error_of(self, layer: str, scheme: str) -> float:
        """Return the standard error of a cell, by how samples scatter and by chance, in the unit of its score."""
        return math.hypot(self.scatter_of(layer, scheme), self.chance(self.rerouting_of(layer, scheme)))

    def scatter_of(self, layer: str, scheme: str) -> float:
        """Return the standard error of a cell by how samples scatter; NaN where it is not known, 0 for a score of 0."""
        score = self.of(layer, scheme)
        if score == 0 or self.error is None or layer not in self.row:
            return 0.0 if score == 0 else float("nan")
        return score * float(self.error[self.row[layer]])

    def gathered(self, cells: Iterable[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what :meth:`of`, :meth:`scatter_of` and :meth:`rerouting_of` say of many cells (layer, scheme).

        Each is float64 ``[cells]``.
        """
        pairs = list(cells)
        rows, columns = (
            np.fromiter((known.get(pair[part], -1) for pair in pairs), np.intp, len(pairs))
            for part, known in enumerate((self.row, self.column))
        )
        unknown, nothing = (rows < 0) | (columns < 0), np.zeros(len(pairs))
        if unknown.all():
            return nothing + np.nan, nothing + np.nan, nothing
        score = np.where(unknown, np.nan, self.score[rows, columns])
        with np.errstate(invalid="ignore"):
            scatter = np.where(score == 0, 0.0, score * (np.nan if self.error is None else self.error[rows]))
        if self.rerouting is None:
            return score, scatter, nothing
        return score, scatter, np.where(np.isnan(score), 0.0, np.minimum(self.rerouting[rows, columns], score))

    def whole(self, loss: float) -> float:
        """Return what a plan of that second-order loss is predicted to cost by the measured plans, where there are."""
        return loss if self.checks is None else self.checks.whole(loss)

    def second_order(self, loss: float) -> float:
        """Return the largest second-order loss of plans that are predicted to cost at most ``loss``."""
        return loss if self.checks is None else self.checks.second_order(loss)

    def doubt(self, loss: float) -> float:
        """Return what the form may be wrong by for a plan of that second-order loss, as a logarithm at 95 %."""
        if self.checks is not None:
            return self.checks.doubt(loss)
        return higher_orders(loss) if self.unit == NATS else 0.0

    def remark(self, loss: float | None) -> str:
        """Return what is to be said of a prediction from that second-order loss; empty where that is nothing."""
        if loss is None or self.checks is not None:
            return "" if loss is None or self.checks is None else self.checks.sentence(loss)
        return coarseness(loss) if self.unit == NATS else ""

    def cells(self, layers: Sequence[str], schemes: Sequence[str]) -> np.ndarray:
        """Return the scores of ``layers`` x ``schemes``, NaN where they were not computed."""
        scores = np.array([[self.of(layer, scheme) for scheme in schemes] for layer in layers])
        return scores.reshape(len(layers), len(schemes))

    def as_predicted(self) -> Sensitivity:
        """Return the table before measured cells corrected others."""
        if self.uncorrected is None:
            return self
        score = np.where(np.isnan(self.uncorrected), self.score, self.uncorrected)
        return replace(self, score=score, uncorrected=None)

    @property
    def corrected(self) -> frozenset[str]:
        """The layers whose scores measured cells corrected."""
        known = () if self.uncorrected is None else np.isfinite(self.uncorrected).any(axis=1)
        return frozenset(name for name, is_corrected in zip(self.layers, known, strict=False) if is_corrected)

    def computed_like(self, other: Sensitivity) -> bool:
        """Return whether cells of both tables can stand in one."""
        same = ("metric", "algorithm", "samples", "seed", "data_hash")
        return all(getattr(self, name) == getattr(other, name) for name in same)

    def slopes(self, layer: str, scheme: str) -> np.ndarray | None:
        """Return the cell's slopes as :meth:`Directions.of` does, None where it has none."""
        loss = self.of(layer, scheme) - self.rerouting_of(layer, scheme)
        return None if self.directions is None else self.directions.of(layer, scheme, loss)
