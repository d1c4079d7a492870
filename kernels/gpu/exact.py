"""Division that rounds once on every device, for references that must agree with a kernel to the last bit."""

from __future__ import annotations

import torch


def divided(numerator: torch.Tensor | float, denominator: torch.Tensor | float) -> torch.Tensor:
    """Return the quotient correctly rounded; one of the two is a number.

    Between a tensor and a number torch multiplies by a reciprocal, which rounds twice: always for a number over a
    tensor, on a GPU for a tensor over a number as well.  Between two tensors on one device it divides.
    """
    if isinstance(numerator, torch.Tensor):
        return numerator / torch.as_tensor(denominator, dtype=numerator.dtype, device=numerator.device)
    assert isinstance(denominator, torch.Tensor)
    return torch.as_tensor(numerator, dtype=denominator.dtype, device=denominator.device) / denominator
