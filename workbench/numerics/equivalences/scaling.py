"""Scales of input channels that move into the weights: AWQ and SmoothQuant.

A layer's output ``W x`` equals ``(W diag(s)) (x / s)``.  Both search the ``s`` that costs the outputs least, among
powers of the channels' magnitudes; leaving the layer as it is, is among the candidates, so that on its own measure the
result is never worse.  Layers that share an input share the scale.

AWQ: Lin et al., "AWQ: Activation-aware Weight Quantization for LLM Compression and Acceleration" (MLSys 2024).  Weights
whose inputs are large are scaled up before they are rounded, so that they lose less: with ``s_j = m_j ** alpha``,
``m_j`` the typical magnitude of input channel ``j``, the relative rounding error of important columns shrinks by about
``1 / s_j`` and that of others grows.  The cost is ``loss(Q(W diag(s)) diag(1 / s) - W)``.  The paper takes the mean
magnitude and a sample of inputs for the error; here ``m_j = sqrt(A_jj)`` and the error is read off the second moment
``A = E[x x^T]`` of a calibration, so that the model is not run again.

SmoothQuant: Xiao et al., "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models"
(ICML 2023).  Outliers move from activations, which are hard to quantize, into weights, which are easy:
``s_j = max|x_j| ** alpha / max|W_:j| ** (1 - alpha)`` shrinks the range of ``x / s``, which one step of a static format
has to span.  The paper fixes one alpha for a model; here it is searched for each set of layers that share an input.
The cost is ``mean ||Qx(x / s) Qw(W diag(s))^T - x W^T||^2`` on a sample of inputs, with exactly the quantizers ``Qx``
and ``Qw`` that the plan gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

AWQ_ALPHAS = tuple(step / 20 for step in range(21))
"""As in the paper."""

SMOOTHING_ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
SMALLEST = 1e-5
"""Magnitudes below this are raised to it, as in the authors' code of SmoothQuant."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Consumer:
    """One layer that takes the scaled channels.

    ``weight`` float32 ``[rows, columns]``; ``channels`` int64 ``[columns]``, the channel of each column, -1 for none;
    ``quantize`` rounds a matrix of that shape; ``loss(rounded, factor)`` is what it costs to use ``rounded``, the
    rounded weight whose columns were multiplied by ``factor`` ``[columns]``.
    """

    weight: torch.Tensor
    channels: torch.Tensor
    quantize: Callable[[torch.Tensor], torch.Tensor]
    loss: Callable[[torch.Tensor, torch.Tensor], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """``scale`` float32 ``[channels]`` (> 0) for ``alpha``; ``before`` is the loss of the first candidate."""

    scale: torch.Tensor
    alpha: float | None
    before: float
    after: float


def choose_scale(consumers: Sequence[Consumer], scales: Mapping[float | None, torch.Tensor]) -> Choice:
    """Return the scale with the least total loss; ``scales`` by alpha, the first one leaves everything as it is."""
    import torch

    losses = []
    for scale in scales.values():
        factors = [spread(scale, consumer.channels) for consumer in consumers]
        parts = zip(consumers, factors, strict=True)
        losses.append(sum(c.loss(c.quantize(c.weight * factor), factor) for c, factor in parts))
    best = int(torch.tensor(losses).argmin())
    alpha, scale = list(scales.items())[best]
    return Choice(scale=scale, alpha=alpha, before=losses[0], after=losses[best])


def awq_scales(
    magnitude: torch.Tensor, free: torch.Tensor, alphas: Sequence[float] = AWQ_ALPHAS
) -> dict[float | None, torch.Tensor]:
    """Return ``magnitude ** alpha`` by alpha, each centred on 1: divided by the geometric mean of its extremes.

    ``magnitude`` float32 ``[channels]`` >= 0; channels that are never used have the smallest positive one's.  1 where
    ``free`` (bool ``[channels]``) is false.
    """
    import torch

    used = magnitude[free & (magnitude > 0)]
    scales: dict[float | None, torch.Tensor] = {}
    for alpha in alphas:
        scales[alpha] = torch.ones_like(magnitude)
        if alpha and used.numel():
            scale = magnitude.clamp_min(float(used.min())).pow(alpha)
            centre = (scale[free].max() * scale[free].min()).sqrt()
            scales[alpha] = torch.where(free, scale / centre, 1.0)
    return scales


def smoothing_scales(
    activation: torch.Tensor, weight: torch.Tensor, free: torch.Tensor, alphas: Sequence[float] = SMOOTHING_ALPHAS
) -> dict[float | None, torch.Tensor]:
    """Return SmoothQuant's ``s`` by alpha from the largest magnitudes of each channel, None for no smoothing at all.

    ``activation`` of the inputs, ``weight`` of all columns that the channel reaches, both float32 ``[channels]``.  1
    where not ``free`` and where a channel is never used.
    """
    import torch

    scales: dict[float | None, torch.Tensor] = {None: torch.ones_like(activation)}
    for alpha in alphas:
        scale = activation.clamp_min(SMALLEST).pow(alpha) / weight.clamp_min(SMALLEST).pow(1 - alpha)
        scales[alpha] = torch.where(free & (activation > 0) & (weight > 0), scale.clamp_min(SMALLEST), 1.0)
    return scales


def spread(values: torch.Tensor, channels: torch.Tensor) -> torch.Tensor:
    """Return the value of every column's channel, 1 where it has none; of the shape of ``channels``."""
    import torch

    return torch.where(channels >= 0, values[channels.clamp_min(0)], 1.0)


def largest(count: int, parts: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """Return the largest value of each of ``count`` channels, float32; ``parts`` are channels and values of columns."""
    import torch

    result = torch.zeros(count)
    for channels, values in parts:
        used = channels >= 0
        result.scatter_reduce_(0, channels[used], values[used], reduce="amax")
    return result
