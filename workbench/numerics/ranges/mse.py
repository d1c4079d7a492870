"""The range with the least mean squared error of clipping and rounding together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.errors import RangeError
from workbench.numerics.ranges.calibrated import Range, clipping_range, full_range
from workbench.numerics.scheme import Scheme, is_symmetric
from workbench.numerics.statistics.histogram_moments import Moments
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Mse:
    """Tries ``candidates`` shares of the full range, from all of it down to ``least``, then refines around the best.

    For an asymmetric scheme both ends shrink together first, then each end alone.
    """

    name: ClassVar[str] = "mse"
    candidates: int = 64
    least: float = 0.02

    def __post_init__(self) -> None:
        if self.candidates < 2 or not 0 < self.least < 1:
            raise RangeError(
                f"expected at least 2 candidates and 0 < least < 1; got {self.candidates} and {self.least}"
            )

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return the range with the least error as the histogram tells it; never worse than the full range."""
        return self._least(statistics, scheme)

    def _least(self, statistics: LayerStatistics, scheme: Scheme, weights: np.ndarray | None = None) -> Range:
        low, high = full_range(statistics, scheme)
        if not scheme.grids(np.array([low]), np.array([high])).size:
            return clipping_range(statistics, low, high, self.name)
        least, most = low, high
        moments = Moments.of(statistics, weights)
        shares = np.geomspace(1.0, self.least, self.candidates)
        low, high = _best(moments, scheme, low * shares, high * shares)
        step = shares[0] / shares[1]
        fine = np.concatenate([[1.0], np.linspace(1 / step, step, 24)])
        for _ in range(1 if is_symmetric(scheme) else 2):
            if not is_symmetric(scheme):
                wide = np.concatenate([[1.0], np.geomspace(0.1, 1.5, 40)])
                low, high = _best(moments, scheme, np.maximum(low * wide, least), np.full(wide.size, high))
                low, high = _best(moments, scheme, np.full(wide.size, low), np.minimum(high * wide, most))
            low, high = _best(moments, scheme, np.maximum(low * fine, least), np.minimum(high * fine, most))
        return clipping_range(statistics, low, high, self.name)


def _best(moments: Moments, scheme: Scheme, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Return the pair with the least squared error, the first of equals."""
    index = int(np.argmin(moments.squared_error(scheme.grids(low, high))))
    return float(low[index]), float(high[index])
