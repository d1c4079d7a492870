"""Shrink the weights by a little before rounding them to nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.numerics.rounding.algorithm import Context, Need, Rounded
from workbench.numerics.scheme import Scheme

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrink:
    """``factor`` multiplies the weights."""

    factor: float = 0.99

    @property
    def name(self) -> str:
        """``shrink``."""
        return "shrink"

    @property
    def title(self) -> str:
        """What menus show."""
        return "Shrink"

    @property
    def needs(self) -> Need:
        """Nothing."""
        return Need.NOTHING

    def quantize(self, weight: torch.Tensor, scheme: Scheme, context: Context | None = None) -> Rounded:
        """Fit and round the shrunken weight."""
        parameters = scheme.fit(weight * self.factor)
        return Rounded(parameters=parameters, values=scheme.round(weight * self.factor, parameters))
