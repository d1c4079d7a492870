"""The range that costs the model least: no rule on values alone tells which of them may be clipped at no cost.

What errors cost at a value is known from the gradients there.  Of rare values there are few, and they tell of small
errors only: clipping the largest values of a network to a tenth may change all that follows, whatever the slope says.
So a tenth of the layer's mean cost is added everywhere.
"""

from dataclasses import dataclass
from typing import ClassVar

from workbench.numerics.ranges.calibrated import Range
from workbench.numerics.ranges.mse import Mse
from workbench.numerics.scheme import Scheme
from workbench.numerics.statistics.layer_statistics import LayerStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss(Mse):
    """Searches as :class:`Mse` does, and finds the same where the output depends on no value.

    ``floor`` is the share of the mean cost that an error has at any value.
    """

    name: ClassVar[str] = "loss"
    floor: float = 0.1

    def range(self, statistics: LayerStatistics, scheme: Scheme) -> Range:
        """Return the range with the least predicted loss; that of :class:`Mse`, and its name, without gradients."""
        costs = statistics.costs
        if not costs.size:
            return Mse().range(statistics, scheme)
        if not costs.any():
            return self._least(statistics, scheme)
        return self._least(statistics, scheme, costs + self.floor * costs.sum() / statistics.count * statistics.counts)
