"""A table of layers x schemes while it is filled: what metrics compute their cells from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.errors import MissingResultError
from workbench.measurement.finite_batches import FiniteBatches
from workbench.measurement.shared_weights import curvature_of
from workbench.models.data.batches import Data, require_data
from workbench.models.execution.activation_quantizers import Ranges
from workbench.models.model import Model
from workbench.numerics.curvature import Curvature
from workbench.numerics.rounding.round_weight import round_weight
from workbench.progress import Progress
from workbench.sensitivity.checks.plan_checks import PlanChecks
from workbench.sensitivity.interaction import Directions, relative_error
from workbench.sensitivity.table import Sensitivity

Row = tuple[str, dict[str, float]]
"""A layer and the loss of each scheme."""

Sloped = tuple[str, dict[str, float], dict[str, np.ndarray]]
"""A layer, the loss of each scheme, and the slopes (float32 ``[draws]``) of those that have any."""


@dataclass(slots=True, kw_only=True)
class Scoring:
    """The table being filled, and what its cells are computed from."""

    model: Model
    table: Sensitivity
    curvature: Mapping[str, Curvature]
    dataset: Data | None
    batch_size: int
    seed: int
    algorithm: str
    progress: Progress
    finite: FiniteBatches
    ranges: Ranges = field(default_factory=dict)
    slopes: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    measured: set[str] = field(default_factory=set)
    checks: PlanChecks | None = None
    rerouted: np.ndarray = field(init=False)
    uncorrected: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.measured.update(self.table.measured)
        self.checks = self.table.checks
        known_parts = self.table.rerouting
        self.rerouted = np.zeros_like(self.table.score) if known_parts is None else known_parts.copy()
        before = self.table.uncorrected
        self.uncorrected = np.full_like(self.table.score, math.nan) if before is None else before.copy()
        if self.table.error is not None:
            self.errors.update(zip(self.table.layers, self.table.error.tolist(), strict=True))
        known = self.table.directions
        for name in self.table.layers if known is not None else ():
            if known is not None and name in known.layers:
                row = known.row(name)
                self.slopes[name] = {scheme: row[scheme] for scheme in self.table.schemes if scheme in row}

    def snapshot(self) -> Sensitivity:
        """Return the table so far; open cells are NaN."""
        ordered = {name: self.slopes[name] for name in self.table.layers if name in self.slopes}
        directions = Directions.gather(self.table.schemes, ordered)
        known = [self.errors.get(name, math.nan) for name in self.table.layers]
        error = None if np.isnan(known).all() else np.array(known)
        rerouting = self.rerouted.copy() if self.rerouted.any() else None
        return replace(
            self.table, score=self.table.score.copy(), directions=directions, error=error, rerouting=rerouting,
            measured=tuple(name for name in self.table.layers if name in self.measured), checks=self.checks,
            uncorrected=None if np.isnan(self.uncorrected).all() else self.uncorrected.copy(),
        )  # fmt: skip

    def reroute(self, name: str, scheme: str, loss: float) -> float:
        """Keep the part of a cell's loss that tokens cost which are sent to other experts; return it."""
        self.rerouted[self.table.row[name], self.table.column[scheme]] = loss
        return loss

    def fill(self, rows: Iterable[Row], total: int, start: float = 0.0) -> None:
        """Add rows as they come; cells that were there already are kept."""
        for number, (name, losses) in enumerate(rows):
            row = self.table.row[name]
            for scheme, loss in losses.items():
                column = self.table.column[scheme]
                if np.isnan(self.table.score[row, column]):
                    self.table.score[row, column] = loss
            done = start + (1 - start) * (number + 1) / max(total, 1)
            self.progress(done, f"scored {name}", self.snapshot())

    def with_slopes(self, rows: Iterable[Sloped]) -> Iterator[Row]:
        """Keep the slopes of rows as they come."""
        for name, losses, slopes in rows:
            self.slopes[name] = slopes
            self.errors[name] = relative_error(slopes, self.table.samples)
            yield name, losses

    def require_data(self, what: str) -> Data:
        """Return the data; raises MissingResultError where there are none, DataError, CannotRunError."""
        if self.dataset is None:
            raise MissingResultError(f"{self.table.metric} needs data to run the model on; give a data set")
        require_data(self.model, self.dataset, what)
        return self.dataset

    def known(self, name: str) -> Curvature | None:
        """Return what the algorithm knows of a weight."""
        return curvature_of(self.model.summary, self.curvature, name)

    def squared_errors(self, name: str, schemes: Sequence[str]) -> dict[str, float]:
        """Return the squared error of a layer's weight rounded to each scheme."""
        weight, known = self.model.held_weight(name).float(), self.known(name)
        errors = {}
        for scheme in schemes:
            rounded = round_weight(name, weight, scheme, self.algorithm, known).values
            errors[scheme] = float((rounded.double() - weight).square().sum())
        return errors

    def ticker(self, cells: Mapping[str, Sequence[str]], batches: int) -> Ticker:
        """Return what counts one step for each cell and batch."""
        return Ticker(progress=self.progress, total=max(batches * sum(map(len, cells.values())), 1))


@dataclass(slots=True, kw_only=True)
class Ticker:
    """Counts cells, and lets a cancellation through in the middle of a row."""

    progress: Progress
    total: int
    done: int = 0

    def __call__(self, text: str) -> None:
        self.progress(min(self.done / self.total, 1.0), text)
        self.done += 1
