"""Bias correction: take back the shift of a layer's mean output that rounding its weight causes.

Nagel, van Baalen, Blankevoort and Welling, "Data-Free Quantization Through Weight Equalization and Bias Correction",
ICCV 2019, section 4.2.  With ``D = Q - W`` ``[rows, columns]`` the output ``Q x`` is off by ``D E[x]`` on average; a
bias less that much has the old mean again.  A batch norm after the layer can take it off by its running mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def corrected_bias(bias: torch.Tensor, difference: torch.Tensor, mean_input: torch.Tensor) -> torch.Tensor:
    """Return ``bias - D E[x]``, ``[rows]`` in the dtype of ``bias``.

    ``difference`` D is ``[rows, columns]``; ``mean_input`` ``[columns]``, or ``[groups, columns]`` of the unfolded
    inputs of a convolution, whose rows fall into as many equal runs.
    """
    return (bias.double() - mean_shift(difference, mean_input)).to(bias.dtype)


def corrected_mean(running_mean: torch.Tensor, difference: torch.Tensor, mean_input: torch.Tensor) -> torch.Tensor:
    """Return the running mean of a batch norm after the layer, ``mean + D E[x]``: it takes the shift off again."""
    return (running_mean.double() + mean_shift(difference, mean_input)).to(running_mean.dtype)


def mean_shift(difference: torch.Tensor, mean_input: torch.Tensor) -> torch.Tensor:
    """Return ``D E[x]``, float64 ``[rows]``."""
    means = mean_input.double().reshape(-1, difference.shape[1])
    split = difference.double().reshape(means.shape[0], -1, difference.shape[1])
    return (split @ means.unsqueeze(-1)).reshape(-1)
