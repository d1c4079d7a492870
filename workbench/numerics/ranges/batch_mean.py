"""The mean of the batches' extremes (``moving-average`` in plans): one unusual batch widens the range little.

The moving average of observers (``x <- momentum * x + (1 - momentum) * batch``) depends on the order of the batches and
forgets the first ones.  Here every batch counts alike, so the result is the same in any order and on any number of
machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from workbench.numerics.ranges.calibrated import Range, clipping_range, full_range
from workbench.numerics.scheme import Scheme, is_symmetric
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMean:
    """From the mean of the batches' least values to the mean of their greatest."""

    name: ClassVar[str] = "moving-average"

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return the mean range, zero included, mirrored for a symmetric scheme to the wider of its sides.

        The whole observed range where the batches were not counted (statistics stored by an earlier version).
        """
        low, high = full_range(statistics, scheme)
        if statistics.batches:
            mean_low = min(statistics.minimum_total / statistics.batches, 0.0)
            mean_high = max(statistics.maximum_total / statistics.batches, 0.0)
            if is_symmetric(scheme):
                mean_high = max(-mean_low, mean_high)
                mean_low = -mean_high
            low, high = max(low, mean_low), min(high, mean_high)
        return clipping_range(statistics, low, high, self.name)
