"""Compiled kernels: codes of a GGUF block to and from its bytes, sixteen at a time.

``blocks`` is uint8 ``[n, bytes]``, ``row`` one block of it, ``codes`` uint8 ``[n, width]`` and ``words`` the same
memory as uint64.  ``runs`` and ``segments`` are a block's planes spelled out by :func:`unpack_runs` and
:func:`pack_segments`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.formats.gguf.blocks import Block
from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32

RUN = 16
_ONE = np.uint64(1)
_MASKS = np.array([0] + [0x0101010101010101 * ((1 << bits) - 1) for bits in range(1, 9)], np.uint64)


def unpack_runs(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return uint64 ``[width / 16, 2, 3]`` and float32 ``[width / 16, 2]``: where each run's codes lie in each plane.

    ``code = sum over planes of (byte[first + i] & mask) * factor`` with ``(first, mask, group)`` of the one table and
    ``factor`` of the other: a power of two, so it is exact and no bit has to be shifted.  Unsigned, because the
    compiler reads neighbours at once only where an index cannot be negative.
    """
    places = np.zeros((block.width // RUN, 2, 3), np.uint64)
    factors = np.zeros((block.width // RUN, 2), np.float32)
    for index, plane in enumerate(plane for plane in block.planes if plane.stride > 1):
        for run in range(len(places)):
            chunk, inside = divmod(run * RUN, plane.stride * (8 // plane.bits))
            part, lane = divmod(inside, plane.stride)
            first, down = plane.offset + chunk * plane.stride + lane, part * plane.bits
            places[run, index] = first, ((1 << plane.bits) - 1) << down, run * RUN // block.group
            factors[run, index] = 2.0 ** (plane.shift - down)
    return places, factors


def pack_segments(block: Block) -> np.ndarray:
    """Return uint64 ``[n, 6]``: for 16 bytes of a plane each offset, ``shift``, ``bits``, first word, step, parts."""
    rows = []
    for plane in block.planes:
        parts = 8 // plane.bits
        if plane.stride == 1:
            continue
        for byte in range(0, block.width // parts, RUN):
            chunk, lane = divmod(byte, plane.stride)
            first = (chunk * plane.stride * parts + lane) // 8
            rows.append((plane.offset + byte, plane.shift, plane.bits, first, plane.stride // 8, parts))
    return np.array(rows, np.uint64).reshape(-1, 6)


@compiled
def pack_codes(words: Array, segments: Array, pair: Array, raw: Array, out: Array, row: int) -> None:
    """Write the planes of one block; ``pair`` uint64 ``[2]`` is scratch and ``raw`` the same memory as uint8."""
    for index in range(segments.shape[0]):
        offset, shift, bits = segments[index, 0], segments[index, 1], segments[index, 2]
        start, step, parts = segments[index, 3], segments[index, 4], segments[index, 5]
        mask = _MASKS[bits]
        low = (words[row, start] >> shift) & mask
        high = (words[row, start + _ONE] >> shift) & mask
        up = bits
        for _ in range(_ONE, parts):
            start += step
            low |= ((words[row, start] >> shift) & mask) << up
            high |= ((words[row, start + _ONE] >> shift) & mask) << up
            up += bits
        pair[0] = low
        pair[1] = high
        for lane in range(RUN):
            out[row, offset + np.uint64(lane)] = raw[lane]


@compiled
def pack_ternary(codes: Array, out: Array, row: int) -> None:
    """TQ1_0: five codes a byte as a base-3 fraction of 256, rounded up; the last sixteen codes four to a byte."""
    for byte in range(32):
        total = np.int32(0)
        for digit in range(5):
            total = np.int32(total * 3 + codes[row, byte + digit * 32])
        out[row, byte] = np.uint8((total * 256 + 242) // 243)
    for byte in range(16):
        total = np.int32(0)
        for digit in range(5):
            total = np.int32(total * 3 + codes[row, 160 + byte + digit * 16])
        out[row, 32 + byte] = np.uint8((total * 256 + 242) // 243)
    for byte in range(4):
        total = np.int32(0)
        for digit in range(4):
            total = np.int32(total * 3 + codes[row, 240 + byte + digit * 4])
        out[row, 48 + byte] = np.uint8((total * 768 + 242) // 243)


@compiled
def unpack_double(
    blocks: Array, places: Array, factors: Array, flip: int, first: Single, scale: Array, minimum: Array, out: Array
) -> None:
    """Decode blocks of evenly spaced levels in two planes: ``scale * (code + first) - minimum``, ``out[n, width]``."""
    length = out.shape[1] // places.shape[0]
    for row in range(out.shape[0]):
        for run in range(places.shape[0]):
            a, mask_a, factor_a = places[run, 0, 0], np.uint8(places[run, 0, 1]), factors[run, 0]
            b, mask_b, factor_b = places[run, 1, 0], np.uint8(places[run, 1, 1]), factors[run, 1]
            s, m = scale[row, places[run, 0, 2]], minimum[row, places[run, 0, 2]]
            start = np.uint64(run * length)
            for index in range(length):
                lane = np.uint64(index)
                low = np.float32(np.int32(blocks[row, a + lane] & mask_a)) * factor_a
                high = np.float32(np.int32(blocks[row, b + lane] & mask_b)) * factor_b
                out[row, start + lane] = s * ((low + high) + first) - m


@compiled
def unpack_single(
    blocks: Array, places: Array, factors: Array, flip: int, first: Single, scale: Array, minimum: Array, out: Array
) -> None:
    """Like ``unpack_double``, for formats of one plane; its bytes were stored exclusive-or ``flip``."""
    inverted = np.uint8(flip)
    length = out.shape[1] // places.shape[0]
    for row in range(out.shape[0]):
        for run in range(places.shape[0]):
            a, mask, factor = places[run, 0, 0], np.uint8(places[run, 0, 1]), factors[run, 0]
            s, m = scale[row, places[run, 0, 2]], minimum[row, places[run, 0, 2]]
            start = np.uint64(run * length)
            for index in range(length):
                lane = np.uint64(index)
                code = np.float32(np.int32((blocks[row, a + lane] ^ inverted) & mask)) * factor
                out[row, start + lane] = s * (code + first) - m


@compiled
def unpack_table(blocks: Array, offset: int, levels: Array, scale: Array, minimum: Array, out: Array) -> None:
    """Decode blocks of 32 four-bit codes through a table of sixteen levels."""
    for row in range(out.shape[0]):
        s, m = scale[row, 0], minimum[row, 0]
        for lane in range(RUN):
            byte = blocks[row, offset + lane]
            out[row, lane] = s * levels[byte & 15] - m
            out[row, RUN + lane] = s * levels[byte >> 4] - m


@compiled
def unpack_fifth(
    blocks: Array, nibbles: int, bits: int, first: Single, scale: Array, minimum: Array, out: Array
) -> None:
    """Decode Q5_0 and Q5_1: four low bits as in Q4_0, bit ``i`` of a 32-bit word above code ``i``."""
    offset = np.int32(first)
    for row in range(out.shape[0]):
        s, m = scale[row, 0], minimum[row, 0]
        low = np.int32(blocks[row, bits]) | (np.int32(blocks[row, bits + 1]) << 8)
        high = np.int32(blocks[row, bits + 2]) | (np.int32(blocks[row, bits + 3]) << 8)
        for lane in range(RUN):
            byte = np.int32(blocks[row, nibbles + lane])
            fifth = ((np.int32(low) >> np.int32(lane)) & 1) << 4
            out[row, lane] = s * np.float32(np.int32((byte & 15) | fifth) + offset) - m
            fifth = ((np.int32(high) >> np.int32(lane)) & 1) << 4
            out[row, RUN + lane] = s * np.float32(np.int32((byte >> 4) | fifth) + offset) - m


@compiled
def unpack_ternary(blocks: Array, first: Single, scale: Array, minimum: Array, out: Array) -> None:
    """Decode TQ1_0: multiplying by a power of 3 modulo 256 brings each base-3 digit to the top."""
    offset = np.int32(first)
    for row in range(out.shape[0]):
        s, m = scale[row, 0], minimum[row, 0]
        power = np.int32(1)
        for digit in range(5):
            for lane in range(32):
                code = (((np.int32(blocks[row, lane]) * power) & 255) * 3) >> 8
                out[row, digit * 32 + lane] = s * np.float32(np.int32(code) + offset) - m
            for lane in range(16):
                code = (((np.int32(blocks[row, 32 + lane]) * power) & 255) * 3) >> 8
                out[row, 160 + digit * 16 + lane] = s * np.float32(np.int32(code) + offset) - m
            if digit < 4:
                for lane in range(4):
                    code = (((np.int32(blocks[row, 48 + lane]) * power) & 255) * 3) >> 8
                    out[row, 240 + digit * 4 + lane] = s * np.float32(np.int32(code) + offset) - m
            power = np.int32(power * 3)
