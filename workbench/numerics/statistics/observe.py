"""Statistics of tensors: in compiled code on the CPU, by torch's operations elsewhere and where not all is finite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.bands import tile_elements
from workbench.numerics.statistics.layer_statistics import BINS, LayerStatistics, histogram_exponent
from workbench.numerics.statistics.outliers import Peaks, ranked

if TYPE_CHECKING:
    import torch


def observe(tensor: torch.Tensor, channel_axis: int) -> LayerStatistics:
    """Return the statistics of a floating-point ``tensor`` of any shape whose channels lie along ``channel_axis``.

    float16, bfloat16 and float32 are exact (values, extremes, bins); float64 is rounded to float32 first.  Sums are
    float64.
    """
    return observe_channels(tensor, channel_axis)[0]


def observe_channels(tensor: torch.Tensor, channel_axis: int) -> tuple[LayerStatistics, np.ndarray]:
    """Return :func:`observe`'s statistics, and each channel's sum of squares of finite values, float64 ``[channels]``.

    One walk over the memory, in compiled code; on other devices, and where something is NaN or infinite, torch's own
    operations in two.
    """
    return _observed(tensor.detach(), channel_axis, tokens=False)[:2]


def observe_tokens(tensor: torch.Tensor, channel_axis: int) -> tuple[LayerStatistics, np.ndarray, Peaks | None]:
    """Return :func:`observe_channels`'s results, and the tokens with the largest values; None where not all is finite.

    A token is a place along all axes but the channels'.  Its magnitudes are counted where channels lie last; of images'
    pixels only the largest are sought.
    """
    return _observed(tensor.detach(), channel_axis, tokens=True)


def _observed(
    tensor: torch.Tensor, channel_axis: int, *, tokens: bool
) -> tuple[LayerStatistics, np.ndarray, Peaks | None]:
    if tensor.device.type == "cpu" and tensor.numel() and tensor.dim():
        from workbench.numerics.statistics.walk import walk

        walked = walk(tensor, channel_axis, tokens)
        if walked is not None:
            return walked
    statistics, squares = _observe_by_torch(tensor, channel_axis)
    peaks = None if not tokens or statistics.non_finite else peaks_by_torch(tensor, channel_axis)
    return statistics, squares, peaks


def peaks_by_torch(tensor: torch.Tensor, channel_axis: int) -> Peaks:
    """Return the tokens with the largest values of a finite ``tensor`` on any device."""
    last = tensor.movedim(channel_axis, -1) if tensor.dim() else tensor.reshape(1)
    flat = last.reshape(-1, last.shape[-1]).float()
    peaks = (flat.abs().amax(dim=1) if flat.numel() else flat.new_zeros(len(flat))).cpu().numpy()
    counted = channel_axis % max(tensor.dim(), 1) == max(tensor.dim(), 1) - 1

    def rows(where: np.ndarray) -> np.ndarray:
        return flat[where.tolist()].cpu().numpy().reshape(where.size, flat.shape[1])

    return ranked(peaks, rows, counted=counted)


TILE = 1 << 20
"""Elements of one step on the CPU: its intermediates stay small beside the tensor."""


def _observe_by_torch(tensor: torch.Tensor, channel_axis: int) -> tuple[LayerStatistics, np.ndarray]:
    """The same for any device, NaN and infinity: extremes of the channels first, then sums and histogram."""
    channels = tensor.shape[channel_axis] if tensor.dim() else 1
    if not tensor.numel():
        return LayerStatistics.empty(channels), np.zeros(channels)
    rows = (tensor.movedim(channel_axis, 0) if tensor.dim() else tensor).reshape(channels, -1)
    step = max(tile_elements(tensor.device, TILE) // rows.shape[1], 1)
    tiles = [rows[start : start + step] for start in range(0, channels, step)]
    extremes = [_extremes(tile) for tile in tiles]
    low, high = (np.concatenate([pair[end] for pair in extremes]) for end in (0, 1))
    minimum, maximum = float(low.min()), float(high.max())
    absmax = max(-minimum, maximum) if minimum <= maximum else 0.0
    exponent = histogram_exponent(absmax)
    parts = [_sums(tile, exponent) for tile in tiles]
    sums, squares = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    counts: np.ndarray = np.sum([part[2] for part in parts], axis=0)
    count = int(counts.sum())
    statistics = LayerStatistics(
        count=count, non_finite=tensor.numel() - count, minimum=minimum, maximum=maximum, total=float(sums.sum()),
        total_squares=float(squares.sum()), exponent=exponent, counts=counts,
        channel_absmax=np.maximum(np.maximum(high, -low), 0.0).astype(np.float32), channel_minimum=low,
        channel_maximum=high, batches=1 if count else 0, minimum_total=minimum if count else 0.0,
        maximum_total=maximum if count else 0.0,
    )  # fmt: skip
    return statistics, squares


def _extremes(tile: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and greatest finite value of each row, float32; +inf and -inf where there is none."""
    exact = tile.float()
    finite = exact.isfinite()
    low, high = (exact.where(finite, exact.new_tensor(fill)) for fill in (math.inf, -math.inf))
    return low.amin(dim=1).cpu().numpy(), high.amax(dim=1).cpu().numpy()


def _sums(tile: torch.Tensor, exponent: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each row's sum and sum of squares, float64, and the histogram up to ``2**exponent``, int64 ``[BINS]``.

    Values are scaled so that a bin is 1 wide, which is exact in float64 even where it would vanish in float32.
    """
    import torch

    exact = tile.float()
    finite = exact.isfinite()
    values = exact.where(finite, exact.new_zeros(())).double()
    scaled = (values[finite] * 2.0 ** (BINS.bit_length() - 2 - exponent)).floor_()
    counts = torch.bincount(scaled.add_(BINS // 2).long(), minlength=BINS)
    return values.sum(dim=1).cpu().numpy(), values.square().sum(dim=1).cpu().numpy(), counts.cpu().numpy()
