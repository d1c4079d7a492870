"""True bit packing of small unsigned codes.

Code ``k`` of a row occupies bits ``k * bits`` to ``(k + 1) * bits`` of the row's little-endian bit stream (least
significant bit first; at 4 bits the even column is the low nibble).  Every row starts on a whole byte.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def packed_width(columns: int, bits: int) -> int:
    """Return the bytes that ``columns`` codes of ``bits`` bits take."""
    return -(-columns * bits // 8)


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Pack codes, uint8 ``[rows, columns]`` with values below ``2**bits``, to uint8 ``[rows, packed_width]``."""
    import torch

    rows, columns = codes.shape
    if bits == 8:
        return codes.contiguous()
    unit, word = _unit(bits)
    padding = -columns % unit
    padded = torch.nn.functional.pad(codes, (0, padding)) if padding else codes
    words = padded.shape[1] // unit
    grouped = padded.reshape(rows, words, unit)
    packed = grouped[..., 0].to(word, copy=True)
    for index in range(1, unit):
        packed |= grouped[..., index].to(word) << (index * bits)
    stream = packed.unsqueeze(-1).view(torch.uint8)[..., : unit * bits // 8]
    return stream.reshape(rows, words * unit * bits // 8)[:, : packed_width(columns, bits)].contiguous()


def unpack(packed: np.ndarray, columns: int, bits: int) -> torch.Tensor:
    """Return the codes, uint8 ``[rows, columns]``, that ``packed``, uint8 ``[rows, packed_width]``, holds."""
    import torch

    rows = packed.shape[0]
    stream = torch.from_numpy(np.require(packed, dtype=np.uint8, requirements=["C", "W"]))
    if bits == 8:
        return stream.clone()
    unit, word = _unit(bits)
    size = unit * bits // 8
    count = -(-columns // unit)
    words = torch.zeros(rows, count, word.itemsize, dtype=torch.uint8)
    flat = torch.nn.functional.pad(stream, (0, count * size - stream.shape[1]))
    words[..., :size] = flat.reshape(rows, count, size)
    whole = words.view(word).reshape(rows, count)
    mask = (1 << bits) - 1
    codes = torch.stack([((whole >> (index * bits)) & mask).to(torch.uint8) for index in range(unit)], dim=-1)
    return codes.reshape(rows, count * unit)[:, :columns].contiguous()


def _unit(bits: int) -> tuple[int, torch.dtype]:
    """Return how many codes fill whole bytes, and the integer type that holds them all."""
    import torch

    unit = 8 // math.gcd(8, bits)
    return unit, torch.uint8 if unit * bits == 8 else torch.int32 if unit * bits <= 31 else torch.int64
