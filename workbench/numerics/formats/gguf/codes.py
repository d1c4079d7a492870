"""Compiled kernels: weights of GGUF blocks to codes, the extremes of blocks, and codes into whole rows of blocks.

``x`` is float32 ``[n, width]``; ``origin`` and ``factor`` float32 ``[n, groups]``; ``codes`` uint8 ``[n, width]``.
Inner loops have unsigned indices and a length that is not known when compiling: that is what lets LLVM use vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.formats.gguf.pack import pack_codes, pack_ternary
from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32

_MAGIC = np.float32(12582912)  # 1.5 * 2**23: adding and taking it away rounds half to even
_ABSOLUTE = np.int32(0x7FFFFFFF)
_ZERO = np.float32(0)
_HALF = np.float32(0.5)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_ONES = np.uint64(0x0101010101010101)
_GATHER = np.uint64(0x0102040810204080)


@compiled
def extremes(bits: Array, out: Array) -> Any:
    """Write the value of largest magnitude of each block (the first of equals) and return the blocks with NaN or inf.

    Both arrays are float32 seen as int32: comparing patterns instead of values can use vectors.
    """
    bad: Any = 0
    for row in range(bits.shape[0]):
        least, greatest = np.int32(0), np.int32(0)
        for index in range(bits.shape[1]):
            pattern = bits[row, index]
            ordered = np.int32(pattern ^ ((pattern >> 31) & _ABSOLUTE))
            least = np.int32(ordered if ordered < least else least)
            greatest = np.int32(ordered if ordered > greatest else greatest)
        positive, negative = greatest, np.int32((least ^ (least >> 31)) & _ABSOLUTE)
        largest = positive if positive > negative else negative
        bad += largest >= np.int32(0x7F800000)
        extreme = positive if positive > negative else np.int32(negative | np.int32(-0x80000000))
        if positive == negative:
            extreme = bits[row, _first(bits, row, positive)]
        out[row] = extreme
    return bad


@compiled
def _first(bits: Array, row: int, size: Any) -> Any:
    for index in range(bits.shape[1]):
        if np.int32(bits[row, index] & _ABSOLUTE) == size:
            return index
    return 0


@compiled
def nonfinite(bits: Array) -> bool:
    """Whether any value is NaN or infinite."""
    for row in range(bits.shape[0]):
        largest = np.int32(0)
        for index in range(bits.shape[1]):
            pattern = np.int32(bits[row, index] & _ABSOLUTE)
            largest = np.int32(pattern if pattern > largest else largest)
        if largest >= np.int32(0x7F800000):
            return True
    return False


@compiled
def bounds(bits: Array, low: Array, high: Array) -> None:
    """Write the least and greatest value of each block of finite numbers; all arrays are float32 seen as int32."""
    for row in range(bits.shape[0]):
        least, greatest = np.int32(0x7FFFFFFF), np.int32(-0x80000000)
        for index in range(bits.shape[1]):
            pattern = bits[row, index]
            ordered = np.int32(pattern ^ ((pattern >> 31) & _ABSOLUTE))
            least = np.int32(ordered if ordered < least else least)
            greatest = np.int32(ordered if ordered > greatest else greatest)
        low[row] = least ^ ((least >> 31) & _ABSOLUTE)
        high[row] = greatest ^ ((greatest >> 31) & _ABSOLUTE)


@compiled
def codes_up(x: Array, origin: Array, factor: Array, bias: Single, top: Single, codes: Array) -> None:
    """``trunc((x - origin) * factor + bias)``, within 0 and ``top``."""
    for row in range(x.shape[0]):
        o, f = origin[row, 0], factor[row, 0]
        for index in range(x.shape[1]):
            t = (x[row, index] - o) * f + bias
            t = t if t > _ZERO else _ZERO
            t = t if t < top else top
            codes[row, index] = np.uint8(np.int32(t))


@compiled
def codes_away(x: Array, factor: Array, zero: int, limit: Single, codes: Array) -> None:
    """``round(x * factor) + zero``, halves away from zero, within ``-limit`` and ``limit``."""
    shift = np.int32(zero)
    for row in range(x.shape[0]):
        f = factor[row, 0]
        for index in range(x.shape[1]):
            t = x[row, index] * f
            size = abs(t)
            size = size if size < limit else limit
            whole = np.int32(size)
            rounded = np.int32(whole + np.int32(size - np.float32(whole) >= _HALF))
            codes[row, index] = np.uint8(shift + (rounded if t > _ZERO else -rounded))


@compiled
def codes_ternary(x: Array, factor: Array, codes: Array) -> None:
    """``codes_away`` for the levels -1, 0 and 1: one more from a half on, one less down from minus a half."""
    for row in range(x.shape[0]):
        f = factor[row, 0]
        for index in range(x.shape[1]):
            t = x[row, index] * f
            codes[row, index] = np.uint8(np.int32(1) + np.int32(t >= _HALF) - np.int32(t <= -_HALF))


@compiled
def codes_even(x: Array, origin: Array, scale: Array, zero: Single, top: Single, codes: Array) -> None:
    """``round((x - origin) / scale) + zero``, halves to even, within 0 and ``top``; ``zero`` where the scale is 0."""
    groups = scale.shape[1]
    length = x.shape[1] // groups
    for row in range(x.shape[0]):
        for group in range(groups):
            o, s = origin[row, group], scale[row, group]
            start = np.uint64(group * length)
            empty = s == _ZERO
            divisor = np.float32(1) if empty else s
            lowest = zero if empty else _ZERO
            highest = zero if empty else top
            for index in range(length):
                t = (x[row, start + np.uint64(index)] - o) / divisor
                t = t if t > np.float32(-256) else np.float32(-256)
                t = t if t < np.float32(256) else np.float32(256)
                t = ((t + _MAGIC) - _MAGIC) + zero
                t = t if t > lowest else lowest
                t = t if t < highest else highest
                codes[row, start + np.uint64(index)] = np.uint8(np.int32(t))


@compiled
def codes_table(x: Array, factor: Array, edges: Array, ranked: Array, codes: Array) -> None:
    """The code of the level nearest to ``x * factor``: the ``sum(edges <= x * factor)``-th of ``ranked``."""
    width = x.shape[1]
    scaled = np.empty(width, np.float32)
    rank = np.empty(width, np.int32)
    for row in range(x.shape[0]):
        for index in range(width):
            scaled[index] = x[row, index] * factor[row, 0]
            rank[index] = 0
        for edge in range(edges.shape[0]):
            limit = edges[edge]
            for index in range(width):
                rank[index] += np.int32(scaled[index] >= limit)
        for index in range(width):
            codes[row, index] = ranked[rank[index]]


@compiled
def values_even(codes: Array, first: Single, scale: Array, minimum: Array, out: Array) -> None:
    """Write ``scale * (code + first) - minimum``."""
    length = codes.shape[1] // scale.shape[1]
    for row in range(codes.shape[0]):
        for group in range(scale.shape[1]):
            s, m = scale[row, group], minimum[row, group]
            start = np.uint64(group * length)
            for index in range(length):
                at = start + np.uint64(index)
                out[row, at] = s * (np.float32(np.int32(codes[row, at])) + first) - m


@compiled
def values_table(codes: Array, levels: Array, scale: Array, minimum: Array, out: Array) -> None:
    """Write ``scale * levels[code] - minimum`` for blocks of one group."""
    for row in range(codes.shape[0]):
        s, m = scale[row, 0], minimum[row, 0]
        for index in range(codes.shape[1]):
            out[row, index] = s * levels[codes[row, index]] - m


@compiled
def block_errors(x: Array, w: Array, codes: Array, levels: Array, scale: Array, minimum: Array, out: Array) -> None:
    """Write each block's squared error of ``scale * level - minimum``, weighted by ``w``, float64 ``[n]``."""
    length = x.shape[1] // scale.shape[1]
    for row in range(x.shape[0]):
        total: Any = 0.0
        for group in range(scale.shape[1]):
            part = _ZERO
            for index in range(group * length, group * length + length):
                error = scale[row, group] * levels[codes[row, index]] - minimum[row, group] - x[row, index]
                part += error * error * w[row, index]
            total += part
        out[row] = total


