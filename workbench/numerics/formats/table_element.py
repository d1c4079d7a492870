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
        return (len(self.levels) - 1).bit_length()

    def table(self) -> np.ndarray:
        """Return float32 ``[2**bits]``, the levels by code; -0 becomes +0, as in ``snap_``."""
        return np.array(self.levels, np.float32) + np.float32(0.0)

    def thresholds(self) -> np.ndarray:
        """Return float32 ``[distinct levels - 1]``: a number above it rounds to the next level."""
        ordered = self.values().astype(np.float64)
        middles: np.ndarray = ((ordered[1:] + ordered[:-1]) / 2).astype(np.float32)
        return middles

    def snap_(self, scaled: torch.Tensor, zero_point: torch.Tensor | None) -> torch.Tensor:
        import torch

        thresholds = torch.from_numpy(self.thresholds()).to(scaled.device)
        rank = torch.bucketize(scaled.contiguous(), thresholds, out_int32=True)
        nearest = torch.from_numpy(self.values()).to(scaled.device).take(rank.to(torch.int64))
        return scaled.copy_(torch.where(scaled.isnan(), scaled, nearest))
