"""A tensor on the CPU handed to the compiled statistics, in runs of pieces on all threads.

Pieces depend on the shape alone and their sums are added in order, so the result does not depend on the threads.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from workbench.numerics.bands import in_parallel
from workbench.numerics.statistics import outliers
from workbench.numerics.statistics.compiled import WIDTH
from workbench.numerics.statistics.layer_statistics import BINS, LOWEST_EXPONENT, LayerStatistics
from workbench.numerics.statistics.outliers import KEPT, Peaks
from workbench.numerics.statistics.pieces import RUN, conclude, observe_pieces
from workbench.numerics.statistics.tokens_compiled import join_tokens, rank_tokens

if TYPE_CHECKING:
    import torch

PIECE = 1 << 15
"""Elements of one piece at least: some twenty microseconds' work."""

PIECES = 32
"""A large tensor is cut into about so many."""

TALL = 32
"""Rows that a piece should have at least, because folding a row of channels costs as much as walking along several."""

SHARED = 3 << 16
"""From so many elements on other threads are woken; that takes as long as walking through half of them."""

PART = 1 << 18
"""Elements that a thread takes at once, where there are enough: each part counts in a histogram of its own."""


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
    flat = tensor.to(torch.float32).contiguous().numpy().reshape(-1)
    pieces = _pieces(outer, channels * inner, inner)
    parts = _parts(len(pieces), flat.size, torch.get_num_threads())
    runs, largest_tokens = int(pieces[-1, RUN]) + 1, KEPT if tokens else 0
    extremes, sums = np.empty((2, runs, channels), np.float32), np.empty((2, runs, channels))
    histograms = np.zeros((len(parts), BINS + 1), np.int64)
    peaks = np.zeros(outer if counted else 0, np.int32)
    indices = np.full((len(parts), 2, largest_tokens), -1)
    largest = np.zeros((len(parts), largest_tokens), np.float32)
    finite = []

    def task(part: slice) -> None:
        own = parts.index(part)
        finite.append(
            observe_pieces(
                flat, pieces[part], inner, LOWEST_EXPONENT, extremes, sums, histograms[own], peaks, indices[own],
                largest[own],
            )
        )  # fmt: skip

    in_parallel(task, parts)
    if not all(finite):
        return None
    statistics, squares = _concluded(flat.size, extremes, sums, histograms)
    return statistics, squares, _ranked(flat, peaks, indices, largest) if tokens else None


def _parts(pieces: int, elements: int, threads: int) -> list[slice]:
    """Cut the pieces into runs that threads take in turn; one run for a small tensor."""
    count = min(pieces, max(threads, elements // PART)) if elements >= SHARED and threads > 1 else 1
    edges = [pieces * part // count for part in range(count + 1)]
    return [slice(start, stop) for start, stop in zip(edges[:-1], edges[1:], strict=True)]


def _concluded(
    count: int, extremes: np.ndarray, sums: np.ndarray, histograms: np.ndarray
) -> tuple[LayerStatistics, np.ndarray]:
    """Return the statistics and each channel's sum of squares."""
    channels, counts = np.empty((3, sums.shape[2]), np.float32), np.empty(BINS, np.int64)
    squares = np.empty(sums.shape[2])
    doublings, least, most, total, total_squares = conclude(extremes, sums, histograms, channels, squares, counts)
    statistics = LayerStatistics(
        count=count, non_finite=0, minimum=least, maximum=most, batches=1, minimum_total=least, maximum_total=most,
        total=total, total_squares=total_squares, exponent=LOWEST_EXPONENT + doublings, counts=counts,
        channel_minimum=channels[0], channel_maximum=channels[1], channel_absmax=channels[2],
    )  # fmt: skip
    return statistics, squares


def _ranked(flat: np.ndarray, peaks: np.ndarray, indices: np.ndarray, largest: np.ndarray) -> Peaks:
    """Return the largest tokens, and where they were counted the histogram of all."""
    counts = np.zeros(outliers.BINS, np.int64)
    if peaks.size:
        rank_tokens(flat.reshape(peaks.size, -1), peaks, counts, indices[0], largest[0])
    else:
        join_tokens(indices, largest)
    size = int((indices[0, 0] >= 0).sum())
    return Peaks(counts=counts, where=indices[0, 0, :size], channel=indices[0, 1, :size], value=largest[0, :size])


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


@lru_cache(maxsize=256)
def _pieces(rows: int, columns: int, inner: int) -> np.ndarray:
    """Cut ``[rows, columns]`` into runs of rows, and those into whole channels of ``inner`` columns; see ``OFFSET``.

    Several short rows make one long one; its channels repeat.  A row holds ``inner`` tokens for each of its channels.
    Where channels lie last a piece is whole rows, so that no two hold the same token.
    """
    fold = max(WIDTH // columns, 1)
    whole, piece = rows // fold, max(PIECE, rows * columns // PIECES)
    table = []
    if whole * fold < rows:
        left = rows - whole * fold
        table.append((whole * fold * columns, columns, left, 0, columns, whole * fold * inner, left * inner, 0))
    wide, tokens, run = fold * columns, fold * inner, len(table)
    across = wide if inner == 1 or fold > 1 else -(-max(piece // max(whole, 1), WIDTH) // inner) * inner
    down = max(piece // min(across, wide) // 4 * 4, min(TALL, whole // 2 // 4 * 4), 4)
    for top in range(0, whole, down):
        height = min(down, whole - top)
        for left in range(0, wide, across):
            right = min(left + across, wide)
            table.append((top * wide, wide, height, left, right, top * tokens, height * tokens, run))
        run += 1
    return np.array(table, np.int64)
