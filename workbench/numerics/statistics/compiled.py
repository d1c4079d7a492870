"""Statistics of float32 values in one walk over memory.  Importing this imports numba: only ``observe`` does so.

A tile that fits a core's nearer caches is read once from main memory: extremes, sums and bins in one go, then the bins
are counted.  The histogram's range grows with the tiles: pairs of bins are summed, which is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.statistics.tokens_compiled import compiled as _compiled
from workbench.numerics.statistics.tokens_compiled import raise_tokens, seek_tokens

BINS = 2048
HALF = BINS // 2
TILE = 16384
"""Elements of a tile: 64 KB of values and 32 KB of bin numbers."""
MIDDLE, LAST = np.int32(HALF), np.int32(BINS - 1)
WIDTH = 1024
"""Columns of a tile at most: a page of memory of each row, along which the processor fetches ahead."""
NOT_FINITE = -1000


@_compiled
def grow(counts: np.ndarray, times: int) -> None:
    """Double the range of ``counts`` (``[2048]``) so many times, in place."""
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
def exponent_above(absmax: float, lowest: int) -> int:
    """Return the exponent of the smallest power of two above ``absmax``, at least ``lowest``."""
    exponent, power = lowest, 2.0**lowest
    while power <= absmax:
        power *= 2.0
        exponent += 1
    return exponent


@_compiled
def _four(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, scale: Any, unit: Any, bins: np.ndarray,
    low: np.ndarray, high: np.ndarray, sums: np.ndarray, squares: np.ndarray,
) -> None:  # fmt: skip
    """Take up four rows: bins ``floor(value * scale) + 1024`` modulo 2048, extremes, sums of values times ``unit``."""
    n = a.size
    for i in range(n):
        w, x, y, z = a[i], b[i], c[i], d[i]
        least, other = w if w < x else x, y if y < z else z
        least = least if least < other else other
        low[i] = least if least < low[i] else low[i]
        most, other = w if w > x else x, y if y > z else z
        most = most if most > other else other
        high[i] = most if most > high[i] else high[i]
        bins[i] = np.uint16((np.int32(np.floor(w * scale)) + MIDDLE) & LAST)
        bins[n + i] = np.uint16((np.int32(np.floor(x * scale)) + MIDDLE) & LAST)
        bins[2 * n + i] = np.uint16((np.int32(np.floor(y * scale)) + MIDDLE) & LAST)
        bins[3 * n + i] = np.uint16((np.int32(np.floor(z * scale)) + MIDDLE) & LAST)
        w, x, y, z = w * unit, x * unit, y * unit, z * unit
        sums[i] += (w + x) + (y + z)
        squares[i] += (w * w + x * x) + (y * y + z * z)


@_compiled
def _one(
    a: np.ndarray, scale: Any, unit: Any, bins: np.ndarray, low: np.ndarray, high: np.ndarray, sums: np.ndarray,
    squares: np.ndarray,
) -> None:  # fmt: skip
    """Take up one row."""
    for i in range(a.size):
        w = a[i]
        low[i] = w if w < low[i] else low[i]
        high[i] = w if w > high[i] else high[i]
        bins[i] = np.uint16((np.int32(np.floor(w * scale)) + MIDDLE) & LAST)
        w = w * unit
        sums[i] += w
        squares[i] += w * w


@_compiled
def _rows(
    values: np.ndarray, place: tuple[int, int, int, int], scale: Any, unit: Any, bins: np.ndarray,
    lanes: tuple[np.ndarray, ...],
) -> None:  # fmt: skip
    """Take up the rows and columns ``place`` (top, bottom, left, right) of ``values``."""
    top, bottom, left, right = place
    low, high, sums, squares = lanes
    n = right - left
    fours = top + (bottom - top) // 4 * 4
    for r in range(top, fours, 4):
        _four(
            values[r, left:right], values[r + 1, left:right], values[r + 2, left:right], values[r + 3, left:right],
            scale, unit, bins[(r - top) * n :], low, high, sums, squares,
        )  # fmt: skip
    for r in range(fours, bottom):
        _one(values[r, left:right], scale, unit, bins[(r - top) * n :], low, high, sums, squares)


@_compiled
def _reaches(low: np.ndarray, high: np.ndarray, limit: Any) -> bool:
    """Tell whether a magnitude is ``limit`` or more."""
    found = 0
    for i in range(low.size):
        found |= int(high[i] >= limit) | int(low[i] <= -limit)
    return found != 0


@_compiled
def _largest(low: np.ndarray, high: np.ndarray) -> Any:
    """Return the largest magnitude."""
    largest = np.float32(0.0)
    for i in range(low.size):
        largest = max(largest, high[i], -low[i])
    return largest


@_compiled
def _below_zero(values: np.ndarray, place: tuple[int, int, int, int], scale: Any, bins: np.ndarray) -> None:
    """Put negative values that the scaling turned into 0 into the bin below 0, where the others of their size are."""
    top, bottom, left, right = place
    n = right - left
    for r in range(top, bottom):
        for i in range(n):
            value = values[r, left + i]
            if value < np.float32(0) and value * scale == np.float32(0):
                bins[(r - top) * n + i] = HALF - 1


@_compiled
def _take(lanes: tuple[np.ndarray, ...], unit: float, wide: tuple[np.ndarray, ...]) -> None:
    """Add the tile's sums, of values times ``unit`` and of their squares, to the float64 ones, and set them to 0."""
    sums, squares = lanes[2], lanes[3]
    inverse = 1.0 / unit
    for i in range(sums.size):
        wide[0][i] += sums[i] * inverse
        wide[1][i] += squares[i] * inverse * inverse
        sums[i] = 0
        squares[i] = 0


