"""What a plan may cost: bytes, bits per weight, microseconds, predicted loss; and kernel times by layer and scheme."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

from workbench.errors import MissingResultError, PlanError
from workbench.measurement.evaluation import Timing
from workbench.models.layer import Layer
from workbench.models.summary import ModelSummary
from workbench.planning.plan import KEEP, Assignment

GOALS = ("loss", "nbytes", "bits_per_weight", "microseconds")
"""What a search can minimise."""

Shape = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Upper limits; None does not limit.

    ``nbytes`` of the whole model, ``bits_per_weight`` as totals count them, ``microseconds`` of all timed layers
    together, ``loss`` in the unit of the sensitivity table.
    """

    nbytes: int | None = None
    bits_per_weight: float | None = None
    microseconds: float | None = None
    loss: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not math.isfinite(value):
                raise PlanError(f"{TITLES[field.name]} must be a finite number; got {value}")

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    def __str__(self) -> str:
        parts = (
            None if self.bits_per_weight is None else f"{self.bits_per_weight:g} bits per weight",
            None if self.nbytes is None else f"{self.nbytes} bytes",
            None if self.microseconds is None else f"{self.microseconds:g} microseconds",
            None if self.loss is None else f"a loss of {self.loss:g}",
        )
        return " and ".join(filter(None, parts))


TITLES = {
    "loss": "predicted loss", "nbytes": "bytes", "bits_per_weight": "bits per weight", "microseconds": "microseconds",
}  # fmt: skip
"""What the user reads for each goal and budget."""


class Times(Protocol):
    """Microseconds of a layer under a choice."""

    def of(self, layer: Layer, weights: str, inputs: str | None) -> float:
        """Return the microseconds, NaN where they are not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredTimes:
    """Medians of timed kernels on ``device`` with inputs of ``batch`` rows.

    ``quantized`` maps (matrix shape, weight scheme), ``baseline`` the shape to the floating-point kernel's time.
    """

    device: str
    batch: int
    quantized: Mapping[tuple[Shape, str], float]
    baseline: Mapping[Shape, float]

    @staticmethod
    def from_timings(timings: Iterable[Timing], batch: int | None = None) -> MeasuredTimes:
        """Collect the timings of one batch size (default: the last timed); MissingResultError if there are none.

        Timings of the device that was timed last are taken; of several of one shape and scheme, the last.
        """
        everything = tuple(timings)
        chosen = [timing for timing in everything if batch is None or timing.batch == batch]
        if not chosen:
            batches = sorted({timing.batch for timing in everything})
            there = f"; there are timings at {', '.join(map(str, batches))}" if batches else ""
            at = "" if batch is None else f" at batch size {batch}"
            raise MissingResultError(
                f"no kernel was timed{at}{there}; time the kernels first", command="workbench bench S.qwb"
            )
        last = chosen[-1]
        used = [timing for timing in chosen if (timing.device, timing.batch) == (last.device, last.batch)]
        return MeasuredTimes(
            device=last.device, batch=last.batch,
            quantized={(timing.shape, timing.scheme): timing.median for timing in used},
            baseline={timing.shape: timing.baseline_median for timing in used},
        )  # fmt: skip

    def of(self, layer: Layer, weights: str, inputs: str | None) -> float:
        """Return the median microseconds, NaN where that shape and scheme were not timed."""
        if weights == KEEP:
            return self.baseline.get(layer.matrix, math.nan)
        return self.quantized.get((layer.matrix, weights), math.nan)


def plan_microseconds(summary: ModelSummary, assignments: Mapping[str, Assignment], times: Times) -> float:
    """Return the microseconds of the layers of ``assignments`` that have a time; those not timed count nothing."""
    spent = (times.of(summary.by_name[name], each.weights, each.inputs) for name, each in assignments.items())
    return math.fsum(value for value in spent if not math.isnan(value))
