"""Compiled kernels for small binary floating-point elements: weights to codes and to the nearest values.

``x`` is float32 ``[rows, columns]``; ``scale`` float32 ``[rows or 1, groups]``, a group being ``width`` columns.  The
element is ``mantissa`` bits, the least normal number ``normal`` and the ends ``lowest`` and ``highest``.  What
``FloatElement`` says in torch is the specification; a test holds every byte to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.formats.compiled.scaled_kernels import pack_row
from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32

_ZERO = np.float32(0)
_ONE = np.float32(1)
_ABSOLUTE = np.int32(0x7FFFFFFF)
_EXPONENT = np.int32(0x7F800000)


@compiled
def _snap(
    x: Array, width: int, scale: Array, mantissa: int, normal: Single, lowest: Single, highest: Single, out: Array
) -> Any:
    """Write the nearest values at scale 1 of one row and return how many weights are NaN; a scale of 0 acts as 1.

    Adding and taking away 1.5 * 2**(23 - mantissa) times the power of two of a number rounds it half to even.
    """
    bad = np.int32(0)
    columns = x.shape[0]
    magic = np.float32(1.5 * 2.0 ** (23 - mantissa))
    for group in range(scale.shape[0]):
        start = group * width
        stop = columns if scale.shape[0] == 1 else min(start + width, columns)
        s = scale[group]
        divisor = _ONE if s == _ZERO else s
        for index in range(np.uint64(start), np.uint64(stop)):
            t = x[index] / divisor
            bad += np.int32(t != t)
            t = t if t > lowest else lowest
            t = t if t < highest else highest
            power = np.int32(np.float32(t).view(np.int32) & _EXPONENT).view(np.float32)
            shift = (power if power > normal else normal) * magic
            out[index] = (t + shift) - shift
    return bad


@compiled
def encode(
    x: Array, width: int, scale: Array, mantissa: int, bias: int, complement: bool,
    lowest: Single, highest: Single, bits: int, out: Array,
) -> int:  # fmt: skip
    """Write the packed codes, uint8 ``[rows, packed width]``, and return how many weights are NaN.

    Codes are sign, exponent and mantissa, or with ``complement`` the two's complement of steps ``2**-mantissa``.
    """
    columns = x.shape[1]
    codes = np.zeros((columns + 7) // 8 * 8, np.uint8)
    values = np.empty(columns, np.float32)
    normal = np.float32(2.0 ** (1 - bias))
    steps = np.float32(2.0**mantissa if complement else 2.0 ** (bias - 1 + mantissa))
    down, base, top = np.int32(23 - mantissa), np.int32((127 - bias) << mantissa), np.int32(1 << (bits - 1))
    many = scale.shape[0] > 1
    bad = 0
    for row in range(x.shape[0]):
        bad += _snap(x[row], width, scale[row if many else 0], mantissa, normal, lowest, highest, values)
        if complement:
            for index in range(columns):
                codes[index] = np.uint8(np.int32(values[index] * steps))
        else:
            for index in range(columns):
                value = values[index]
                size = abs(value)
                pattern = np.int32((np.float32(value).view(np.int32) & _ABSOLUTE) >> down) - base
                code = np.int32(size * steps) if size < normal else np.int32(pattern)
                codes[index] = np.uint8(code + (top if value < _ZERO else np.int32(0)))
        pack_row(codes, bits, out[row])
    return bad


@compiled
def round_to(
    x: Array, width: int, scale: Array, mantissa: int, bias: int, lowest: Single, highest: Single, out: Array
) -> None:
    """Write the nearest values times the scale, float32 ``[rows, columns]``; NaN stays."""
    columns = x.shape[1]
    normal = np.float32(2.0 ** (1 - bias))
    many = scale.shape[0] > 1
    for row in range(x.shape[0]):
        exact, values, scales = x[row], out[row], scale[row if many else 0]
        bad = _snap(exact, width, scales, mantissa, normal, lowest, highest, values)
        for group in range(scales.shape[0]):
            start = group * width
            stop = columns if scales.shape[0] == 1 else min(start + width, columns)
            s = scales[group]
            for index in range(np.uint64(start), np.uint64(stop)):
                values[index] = values[index] * s
        if bad:
            for index in range(columns):
                if exact[index] != exact[index]:
                    values[index] = exact[index]
