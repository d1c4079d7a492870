"""Compiled kernels for the clip search: the squared error of every candidate range of every tile of a matrix.

What :mod:`workbench.numerics.formats.clip_search` says in torch is the specification: every weight is rounded as it
says, bit for bit; errors are added up in another order, in float64 beyond 256 of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32
Sixteen = Any  # a tuple of sixteen float32, of limits one fewer

INTEGER, FLOAT, TABLE = 0, 1, 2
"""Kinds of elements: evenly spaced codes, a small binary number, values out of a table."""

CHUNK = 256
"""Errors that are added up in float32."""

_MAGIC = np.float32(12582912)  # 1.5 * 2**23: adding and taking it away rounds half to even
_ZERO = np.float32(0)
_ONE = np.float32(1)
_EXPONENT = np.int32(0x7F800000)


@compiled
def _integer_errors(x: Array, scale: Single, zero: Single, offset: Single, top: Single, errors: Array) -> None:
    """Write ``(value - x)**2``, the codes being 0 to ``top`` and ``zero`` that of 0; a scale of 0 divides as 1."""
    divisor = _ONE if scale == _ZERO else scale
    least, most = _ZERO - zero, top - zero
    for index in range(x.shape[0]):
        exact = x[index]
        t = (exact - offset) / divisor
        t = t if t > least else least
        t = t if t < most else most
        difference = (((t + _MAGIC) - _MAGIC) * scale + offset) - exact
        errors[index] = difference * difference


@compiled
def _float_errors(
    x: Array, scale: Single, mantissa: int, normal: Single, lowest: Single, highest: Single, errors: Array
) -> None:
    """Write the same for a number of ``mantissa`` bits whose least normal magnitude is ``normal``."""
    divisor = _ONE if scale == _ZERO else scale
    magic = np.float32(1.5 * 2.0 ** (23 - mantissa))
    for index in range(x.shape[0]):
        exact = x[index]
        t = exact / divisor
        t = t if t > lowest else lowest
        t = t if t < highest else highest
        power = np.int32(np.float32(t).view(np.int32) & _EXPONENT).view(np.float32)
        shift = (power if power > normal else normal) * magic
        difference = ((t + shift) - shift) * scale - exact
        errors[index] = difference * difference


@compiled
def of_sixteen(t: Single, limits: Sixteen, values: Sixteen) -> Any:
    """Return the value to which ``t`` goes: beyond ``limits[n]`` it is ``values[n + 1]`` or a later one; both ascend.

    Four comparisons choose it, each with the middle of what the one before has left, and without a jump.
    """
    a = t > limits[7]
    b = t > (limits[11] if a else limits[3])
    c = t > ((limits[13] if b else limits[9]) if a else (limits[5] if b else limits[1]))
    low = (limits[6] if c else limits[4]) if b else (limits[2] if c else limits[0])
    high = (limits[14] if c else limits[12]) if b else (limits[10] if c else limits[8])
    d = t > (high if a else low)
    first = (values[3] if d else values[2]) if c else (values[1] if d else values[0])
    second = (values[7] if d else values[6]) if c else (values[5] if d else values[4])
    third = (values[11] if d else values[10]) if c else (values[9] if d else values[8])
    fourth = (values[15] if d else values[14]) if c else (values[13] if d else values[12])
    return (fourth if b else third) if a else (second if b else first)


@compiled
def _table_errors(x: Array, scale: Single, limits: Sixteen, values: Sixteen, errors: Array) -> None:
    """Write the same for values out of a table; see :func:`of_sixteen`."""
    divisor = _ONE if scale == _ZERO else scale
    for index in range(np.uint64(x.shape[0])):
        exact = x[index]
        difference = of_sixteen(exact / divisor, limits, values) * scale - exact
        errors[index] = difference * difference


@compiled
def _sum(errors: Array, count: int) -> float:
    """Return the sum of ``count`` errors in eight float32 chains; up to seven more entries are overwritten."""
    for index in range(count, (count + 7) // 8 * 8):
        errors[index] = _ZERO
    a = b = c = d = e = f = g = h = _ZERO
    for index in range(0, count, 8):
        a += errors[index]
        b += errors[index + 1]
        c += errors[index + 2]
        d += errors[index + 3]
        e += errors[index + 4]
        f += errors[index + 5]
        g += errors[index + 6]
        h += errors[index + 7]
    return float(((a + b) + (c + d)) + ((e + f) + (g + h)))


@compiled
def add_errors(
    x: Array, width: int, height: int, scale: Array, zero: Array, offset: Array, kind: int, top: Single, mantissa: int,
    normal: Single, lowest: Single, highest: Single, limits: Sixteen, values: Sixteen, weights: Array, totals: Array,
) -> None:  # fmt: skip
    """Add the error of every candidate to ``totals``, float64 ``[bands, groups, candidates]``.

    ``x`` is float32 ``[rows, columns]``, a tile ``height`` rows and ``width`` columns; ``scale``, ``zero`` and
    ``offset`` are float32 of the shape of ``totals``; ``weights`` float32 ``[rows, 1 or 0, columns]``: with 0 every
    error counts the same.
    """
    columns, groups = x.shape[1], totals.shape[1]
    errors = np.empty(CHUNK, np.float32)
    for row in range(x.shape[0]):
        band = row // height
        for group in range(groups):
            first = group * width
            last = columns if groups == 1 else min(first + width, columns)
            for start in range(first, last, CHUNK):
                part = x[row, start : min(start + CHUNK, last)]
                for candidate in range(totals.shape[2]):
                    s = scale[band, group, candidate]
                    if kind == INTEGER:
                        z, o = zero[band, group, candidate], offset[band, group, candidate]
                        _integer_errors(part, s, z, o, top, errors)
                    elif kind == FLOAT:
                        _float_errors(part, s, mantissa, normal, lowest, highest, errors)
                    else:
                        _table_errors(part, s, limits, values, errors)
                    if weights.shape[1]:
                        for index in range(part.shape[0]):
                            errors[index] *= weights[row, 0, start + index]
                    totals[band, group, candidate] += _sum(errors, part.shape[0])
