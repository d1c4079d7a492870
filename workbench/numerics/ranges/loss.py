"""The range that costs the model least: no rule on values alone tells which of them may be clipped at no cost."""

from dataclasses import dataclass
from typing import ClassVar

from workbench.errors import RangeError
from workbench.numerics.ranges.calibrated import Range
from workbench.numerics.ranges.mse import Mse
from workbench.numerics.scheme import Scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss(Mse):
    """Searches as :class:`Mse` does, and finds the same where the output depends on no value."""

    name: ClassVar[str] = "loss"

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return the range with the least predicted loss; RangeError where gradients were not noted."""
        costs = statistics.costs
        if statistics.count and not costs.size:
            raise RangeError("the range method loss lacks the gradients at inputs; calibrate with --input-gradients")
        return self._least(statistics, scheme, costs if costs.any() else None)
