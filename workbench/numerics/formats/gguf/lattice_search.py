"""Compiled searches over the tables of vectors of llama.cpp's IQ1, IQ2 and IQ3 formats.

``x`` and ``w`` are float32 ``[n, 256]``, blocks of weights and of error weights; ``grid`` float32 ``[vector, entries]``
holds the table, entry by entry in columns.  ``signs`` says how signs are stored: 0 not at all (the table has them), 1
as seven bits of eight, the product being positive, 2 freely.  Every choice is the entry of least weighted squared error
in the whole table; llama.cpp looks at an entry's neighbours only, and keeps what it chose before scales were rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32

EIGHT = 8
_ZERO = np.float32(0)
_STARTS = np.array([0.85, 1.0, 1.18], np.float32)
"""Scales that are tried first, as shares of that of the largest value; llama.cpp tries 0.85 to 1.22."""


@compiled
def _magnitudes(x: Array, w: Array, start: int, signs: int, out: Array) -> int:
    """Write eight values without the signs that are stored and return their bits; an odd one out is turned where it
    costs least."""
    bits, cheapest, least = 0, 0, np.float32(np.inf)
    odd = False
    for item in range(EIGHT):
        value = x[start + item]
        if signs and value < _ZERO:
            bits |= 1 << item
            odd = not odd
            value = -value
        out[item] = value
        cost = w[start + item] * value * value
        if cost < least:
            least, cheapest = cost, item
    if signs == 1 and odd:
        out[cheapest] = -out[cheapest]
        bits ^= 1 << cheapest
    return bits


@compiled
def _nearest(size: Array, w: Array, at: int, first: int, scale: Single, grid: Array, low: int, cost: Array) -> int:
    """Return the entry from ``low`` on, of as many as ``cost`` has, nearest to ``size[first:]`` over ``scale``."""
    count = cost.shape[0]
    for item in range(grid.shape[0]):
        square, linear = scale * w[at + item], np.float32(-2) * w[at + item] * size[first + item]
        if item == 0:
            for entry in range(count):
                level = grid[item, low + entry]
                cost[entry] = level * (square * level + linear)
        else:
            for entry in range(count):
                level = grid[item, low + entry]
                cost[entry] += level * (square * level + linear)
    best, least = 0, cost[0]
    for entry in range(1, count):
        if cost[entry] < least:
            best, least = entry, cost[entry]
    return low + best


@compiled
def _exact(size: Array, first: int, scale: Single, grid: Array, order: Array, keys: Array, radix: Array) -> int:
    """Return the entry that is exactly ``size / scale``, found by its key, or -1."""
    key = np.float64(0)
    for item in range(grid.shape[0]):
        key += radix[item] * np.float64(size[first + item] / scale)
    place = np.searchsorted(keys, key)
    if place >= keys.shape[0]:
        return -1
    entry = order[place]
    for item in range(grid.shape[0]):
        if grid[item, entry] * scale != size[first + item]:
            return -1
    return int(entry)


@compiled
def _totals(
    x: Array, w: Array, start: int, size: int, scale: Single, grid: Array, half: int, signs: int, part: Array,
    cost: Array,
) -> Any:  # fmt: skip
    """Return ``sum w x q`` and ``sum w q q`` of a group whose entries ``q`` are chosen for ``scale``."""
    linear, square = np.float64(0), np.float64(0)
    for eighth in range(start, start + size, EIGHT):
        _magnitudes(x, w, eighth, signs, part)
        for first in range(0, EIGHT, grid.shape[0]):
            at = eighth + first
            entry = _nearest(part, w, at, first, scale, grid, half * cost.shape[0], cost)
            for item in range(grid.shape[0]):
                level = grid[item, entry]
                linear += np.float64(w[at + item] * part[first + item] * level)
                square += np.float64(w[at + item] * level * level)
    return linear, square


@compiled
def fit(
    x: Array, w: Array, grid: Array, halves: int, signs: int, group: int, largest: int, unit: Array, codes: Array
) -> None:
    """Choose each block's unit (float32 ``[n]``) and its groups' codes ``0 .. largest`` (uint8 ``[n, 256 / group]``).

    A group's scale is ``unit * (2 * code + 1)``.  Scales are least squares for the entries that they choose; then unit
    and codes are improved for each other twice.
    """
    groups = x.shape[1] // group
    part, cost = np.empty(EIGHT, np.float32), np.empty(grid.shape[1] // halves, np.float32)
    scale, half = np.empty(groups, np.float32), np.empty(groups, np.int64)
    top, most = np.abs(grid).max(), np.float32(2 * largest + 1)
    for row in range(x.shape[0]):
        for number in range(groups):
            scale[number], half[number] = _group_scale(
                x[row], w[row], number * group, group, grid, halves, signs, top, part, cost
            )
        unit[row] = scale.max() / most
        for trial in range(3):
            linear, square = np.float64(0), np.float64(0)
            for number in range(groups):
                code = _code(scale[number], unit[row], largest)
                codes[row, number] = code
                if trial < 2 and unit[row] > _ZERO:
                    factor, start = np.float32(2 * code + 1), number * group
                    a, b = _totals(
                        x[row], w[row], start, group, unit[row] * factor, grid, half[number], signs, part, cost
                    )
                    scale[number] = np.float32(a / b) if b > 0 and a > 0 else scale[number]
                    linear += a * factor
                    square += b * factor * factor
            if trial < 2 and square > 0 and linear > 0:
                unit[row] = np.float32(linear / square)


@compiled
def _code(scale: Single, unit: Single, largest: int) -> int:
    if not unit > _ZERO:
        return 0
    code = int(np.rint((scale / unit - np.float32(1)) * np.float32(0.5)))
    return min(max(code, 0), largest)


@compiled
def _group_scale(
    x: Array, w: Array, start: int, size: int, grid: Array, halves: int, signs: int, top: Single, part: Array,
    cost: Array,
) -> Any:  # fmt: skip
    """Return the scale of least error for a group and which half of the table it takes."""
    peak = _ZERO
    for item in range(start, start + size):
        peak = max(peak, abs(x[item]))
    best, scale, chosen = np.float64(0), _ZERO, 0
    if peak == _ZERO:
        return scale, chosen
    for half in range(halves):
        for share in _STARTS:
            a, b = _totals(x, w, start, size, peak / top * share, grid, half, signs, part, cost)
            if b > 0 and a > 0 and a * a > best * b:
                best, scale, chosen = a * a / b, np.float32(a / b), half
    return scale, chosen


@compiled
def choose(
    x: Array, w: Array, scale: Array, grid: Array, halves: int, signs: int, order: Array, keys: Array, radix: Array,
    entries: Array, bits: Array,
) -> None:  # fmt: skip
    """Write the table's entry of every vector (int32 ``[n, 256 / vector]``) and the signs of every eight values
    (uint8 ``[n, 32]``), for the groups' scales float32 ``[n, groups]``.  What lies on the grid stays where it is."""
    part, cost = np.empty(EIGHT, np.float32), np.empty(grid.shape[1] // halves, np.float32)
    size = x.shape[1] // scale.shape[1]
    vector = grid.shape[0]
    for row in range(x.shape[0]):
        for number in range(scale.shape[1]):
            unit, start = scale[row, number], number * size
            half = _half(x[row], w[row], start, size, unit, grid, halves, signs, part, cost) if halves > 1 else 0
            for eighth in range(start, start + size, EIGHT):
                sign = _magnitudes(x[row], w[row], eighth, signs, part)
                bits[row, eighth // EIGHT] = sign if unit > _ZERO else 0
                for first in range(0, EIGHT, vector):
                    at = eighth + first
                    entry = -1
                    if unit > _ZERO:
                        entry = _exact(part, first, unit, grid, order, keys, radix)
                        if entry < 0 or (halves > 1 and entry // cost.shape[0] != half):
                            entry = _nearest(part, w[row], at, first, unit, grid, half * cost.shape[0], cost)
                    entries[row, at // vector] = max(entry, 0)


@compiled
def _half(
    x: Array, w: Array, start: int, size: int, scale: Single, grid: Array, halves: int, signs: int, part: Array,
    cost: Array,
) -> int:  # fmt: skip
    """Return the half of the table with the least error for a group's scale."""
    chosen, least = 0, np.float64(np.inf)
    for half in range(halves):
        linear, square = _totals(x, w, start, size, scale, grid, half, signs, part, cost)
        error = np.float64(scale) * square - 2 * linear
        if error < least:
            chosen, least = half, error
    return chosen
