"""A tensor on the CPU handed to the compiled statistics, in bands on all threads.

Bands depend on the shape alone and their sums are added in order, so the result does not depend on the threads.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.bands import in_parallel
from workbench.numerics.statistics.compiled import NOT_FINITE, WIDTH, observe_band, raise_peaks
from workbench.numerics.statistics.concluding import Bands, conclude
from workbench.numerics.statistics.layer_statistics import BINS, LOWEST_EXPONENT, LayerStatistics
from workbench.numerics.statistics.outliers import Peaks, ranked

if TYPE_CHECKING:
    import torch

BAND = 1 << 16
"""Elements of a band at least: some hundred microseconds' work, twice what waking a thread takes."""

BANDS = 32
"""A large tensor is cut into about so many."""

LARGEST = 1 << 21
"""Elements of a band at most, where its rows are no longer: so much of a tensor of halves is float32 at once."""

ALONE = 1 << 18
"""Elements of a tensor up to which one thread walks along all bands."""

TALL = 32
"""Rows that a band should have at least, because folding a row of channels costs as much as walking along several."""

_own = threading.local()


def walk(
    tensor: torch.Tensor, axis: int, tokens: bool = False
) -> tuple[LayerStatistics, np.ndarray, Peaks | None] | None:
    """Return the statistics, each channel's sum of squares, and with ``tokens`` the tokens' peaks.

    None where something is NaN or infinite.
    """
    import torch

    counted = tokens and axis % tensor.dim() == tensor.dim() - 1
    tensor, axis = _as_it_lies(tensor, axis % tensor.dim(), tokens, counted)
    shape = tensor.shape
    outer, channels, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    fold = _fold(outer, channels * inner)
    rows, parts = _bands(outer // fold, channels, tensor.numel(), split=fold == 1)
    stored = (tensor.to(torch.float32) if tokens else tensor).contiguous().reshape(outer // fold, -1)
    whole = stored.numpy() if stored.dtype == torch.float32 else None
    exact = np.empty((0, 0, 0), np.float32) if whole is None else whole.reshape(outer, channels, inner)
    bands = [(row, part) for row in range(len(rows)) for part in parts]
    extremes, sums = np.empty((2, len(rows), channels), np.float32), np.empty((2, len(rows), channels))
    exponents, counts = np.zeros(len(bands), np.int64), np.zeros((len(bands), BINS), np.int64)
    peaks = np.zeros((len(parts), outer, inner) if tokens else (0, 0, 0), np.int32)

    def task(band: slice) -> None:
        row, part = bands[band.start]
        left, right = part.start * inner, part.stop * inner
        if whole is not None:
            exponents[band.start] = observe_band(
                whole[rows[row]], left, right * fold, inner, LOWEST_EXPONENT, extremes, sums, row,
                counts[band.start],
            )  # fmt: skip
        else:
            values = _single(stored[rows[row], left : right * fold])
            exponents[band.start] = _observe_apart(values, inner, row, part, extremes, sums, counts[band.start])
        if tokens:
            own = slice(rows[row].start * fold, rows[row].stop * fold)
            raise_peaks(exact[own].reshape(-1, channels * inner), left, right, peaks[parts.index(part), own])

    in_parallel(task, [slice(n, n + 1) for n in range(len(bands))], alone=tensor.numel() <= ALONE)
    if NOT_FINITE in exponents:
        return None
    statistics, squares = _concluded(tensor.numel(), (extremes, sums, exponents, counts))
    if not tokens:
        return statistics, squares, None
    largest = peaks.max(axis=0).reshape(-1).view(np.float32)
    return statistics, squares, ranked(largest, lambda where: exact[where // inner, :, where % inner], counted=counted)


def _observe_apart(
    values: np.ndarray, inner: int, row: int, part: slice, extremes: np.ndarray, sums: np.ndarray, counts: np.ndarray
) -> int:  # fmt: skip
    """Observe a band that is converted by itself, whose first column is of the first channel of ``part``."""
    ends, totals = np.empty((2, 1, part.stop - part.start), np.float32), np.empty((2, 1, part.stop - part.start))
    exponent = observe_band(values, 0, values.shape[1], inner, LOWEST_EXPONENT, ends, totals, 0, counts)
    extremes[:, row, part], sums[:, row, part] = ends[:, 0], totals[:, 0]
    return int(exponent)


def _single(band: torch.Tensor) -> np.ndarray:
    """Return the band in float32, in memory that the next one of this thread takes again: fresh pages cost more."""
    import torch

    memory: torch.Tensor | None = getattr(_own, "memory", None)
    if memory is None or memory.numel() < band.numel():
        _own.memory = memory = torch.empty(band.numel(), dtype=torch.float32)
    return memory[: band.numel()].view(band.shape).copy_(band).numpy()


def _fold(rows: int, columns: int) -> int:
    """Return how many short rows are walked along as one; the channels repeat in it."""
    fold = 1
    while rows % (2 * fold) == 0 and 2 * fold * columns <= WIDTH:
        fold *= 2
    return fold


def _bands(rows: int, channels: int, elements: int, *, split: bool) -> tuple[list[slice], list[slice]]:
    """Cut the rows into bands of whole fours; where they are few the channels too, if these may be ``split``."""
    count = max(min(max(elements // BAND, 1), BANDS), elements // LARGEST)
    down = max(-(-rows // count // 4) * 4, TALL)
    bands = [slice(top, min(top + down, rows)) for top in range(0, rows, down)]
    across = -(-channels // -(-count // len(bands))) if split and len(bands) < count else channels
    return bands, [slice(left, min(left + across, channels)) for left in range(0, channels, across)]


def _concluded(count: int, bands: Bands) -> tuple[LayerStatistics, np.ndarray]:
    """Return the statistics and each channel's sum of squares."""
    channels, whole = bands[0].shape[2], np.empty(BINS, np.int64)
    ends, totals = np.empty((2, channels), np.float32), np.empty((2, channels))
    least, most, exponent = conclude(bands, ends, totals, whole)
    statistics = LayerStatistics(
        count=count, non_finite=0, minimum=least, maximum=most, batches=1, minimum_total=least, maximum_total=most,
        total=float(totals[0].sum()), total_squares=float(totals[1].sum()), exponent=exponent, counts=whole,
        channel_minimum=ends[0], channel_maximum=ends[1], channel_absmax=np.maximum(ends[1], -ends[0]),
    )  # fmt: skip
    return statistics, totals[1]


def _as_it_lies(tensor: torch.Tensor, axis: int, tokens: bool, counted: bool) -> tuple[torch.Tensor, int]:
    """Return the tensor with its axes in the order of its memory, where that makes it contiguous (channels last).

    With ``tokens`` only where the other axes keep their order, and so every token its number; where tokens are
    ``counted`` only where the channels stay last.
    """
    if tensor.is_contiguous():
        return tensor, axis
    strides = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda each: -strides[each])
    permuted = tensor.permute(order)
    others = [each for each in order if each != axis and tensor.shape[each] > 1]
    reordered = tokens and others != sorted(others)
    moved = counted and order[-1] != axis
    return (permuted, order.index(axis)) if permuted.is_contiguous() and not (reordered or moved) else (tensor, axis)
