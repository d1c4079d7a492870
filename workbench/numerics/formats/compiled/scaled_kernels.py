"""Compiled kernels for scaled integers: extremes of groups, weights to packed codes, packed codes to weights.

``x`` is float32 ``[rows, columns]``; ``scale``, ``zero`` and ``offset`` float32 ``[rows or 1, groups]``, a group being
``width`` columns.  ``zero`` is the code of 0 before the offset.  What :mod:`workbench.numerics.formats.scaled` says in
torch is the specification; a test holds every byte to it.  No operation is fused or reordered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

Array = Any

_MAGIC = np.float32(12582912)  # 1.5 * 2**23: adding and taking it away rounds half to even
_ZERO = np.float32(0)
_ONE = np.float32(1)
_ABSOLUTE = np.int32(0x7FFFFFFF)
_INFINITY = np.int32(0x7F800000)
_LAST = np.int32(-1)  # what -0 is in the order of values


@compiled
def extremes(bits: Array, width: int, low: Array, high: Array) -> Any:
    """Write the least and greatest value of each group, never -0; return whether all values are finite.

    All arrays are float32 seen as int32, NaN beyond infinity.
    """
    columns = bits.shape[1]
    finite: Any = True
    for row in range(bits.shape[0]):
        patterns = bits[row]
        for group in range(low.shape[1]):
            start = group * width
            stop = columns if low.shape[1] == 1 else min(start + width, columns)
            least, greatest = np.int32(0x7FFFFFFF), np.int32(-0x80000000)
            for index in range(np.uint64(start), np.uint64(stop)):
                pattern = patterns[index]
                ordered = np.int32(pattern ^ ((pattern >> 31) & _ABSOLUTE))
                least = np.int32(ordered if ordered < least else least)
                greatest = np.int32(ordered if ordered > greatest else greatest)
            finite = finite and least > ~_INFINITY and greatest < _INFINITY
            low[row, group] = np.int32(0) if least == _LAST else least ^ ((least >> 31) & _ABSOLUTE)
            high[row, group] = np.int32(0) if greatest == _LAST else greatest ^ ((greatest >> 31) & _ABSOLUTE)
    return finite


@compiled
def _group_codes(x: Array, start: int, stop: int, s: float, z: float, o: float, top: float, codes: Array) -> int:
    """Write ``clip(round((x - o) / s) + z, 0, top)`` and return how many of ``x`` are NaN; a scale of 0 acts as 1.

    ``z`` and ``top`` are whole numbers, so clipping before rounding gives the same.
    """
    divisor = _ONE if s == _ZERO else s
    least, most = _ZERO - z, top - z
    bad = np.int32(0)
    for index in range(np.uint64(start), np.uint64(stop)):
        t = (x[index] - o) / divisor
        bad += np.int32(t != t)
        t = t if t > least else least
        t = t if t < most else most
        codes[index] = np.uint8(np.int32(((t + _MAGIC) - _MAGIC) + z))
    return int(bad)


@compiled
def encode(x: Array, width: int, scale: Array, zero: Array, offset: Array, top: float, bits: int, out: Array) -> int:
    """Write the packed codes, uint8 ``[rows, packed width]``, and return how many weights are NaN."""
    columns = x.shape[1]
    codes = np.zeros((columns + 7) // 8 * 8, np.uint8)
    many = scale.shape[0] > 1
    bad = 0
    for row in range(x.shape[0]):
        at = row if many else 0
        exact = x[row]
        for group in range(scale.shape[1]):
            start = group * width
            stop = columns if scale.shape[1] == 1 else min(start + width, columns)
            s, z, o = scale[at, group], zero[at, group], offset[at, group]
            bad += _group_codes(exact, start, stop, s, z, o, top, codes)
        pack_row(codes, bits, out[row])
    return bad


@compiled
def pack_row(codes: Array, bits: int, out: Array) -> None:
    """Write packed codes, uint8 ``[packed width]``; ``codes`` is padded with zeros to a multiple of 8."""
    size = out.shape[0]
    if bits == 8:
        for index in range(size):
            out[index] = codes[index]
    elif bits == 4:
        pairs = codes.view(np.uint16)
        for index in range(size):
            out[index] = np.uint8(pairs[index] | (pairs[index] >> np.uint16(4)))
    elif bits == 2:
        fours = codes.view(np.uint32)
        for index in range(size):
            four = fours[index]
            out[index] = np.uint8(four | (four >> np.uint32(6)) | (four >> np.uint32(12)) | (four >> np.uint32(18)))
    else:
        _pack_eights(codes.view(np.uint64), bits, out)


@compiled
def _pack_eights(eights: Array, bits: int, out: Array) -> None:
    """Eight codes of any width to ``bits`` bytes."""
    mask = np.uint64((1 << bits) - 1)
    gap = np.uint64(8 - bits)
    size = out.shape[0]
    for index in range(eights.shape[0]):
        eight = eights[index]
        word = np.uint64(0)
        for code in range(8):
            word |= (eight >> (gap * np.uint64(code))) & (mask << np.uint64(code * bits))
        for byte in range(bits):
            if index * bits + byte < size:
                out[index * bits + byte] = np.uint8((word >> np.uint64(8 * byte)) & np.uint64(255))


@compiled
def unpack_row(packed: Array, bits: int, codes: Array) -> None:
    """Write the codes of a packed row, uint8; ``codes`` has room for whole bytes' worth of them."""
    size = packed.shape[0]
    if bits == 8:
        for index in range(size):
            codes[index] = packed[index]
    elif bits == 4:
        pairs = codes.view(np.uint16)
        for index in range(size):
            byte = np.uint16(packed[index])
            pairs[index] = (byte | (byte << np.uint16(4))) & np.uint16(0x0F0F)
    elif bits == 2:
        fours = codes.view(np.uint32)
        for index in range(size):
            four = np.uint32(packed[index])
            spread = four | (four << np.uint32(6)) | (four << np.uint32(12)) | (four << np.uint32(18))
            fours[index] = spread & np.uint32(0x03030303)
    else:
        _unpack_eights(packed, bits, codes.view(np.uint64))


