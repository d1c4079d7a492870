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

from workbench.numerics import outliers
from workbench.numerics.outliers import KEPT, Peaks
from workbench.numerics.statistics import BINS, LOWEST_EXPONENT, LayerStatistics
from workbench.numerics.statistics_compiled import NOT_FINITE, WIDTH, observe_columns
from workbench.numerics.tokens_compiled import join_tokens, rank_tokens

PIECE = 1 << 18
"""Elements of one piece: a hundred microseconds' work."""


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """The columns ``left`` to ``right`` of ``values`` ``[rows, columns]``, and the place of its result.

    Pieces of one ``run`` hold the same rows, and no channel lies in two of them.  ``tokens`` are those of the rows.
    """

    values: np.ndarray
    tokens: slice
    left: int
    right: int
    number: int
    run: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Parts:
    """What was found: ``low`` to ``squares`` ``[runs, channels]``, ``counts`` uint32 ``[pieces, 4, 2048]``.

    ``peaks`` int32 ``[tokens]``, the bits of each token's largest magnitude, where they are counted; elsewhere
    ``largest`` float32 ``[threads, kept]`` and ``found`` int64 ``[threads, 2, kept]``, the largest tokens that each
    thread saw.  They are empty where tokens are not asked for.
    """

    exponent: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    counts: np.ndarray
    peaks: np.ndarray
    found: np.ndarray
    largest: np.ndarray
    inner: int

    @classmethod
    def empty(cls, pieces: list[_Piece], channels: int, inner: int, threads: int, tokens: int, kept: int) -> _Parts:
        runs = pieces[-1].run + 1
        return cls(
            exponent=np.full(len(pieces), LOWEST_EXPONENT), low=np.full((runs, channels), np.inf, np.float32),
            high=np.full((runs, channels), -np.inf, np.float32), sums=np.zeros((runs, channels)),
            squares=np.zeros((runs, channels)), counts=np.zeros((len(pieces), 4, BINS), np.uint32), inner=inner,
            peaks=np.zeros(tokens, np.int32), found=np.full((threads, 2, kept), -1),
            largest=np.zeros((threads, kept), np.float32),
        )  # fmt: skip

    def observe(self, piece: _Piece, thread: int) -> None:
        i, run = piece.number, piece.run
        self.exponent[i] = observe_columns(
            piece.values, piece.left, piece.right, self.inner, LOWEST_EXPONENT, self.low[run], self.high[run],
            self.sums[run], self.squares[run], self.counts[i], self.peaks[piece.tokens], piece.tokens.start,
            self.found[thread], self.largest[thread],
        )  # fmt: skip

    def ranked(self, values: np.ndarray) -> Peaks:
        """Return the largest tokens of ``values``, and where they were counted the histogram of all."""
        counts, found, largest = np.zeros(outliers.BINS, np.int64), self.found[0], self.largest[0]
        if self.peaks.size:
            rank_tokens(values.reshape(self.peaks.size, -1), self.peaks, counts, found, largest)
        else:
            join_tokens(self.found, self.largest)
        kept = int((found[0] >= 0).sum())
        return Peaks(counts=counts, where=found[0, :kept], channel=found[1, :kept], value=largest[:kept])

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


def walk(
    tensor: torch.Tensor, axis: int, tokens: bool = False
) -> tuple[LayerStatistics, np.ndarray, Peaks | None] | None:
    """Return the statistics, each channel's sum of squares, and with ``tokens`` the tokens' peaks.

    None where something is NaN or infinite.
    """
    counted = axis % tensor.dim() == tensor.dim() - 1
    tensor, axis = _as_it_lies(tensor, axis % tensor.dim(), tokens)
    shape = tensor.shape
    outer, channels, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    values = tensor.to(torch.float32).contiguous().numpy().reshape(outer, channels * inner)
    pieces = list(_pieces(values, inner))
    threads = min(len(pieces), torch.get_num_threads() if values.size > PIECE else 1)
    parts = _Parts.empty(pieces, channels, inner, threads, outer if tokens and counted else 0, KEPT if tokens else 0)
    _run(parts, pieces, threads)
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
    return found, squares, parts.ranked(values) if tokens else None


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


def _pieces(values: np.ndarray, inner: int) -> Iterator[_Piece]:
    """Cut ``[rows, channels * inner]`` into runs of rows, and those into whole channels.

    Several short rows make one long one; its channels repeat.  A short row holds ``inner`` tokens.
    """
    number, run, columns = 0, 0, values.shape[1]
    fold = max(WIDTH // columns, 1)
    whole = len(values) // fold
    if whole * fold < len(values):
        tokens = slice(whole * fold * inner, len(values) * inner)
        yield _Piece(values[whole * fold :], tokens, 0, columns, number, run)
        number, run = number + 1, run + 1
    values, columns, wide = values[: whole * fold].reshape(whole, fold * columns), fold * columns, fold * inner
    across = columns if fold > 1 else -(-max(PIECE // max(whole, 1), 4 * WIDTH) // inner) * inner
    down = max(PIECE // min(across, columns) // 4 * 4, 4)
    for top in range(0, len(values), down):
        rows = values[top : top + down]
        for left in range(0, columns, across):
            tokens = slice(top * wide, (top + len(rows)) * wide)
            yield _Piece(rows, tokens, left, min(left + across, columns), number, run)
            number += 1
        run += 1


def _run(parts: _Parts, pieces: list[_Piece], threads: int) -> None:
    """Take up the pieces on this thread, and on others as soon as they wake."""
    waiting = deque(pieces)

    def work(thread: int) -> None:
        while waiting:
            try:
                piece = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            parts.observe(piece, thread)

    futures = [_threads().submit(work, thread) for thread in range(1, threads)]
    work(0)
    for future in futures:
        if not future.cancel():
            future.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(torch.get_num_threads() - 1, 1), thread_name_prefix="statistics")