@compiled
def pack_header(header: Array, fields: Array, out: Array, row: int) -> None:
    """Write the parts of one block's header to their places, ``fields`` int64 ``[f, 2]``: offset and size of each."""
    begin = 0
    for field in range(fields.shape[0]):
        for index in range(fields[field, 1]):
            out[row, fields[field, 0] + index] = header[row, begin + index]
        begin += fields[field, 1]


@compiled
def pack_blocks(codes: Array, words: Array, header: Array, fields: Array, segments: Array, out: Array) -> None:
    """Write headers and codes of many blocks, ``out`` uint8 ``[n, bytes]``; ``words`` are the codes as uint64.

    No segments means TQ1_0.
    """
    pair = np.empty(2, np.uint64)
    raw = pair.view(np.uint8)
    for row in range(codes.shape[0]):
        pack_header(header, fields, out, row)
        if segments.shape[0] == 0:
            pack_ternary(codes, out, row)
        else:
            pack_codes(words, segments, pair, raw, out, row)


@compiled
def pack_octets(codes: Array, header: Array, offset: int, flip: int, out: Array) -> None:
    """Write blocks of one code a byte, exclusive-or ``flip``, behind their header (Q8_0)."""
    at, inverted = np.uint64(offset), np.uint8(flip)
    for row in range(codes.shape[0]):
        for index in range(header.shape[1]):
            out[row, index] = header[row, index]
        for index in range(codes.shape[1]):
            out[row, at + np.uint64(index)] = codes[row, index] ^ inverted


