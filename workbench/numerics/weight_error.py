"""How far a rounded weight is from the exact one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.numerics.bands import row_tiles, tile_elements
from workbench.numerics.range_error import decibels

if TYPE_CHECKING:
    import torch


def weight_sqnr(weight: torch.Tensor, rounded: torch.Tensor) -> float:
    """Return the signal-to-quantization-noise ratio, ``10 log10(sum W**2 / sum (W - rounded)**2)``, in dB.

    Both are ``[rows, columns]`` of any floating dtype; +inf if they are equal.
    """
    import torch

    if weight.shape != rounded.shape:
        raise ValueError(f"expected equal shapes; got {tuple(weight.shape)} and {tuple(rounded.shape)}")
    signal = noise = 0.0
    for part in row_tiles(len(weight), weight.shape[1], elements=tile_elements(weight.device)):
        exact = weight[part].detach().to(torch.float32)
        signal += float(exact.square().sum(dim=1).sum(dtype=torch.float64))
        noise += float((rounded[part].detach().to(torch.float32) - exact).square().sum(dim=1).sum(dtype=torch.float64))
    return decibels(signal, noise)
