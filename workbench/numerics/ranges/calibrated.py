"""A calibrated range, and the contract of the methods that find one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.errors import RangeError
from workbench.numerics.scheme import Scheme, is_symmetric
from workbench.numerics.statistics.histogram_moments import Moments
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A static range ``low <= 0 <= high`` in the units of the tensor, and the share of values that it clips (0 to 1).

    It becomes a scale only together with a scheme: ``scheme.fit_range(low, high)``.
    """

    low: float
    high: float
    method: str
    clipped: float


@runtime_checkable
class RangeMethod(Protocol):
    """A way to choose a range; a frozen dataclass whose fields are its options."""

    @property
    def name(self) -> str:
        """The method's name, as a plan writes it."""

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return the range for ``scheme``; RangeError if nothing was observed.  Numpy only, under 20 ms."""


def full_range(statistics: LayerStatistics, scheme: Scheme) -> tuple[float, float]:
    """Return the whole observed range with zero inside, mirrored for a symmetric scheme; RangeError if empty."""
    if not statistics.count:
        raise RangeError("nothing was observed, so no range can be formed; calibrate first")
    if is_symmetric(scheme):
        return -statistics.absmax, statistics.absmax
    return min(statistics.minimum, 0.0), max(statistics.maximum, 0.0)


def clipping_range(statistics: LayerStatistics, low: float, high: float, method: str) -> Range:
    """Return the range with its share of clipped values."""
    clipped = Moments.of(statistics).outside(low, high)
    return Range(low=low, high=high, method=method, clipped=clipped)
