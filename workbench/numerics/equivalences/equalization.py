"""Cross-layer equalization: scale the channels between two layers so that both use their range evenly.

Nagel, van Baalen, Blankevoort and Welling, "Data-Free Quantization Through Weight Equalization and Bias Correction",
ICCV 2019, section 4.1.  Between ``y = f(W1 x + b1)`` and ``W2 y``, with ``f(s t) = s f(t)`` for ``s > 0`` (ReLU, leaky
ReLU, none), channel ``i`` may be divided by ``s_i`` and multiplied again: the function stays.  With ``r`` the largest
magnitudes of the channel in both weights, ``s_i = sqrt(r1_i / r2_i)`` makes both ``sqrt(r1_i r2_i)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def equalizing_scales(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return ``s`` float32 ``[channels]``; 1 for a channel that is zero in either weight.

    ``first`` is ``[channels, inputs]``; ``second`` ``[outputs, channels]`` or ``[outputs, channels, kernel]``.
    """
    import torch

    before = first.detach().float().abs().flatten(1).amax(dim=1)
    after = second.detach().float().abs().transpose(0, 1).flatten(1).amax(dim=1)
    both = (before > 0) & (after > 0)
    ratio = torch.where(both, before, 1.0) / torch.where(both, after, 1.0)
    return ratio.sqrt()
