"""A tensor on the CPU handed to the compiled statistics, piece by piece on this process's threads.

Pieces depend on the shape alone and their sums are added in order, so the result does not depend on the threads.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch

from workbench.numerics.statistics import outliers
from workbench.numerics.statistics.compiled import WIDTH
from workbench.numerics.statistics.layer_statistics import BINS, LOWEST_EXPONENT, LayerStatistics
from workbench.numerics.statistics.outliers import KEPT, Peaks
from workbench.numerics.statistics.pieces import BAD, DONE, RUN, conclude, conclude_tokens, observe_pieces
from workbench.numerics.statistics.threads_compiled import await_counter

PIECE = 1 << 15
"""Elements of one piece at least: some twenty microseconds' work."""

PIECES = 32
"""A large tensor is cut into about so many."""

TALL = 32
"""Rows that a piece should have at least, because folding a row of channels costs as much as walking along several."""

SHARED = 3 << 16
"""From so many elements on other threads are woken; that takes as long as walking through half of them."""


def walk(
    tensor: torch.Tensor, axis: int, tokens: bool = False
) -> tuple[LayerStatistics, np.ndarray, Peaks | None] | None:
    """Return the statistics, each channel's sum of squares, and with ``tokens`` the tokens' peaks.

    None where something is NaN or infinite.
    """
    counted = tokens and axis % tensor.dim() == tensor.dim() - 1
    tensor, axis = _as_it_lies(tensor, axis % tensor.dim(), tokens)
    shape = tensor.shape
    outer, channels, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    flat = tensor.to(torch.float32).contiguous().numpy().reshape(-1)
    pieces = _pieces(outer, channels * inner, inner)
    threads = min(len(pieces), torch.get_num_threads()) if flat.size >= SHARED else 1
    runs, kept = int(pieces[-1, RUN]) + 1, KEPT if tokens else 0
    extremes, sums = np.empty((2, runs, channels), np.float32), np.empty((2, runs, channels))
    histograms, counters = np.zeros((threads, BINS + 1), np.int64), np.zeros(3, np.int64)
    peaks = np.zeros(outer if counted else 0, np.int32)
    found, largest = np.full((threads, 2, kept), -1), np.zeros((threads, kept), np.float32)
    shared = (flat, pieces, inner, LOWEST_EXPONENT, counters, extremes, sums)
    _run([(*shared, histograms[n], peaks, found[n], largest[n]) for n in range(threads)], counters, len(pieces))
    if counters[BAD]:
        return None
    seen, squares = _concluded(flat.size, extremes, sums, histograms)
    return seen, squares, _ranked(flat, peaks, found, largest) if tokens else None


def _run(arguments: list[tuple[Any, ...]], counters: np.ndarray, pieces: int) -> None:
    """Take up the pieces on this thread, and on others as soon as they wake.

    One that wakes too late finds nothing left, not even the tensor; it is not waited for.
    """
    waiting = [[one] for one in arguments[1:]]
    futures = [_threads().submit(_take_up, one) for one in waiting]
    observe_pieces(*arguments[0])
    if not await_counter(counters, DONE, pieces):
        for future in futures:
            if not future.cancel():
                future.result()
    for one in waiting:
        one.clear()


def _take_up(arguments: list[tuple[Any, ...]]) -> None:
    for one in tuple(arguments):
        observe_pieces(*one)


def _concluded(
    count: int, extremes: np.ndarray, sums: np.ndarray, histograms: np.ndarray
) -> tuple[LayerStatistics, np.ndarray]:
    """Return the statistics and each channel's sum of squares."""
    channels, counts = np.empty((3, sums.shape[2]), np.float32), np.empty(BINS, np.int64)
    squares = np.empty(sums.shape[2])
    doublings, least, most, total, total_squares = conclude(extremes, sums, histograms, channels, squares, counts)
    seen = LayerStatistics(
        count=count, non_finite=0, minimum=least, maximum=most, batches=1, minimum_total=least, maximum_total=most,
        total=total, total_squares=total_squares, exponent=LOWEST_EXPONENT + doublings, counts=counts,
        channel_minimum=channels[0], channel_maximum=channels[1], channel_absmax=channels[2],
    )  # fmt: skip
    return seen, squares


def _ranked(flat: np.ndarray, peaks: np.ndarray, found: np.ndarray, largest: np.ndarray) -> Peaks:
    """Return the largest tokens, and where they were counted the histogram of all."""
    counts = np.zeros(outliers.BINS, np.int64)
    kept = conclude_tokens(flat, peaks, found, largest, counts)
    return Peaks(counts=counts, where=found[0, 0, :kept], channel=found[0, 1, :kept], value=largest[0, :kept])


def _as_it_lies(tensor: torch.Tensor, axis: int, tokens: bool) -> tuple[torch.Tensor, int]:
    """Return the tensor with its axes in the order of its memory, where that makes it contiguous (channels last).

    With ``tokens`` only where the other axes keep their order, and so every token its number.
    """
    if tensor.is_contiguous():
        return tensor, axis
    strides = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda each: -strides[each])
    turned = tensor.permute(order)
    others = [each for each in order if each != axis and tensor.shape[each] > 1]
    kept = turned.is_contiguous() and not (tokens and others != sorted(others))
    return (turned, order.index(axis)) if kept else (tensor, axis)


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


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(torch.get_num_threads() - 1, 1), thread_name_prefix="statistics")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a forked process has none of the threads
