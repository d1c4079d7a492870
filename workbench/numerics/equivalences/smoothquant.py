"""SmoothQuant: outliers move from activations, which are hard to quantize, into weights, which are easy.

Xiao et al., "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models" (ICML 2023).
With ``s_j = max|x_j| ** alpha / max|W_:j| ** (1 - alpha)`` the product ``(x / s) (W diag(s))^T`` is the same, while the
range of ``x / s``, which one step of a static format has to span, shrinks.  The paper fixes one alpha for a model; here
it is searched for each set of layers that share an input, for the least error of the outputs on a sample of inputs,

    L(s) = mean ||Qx(x / s) Qw(W diag(s))^T - x W^T||^2

with exactly the quantizers ``Qx`` and ``Qw`` that the plan gives.  Leaving the layer as it is, is among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.numerics.equivalences.awq import Choice, least_loss, of_columns

if TYPE_CHECKING:
    import torch

ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
SMALLEST = 1e-5
"""Magnitudes below this are raised to it, as in the authors' code."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consumer:
    """One layer that takes the smoothed channels.

    ``weight`` float32 ``[rows, columns]``; ``inputs`` float32 ``[samples, columns]``, a sample of what it is given;
    ``channels`` int64 ``[columns]``, the channel of each column, -1 for none; ``quantize`` rounds a weight,
    ``quantize_inputs(x, factor)`` the inputs ``x`` that were divided by ``factor`` ``[columns]``; ``importance`` >= 0
    ``[rows]`` weighs the outputs.
    """

    weight: torch.Tensor
    inputs: torch.Tensor
    channels: torch.Tensor
    quantize: Callable[[torch.Tensor], torch.Tensor]
    quantize_inputs: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    importance: torch.Tensor


def smoothing_scale(activation: torch.Tensor, weight: torch.Tensor, free: torch.Tensor, alpha: float) -> torch.Tensor:
    """Return the paper's ``s`` from the largest magnitudes of each channel, float32 ``[channels]``.

    ``activation`` of the inputs, ``weight`` of all columns that the channel reaches.  1 where not ``free`` and where a
    channel is never used.
    """
    import torch

    scale = activation.clamp_min(SMALLEST).pow(alpha) / weight.clamp_min(SMALLEST).pow(1 - alpha)
    return torch.where(free & (activation > 0) & (weight > 0), scale.clamp_min(SMALLEST), 1.0)


def choose_smoothing(
    consumers: Sequence[Consumer], activation: torch.Tensor, free: torch.Tensor, alphas: Sequence[float] = ALPHAS
) -> Choice:
    """Return the scale with the least error over all ``consumers``; ``activation`` is ``max |x_j|``, ``[channels]``."""
    import torch

    weight = torch.zeros_like(activation)
    for consumer in consumers:
        used = consumer.channels >= 0
        largest = consumer.weight.abs().amax(dim=0)[used]
        weight.scatter_reduce_(0, consumer.channels[used], largest, reduce="amax")
    candidates: list[float | None] = [None, *alphas]
    scales = [
        torch.ones_like(activation) if alpha is None else smoothing_scale(activation, weight, free, alpha)
        for alpha in candidates
    ]
    return least_loss(candidates, scales, lambda scale: sum(_loss(consumer, scale) for consumer in consumers))


def _loss(consumer: Consumer, scale: torch.Tensor) -> float:
    columns = of_columns(scale, consumer.channels)
    rounded = consumer.quantize(consumer.weight * columns)
    inputs = consumer.quantize_inputs(consumer.inputs / columns, columns)
    error = inputs @ rounded.T - consumer.inputs @ consumer.weight.T
    return float((error.square().mean(dim=0).double() * consumer.importance.double()).sum())