@compiled
def pack_nibbles(words: Array, header: Array, offset: int, out: Array) -> None:
    """Write blocks of 32 four-bit codes in one plane behind their header: ``pack_blocks`` for the commonest layout."""
    pair = np.empty(2, np.uint64)
    raw = pair.view(np.uint8)
    at = np.uint64(offset)
    for row in range(words.shape[0]):
        for index in range(header.shape[1]):
            out[row, index] = header[row, index]
        pair[0] = words[row, 0] | (words[row, 2] << np.uint64(4))
        pair[1] = words[row, 1] | (words[row, 3] << np.uint64(4))
        for lane in range(16):
            out[row, at + np.uint64(lane)] = raw[lane]


@compiled
def pack_quarters(codes: Array, header: Array, fields: Array, offset: int, out: Array) -> None:
    """Write blocks whose only plane has two bits of each code, four codes 32 apart to a byte (TQ2_0)."""
    at = np.uint64(offset)
    for row in range(codes.shape[0]):
        pack_header(header, fields, out, row)
        for chunk in range(codes.shape[1] // 128):
            start, to = np.uint64(chunk * 128), at + np.uint64(chunk * 32)
            for index in range(np.uint64(32)):
                lane = start + np.uint64(index)
                low = np.uint8(codes[row, lane] | np.uint8(codes[row, lane + np.uint64(32)] << np.uint8(2)))
                high = np.uint8(
                    codes[row, lane + np.uint64(64)] | np.uint8(codes[row, lane + np.uint64(96)] << np.uint8(2))
                )
                out[row, to + np.uint64(index)] = np.uint8(low | np.uint8(high << np.uint8(4)))


@compiled
def pack_fifths(words: Array, header: Array, high: int, offset: int, out: Array) -> None:
    """Write blocks of 32 five-bit codes (Q5_0, Q5_1): their fifth bits at ``high``, the nibbles at ``offset``.

    Bit 4 of eight neighbouring codes makes one byte, the first code lowest.
    """
    low = words & _NIBBLES
    pack_nibbles(low, header, offset, out)
    for row in range(words.shape[0]):
        for index in range(4):
            bits = (words[row, index] >> np.uint64(4)) & _ONES
            out[row, high + index] = np.uint8((bits * _GATHER) >> np.uint64(56))
