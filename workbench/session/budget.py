"""What a search of a plan may use, as the user chose it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

LOWEST, HIGHEST = 1e-9, 1e12
"""What amounts may be, in any unit."""


class BudgetUnit(StrEnum):
    """What a search is limited in; a loss is in the unit of the table that is shown."""

    BITS_PER_WEIGHT = "bits per weight"
    MEGABYTES = "MB of the whole model"
    LOSS = "predicted loss"
    MICROSECONDS = "µs of kernels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a search may use; ``problem`` says what is wrong with the amount that the user typed last."""

    amount: float = 4.5
    unit: BudgetUnit = BudgetUnit.BITS_PER_WEIGHT
    problem: str = ""

    @property
    def bits_per_weight(self) -> float | None:
        """The amount in bits per weight; None where it is one in bytes."""
        return self.amount if self.unit is BudgetUnit.BITS_PER_WEIGHT else None

    @property
    def nbytes(self) -> int | None:
        """The amount in bytes of the whole model; None where it is one in bits per weight."""
        return round(self.amount * 1e6) if self.unit is BudgetUnit.MEGABYTES else None

    @property
    def loss(self) -> float | None:
        """The largest predicted loss; None where the amount is another one."""
        return self.amount if self.unit is BudgetUnit.LOSS else None

    @property
    def microseconds(self) -> float | None:
        """The longest time of all timed kernels; None where the amount is another one."""
        return self.amount if self.unit is BudgetUnit.MICROSECONDS else None

    def amount_of(self, smallest: str) -> float | None:
        """Return the amount of this unit, of four digits and at least ``smallest`` (see BudgetError), or None."""
        if not smallest:
            return None
        value = float(smallest) / (1e6 if self.unit is BudgetUnit.MEGABYTES else 1.0)
        step = 10.0 ** (math.floor(math.log10(value)) - 3) if value > 0 else 1.0
        return float(f"{math.ceil(value / step) * step:.4g}")


def known_budget(amount: object, unit: object) -> Budget | None:
    """Return the budget that was written as ``amount`` and ``unit``; None where this is none."""
    try:
        budget = Budget(amount=float(str(amount)), unit=BudgetUnit(str(unit)))
    except ValueError:
        return None
    return budget if LOWEST <= budget.amount <= HIGHEST else None
