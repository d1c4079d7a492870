"""The contract of an element format: what one code stands for at scale 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


class Element(ABC):
    """The codes of one number and the values that they stand for.  Implementations are frozen dataclasses.

    A stored code is an unsigned integer below ``2**bits``.  ``table()[code]`` is its value at scale 1.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The first part of a scheme's name: ``int4``, ``fp8-e4m3``."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """Bits of one code."""

    @property
    @abstractmethod
    def lowest(self) -> float:
        """The least finite value."""

    @property
    @abstractmethod
    def highest(self) -> float:
        """The greatest finite value."""

    @property
    @abstractmethod
    def shiftable(self) -> bool:
        """Whether codes are evenly spaced, so that a zero point can shift them."""

    @abstractmethod
    def table(self) -> np.ndarray:
        """Return float32 ``[2**bits]``: the value of every stored code, NaN where a code has none."""

    def values(self) -> np.ndarray:
        """Return the finite values, ascending, each once, float32."""
        table = self.table()
        return np.unique(table[np.isfinite(table)] + np.float32(0.0))  # -0 and +0 are one value

    @abstractmethod
    def snap_(self, scaled: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Replace float32 ``scaled`` (weight / scale) in place by the nearest representable values, saturating.

        With ``zero_point`` (unsigned, broadcastable) the representable values are ``code - zero_point``.  Ties go to
        even; a zero is always +0.
        """

    @abstractmethod
    def codes(self, snapped: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Return the stored codes, uint8, of what ``snap_`` returned."""

    @abstractmethod
    def decode(self, codes: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Return the float32 values of uint8 ``codes``: exactly what ``snap_`` returned."""
