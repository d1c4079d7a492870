"""AWQ: weights whose inputs are large are scaled up before they are rounded, so that they lose less.

Lin et al., "AWQ: Activation-aware Weight Quantization for LLM Compression and Acceleration" (MLSys 2024).  A layer's
output ``W x`` equals ``(W diag(s)) (x / s)``.  With ``s_j = m_j ** alpha``, ``m_j`` the typical magnitude of input
channel ``j``, the relative rounding error of important columns shrinks by about ``1 / s_j`` and that of others grows;
``alpha`` in [0, 1] is searched for the least error of the layer's output,

    L(s) = loss(Q(W diag(s)) diag(1 / s) - W).

The paper takes the mean magnitude and a sample of inputs for the error; here ``m_j = sqrt(A_jj)`` and the error is read
off the second moment ``A = E[x x^T]`` of a calibration, so that the model is not run again.  ``alpha = 0`` is among the
candidates: on its own measure the result is never worse than plain rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

STEPS = 20
"""As in the paper: alpha = 0, 1/20, ..., 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consumer:
    """One layer that takes the scaled channels.

    ``weight`` float32 ``[rows, columns]``; ``channels`` int64 ``[columns]``, the channel of each column, -1 for none;
    ``quantize`` rounds a matrix of that shape; ``loss`` is what a difference of that shape costs.
    """

    weight: torch.Tensor
    channels: torch.Tensor
    quantize: Callable[[torch.Tensor], torch.Tensor]
    loss: Callable[[torch.Tensor], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """``scale`` float32 ``[channels]`` (> 0, 1 where not free) for ``alpha``; ``before`` is the loss at scale 1.

    ``alpha`` is None for a scale of 1 that follows from no alpha.
    """

    scale: torch.Tensor
    alpha: float | None
    before: float
    after: float


def activation_scale(magnitude: torch.Tensor, free: torch.Tensor, alpha: float) -> torch.Tensor:
    """Return ``magnitude ** alpha``, centred on 1: divided by the geometric mean of its extremes.

    ``magnitude`` float32 ``[channels]`` >= 0; channels that are never used have the smallest positive one's.  1 where
    ``free`` (bool ``[channels]``) is false.
    """
    import torch

    known = magnitude[free & (magnitude > 0)]
    if alpha == 0 or not known.numel():
        return torch.ones_like(magnitude)
    scale = magnitude.clamp_min(float(known.min())).pow(alpha)
    centre = (scale[free].max() * scale[free].min()).sqrt()
    return torch.where(free, scale / centre, 1.0)


def choose_scale(
    consumers: Sequence[Consumer], magnitude: torch.Tensor, free: torch.Tensor, steps: int = STEPS
) -> Choice:
    """Return the scale with the least total loss over all ``consumers``: layers that share an input share it."""
    alphas = [step / steps for step in range(steps + 1)]
    scales = [activation_scale(magnitude, free, alpha) for alpha in alphas]
    return least_loss(alphas, scales, lambda scale: sum(_loss(consumer, scale) for consumer in consumers))


def least_loss(
    alphas: Sequence[float | None], scales: Sequence[torch.Tensor], loss: Callable[[torch.Tensor], float]
) -> Choice:
    """Return the scale with the least loss, the first of equals; the first of all is 1."""
    import torch

    losses = [loss(scale) for scale in scales]
    best = int(torch.tensor(losses).argmin())
    return Choice(scale=scales[best], alpha=alphas[best], before=losses[0], after=losses[best])


def of_columns(scale: torch.Tensor, channels: torch.Tensor) -> torch.Tensor:
    """Return the scale of each column, ``[columns]``; 1 for a column of no channel (-1)."""
    import torch

    return torch.where(channels >= 0, scale[channels.clamp_min(0)], 1.0)


def _loss(consumer: Consumer, scale: torch.Tensor) -> float:
    columns = of_columns(scale, consumer.channels)
    rounded = consumer.quantize(consumer.weight * columns) / columns
    return consumer.loss(rounded - consumer.weight)
