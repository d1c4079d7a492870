"""Compiled kernels for learned codebooks: weights to packed codes, to the nearest values, and packed codes to values.

``x`` is float32 ``[rows, columns]``; ``book`` float32 ``[rows or 1, groups, levels]``, ascending, a group being
``width`` columns; ``limits`` of the same shape less one level: a number above a limit belongs to a later level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.formats.compiled.scaled_kernels import _pack_row, _unpack_row
from workbench.numerics.jit import compiled

Array = Any


@compiled
def _row_codes(x: Array, width: int, limits: Array, codes: Array) -> Any:
    """Write how many of its group's limits each weight exceeds, and return how many weights are NaN."""
    columns = x.shape[0]
    bad = np.int32(0)
    for index in range(columns):
        codes[index] = 0
        bad += np.int32(x[index] != x[index])
    for group in range(limits.shape[0]):
        start = group * width
        stop = columns if limits.shape[0] == 1 else min(start + width, columns)
        for level in range(limits.shape[1]):
            limit = limits[group, level]
            for index in range(np.uint64(start), np.uint64(stop)):
                codes[index] += np.uint8(x[index] > limit)
    return bad


@compiled
def _row_values(codes: Array, width: int, book: Array, out: Array) -> None:
    columns = out.shape[0]
    for group in range(book.shape[0]):
        start = group * width
        stop = columns if book.shape[0] == 1 else min(start + width, columns)
        levels = book[group]
        for index in range(np.uint64(start), np.uint64(stop)):
            out[index] = levels[codes[index]]


@compiled
def encode(x: Array, width: int, limits: Array, bits: int, out: Array) -> int:
    """Write the packed codes, uint8 ``[rows, packed width]``, and return how many weights are NaN."""
    codes = np.zeros((x.shape[1] + 7) // 8 * 8, np.uint8)
    many = limits.shape[0] > 1
    bad = 0
    for row in range(x.shape[0]):
        bad += _row_codes(x[row], width, limits[row if many else 0], codes[: x.shape[1]])
        _pack_row(codes, bits, out[row])
    return bad


@compiled
def decode(packed: Array, width: int, book: Array, bits: int, out: Array) -> None:
    """Write ``book[row, group, code]``, float32 ``[rows, columns]``."""
    codes = np.zeros((out.shape[1] + 7) // 8 * 8, np.uint8)
    many = book.shape[0] > 1
    for row in range(out.shape[0]):
        _unpack_row(packed[row], bits, codes)
        _row_values(codes, width, book[row if many else 0], out[row])


@compiled
def round_to(x: Array, width: int, limits: Array, book: Array, out: Array) -> None:
    """Write the nearest values, float32 ``[rows, columns]``; NaN stays."""
    columns = x.shape[1]
    codes = np.zeros(columns, np.uint8)
    many = book.shape[0] > 1
    for row in range(x.shape[0]):
        at = row if many else 0
        bad = _row_codes(x[row], width, limits[at], codes)
        _row_values(codes, width, book[at], out[row])
        if bad:
            for index in range(columns):
                if x[row, index] != x[row, index]:
                    out[row, index] = x[row, index]