@_compiled
def _count(words: np.ndarray, size: int, counts: np.ndarray) -> None:
    """Count ``size`` bins, four in a word; four histograms by turns, so that equal neighbours do not wait."""
    first, second, third, fourth = counts[0], counts[1], counts[2], counts[3]
    mask = np.uint64(0xFFFF)
    for i in range(size // 4):
        word = words[i]
        first[word & mask] += np.uint32(1)
        second[(word >> np.uint64(16)) & mask] += np.uint32(1)
        third[(word >> np.uint64(32)) & mask] += np.uint32(1)
        fourth[word >> np.uint64(48)] += np.uint32(1)
    bins = words.view(np.uint16)
    for i in range(size // 4 * 4, size):
        first[bins[i]] += np.uint32(1)


@_compiled
def _tile(
    values: np.ndarray, place: tuple[int, int, int, int], exponent: int, unit: Any, words: np.ndarray,
    lanes: tuple[np.ndarray, ...], wide: tuple[np.ndarray, ...], counts: np.ndarray,
) -> int:  # fmt: skip
    """Take up one tile at the histogram's range so far; where it is too small, once more at a larger one."""
    bins = words.view(np.uint16)
    low, high, sums, squares = lanes
    scale = np.float32(2.0 ** (10 - exponent))
    _rows(values, place, scale, unit, bins, lanes)
    if _reaches(low, high, 2.0**exponent):
        largest = _largest(low, high)
        if not largest < np.inf:
            return NOT_FINITE
        needed = exponent_above(largest, exponent)
        for h in range(counts.shape[0]):
            grow(counts[h], needed - exponent)
        exponent = needed
        scale = np.float32(2.0 ** (10 - exponent))
        sums[:], squares[:] = 0, 0
        _rows(values, place, scale, unit, bins, lanes)
    if scale < 1.0:
        _below_zero(values, place, scale, bins)
    _take(lanes, np.float64(unit), wide)
    _count(words, (place[1] - place[0]) * (place[3] - place[2]), counts)
    return exponent


@_compiled
def _least(values: np.ndarray) -> Any:
    """Return the least value, having overwritten them: halves are compared in the processor's lanes."""
    size = values.size
    while size > 8 and size % 2 == 0:
        size //= 2
        first, second = values[:size], values[size : 2 * size]
        for k in range(size):
            first[k] = first[k] if first[k] < second[k] else second[k]
    least = values[0]
    for k in range(1, size):
        least = min(least, values[k])
    return least


@_compiled
def _total(values: np.ndarray) -> Any:
    """Return the sum, having overwritten the values: halves are added in the processor's lanes."""
    size = values.size
    while size > 8 and size % 2 == 0:
        size //= 2
        first, second = values[:size], values[size : 2 * size]
        for k in range(size):
            first[k] += second[k]
    total = values[0]
    for k in range(1, size):
        total += values[k]
    return total


@_compiled
def _fold_rows(
    lanes: tuple[np.ndarray, ...], wide: tuple[np.ndarray, ...], left: int, found: tuple[np.ndarray, ...]
) -> bool:
    """Take up columns as ``_fold`` does where column ``j`` belongs to channel ``j % channels``."""
    total = 0.0
    i, n = 0, lanes[0].size
    while i < n:
        channel = (left + i) % found[0].size
        run = min(n - i, found[0].size - channel)
        for k in range(run):
            low, high = lanes[0][i + k], lanes[1][i + k]
            found[0][channel + k] = low if low < found[0][channel + k] else found[0][channel + k]
            found[1][channel + k] = high if high > found[1][channel + k] else found[1][channel + k]
            found[2][channel + k] += wide[0][i + k]
            found[3][channel + k] += wide[1][i + k]
        i += run
    for k in range(n):
        total += wide[1][k]
    return bool(total - total == 0)


@_compiled
def _fold(
    lanes: tuple[np.ndarray, ...], wide: tuple[np.ndarray, ...], left: int, inner: int, found: tuple[np.ndarray, ...]
) -> bool:
    """Take columns ``left`` on up into their channels' ``found`` (low, high, sums, squares); tell if all was finite.

    Column ``j`` belongs to channel ``j // inner % channels``.
    """
    if inner == 1:
        return _fold_rows(lanes, wide, left, found)
    total = 0.0
    i, n = 0, lanes[0].size
    while i < n:
        channel = (left + i) // inner % found[0].size
        run = min(n - i, inner - (left + i) % inner)
        mine = slice(i, i + run)
        np.negative(lanes[1][mine], lanes[1][mine])
        found[0][channel] = min(found[0][channel], _least(lanes[0][mine]))
        found[1][channel] = max(found[1][channel], -_least(lanes[1][mine]))
        found[2][channel] += _total(wide[0][mine])
        squared = _total(wide[1][mine])
        found[3][channel] += squared
        total += squared
        i += run
    return bool(total - total == 0)


@_compiled
def observe_piece(
    values: np.ndarray, left: int, right: int, inner: int, exponent: int, unit: Any,
    channelwise: tuple[np.ndarray, ...], counts: np.ndarray, tokens: tuple[np.ndarray, np.ndarray, np.ndarray],
    first: int,
) -> int:  # fmt: skip
    """Take up the columns ``left`` to ``right`` of ``values`` float32 ``[rows, columns]``, C-contiguous.

    Column ``j`` belongs to channel ``j // inner % channels``.  Added to are ``channelwise`` (``low`` and ``high``
    float32, ``sums`` of values and of their squares float64, all ``[channels]``) and ``counts`` uint32 ``[4, 2048]``
    over ``[-2**exponent, 2**exponent)``; they are worthless where not finite.  ``unit`` float32 is a power of two that
    brings the values near to 1, so that no sum overflows or vanishes.  Of ``tokens``: ``peaks`` int32
    ``[tokens]``, the bits of the largest magnitudes of the first row's first token and of those after it, are raised
    where channels lie last; or else the ``largest`` and where they were ``found`` are kept, that token being number
    ``first`` (see ``tokens_compiled``); what is empty is left.  Returns the histogram's new exponent, NOT_FINITE with
    NaN or infinity.
    """
    rows, (peaks, found, largest) = values.shape[0], tokens
    width = min(WIDTH, right - left)
    step = max(TILE // width // 4 * 4, 4)
    words = np.empty(step * width // 4 + 1, np.uint64)
    narrow, wider = np.empty((4, width), np.float32), np.empty((2, width), np.float64)
    for start in range(left, right, width):
        last = min(start + width, right)
        n = last - start
        narrow[0], narrow[1], narrow[2:], wider[:] = np.inf, -np.inf, 0, 0
        lanes = (narrow[0, :n], narrow[1, :n], narrow[2, :n], narrow[3, :n])
        wide = (wider[0, :n], wider[1, :n])
        for top in range(0, rows, step):
            place = (top, min(top + step, rows), start, last)
            exponent = _tile(values, place, exponent, unit, words, lanes, wide, counts)
            if exponent == NOT_FINITE:
                return NOT_FINITE
            if peaks.size:
                raise_tokens(values, place, peaks)
            elif largest.size and _reaches(lanes[0], lanes[1], abs(largest[-1])):
                seek_tokens(values, place, inner, channelwise[0].size, first, found, largest)
        if not _fold(lanes, wide, start, inner, channelwise):
            return NOT_FINITE
    return exponent
