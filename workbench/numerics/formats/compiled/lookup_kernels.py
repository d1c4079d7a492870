"""Compiled kernels for values out of tables: weights to the codes of the nearest values, and codes to weights.

``x`` is float32 ``[rows, columns]``; ``scale`` float32 ``[rows or 1, groups or 1]``, a group being ``width`` columns.
``values`` are float32 ``[rows or 1, groups or 1, levels]``, ascending, and ``limits`` of the same shape less one level:
the nearest value of ``t`` has the rank ``sum(t > limits)``, and ``ranked`` gives the code of a rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.formats.compiled.scaled_kernels import pack_row, unpack_row
from workbench.numerics.jit import compiled

Array = Any

_ZERO = np.float32(0)
_ONE = np.float32(1)


@compiled
def _row_ranks(x: Array, width: int, scale: Array, limits: Array, scaled: Array, rank: Array) -> int:
    """Write the rank of each weight of a row, int32, and return how many are NaN; a scale of 0 acts as 1."""
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
    for group in range(limits.shape[0]):
        start = group * width
        stop = columns if limits.shape[0] == 1 else min(start + width, columns)
        for level in range(limits.shape[1]):
            limit = limits[group, level]
            for index in range(np.uint64(start), np.uint64(stop)):
                rank[index] += np.int32(scaled[index] > limit)
    return bad


@compiled
def _scaled_values(codes: Array, width: int, scale: Array, table: Array, out: Array) -> None:
    """Write ``table[code] * scale`` of a row."""
    columns = out.shape[0]
    for group in range(scale.shape[0]):
        start = group * width
        stop = columns if scale.shape[0] == 1 else min(start + width, columns)
        s = scale[group]
        for index in range(np.uint64(start), np.uint64(stop)):
            out[index] = table[codes[index]] * s


@compiled
def _book_values(codes: Array, width: int, book: Array, out: Array) -> None:
    """Write ``book[group, code]`` of a row: learned codebooks have no scale."""
    columns = out.shape[0]
    for group in range(book.shape[0]):
        start = group * width
        stop = columns if book.shape[0] == 1 else min(start + width, columns)
        levels = book[group]
        for index in range(np.uint64(start), np.uint64(stop)):
            out[index] = levels[codes[index]]


@compiled
def encode(x: Array, width: int, scale: Array, limits: Array, ranked: Array, bits: int, out: Array) -> int:
    """Write the packed codes, uint8 ``[rows, packed width]``, and return how many weights are NaN."""
    columns = x.shape[1]
    codes = np.zeros((columns + 7) // 8 * 8, np.uint8)
    scaled, rank = np.empty(columns, np.float32), np.empty(columns, np.int32)
    bad = 0
    for row in range(x.shape[0]):
        bad += _row_ranks(x[row], width, scale[row % len(scale)], limits[row % len(limits)], scaled, rank)
        for index in range(columns):
            codes[index] = ranked[rank[index]]
        pack_row(codes, bits, out[row])
    return bad


@compiled
def decode(packed: Array, width: int, scale: Array, table: Array, bits: int, out: Array) -> None:
    """Write ``table[code] * scale``, float32 ``[rows, columns]``; ``table`` is by code."""
    codes = np.zeros((out.shape[1] + 7) // 8 * 8, np.uint8)
    learned = table.size > table.shape[2]
    for row in range(out.shape[0]):
        unpack_row(packed[row], bits, codes)
        if learned:
            _book_values(codes, width, table[row % len(table)], out[row])
        else:
            _scaled_values(codes, width, scale[row % len(scale)], table[0, 0], out[row])


@compiled
def round_to(x: Array, width: int, scale: Array, limits: Array, values: Array, out: Array) -> None:
    """Write the nearest of ``values`` times the scale, float32 ``[rows, columns]``; NaN stays."""
    columns = x.shape[1]
    scaled, rank = np.empty(columns, np.float32), np.empty(columns, np.int32)
    learned = values.size > values.shape[2]
    for row in range(x.shape[0]):
        scales = scale[row % len(scale)]
        bad = _row_ranks(x[row], width, scales, limits[row % len(limits)], scaled, rank)
        if learned:
            _book_values(rank, width, values[row % len(values)], out[row])
        else:
            _scaled_values(rank, width, scales, values[0, 0], out[row])
        if bad:
            for index in range(columns):
                if x[row, index] != x[row, index]:
                    out[row, index] = x[row, index]
