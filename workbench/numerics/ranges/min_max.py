"""The whole observed range: clips nothing, and one outlier makes every step coarse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from workbench.numerics.ranges.calibrated import Range, clipping_range, full_range
from workbench.numerics.scheme import Scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class MinMax:
    """From the least to the greatest value."""

    name: ClassVar[str] = "min-max"

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return the observed range, zero included, mirrored for a symmetric scheme."""
        return clipping_range(statistics, *full_range(statistics, scheme), self.name)
