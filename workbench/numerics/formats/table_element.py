"""Elements whose values are a small table of any numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.element import Element

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class TableElement(Element):
    """``levels[code]`` is the value of ``code``; there are ``2**bits`` of them, 0 among them.

    Rounding takes the nearest level, the lower of two that are equally near.  Where several codes have one value, the
    first is written.
    """

    name: str = field()
    levels: tuple[float, ...]

    @property
    def bits(self) -> int:
        """Bits of one code."""
        return (len(self.levels) - 1).bit_length()

    @property
    def lowest(self) -> float:
        """The least level."""
        return float(np.float32(min(self.levels)))

    @property
    def highest(self) -> float:
        """The greatest level."""
        return float(np.float32(max(self.levels)))

    def table(self) -> np.ndarray:
        """Return float32 ``[2**bits]``, the levels by code."""
        return np.array(self.levels, np.float32)

    def thresholds(self) -> np.ndarray:
        """Return float32 ``[distinct levels - 1]``: a number above it rounds to the next level."""
        ordered = self.values().astype(np.float64)
        middles: np.ndarray = ((ordered[1:] + ordered[:-1]) / 2).astype(np.float32)
        return middles

    def ranked(self) -> np.ndarray:
        """Return the code of each distinct level, ascending by level, uint8."""
        table = self.table()
        return np.array([int(np.argmax(table == level)) for level in self.values()], np.uint8)

    def snap_(self, scaled: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Take the nearest levels, in place; NaN stays."""
        import torch

        rank = torch.bucketize(scaled, torch.from_numpy(self.thresholds()).to(scaled.device), out_int32=True)
        nearest = torch.from_numpy(self.values()).to(scaled.device).take(rank.to(torch.int64))
        return scaled.copy_(torch.where(scaled.isnan(), scaled, nearest))

    def codes(self, snapped: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Return the code of each level, uint8."""
        import torch

        rank = torch.bucketize(snapped, torch.from_numpy(self.thresholds()).to(snapped.device), out_int32=True)
        return torch.from_numpy(self.ranked()).to(snapped.device).take(rank.to(torch.int64))

    def decode(self, codes: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        """Return the levels of ``codes``, float32."""
        import torch

        table = torch.from_numpy(self.table() + np.float32(0.0)).to(codes.device)  # -0 becomes +0, as in snap_
        return table.take(codes.to(torch.int64))
