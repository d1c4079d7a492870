"""Statistics of float32 rows in one walk over memory.  Importing this imports numba: only ``observe`` does so.

A tile that fits a core's first cache is read three times (extremes; sums and bins; counting), main memory once.  The
histogram's range grows with the tiles: pairs of bins are summed, which is exact.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

_numba: Any = importlib.import_module("numba")

BINS = 2048
HALF = BINS // 2
TILE = 4096
"""Elements of a tile: 16 KB of values and 8 KB of bin numbers."""
LANES = 64
NOT_FINITE = -1000


def _compiled(function: F) -> F:
    """Compile on the first call, once for each machine, without the interpreter's lock and without fast-math."""
    return cast(F, _numba.njit(nogil=True, cache=True, error_model="numpy")(function))


@_compiled
def _grow(counts: np.ndarray, times: int) -> None:
    """Double the range of ``counts`` so many times, in place."""
    if times <= 0:
        return
    for _ in range(min(times, 12)):
        for i in range(HALF // 2):  # the upper half, towards the middle
            counts[HALF + i] = counts[HALF + 2 * i] + counts[HALF + 2 * i + 1]
        for i in range(HALF // 2):
            counts[HALF - 1 - i] = counts[HALF - 1 - 2 * i] + counts[HALF - 2 - 2 * i]
        counts[HALF + HALF // 2 :] = 0
        counts[: HALF // 2] = 0


@_compiled
def _exponent(absmax: float, lowest: int) -> int:
    """Return the exponent of the smallest power of two above ``absmax``, at least ``lowest``."""
    exponent, power = lowest, 2.0**lowest
    while power <= absmax:
        power *= 2.0
        exponent += 1
    return exponent


@_compiled
def _extremes(tile: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
    """Lower ``low`` and raise ``high`` (``[channels]``) to ``tile`` (``[rows, channels]``); return their magnitude."""
    for r in range(tile.shape[0]):
        for c in range(tile.shape[1]):
            value = tile[r, c]
            low[c] = value if value < low[c] else low[c]
            high[c] = value if value > high[c] else high[c]
    largest = np.float32(0.0)
    for c in range(tile.shape[1]):
        most = max(high[c], -low[c])
        largest = most if most > largest else largest
    return largest


@_compiled
def _bins(tile: np.ndarray, scale: Any, bins: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> None:
    """Write each value's bin, ``floor(value * scale) + 1024``, and add scaled values and their squares by channel.

    The product with a power of two is exact but where it underflows: a tiny negative value then still has bin 1023.
    """
    channels = tile.shape[1]
    for r in range(tile.shape[0]):
        base = r * channels
        for c in range(channels):
            value = tile[r, c]
            scaled = value * scale
            whole = np.int32(scaled)
            below = (scaled < np.float32(whole)) | ((scaled == np.float32(0)) & (value < np.float32(0)))
            bins[base + c] = np.uint16(whole + np.int32(HALF) - np.int32(below))
            sums[c] += scaled
            squares[c] += scaled * scaled


@_compiled
def _take(scaled_sums: np.ndarray, scale: float, sums: np.ndarray) -> bool:
    """Add ``scaled_sums / scale`` to float64 ``sums``, and set the former to 0; return whether all were finite."""
    total = np.float32(0)
    for c in range(sums.size):
        total += scaled_sums[c]
        sums[c] += scaled_sums[c] / scale
        scaled_sums[c] = 0
    return bool(total == total)


@_compiled
def _count(bins: np.ndarray, size: int, first: np.ndarray, second: np.ndarray) -> None:
    """Count ``bins[:size]``; two histograms by turns, so that equal neighbours do not wait for each other."""
    even = size // 2 * 2
    for i in range(0, even, 2):
        first[bins[i]] += np.uint32(1)
        second[bins[i + 1]] += np.uint32(1)
    if even < size:
        first[bins[even]] += np.uint32(1)


@_compiled
def _tile(
    tile: np.ndarray, exponent: int, low: np.ndarray, high: np.ndarray, sums: np.ndarray, squares: np.ndarray,
    scratch: tuple[np.ndarray, ...], counts: tuple[np.ndarray, ...],
) -> int:  # fmt: skip
    """Take up one tile; see ``observe_rows``.  ``scratch``: bins and two zeroed float32 sums by channel."""
    largest = _extremes(tile, low, high)
    if not largest < np.inf:
        return NOT_FINITE
    needed = _exponent(largest, exponent)
    for each in counts:
        _grow(each, needed - exponent)
    scale = np.float32(2.0 ** (10 - needed))
    bins, tile_sums, tile_squares = scratch
    _bins(tile, scale, bins, tile_sums, tile_squares)
    wide = np.float64(scale)
    finite = _take(tile_sums, wide, sums)
    _take(tile_squares, wide * wide, squares)
    if not finite:
        return NOT_FINITE
    _count(bins, tile.size, counts[0], counts[1])
    return needed


@_compiled
def observe_rows(
    values: np.ndarray, exponent: int, low: np.ndarray, high: np.ndarray, sums: np.ndarray, squares: np.ndarray,
    counts: np.ndarray,
) -> int:  # fmt: skip
    """Take up ``values`` float32 ``[rows, channels]``; return the histogram's new exponent, NOT_FINITE with NaN or inf.

    ``low`` and ``high`` float32, ``sums`` and ``squares`` (of values and of their squares) float64, all ``[channels]``,
    and ``counts`` uint32 ``[2, 2048]`` over ``[-2**exponent, 2**exponent)`` are added to; worthless where not finite.
    """
    rows, channels = values.shape
    step = max(min(TILE // channels, 256), 16)
    scratch = (np.empty(step * channels, np.uint16), np.zeros(channels, np.float32), np.zeros(channels, np.float32))
    both = (counts[0], counts[1])
    for start in range(0, rows, step):
        exponent = _tile(values[start : min(start + step, rows)], exponent, low, high, sums, squares, scratch, both)
        if exponent == NOT_FINITE:
            break
    return exponent


@_compiled
def observe_blocks(
    values: np.ndarray, exponent: int, low: np.ndarray, high: np.ndarray, sums: np.ndarray, squares: np.ndarray,
    counts: np.ndarray,
) -> int:  # fmt: skip
    """The same for ``values`` float32 ``[outer, channels, inner]`` (feature maps, and weights with their rows)."""
    outer, channels, inner = values.shape
    lanes = min(inner, LANES)
    runs = inner // lanes
    bins = np.empty(runs * lanes, np.uint16)
    lane_low, lane_high = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
    lane_sums, lane_squares = np.zeros(lanes, np.float64), np.zeros(lanes, np.float64)
    zeros, more_zeros = np.zeros(lanes, np.float32), np.zeros(lanes, np.float32)
    both = (counts[0], counts[1])
    for o in range(outer):
        for c in range(channels):
            row = values[o, c]
            lane_low[:], lane_high[:], lane_sums[:], lane_squares[:] = low[c], high[c], 0.0, 0.0
            head = row[: runs * lanes].reshape((runs, lanes))
            exponent = _tile(
                head, exponent, lane_low, lane_high, lane_sums, lane_squares, (bins, zeros, more_zeros), both
            )
            if exponent != NOT_FINITE and runs * lanes < inner:
                rest = row[runs * lanes :].reshape((1, inner - runs * lanes))
                few = rest.size
                exponent = _tile(
                    rest, exponent, lane_low[:few], lane_high[:few], lane_sums[:few], lane_squares[:few],
                    (bins, zeros[:few], more_zeros[:few]), both,
                )  # fmt: skip
            if exponent == NOT_FINITE:
                return NOT_FINITE
            low[c], high[c] = lane_low.min(), lane_high.max()
            sums[c] += lane_sums.sum()
            squares[c] += lane_squares.sum()
    return exponent
