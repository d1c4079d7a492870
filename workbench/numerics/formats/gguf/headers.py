"""Headers of GGUF blocks: compiled readers, and writers in numpy (they see one value for 16 or 32 weights).

A reader takes ``raw`` uint8 ``[n, any]``, where each of the header's fields begins in a row (``at``, in the order
of ``Block.fields``) and ``half``, the values of all float16 patterns; it fills ``scale`` and ``minimum``, float32
``[n, groups]``.  A writer returns the fields one after another, uint8 ``[n, header_octets]``; those of simple blocks,
one float16 scale or a scale and a least value, are compiled.
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
def _half(raw: Array, row: int, at: int, half: Array) -> Any:
    return half[np.uint32(raw[row, at]) + np.uint32(raw[row, at + 1]) * np.uint32(256)]


@compiled
def read_half(raw: Array, at: Array, half: Array, scale: Array, minimum: Array) -> None:
    """One float16 scale."""
    for row in range(raw.shape[0]):
        scale[row, 0] = _half(raw, row, at[0], half)
        minimum[row, 0] = np.float32(0)


@compiled
def read_half_minimum(raw: Array, at: Array, half: Array, scale: Array, minimum: Array) -> None:
    """A float16 scale and a float16 value of code 0."""
    for row in range(raw.shape[0]):
        scale[row, 0] = _half(raw, row, at[0], half)
        minimum[row, 0] = -_half(raw, row, at[1], half)


@compiled
def read_k2(raw: Array, at: Array, half: Array, scale: Array, minimum: Array) -> None:
    """Float16 units of scale and minimum; sixteen bytes hold a 4-bit scale (low) and a 4-bit minimum."""
    for row in range(raw.shape[0]):
        unit, step = _half(raw, row, at[0], half), _half(raw, row, at[1], half)
        for group in range(16):
            byte = raw[row, at[2] + group]
            scale[row, group] = unit * np.float32(byte & 15)
            minimum[row, group] = step * np.float32(byte >> 4)


@compiled
def read_k3(raw: Array, at: Array, half: Array, scale: Array, minimum: Array) -> None:
    """A float16 unit; sixteen 6-bit scales, 32 added: low nibbles in 8 bytes, high pairs of bits in 4."""
    for row in range(raw.shape[0]):
        unit = _half(raw, row, at[0], half)
        for group in range(16):
            low = (raw[row, at[1] + group % 8] >> (group // 8 * 4)) & 15
            high = (raw[row, at[1] + 8 + group % 4] >> (group // 4 * 2)) & 3
            scale[row, group] = unit * np.float32(low + high * 16 - 32)
            minimum[row, group] = np.float32(0)


@compiled
def read_k4(raw: Array, at: Array, half: Array, scale: Array, minimum: Array) -> None:
    """Float16 units of scale and minimum; eight 6-bit scales and eight 6-bit minimums in twelve bytes.

    Bytes 0 to 3 are scales 0 to 3, bytes 4 to 7 minimums 0 to 3; the low nibbles of scales and minimums 4 to 7 are in
    bytes 8 to 11, their high two bits above bytes 0 to 3 and 4 to 7.
    """
    for row in range(raw.shape[0]):
        unit, step = _half(raw, row, at[0], half), _half(raw, row, at[1], half)
        for group in range(4):
            first, second = raw[row, at[2] + group], raw[row, at[2] + 4 + group]
            third = raw[row, at[2] + 8 + group]
            scale[row, group] = unit * np.float32(first & 63)
            minimum[row, group] = step * np.float32(second & 63)
            scale[row, group + 4] = unit * np.float32((third & 15) + (first >> 6) * 16)
            minimum[row, group + 4] = step * np.float32((third >> 4) + (second >> 6) * 16)


@compiled
def read_k6(raw: Array, at: Array, half: Array, scale: Array, minimum: Array) -> None:
    """A float16 unit and sixteen signed bytes."""
    for row in range(raw.shape[0]):
        unit = _half(raw, row, at[0], half)
        for group in range(16):
            scale[row, group] = unit * np.float32(np.int8(raw[row, at[1] + group]))
            minimum[row, group] = np.float32(0)


@compiled
def read_iq4(raw: Array, at: Array, half: Array, scale: Array, minimum: Array) -> None:
    """A float16 unit; eight 6-bit scales, 32 added: high pairs of bits in 2 bytes, low nibbles in 4."""
    for row in range(raw.shape[0]):
        unit = _half(raw, row, at[0], half)
        for group in range(8):
            high = (raw[row, at[1] + group // 4] >> (group % 4 * 2)) & 3
            low = (raw[row, at[1] + 2 + group // 2] >> (group % 2 * 4)) & 15
            scale[row, group] = unit * np.float32(low + high * 16 - 32)
            minimum[row, group] = np.float32(0)


@compiled
def read_e8m0(raw: Array, at: Array, half: Array, scale: Array, minimum: Array) -> None:
    """Half of a power of two: ``half`` holds the 256 values here."""
    for row in range(raw.shape[0]):
        scale[row, 0] = half[raw[row, at[0]]]
        minimum[row, 0] = np.float32(0)


READERS = {
    "half": read_half, "half_minimum": read_half_minimum, "k2": read_k2, "k3": read_k3, "k4": read_k4, "k6": read_k6,
    "iq4": read_iq4, "e8m0": read_e8m0,
}  # fmt: skip


def half_table() -> np.ndarray:
    """Return the float32 value of each of the 65,536 float16 patterns."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def e8m0_table() -> np.ndarray:
    """Return half the value of each E8M0 pattern, ``2**(pattern - 128)``; float32 holds all of them exactly."""
    pattern = np.arange(256)
    return np.ldexp(np.float32(1), pattern - 128).astype(np.float32)


