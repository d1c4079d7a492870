"""The inner half of the observed range: clips whatever lies further out."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.numerics.ranges.calibrated import Range
from workbench.numerics.scheme import Scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfRange:
    """Half of the minimum to half of the maximum."""

    @property
    def name(self) -> str:
        """``half-range``."""
        return "half-range"

    @property
    def title(self) -> str:
        """What menus show."""
        return "Half range"

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return half of the observed range, zero included."""
        low, high = min(statistics.minimum / 2, 0.0), max(statistics.maximum / 2, 0.0)
        return Range(low=low, high=high, method=self.name, clipped=0.0)
