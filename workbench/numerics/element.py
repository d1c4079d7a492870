"""The contract of an element format: what one code stands for at scale 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Binary:
    """The layout of an element that is a small binary number, as compiled kernels take it.

    ``mantissa_bits`` stored bits of the mantissa, the least normal number being ``2**(1 - bias)``.  A code is sign,
    exponent and mantissa, or with ``complement`` the two's complement of whole steps of ``2**-mantissa_bits``.
    """

    mantissa_bits: int
    bias: int
    complement: bool = False


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
    def lowest(self) -> float:
        """The least finite value."""
        return _ends(self)[0]

    @property
    def highest(self) -> float:
        """The greatest finite value."""
        return _ends(self)[1]

    @property
    def shiftable(self) -> bool:
        """Whether codes are evenly spaced, so that a zero point can shift them."""
        return False

    @property
    def binary(self) -> Binary | None:
        """The layout if the element is a small binary number, else None."""
        return None

    @abstractmethod
    def table(self) -> np.ndarray:
        """Return float32 ``[2**bits]``: the value of every stored code, NaN where a code has none."""

    def values(self) -> np.ndarray:
        """Return the finite values, ascending, each once, float32."""
        return _values(self).copy()

    @abstractmethod
    def snap_(self, scaled: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Replace float32 ``scaled`` (weight / scale) in place by the nearest representable values, saturating.

        With ``zero_point`` (unsigned, broadcastable) the representable values are ``code - zero_point``.  Ties go to
        even; a zero is always +0.
        """

    def codes(self, snapped: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Return the stored codes, uint8, of the finite numbers that ``snap_`` returned; the first of several."""
        import torch

        values, table = self.values(), self.table()
        ranked = np.array([int(np.argmax(table == value)) for value in values], np.uint8)
        levels = torch.from_numpy(values).to(snapped.device)
        rank = torch.bucketize(snapped.contiguous(), levels, out_int32=True)
        return torch.from_numpy(ranked).to(snapped.device).take(rank.to(torch.int64))

    def decode(self, codes: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Return the float32 values of uint8 ``codes``: exactly what ``snap_`` returned."""
        import torch

        return torch.from_numpy(self.table()).to(codes.device).take(codes.to(torch.int64))


@cache
def _values(element: Element) -> np.ndarray:
    table = element.table()
    return np.unique(table[np.isfinite(table)] + np.float32(0.0))  # -0 and +0 are one value


@cache
def _ends(element: Element) -> tuple[float, float]:
    values = element.values()
    return float(values[0]), float(values[-1])
