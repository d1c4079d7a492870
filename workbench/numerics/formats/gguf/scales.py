"""Compiled kernels: the float16 scales and least values of the simple GGUF blocks, many blocks at once.

``header`` is uint8 ``[n, 2 or 4]``; everything else float32 ``[n]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32

_ZERO = np.float32(0)
_ONE = np.float32(1)
_HALF_MAX = np.float32(65504)
_LEAST_NORMAL = np.float32(2.0**-14)
_SUBNORMAL_UNITS = np.float32(2.0**24)
_WHOLE = np.float32(2.0**23)  # adding and taking it away rounds a smaller positive number half to even
_GREATEST = np.float32(np.finfo(np.float32).max)


@compiled
def half_pattern(value: Single) -> Any:
    """Return the nearest float16 of a float32 within its range, halves to even, as a bit pattern."""
    pattern = np.float32(value).view(np.int32)
    sign = np.int32((pattern >> 16) & 0x8000)
    size = np.int32(pattern & 0x7FFFFFFF)
    normal = np.int32((size - np.int32(0x38000000) + np.int32(0xFFF) + ((size >> 13) & 1)) >> 13)
    units = abs(value) * _SUBNORMAL_UNITS
    subnormal = np.int32((units + _WHOLE) - _WHOLE) if units < np.float32(1024) else np.int32(0)
    return np.int32(sign | (normal if units >= np.float32(1024) else subnormal))


@compiled
def _bounded(value: Single, least: Single) -> Any:
    value = value if value > least else least
    return value if value < _HALF_MAX else _HALF_MAX


@compiled
def _inverse(scale: Single) -> Any:
    """``1 / scale``; 0 where the scale is 0 or too small for a finite inverse."""
    inverse = _ONE / scale
    return inverse if abs(inverse) <= _GREATEST else _ZERO


@compiled
def from_peaks(peak: Array, divisor: Single, signed: bool, shrink: Single, header: Array, factor: Array) -> None:
    """One scale: the value of largest magnitude over ``divisor``, its magnitude over it unless ``signed``."""
    words = header.reshape(-1).view(np.uint16)
    for row in range(peak.shape[0]):
        size = peak[row] if signed else abs(peak[row])
        scale = _bounded(size / divisor * shrink, -_HALF_MAX)
        words[row] = np.uint16(half_pattern(scale))
        factor[row] = _inverse(scale)


@compiled
def from_bounds(low: Array, high: Array, top: Single, shrink: Single, header: Array, factor: Array) -> None:
    """A scale and the least value, which replaces ``low``: the value of code 0, ``top`` being the last code."""
    words = header.reshape(-1).view(np.uint16)
    for row in range(low.shape[0]):
        least = _bounded(low[row] * shrink, -_HALF_MAX)
        scale = _bounded((high[row] * shrink - least) / top, _ZERO)
        low[row] = least
        words[np.uint64(2 * row)] = np.uint16(half_pattern(scale))
        words[np.uint64(2 * row + 1)] = np.uint16(half_pattern(least))
        factor[row] = _inverse(scale)