def half_octets(value: np.ndarray) -> np.ndarray:
    """Return float32 ``[n]`` as float16 bytes ``[n, 2]``, saturating at 65504."""
    stored = np.clip(value, np.float32(-65504), np.float32(65504)).astype(np.float16)
    return np.ascontiguousarray(stored).view(np.uint8).reshape(-1, 2)


def write_k2(unit: np.ndarray, scales: np.ndarray, step: np.ndarray, minimums: np.ndarray) -> np.ndarray:
    """``unit`` and ``step`` float32 ``[n]``; ``scales`` and ``minimums`` uint8 ``[n, 16]``, 0 to 15."""
    return np.concatenate([half_octets(unit), half_octets(step), scales | (minimums << 4)], axis=1)


def write_k3(unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """``scales`` uint8 ``[n, 16]``: 0 to 63, 32 added."""
    low, high = scales & 15, scales >> 4
    nibbles = low[:, :8] | (low[:, 8:] << 4)
    pairs = high[:, :4] | (high[:, 4:8] << 2) | (high[:, 8:12] << 4) | (high[:, 12:] << 6)
    return np.concatenate([half_octets(unit), nibbles, pairs], axis=1)


def write_k4(unit: np.ndarray, scales: np.ndarray, step: np.ndarray, minimums: np.ndarray) -> np.ndarray:
    """``scales`` and ``minimums`` uint8 ``[n, 8]``, 0 to 63."""
    first = scales[:, :4] | ((scales[:, 4:] >> 4) << 6)
    second = minimums[:, :4] | ((minimums[:, 4:] >> 4) << 6)
    third = (scales[:, 4:] & 15) | ((minimums[:, 4:] & 15) << 4)
    return np.concatenate([half_octets(unit), half_octets(step), first, second, third], axis=1)


def write_iq4(unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """``scales`` uint8 ``[n, 8]``: 0 to 63, 32 added."""
    low, high = scales & 15, scales >> 4
    pairs = [high[:, part] | (high[:, part + 1] << 2) | (high[:, part + 2] << 4) | (high[:, part + 3] << 6)
             for part in (0, 4)]  # fmt: skip
    return np.concatenate([half_octets(unit), np.stack(pairs, axis=1), low[:, ::2] | (low[:, 1::2] << 4)], axis=1)


def write_k6(unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """``scales`` int8 ``[n, 16]``."""
    return np.concatenate([half_octets(unit), scales.view(np.uint8)], axis=1)


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
