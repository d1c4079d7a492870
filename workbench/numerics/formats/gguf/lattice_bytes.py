"""The bytes of the blocks of llama.cpp's IQ1, IQ2 and IQ3 formats: what the package ``gguf`` reads back.

Layouts: ``ggml-common.h``.  ``unit`` float32 ``[n]``, ``codes`` uint8 ``[n, groups]``, ``entries`` int32
``[n, 256 / vector]``, ``bits`` uint8 ``[n, 32]``: the signs of every eight weights, the first lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


def pack(ggml: str, unit: Array, codes: Array, entries: Array, bits: Array) -> Array:
    """Return whole blocks, uint8 ``[n, bytes]``."""
    packed: Array = _PACKERS[ggml](unit, codes, entries.astype(np.uint32), bits)
    return packed


def _half(unit: Array) -> Array:
    return unit.astype("<f2").reshape(-1, 1).view(np.uint8)


def _octets(words: Array, kind: str) -> Array:
    return np.ascontiguousarray(words.astype(kind)).view(np.uint8)


def _nibbles(codes: Array) -> Array:
    return codes[:, ::2] | (codes[:, 1::2] << 4)


def _gathered(values: Array, width: int, count: int) -> Array:
    """Return ``count`` neighbouring values of ``width`` bits as one word, the first lowest, uint32."""
    parts = values.astype(np.uint32).reshape(len(values), values.shape[1] // count, count)
    parts = parts << (width * np.arange(count, dtype=np.uint32))
    words: Array = np.bitwise_or.reduce(parts, axis=2)
    return words


def _signs_and_codes(codes: Array, bits: Array) -> Array:
    """Return one word a group of 32: seven signs of each eight weights, the code above them."""
    return _gathered(bits & 127, 7, 4) | (codes.astype(np.uint32) << np.uint32(28))


def _iq2_xxs(unit: Array, codes: Array, entries: Array, bits: Array) -> Array:
    words = np.stack([_gathered(entries, 8, 4), _signs_and_codes(codes, bits)], axis=2).reshape(len(unit), 16)
    return np.concatenate([_half(unit), _octets(words, "<u4")], axis=1)


def _iq2_xs(unit: Array, codes: Array, entries: Array, bits: Array) -> Array:
    words = entries | ((bits & 127).astype(np.uint32) << np.uint32(9))
    return np.concatenate([_half(unit), _octets(words, "<u2"), _nibbles(codes)], axis=1)


def _iq2_s(unit: Array, codes: Array, entries: Array, bits: Array) -> Array:
    low, high = _octets(entries & 255, "u1"), _octets(_gathered(entries >> 8, 2, 4), "u1")
    return np.concatenate([_half(unit), low, bits, high, _nibbles(codes)], axis=1)


def _iq3_xxs(unit: Array, codes: Array, entries: Array, bits: Array) -> Array:
    return np.concatenate([_half(unit), _octets(entries, "u1"), _octets(_signs_and_codes(codes, bits), "<u4")], axis=1)


def _iq3_s(unit: Array, codes: Array, entries: Array, bits: Array) -> Array:
    low, high = _octets(entries & 255, "u1"), _octets(_gathered(entries >> 8, 1, 8), "u1")
    return np.concatenate([_half(unit), low, high, bits, _nibbles(codes)], axis=1)


def _iq1_s(unit: Array, codes: Array, entries: Array, bits: Array) -> Array:
    """Entries from 2,048 on are those whose shift is negative."""
    shifted = (entries[:, ::4] >> 11).astype(np.uint32)
    above = (codes.astype(np.uint32) << np.uint32(12)) | (shifted << np.uint32(15))
    words = _gathered((entries >> 8) & 7, 3, 4) | above
    return np.concatenate([_half(unit), _octets(entries & 255, "u1"), _octets(words, "<u2")], axis=1)


def _iq1_m(unit: Array, codes: Array, entries: Array, bits: Array) -> Array:
    """The unit's four nibbles are the high ones of the four words of scales."""
    high = _octets(_gathered(entries >> 8, 4, 2), "u1")
    whole = unit.astype("<f2").view(np.uint16).astype(np.uint32)[:, None]
    nibbles = ((whole >> np.array([0, 4, 8, 12], np.uint32)) & 15) << np.uint32(12)
    words = _gathered(codes, 3, 4) | nibbles
    return np.concatenate([_octets(entries & 255, "u1"), high, _octets(words, "<u2")], axis=1)


_PACKERS: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "IQ2_XXS": _iq2_xxs, "IQ2_XS": _iq2_xs, "IQ2_S": _iq2_s, "IQ3_XXS": _iq3_xxs, "IQ3_S": _iq3_s, "IQ1_S": _iq1_s,
    "IQ1_M": _iq1_m,
}  # fmt: skip
