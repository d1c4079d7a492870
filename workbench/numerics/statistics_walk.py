"""A tensor on the CPU handed to the compiled statistics, piece by piece on this process's threads.

Pieces depend on the shape alone and their sums are added in order, so the result does not depend on the threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch

from workbench.numerics.statistics import BINS, LOWEST_EXPONENT, LayerStatistics
from workbench.numerics.statistics_compiled import NOT_FINITE, observe_blocks, observe_rows

PIECE = 1 << 19
"""Elements of one piece."""

LONG = 1024
"""Runs of one channel from so many elements on are walked one by one; shorter ones are columns of their own first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """What one piece gave; ``low`` to ``squares`` ``[channels of the piece]``, ``counts`` uint32 ``[2, 2048]``."""

    exponent: int
    low: np.ndarray
    high: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    counts: np.ndarray


def walk(tensor: torch.Tensor, axis: int) -> tuple[LayerStatistics, np.ndarray] | None:
    """Return the statistics and each channel's sum of squares; None where something is NaN or infinite."""
    axis %= tensor.dim()
    shape = tensor.shape
    outer, channels, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    blocks = tensor.reshape(outer, channels, inner)
    if inner == 1:
        parts = _pieces(blocks.reshape(outer, channels), observe_rows, channels)
    elif inner < LONG and outer >= 8:
        parts = _pieces(blocks.reshape(outer, channels * inner), observe_rows, channels * inner)
    elif outer >= channels:
        parts = _pieces(blocks, observe_blocks, channels)
    else:
        return _by_channel(blocks)
    if any(part.exponent == NOT_FINITE for part in parts):
        return None
    whole = _together(parts)
    return _statistics(whole, channels, tensor.numel())


def _by_channel(blocks: torch.Tensor) -> tuple[LayerStatistics, np.ndarray] | None:
    """The same in pieces of some channels each, as of weights and of few large feature maps."""
    outer, channels, inner = blocks.shape
    step = max(PIECE // (outer * inner), 1)
    pieces = [blocks[:, start : start + step] for start in range(0, channels, step)]
    parts = _run([partial(_observe, piece, observe_blocks, piece.shape[1]) for piece in pieces])
    if any(part.exponent == NOT_FINITE for part in parts):
        return None
    exponent = max(part.exponent for part in parts)
    fields = (np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "sums", "squares"))
    low, high, sums, squares = fields
    whole = _Part(exponent=exponent, low=low, high=high, sums=sums, squares=squares, counts=_counts(parts, exponent))
    return _statistics(whole, channels, blocks.numel())


def _pieces(rows: torch.Tensor, kernel: Callable[..., int], channels: int) -> list[_Part]:
    """Observe runs of ``rows`` along the first axis."""
    step = max(PIECE // math.prod(rows.shape[1:]), 16)
    pieces = torch.split(rows, step)
    return _run([partial(_observe, piece, kernel, channels) for piece in pieces])


def _observe(piece: torch.Tensor, kernel: Callable[..., int], channels: int) -> _Part:
    values = piece.to(torch.float32).contiguous().numpy()
    low, high = np.full(channels, np.inf, np.float32), np.full(channels, -np.inf, np.float32)
    sums, squares = np.zeros((2, channels))
    counts = np.zeros((2, BINS), np.uint32)
    exponent = kernel(values, LOWEST_EXPONENT, low, high, sums, squares, counts)
    return _Part(exponent=exponent, low=low, high=high, sums=sums, squares=squares, counts=counts)


def _together(parts: list[_Part]) -> _Part:
    """Add up parts of the same channels."""
    if len(parts) == 1:
        return parts[0]
    exponent = max(part.exponent for part in parts)
    return _Part(
        exponent=exponent,
        low=np.minimum.reduce([part.low for part in parts]),
        high=np.maximum.reduce([part.high for part in parts]),
        sums=np.add.reduce([part.sums for part in parts]),
        squares=np.add.reduce([part.squares for part in parts]),
        counts=_counts(parts, exponent),
    )


def _counts(parts: list[_Part], exponent: int) -> np.ndarray:
    """Return the counts of all parts over the range of ``exponent``, int64 ``[1, 2048]``."""
    total = np.zeros(BINS, np.int64)
    for part in parts:
        counts = part.counts.sum(axis=0, dtype=np.int64)
        for _ in range(min(exponent - part.exponent, BINS.bit_length())):
            inner = counts.reshape(-1, 2).sum(axis=1)
            counts = np.zeros(BINS, np.int64)
            counts[BINS // 4 : 3 * BINS // 4] = inner
        total += counts
    return total[None]


def _statistics(part: _Part, channels: int, count: int) -> tuple[LayerStatistics, np.ndarray]:
    """Return the statistics; columns of one channel (positions of a feature map) are put together."""
    low = part.low.reshape(channels, -1).min(axis=1)
    high = part.high.reshape(channels, -1).max(axis=1)
    squares = part.squares.reshape(channels, -1).sum(axis=1)
    found = LayerStatistics(
        count=count, non_finite=0, minimum=float(low.min()), maximum=float(high.max()), total=float(part.sums.sum()),
        total_squares=float(squares.sum()), exponent=part.exponent, counts=part.counts.sum(axis=0, dtype=np.int64),
        channel_absmax=np.maximum(np.maximum(high, -low), 0.0), channel_minimum=low, channel_maximum=high,
    )  # fmt: skip
    return found, squares


def _run(work: list[Callable[[], _Part]]) -> list[_Part]:
    """Run the pieces side by side."""
    if len(work) == 1:
        return [work[0]()]
    return list(_threads().map(lambda one: one(), work))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(torch.get_num_threads(), 1), thread_name_prefix="statistics")
