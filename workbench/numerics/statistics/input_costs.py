"""What an error costs at each value of a layer's input, added up over batches while a calibration goes back.

The loss of activation noise is a sum over positions of a squared gradient times a squared rounding error.  A static
quantizer's error depends on the value alone, so the squared gradients of equal values add up beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.statistics.layer_statistics import LayerStatistics, grown

if TYPE_CHECKING:
    import torch

DIGITS = 1 << 8
"""Costs keep 8 binary digits: they are sums over drawn gradients, and a session stores them in a third of the bytes."""


@dataclass(slots=True, kw_only=True)
class InputCosts:
    """Sums of squared gradients by layer, float64 ``[BINS]``, each with the exponent of its bins' range."""

    sums: dict[str, tuple[int, np.ndarray]] = field(default_factory=dict)

    def note(self, name: str, values: torch.Tensor, gradients: torch.Tensor, exponent: int) -> None:
        """Add the gradients at a layer's own input; those that are not finite (of half precision) are left out."""
        from workbench.numerics.statistics.squares_by_value import squares_by_value

        squares = squares_by_value(values, gradients, exponent)
        if np.isfinite(squares).all():
            self._add(name, exponent, squares)

    def add(self, other: InputCosts) -> None:
        """Add another batch's."""
        for name, (exponent, squares) in other.sums.items():
            self._add(name, exponent, squares)

    def _add(self, name: str, exponent: int, squares: np.ndarray) -> None:
        if name in self.sums:
            before, known = self.sums[name]
            most = max(before, exponent)
            exponent, squares = most, grown(known, most - before) + grown(squares, most - exponent)
        self.sums[name] = exponent, squares

    def of(self, statistics: Mapping[tuple[str, str], LayerStatistics], units: int) -> dict[
        tuple[str, str], LayerStatistics
    ]:  # fmt: skip
        """Return the inputs' statistics with their costs, in nats per squared unit, a mean over ``units``."""
        return {
            (name, "input"): replace(seen, costs=_rounded(grown(squares, seen.exponent - exponent) / (2 * units)))
            for name, (exponent, squares) in self.sums.items()
            if (seen := statistics.get((name, "input"))) is not None and seen.exponent >= exponent
        }


def _rounded(costs: np.ndarray) -> np.ndarray:
    mantissa, exponent = np.frexp(costs)
    result: np.ndarray = np.ldexp(np.round(mantissa * DIGITS) / DIGITS, exponent)
    return result