@compiled
def _unpack_eights(packed: Array, bits: int, eights: Array) -> None:
    mask = np.uint64((1 << bits) - 1)
    gap = np.uint64(8 - bits)
    size = packed.shape[0]
    for index in range(eights.shape[0]):
        word = np.uint64(0)
        for byte in range(bits):
            if index * bits + byte < size:
                word |= np.uint64(packed[index * bits + byte]) << np.uint64(8 * byte)
        eight = np.uint64(0)
        for code in range(8):
            eight |= (word & (mask << np.uint64(code * bits))) << (gap * np.uint64(code))
        eights[index] = eight


@compiled
def _group_values(codes: Array, start: int, stop: int, s: float, z: float, o: float, shifted: bool, out: Array) -> None:
    if shifted:
        for index in range(np.uint64(start), np.uint64(stop)):
            out[index] = (np.float32(codes[index]) - z) * s + o
    else:
        for index in range(np.uint64(start), np.uint64(stop)):
            out[index] = (np.float32(codes[index]) - z) * s


@compiled
def decode(
    packed: Array, width: int, scale: Array, zero: Array, offset: Array, shifted: bool, bits: int, out: Array
) -> None:
    """Write ``(code - zero) * scale``, plus ``offset`` if ``shifted``, float32 ``[rows, columns]``."""
    columns = out.shape[1]
    codes = np.zeros((columns + 7) // 8 * 8, np.uint8)
    many = scale.shape[0] > 1
    for row in range(out.shape[0]):
        at = row if many else 0
        unpack_row(packed[row], bits, codes)
        values = out[row]
        for group in range(scale.shape[1]):
            start = group * width
            stop = columns if scale.shape[1] == 1 else min(start + width, columns)
            _group_values(codes, start, stop, scale[at, group], zero[at, group], offset[at, group], shifted, values)


@compiled
def round_to(
    x: Array, width: int, scale: Array, zero: Array, offset: Array, shifted: bool, top: float, out: Array
) -> None:
    """Write what :func:`decode` makes of :func:`encode`, float32 ``[rows, columns]``; NaN stays."""
    columns = x.shape[1]
    codes = np.zeros(columns, np.uint8)
    many = scale.shape[0] > 1
    for row in range(x.shape[0]):
        at = row if many else 0
        exact, values = x[row], out[row]
        bad = 0
        for group in range(scale.shape[1]):
            start = group * width
            stop = columns if scale.shape[1] == 1 else min(start + width, columns)
            s, z, o = scale[at, group], zero[at, group], offset[at, group]
            bad += _group_codes(exact, start, stop, s, z, o, top, codes)
            _group_values(codes, start, stop, s, z, o, shifted, values)
        if bad:
            for index in range(columns):
                if exact[index] != exact[index]:
                    values[index] = exact[index]
