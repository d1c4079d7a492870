"""Error feedback and coordinate descent column by column, compiled.  Importing this imports numba.

Rows are independent: a tile of them goes through all columns at once, so that it stays in a core's nearest cache and
every step works on neighbouring numbers.  What :mod:`workbench.numerics.rounding.gptq` says in torch is the
specification, operation by operation; a test holds the values to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.formats.compiled.clip_kernels import FLOAT, INTEGER, of_sixteen
from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32
Sixteen = Any  # see clip_kernels
Kind = Any  # an element: see clip_compiled.kernel_element
Affine = Any  # scale, zero and offset float32 [rows or 1, groups], the group of each column int64 [columns]

LANES = 64
"""Rows of a tile."""

_MAGIC = np.float32(12582912)  # 1.5 * 2**23: adding and taking it away rounds half to even
_ZERO = np.float32(0)
_ONE = np.float32(1)
_EXPONENT = np.int32(0x7F800000)


@compiled
def _integers(x: Array, scale: Array, zero: Array, offset: Array, top: Single, out: Array) -> None:
    for r in range(LANES):
        divisor = _ONE if scale[r] == _ZERO else scale[r]
        t = (x[r] - offset[r]) / divisor
        least, most = _ZERO - zero[r], top - zero[r]
        t = t if t > least else least
        t = t if t < most else most
        out[r] = ((t + _MAGIC) - _MAGIC) * scale[r] + offset[r]


@compiled
def _floats(x: Array, scale: Array, mantissa: int, normal: Single, lowest: Single, highest: Single, out: Array) -> None:
    magic = np.float32(1.5 * 2.0 ** (23 - mantissa))
    for r in range(LANES):
        divisor = _ONE if scale[r] == _ZERO else scale[r]
        t = x[r] / divisor
        t = t if t > lowest else lowest
        t = t if t < highest else highest
        power = np.int32(np.float32(t).view(np.int32) & _EXPONENT).view(np.float32)
        shift = (power if power > normal else normal) * magic
        out[r] = ((t + shift) - shift) * scale[r]


@compiled
def _entries(x: Array, scale: Array, limits: Sixteen, values: Sixteen, out: Array) -> None:
    for r in range(LANES):
        divisor = _ONE if scale[r] == _ZERO else scale[r]
        out[r] = of_sixteen(x[r] / divisor, limits, values) * scale[r]


@compiled
def _nearest(x: Array, own: Array, element: Kind, out: Array) -> None:
    """Write the nearest values of the grids ``own`` (scale, zero, offset; float32 ``[3, LANES]``)."""
    kind, top, mantissa, normal, lowest, highest, limits, values = element
    if kind == INTEGER:
        _integers(x, own[0], own[1], own[2], top, out)
    elif kind == FLOAT:
        _floats(x, own[0], mantissa, normal, lowest, highest, out)
    else:
        _entries(x, own[0], limits, values, out)


@compiled
def _load(affine: Affine, start: int, count: int, column: int, own: Array) -> None:
    """Write the parameters of a tile at one column, unless they are those of the column before."""
    scale, zero, offset, group = affine
    at = group[column]
    if column and at == group[column - 1]:
        return
    many = scale.shape[0] > 1
    for r in range(count):
        row = start + r if many else 0
        own[0, r], own[1, r], own[2, r] = scale[row, at], zero[row, at], offset[row, at]


@compiled
def _take(row: Array, errors: Array, factor: Single) -> None:
    for r in range(LANES):
        row[r] -= errors[r] * factor


@compiled
def _add(row: Array, moves: Array, factor: Single) -> None:
    for r in range(LANES):
        row[r] += moves[r] * factor


@compiled
def _gather(matrix: Array, start: int, count: int, tile: Array) -> None:
    for r in range(count):
        for j in range(matrix.shape[1]):
            tile[j, r] = matrix[start + r, j]


@compiled
def feed_back(left: Array, feedback: Array, affine: Affine, element: Kind, rounded: Array, errors: Array) -> None:
    """Round ``left`` float32 ``[rows, width]`` column by column, later columns taking up the errors.

    ``feedback`` is ``U``, float32 ``[width, width]``.  Written are the values and the errors over ``U_jj``.
    """
    rows, width = left.shape
    tile, own = np.zeros((width, LANES), np.float32), np.ones((3, LANES), np.float32)
    nearest, error = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        _gather(left, start, count, tile)
        for j in range(width):
            _load(affine, start, count, j, own)
            _nearest(tile[j], own, element, nearest)
            for r in range(LANES):
                error[r] = (tile[j, r] - nearest[r]) / feedback[j, j]
            for k in range(j + 1, width):
                _take(tile[k], error, feedback[j, k])
            for r in range(count):
                rounded[start + r, j], errors[start + r, j] = nearest[r], error[r]


@compiled
def descend(values: Array, slopes: Array, local: Array, affine: Affine, element: Kind, moves: Array) -> None:
    """Move each value of some columns to its best given all others; ``values`` float32 ``[rows, width]`` in place.

    ``slopes`` are the errors times A at those columns, ``local`` their block of A.  Written are the ``moves``.
    """
    rows, width = values.shape
    tile, slope = np.zeros((width, LANES), np.float32), np.zeros((width, LANES), np.float32)
    own, target = np.ones((3, LANES), np.float32), np.empty(LANES, np.float32)
    nearest, moved = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        _gather(values, start, count, tile)
        _gather(slopes, start, count, slope)
        for j in range(width):
            _load(affine, start, count, j, own)
            for r in range(LANES):
                target[r] = tile[j, r] - slope[j, r] / local[j, j]
            _nearest(target, own, element, nearest)
            some = False
            for r in range(LANES):
                moved[r] = nearest[r] - tile[j, r]
                some |= moved[r] != _ZERO
            for r in range(count):
                values[start + r, j] += moved[r]
                moves[start + r, j] = moved[r]
            if some:
                for k in range(j + 1, width):
                    _add(slope[k], moved, local[j, k])
