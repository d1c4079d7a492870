"""Compiled: the range of each group of a row that rounds it with the least error, without trying every candidate.

What :mod:`workbench.numerics.formats.clip_search` says in torch is the specification: every weight is rounded as it
says, bit for bit; errors are added up in another order, in float64 beyond 256 of them.

Eight candidates are tried at once, each on both halves of a group: sixteen lanes of vectors.  A group's two extremes
are tried with all candidates first.  Where already their error exceeds that of the best so far, a candidate is left
out, which changes no choice, as errors only add up: of 21 candidates in groups of 32, 13 from 4 bits on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.formats.compiled.clip_kernels import CHUNK, _sum, _table_errors
from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32
Sixteen = Any  # see clip_kernels

EIGHT = 8
"""Candidates that are tried at once; there must be as many."""

_LANES = 16
_SLACK = 1.0001
"""More than sums of the same errors in two orders can differ by."""

_MAGIC = np.float32(12582912)  # 1.5 * 2**23: adding and taking it away rounds half to even
_ZERO = np.float32(0)
_ONE = np.float32(1)
_EXPONENT = np.int32(0x7F800000)


@compiled
def _squared(
    exact: Single, scale: Single, divisor: Single, least: Single, most: Single, offset: Single, magic: Single,
    normal: Any,
) -> Any:  # fmt: skip
    """Return ``(value - exact)**2`` of a whole number of steps, or with ``normal`` of a small binary number.

    ``normal`` is its least normal magnitude, and ``magic`` rounds 1 to its mantissa.
    """
    t = (exact - offset) / divisor
    t = t if t > least else least
    t = t if t < most else most
    if normal is None:
        difference = (((t + _MAGIC) - _MAGIC) * scale + offset) - exact
    else:
        power = np.int32(np.float32(t).view(np.int32) & _EXPONENT).view(np.float32)
        shift = (power if power > normal else normal) * magic
        difference = (((t + shift) - shift) * scale + offset) - exact
    return difference * difference


@compiled
def _lanes(
    x: Array, weights: Any, row: int, first: int, last: int, group: Array, magic: Single, normal: Any, sums: Array
) -> None:
    """Write the errors of both halves of the elements ``first`` to ``last`` with eight candidates, float32 ``[16]``."""
    half = np.uint64((last - first) // 2)
    begin = np.uint64(first)
    for lane in range(_LANES):
        sums[lane] = _ZERO
    for index in range(begin, begin + half):
        a, b = x[row, index], x[row, index + half]
        for lane in range(_LANES):
            error = _squared(
                a if lane < EIGHT else b, group[0, lane], group[1, lane], group[2, lane], group[3, lane],
                group[4, lane], magic, normal,
            )  # fmt: skip
            if weights is None:
                sums[lane] += error
            else:
                sums[lane] += error * (weights[row, index] if lane < EIGHT else weights[row, index + half])
    for index in range(begin + half + half, np.uint64(last)):  # the last of an odd number
        for lane in range(EIGHT):
            error = _squared(
                x[row, index], group[0, lane], group[1, lane], group[2, lane], group[3, lane], group[4, lane],
                magic, normal,
            )  # fmt: skip
            sums[lane] += error if weights is None else error * weights[row, index]


@compiled
def _extremes(x: Array, weights: Any, row: int, first: int, last: int, low: Single, high: Single, pair: Array) -> None:
    """Write the least and the greatest element and their weights, 0 where nothing is known; float32 ``[4]``.

    ``low`` and ``high`` are their values, or 0; where elements are weighed they are looked up.
    """
    pair[0], pair[1] = low, high
    pair[2] = _ONE if low != _ZERO else _ZERO
    pair[3] = _ONE if high != _ZERO and high != low else _ZERO
    if weights is not None:
        least, greatest = first, first
        for index in range(first, last):
            least = index if x[row, index] < x[row, least] else least
            greatest = index if x[row, index] > x[row, greatest] else greatest
        pair[0], pair[1], pair[2] = x[row, least], x[row, greatest], weights[row, least]
        pair[3] = weights[row, greatest] if greatest != least else _ZERO


@compiled
def least_errors(
    x: Array, width: int, scale: Array, zero: Array, offset: Array, least: Single, most: Single, magic: Single,
    normal: Any, weights: Any, low: Array, high: Array, best: Array,
) -> None:  # fmt: skip
    """Write the first candidate with the least error of each ``width`` columns of a row, int64 ``[rows, groups]``.

    ``x`` is float32 ``[rows, columns]``; ``scale``, ``zero`` and ``offset`` float32 ``[rows, groups, candidates]``; a
    value at scale 1 lies between ``least`` and ``most``, less ``zero``; ``weights`` is float32 ``[rows, columns]`` or
    None; ``low`` and ``high``, float32 ``[rows, groups]``, are the extremes of each group, or 0 instead of them.
    """
    columns, groups, candidates = x.shape[1], best.shape[1], scale.shape[2]
    group, sums, errors = np.empty((5, _LANES), np.float32), np.empty(_LANES, np.float32), np.empty(EIGHT)
    bounds, pair = np.empty(candidates, np.float32), np.empty(4, np.float32)
    for row in range(x.shape[0]):
        for at in range(groups):
            begin = at * width
            end = columns if groups == 1 else min(begin + width, columns)
            _extremes(x, weights, row, begin, end, low[row, at], high[row, at], pair)
            _bounds(pair, scale, zero, offset, row, at, least, most, magic, normal, bounds)
            fewest, number = np.inf, 0
            for block in range(0, candidates, EIGHT):
                start = min(block, candidates - EIGHT)
                if block and not _possible(bounds, start, fewest):
                    continue
                _load(scale, zero, offset, row, at, start, least, most, group)
                errors[:] = 0.0
                for first in range(begin, end, CHUNK):
                    _lanes(x, weights, row, first, min(first + CHUNK, end), group, magic, normal, sums)
                    for candidate in range(EIGHT):
                        errors[candidate] += float(sums[candidate] + sums[candidate + EIGHT])
                for candidate in range(EIGHT):
                    if errors[candidate] < fewest:
                        fewest, number = errors[candidate], start + candidate
            best[row, at] = number


@compiled
def _possible(bounds: Array, start: int, fewest: float) -> bool:
    possible = False
    for candidate in range(start, start + EIGHT):
        possible = possible or bounds[candidate] <= fewest * _SLACK
    return possible


@compiled
def _bounds(
    pair: Array, scale: Array, zero: Array, offset: Array, row: int, at: int, least: Single, most: Single,
    magic: Single, normal: Any, bounds: Array,
) -> None:  # fmt: skip
    """Write the error that the extremes alone have with each candidate, float32 ``[candidates]``."""
    first, second, weight, second_weight = pair[0], pair[1], pair[2], pair[3]
    for candidate in range(bounds.shape[0]):
        s, z, o = scale[row, at, candidate], zero[row, at, candidate], offset[row, at, candidate]
        divisor = _ONE if s == _ZERO else s
        bounds[candidate] = (
            _squared(first, s, divisor, least - z, most - z, o, magic, normal) * weight
            + _squared(second, s, divisor, least - z, most - z, o, magic, normal) * second_weight
        )


@compiled
def _load(
    scale: Array, zero: Array, offset: Array, row: int, at: int, start: int, least: Single, most: Single, group: Array
) -> None:
    """Write what sixteen lanes take of eight candidates: scale, divisor (1 for 0), ends and offset, ``[5, 16]``."""
    for lane in range(_LANES):
        number = start + (lane & (EIGHT - 1))
        s, z = scale[row, at, number], zero[row, at, number]
        group[0, lane] = s
        group[1, lane] = _ONE if s == _ZERO else s
        group[2, lane] = least - z
        group[3, lane] = most - z
        group[4, lane] = offset[row, at, number]


@compiled
def least_table_errors(
    x: Array, width: int, scale: Array, limits: Sixteen, values: Sixteen, weights: Any, low: Array, high: Array,
    best: Array,
) -> None:  # fmt: skip
    """Write the same for values out of a table, as ``of_sixteen`` chooses them.  Candidates are tried one by one."""
    columns, groups = x.shape[1], best.shape[1]
    errors, pair = np.empty(CHUNK, np.float32), np.empty(4, np.float32)
    for row in range(x.shape[0]):
        for at in range(groups):
            begin = at * width
            end = columns if groups == 1 else min(begin + width, columns)
            _extremes(x, weights, row, begin, end, low[row, at], high[row, at], pair)
            fewest, number = np.inf, 0
            for candidate in range(scale.shape[2]):
                s = scale[row, at, candidate]
                if _beyond(pair, s, limits, values) > fewest * _SLACK:
                    continue
                total = 0.0
                for first in range(begin, end, CHUNK):
                    part = x[row, first : min(first + CHUNK, end)]
                    _table_errors(part, s, limits, values, errors)
                    if weights is not None:
                        for index in range(part.shape[0]):
                            errors[index] *= weights[row, first + index]
                    total += _sum(errors, part.shape[0])
                if total < fewest:
                    fewest, number = total, candidate
            best[row, at] = number


@compiled
def _beyond(pair: Array, scale: Single, limits: Sixteen, values: Sixteen) -> Any:
    """Return the error of those extremes that go to an end of the table."""
    total = _ZERO
    for end in range(2):
        exact = pair[end]
        scaled = exact / (_ONE if scale == _ZERO else scale)
        if scaled > limits[-1] or scaled < limits[0]:
            difference = (values[-1] if scaled > limits[-1] else values[0]) * scale - exact
            total += difference * difference * pair[2 + end]
    return total
