"""Compiled kernels for elements with a table: weights to the codes of the nearest values, and codes to weights.

``x`` is float32 ``[rows, columns]``; ``scale`` float32 ``[rows or 1, groups]``, a group being ``width`` columns.  The
nearest value of ``t`` has the rank ``sum(t > limits)``, ``ranked`` gives the code of a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.formats.compiled.scaled_kernels import _pack_row, _unpack_row
from workbench.numerics.jit import compiled

Array = Any

_ZERO = np.float32(0)
_ONE = np.float32(1)


@compiled
def _row_ranks(x: Array, width: int, scale: Array, limits: Array, scaled: Array, rank: Array) -> int:
    """Write the rank of each weight of a row, int32, and return how many are NaN."""
    bad = 0
    columns = x.shape[0]
    for group in range(scale.shape[0]):
        start = group * width
        stop = columns if scale.shape[0] == 1 else min(start + width, columns)
        s = scale[group]
        divisor = _ONE if s == _ZERO else s
        for index in range(np.uint64(start), np.uint64(stop)):
            scaled[index] = x[index] / divisor
            rank[index] = 0
    for index in range(columns):
        bad += x[index] != x[index]
    for at in range(limits.shape[0]):
        limit = limits[at]
        for index in range(columns):
            rank[index] += np.int32(scaled[index] > limit)
    return bad


@compiled
def encode(x: Array, width: int, scale: Array, limits: Array, ranked: Array, bits: int, out: Array) -> int:
    """Write the packed codes, uint8 ``[rows, packed width]``, and return how many weights are NaN."""
    columns = x.shape[1]
    codes = np.zeros((columns + 7) // 8 * 8, np.uint8)
    scaled, rank = np.empty(columns, np.float32), np.empty(columns, np.int32)
    many = scale.shape[0] > 1
    bad = 0
    for row in range(x.shape[0]):
        bad += _row_ranks(x[row], width, scale[row if many else 0], limits, scaled, rank)
        for index in range(columns):
            codes[index] = ranked[rank[index]]
        _pack_row(codes, bits, out[row])
    return bad


@compiled
def _row_values(codes: Array, width: int, scale: Array, table: Array, out: Array) -> None:
    columns = out.shape[0]
    for group in range(scale.shape[0]):
        start = group * width
        stop = columns if scale.shape[0] == 1 else min(start + width, columns)
        s = scale[group]
        for index in range(np.uint64(start), np.uint64(stop)):
            out[index] = table[codes[index]] * s


@compiled
def decode(packed: Array, width: int, scale: Array, table: Array, bits: int, out: Array) -> None:
    """Write ``table[code] * scale``, float32 ``[rows, columns]``."""
    codes = np.zeros((out.shape[1] + 7) // 8 * 8, np.uint8)
    many = scale.shape[0] > 1
    for row in range(out.shape[0]):
        _unpack_row(packed[row], bits, codes)
        _row_values(codes, width, scale[row if many else 0], table, out[row])


@compiled
def round_to(x: Array, width: int, scale: Array, limits: Array, values: Array, out: Array) -> None:
    """Write the nearest of the ascending ``values`` times the scale, float32 ``[rows, columns]``; NaN stays."""
    columns = x.shape[1]
    scaled, rank = np.empty(columns, np.float32), np.empty(columns, np.int32)
    many = scale.shape[0] > 1
    for row in range(x.shape[0]):
        at = row if many else 0
        bad = _row_ranks(x[row], width, scale[at], limits, scaled, rank)
        _row_values(rank, width, scale[at], values, out[row])
        if bad:
            for index in range(columns):
                if x[row, index] != x[row, index]:
                    out[row, index] = x[row, index]
