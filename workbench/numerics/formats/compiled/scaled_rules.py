"""Compiled: from the ends of many groups' ranges to storable scales and zero points.

What :mod:`workbench.numerics.formats.scaled` and :mod:`workbench.numerics.scale_format` say in array operations is the
specification; a test holds every bit to it.  The specification itself, band by band in numpy, takes 62 to 83 ms for a
4096 x 4096 matrix in groups of 32 where these loops take 0.7; the whole fit takes 93 to 108.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32

FLOAT32, FLOAT16, BFLOAT16, E4M3 = 0, 1, 2, 3

_MAGIC = np.float32(12582912)  # 1.5 * 2**23: adding and taking it away rounds half to even
_ZERO = np.float32(0)
_ONE = np.float32(1)
_WHOLE = np.float32(2.0**23)
_UNITS = np.float32(2.0**24)
_LEAST_NORMAL = np.float32(2.0**-14)
_LEAST_E4M3 = np.float32(2.0**-6)
_MAGIC_E4M3 = np.float32(1.5 * 2.0**20)  # times the power of two: rounds to three bits
_EXPONENT = np.int32(0x7F800000)


@compiled
def _rounded(size: Single, form: int) -> Any:
    """Return the nearest number of the format for a finite one >= 0 within its range, halves to even."""
    if form == FLOAT32:
        return size
    pattern = np.float32(size).view(np.int32)
    if form == BFLOAT16:
        stored = np.int32((pattern + np.int32(0x7FFF) + ((pattern >> 16) & 1)) & np.int32(-0x10000))
        return stored.view(np.float32)
    if form == E4M3:
        power = np.int32(pattern & _EXPONENT).view(np.float32)
        shift = (power if power > _LEAST_E4M3 else _LEAST_E4M3) * _MAGIC_E4M3
        return (size + shift) - shift
    stored = np.int32((pattern + np.int32(0xFFF) + ((pattern >> 13) & 1)) & np.int32(-0x2000))
    small = np.float32(((size * _UNITS + _WHOLE) - _WHOLE) / _UNITS)
    return stored.view(np.float32) if size >= _LEAST_NORMAL else small


@compiled
def _storable(scale: Single, form: int, smallest: Single, limit: Single) -> Any:
    size = abs(scale)
    stored = size if size > smallest else smallest
    stored = stored if stored < limit else limit
    stored = _rounded(stored, form) if size > _ZERO else _ZERO
    return stored if scale >= _ZERO else -stored


@compiled
def symmetric(
    low: Array, high: Array, lowest: Single, highest: Single, extreme: bool, form: int, smallest: Single, limit: Single,
    scale: Array,
) -> None:  # fmt: skip
    """Write the scales, float32 ``[n]``: ``extreme`` puts the farther end on the lowest code, else both are inside."""
    for at in range(low.shape[0]):
        least, greatest = low[at], high[at]
        if extreme:
            exact = (least if -least > greatest else greatest) / lowest
        else:
            below, above = least / lowest, greatest / highest
            exact = above if above > below else below
        scale[at] = _storable(exact, form, smallest, limit)


@compiled
def with_zero_point(
    low: Array, high: Array, levels: Single, form: int, smallest: Single, limit: Single, scale: Array, shift: Array
) -> None:
    """Write scales and whole zero points, 0 to ``levels``, float32 ``[n]``."""
    for at in range(low.shape[0]):
        step = _storable(high[at] / levels - low[at] / levels, form, smallest, limit)
        code = -low[at] / (_ONE if step == _ZERO else step)
        code = code if code > _ZERO else _ZERO
        code = code if code < levels else levels
        scale[at] = step
        shift[at] = (code + _MAGIC) - _MAGIC


@compiled
def with_offset(
    low: Array, high: Array, levels: Single, form: int, smallest: Single, limit: Single,
    offset_form: int, largest: Single, reach: Single, scale: Array, offset: Array,
) -> None:  # fmt: skip
    """Write scales and the values of code 0, float32 ``[n]``; both ends are bounded by ``reach``."""
    for at in range(low.shape[0]):
        least = max(min(low[at], reach), -reach)
        greatest = max(min(high[at], reach), -reach)
        least = max(min(least, largest), -largest)
        size = _rounded(abs(least), offset_form)
        first = -size if least < _ZERO else size
        span = greatest / levels - first / levels
        span = span if span > _ZERO else _ZERO
        offset[at] = first
        scale[at] = _storable(span, form, smallest, limit)


@compiled
def within_shared(
    low: Array, high: Array, highest: Single, shared: Single, smallest: Single, limit: Single, scale: Array
) -> None:
    """Write E4M3 scales that reach the farther end, times ``shared``, float32 ``[n]``."""
    for at in range(low.shape[0]):
        farther = -low[at] if -low[at] > high[at] else high[at]
        scale[at] = _storable(farther / highest / shared, E4M3, smallest, limit) * shared
