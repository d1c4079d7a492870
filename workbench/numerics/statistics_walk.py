"""A tensor on the CPU handed to the compiled statistics, piece by piece on this process's threads.

Pieces depend on the shape alone and their sums are added in order, so the result does not depend on the threads.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from workbench.numerics.statistics import BINS, LOWEST_EXPONENT, LayerStatistics
from workbench.numerics.statistics_compiled import NOT_FINITE, WIDTH, observe_columns

PIECE = 1 << 18
"""Elements of one piece: a hundred microseconds' work."""


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """The columns ``left`` to ``right`` of ``values`` ``[rows, columns]``, and the place of its result.

    Pieces of one ``run`` hold the same rows, and no channel lies in two of them.
    """

    values: np.ndarray
    left: int
    right: int
    number: int
    run: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Parts:
    """What was found: ``low`` to ``squares`` ``[runs, channels]``, ``counts`` uint32 ``[pieces, 4, 2048]``."""

    exponent: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    counts: np.ndarray
    inner: int

    @classmethod
    def empty(cls, pieces: list[_Piece], channels: int, inner: int) -> _Parts:
        runs = pieces[-1].run + 1
        return cls(
            exponent=np.full(len(pieces), LOWEST_EXPONENT), low=np.full((runs, channels), np.inf, np.float32),
            high=np.full((runs, channels), -np.inf, np.float32), sums=np.zeros((runs, channels)),
            squares=np.zeros((runs, channels)), counts=np.zeros((len(pieces), 4, BINS), np.uint32), inner=inner,
        )  # fmt: skip

    def observe(self, piece: _Piece) -> None:
        i, run = piece.number, piece.run
        self.exponent[i] = observe_columns(
            piece.values, piece.left, piece.right, self.inner, LOWEST_EXPONENT, self.low[run], self.high[run],
            self.sums[run], self.squares[run], self.counts[i],
        )  # fmt: skip

    def histogram(self) -> tuple[int, np.ndarray]:
        """Return the largest exponent and all counts over its range, int64 ``[2048]``."""
        exponent = int(self.exponent.max())
        total = np.zeros(BINS, np.int64)
        for own, parts in zip(self.exponent.tolist(), self.counts, strict=True):
            counts = parts.sum(axis=0, dtype=np.int64)
            for _ in range(min(exponent - own, BINS.bit_length())):
                inner = counts.reshape(-1, 2).sum(axis=1)
                counts = np.zeros(BINS, np.int64)
                counts[BINS // 4 : 3 * BINS // 4] = inner
            total += counts
        return exponent, total


def walk(tensor: torch.Tensor, axis: int) -> tuple[LayerStatistics, np.ndarray] | None:
    """Return the statistics and each channel's sum of squares; None where something is NaN or infinite."""
    tensor, axis = _as_it_lies(tensor, axis % tensor.dim())
    shape = tensor.shape
    outer, channels, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    values = tensor.to(torch.float32).contiguous().numpy().reshape(outer, channels * inner)
    pieces = list(_pieces(values, inner))
    parts = _Parts.empty(pieces, channels, inner)
    _run(parts, pieces, torch.get_num_threads() if values.size > PIECE else 1)
    if (parts.exponent == NOT_FINITE).any():
        return None
    low, high, squares = parts.low.min(axis=0), parts.high.max(axis=0), parts.squares.sum(axis=0)
    exponent, counts = parts.histogram()
    minimum, maximum = float(low.min()), float(high.max())
    found = LayerStatistics(
        count=values.size, non_finite=0, minimum=minimum, maximum=maximum, batches=1, minimum_total=minimum,
        maximum_total=maximum,
        total=float(parts.sums.sum()), total_squares=float(squares.sum()), exponent=exponent, counts=counts,
        channel_absmax=np.maximum(np.maximum(high, -low), 0.0), channel_minimum=low, channel_maximum=high,
    )  # fmt: skip
    return found, squares


def _as_it_lies(tensor: torch.Tensor, axis: int) -> tuple[torch.Tensor, int]:
    """Return the tensor with its axes in the order of its memory, where that makes it contiguous (channels last)."""
    if tensor.is_contiguous():
        return tensor, axis
    strides = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda each: -strides[each])
    turned = tensor.permute(order)
    return (turned, order.index(axis)) if turned.is_contiguous() else (tensor, axis)


def _pieces(values: np.ndarray, inner: int) -> Iterator[_Piece]:
    """Cut ``[rows, channels * inner]`` into runs of rows, and those into whole channels.

    Several short rows make one long one; its channels repeat.
    """
    number, run, columns = 0, 0, values.shape[1]
    fold = max(WIDTH // columns, 1)
    whole = len(values) // fold
    if whole * fold < len(values):
        yield _Piece(values[whole * fold :], 0, columns, number, run)
        number, run = number + 1, run + 1
    values, columns = values[: whole * fold].reshape(whole, fold * columns), fold * columns
    across = columns if fold > 1 else -(-max(PIECE // max(whole, 1), 4 * WIDTH) // inner) * inner
    down = max(PIECE // min(across, columns) // 4 * 4, 4)
    for top in range(0, len(values), down):
        for left in range(0, columns, across):
            yield _Piece(values[top : top + down], left, min(left + across, columns), number, run)
            number += 1
        run += 1


def _run(parts: _Parts, pieces: list[_Piece], threads: int) -> None:
    """Take up the pieces on this thread, and on others as soon as they wake."""
    waiting = deque(pieces)

    def work() -> None:
        while waiting:
            try:
                piece = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            parts.observe(piece)

    helpers = min(len(pieces), threads) - 1
    futures = [_threads().submit(work) for _ in range(helpers)]
    work()
    for future in futures:
        if not future.cancel():
            future.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(torch.get_num_threads() - 1, 1), thread_name_prefix="statistics")
