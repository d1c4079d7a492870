"""The range that keeps a given share of the values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.errors import RangeError
from workbench.numerics.ranges.calibrated import Range, clipping_range, full_range
from workbench.numerics.scheme import Scheme, is_symmetric
from workbench.numerics.statistics.layer_statistics import BINS, LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentile:
    """Keeps ``percentile`` percent of the values.

    A symmetric range cuts the magnitudes there; an asymmetric one cuts half of the tail off each end.
    """

    name: ClassVar[str] = "percentile"
    percentile: float = 99.99

    def __post_init__(self) -> None:
        if not 0 < self.percentile <= 100:
            raise RangeError(f"expected a percentile above 0 and up to 100; got {self.percentile}")

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return the range, never wider than the observed one."""
        low, high = full_range(statistics, scheme)
        share = self.percentile / 100
        if is_symmetric(scheme):
            half = BINS // 2
            magnitudes = statistics.counts[half:] + statistics.counts[:half][::-1]
            cut = _quantile(magnitudes, 0.0, statistics.bin_width, share)
            low, high = max(low, -cut), min(high, cut)
        else:
            start, tail = float(statistics.edges[0]), (1 - share) / 2
            low = max(low, min(_quantile(statistics.counts, start, statistics.bin_width, tail), 0.0))
            high = min(high, max(_quantile(statistics.counts, start, statistics.bin_width, 1 - tail), 0.0))
        return clipping_range(statistics, low, high, self.name)


def _quantile(counts: np.ndarray, start: float, width: float, share: float) -> float:
    """Return the value below which ``share`` of the values lie, taken as spread evenly within each bin."""
    cumulative = np.cumsum(counts)
    target = share * float(cumulative[-1])
    index = min(int(np.searchsorted(cumulative, target, side="left")), counts.size - 1)
    before = float(cumulative[index]) - float(counts[index])
    inside = (target - before) / float(counts[index]) if counts[index] else 0.0
    return start + (index + min(max(inside, 0.0), 1.0)) * width
