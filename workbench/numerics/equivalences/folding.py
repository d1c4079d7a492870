"""Batch-norm folding: the norm after a layer becomes part of its weight and bias.

Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR 2018,
section 3.2: ``gamma (W x + b - mean) / sqrt(variance + eps) + beta = W' x + b'`` with ``W'_i = k_i W_i``,
``b'_i = k_i (b_i - mean_i) + beta_i`` and ``k = gamma / sqrt(variance + eps)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchNorm:
    """A batch norm as it runs after training, all ``[channels]``; ``gamma`` and ``beta`` None for 1 and 0."""

    mean: torch.Tensor
    variance: torch.Tensor
    gamma: torch.Tensor | None = None
    beta: torch.Tensor | None = None
    epsilon: float = 1e-5


def folded(weight: torch.Tensor, bias: torch.Tensor | None, norm: BatchNorm) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weight and the bias of the layer with ``norm`` folded in, in the dtype of ``weight``.

    ``weight`` is ``[channels, ...]``, its first axis the outputs.  Computed in float64.
    """
    import torch

    factor = (norm.variance.double() + norm.epsilon).rsqrt()
    if norm.gamma is not None:
        factor = factor * norm.gamma.double()
    shift = torch.zeros_like(norm.mean).double() if bias is None else bias.double()
    shift = factor * (shift - norm.mean.double())
    if norm.beta is not None:
        shift = shift + norm.beta.double()
    scaled = weight.double() * factor.reshape(-1, *(1,) * (weight.dim() - 1))
    return scaled.to(weight.dtype), shift.to(weight.dtype)
