"""Between torch matrices and the compiled kernels that turn weights into packed codes and back.

Imported when a large matrix is worked on, because it brings numba.  Bands of about a megabyte are converted to float32
and handed to a kernel, several at a time on plain threads; no copy of the whole tensor is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.numerics.bands import TILE_ELEMENTS, in_parallel, of_band, row_tiles
from workbench.numerics.element import Element
from workbench.numerics.formats.compiled import float_kernels, lookup_kernels, output_memory, scaled_kernels
from workbench.numerics.formats.compiled.scaled_compiled import LARGE_BAND, band_elements, plain
from workbench.numerics.packing import packed_width
from workbench.numerics.scheme import Parameters

if TYPE_CHECKING:
    import torch

Array = Any

WIDEST = 1 << 40
"""Columns of a group as kernels take them where one entry serves a whole row."""

Work = Callable[[Array, slice, Array], Any]
"""From a band (float32 weights, or packed codes), its rows and the array to write to."""


class Codec(NamedTuple):
    """The kernels of one matrix: ``encode`` returns how many weights are NaN; with ``round_to`` NaN stays."""

    bits: int
    encode: Work
    round_to: Work
    decode: Work
    groups: tuple[int, int, int]
    large_bands: bool = False

    def require(self, rows: int, columns: int) -> None:
        """Raise ValueError where the parameters are those of another matrix: kernels would read beyond them.

        ``groups`` are the parameters' rows and groups (1: for all), and the columns of a group.
        """
        bands, across, width = self.groups
        if bands not in (1, rows) or across not in (1, -(-columns // width)):
            raise ValueError(
                f"parameters of {bands} x {across} groups of {width} do not belong to a matrix of {rows} x {columns}"
            )


def element_codec(parameters: Parameters, element: Element) -> Codec:
    """Return the codec of an element with scales, and with zero points or offsets where it is an integer."""
    if element.shiftable:
        return _integer_codec(parameters, element)
    scale, width = parameters.scale.contiguous().numpy(), min(parameters.width, WIDEST)
    codec = _table_codec(scale, width, element.bits, *element_tables(element))
    if element.binary is None:
        return codec
    mantissa, bias, complement = element.binary.mantissa_bits, element.binary.bias, element.binary.complement
    ends: tuple[Any, Any] = np.float32(element.lowest), np.float32(element.highest)

    def encode(tile: Array, part: slice, out: Array) -> int:
        own, layout = of_band(scale, part), (mantissa, bias, complement)
        return float_kernels.encode(tile, width, own, *layout, *ends, element.bits, out)

    def round_to(tile: Array, part: slice, out: Array) -> None:
        float_kernels.round_to(tile, width, of_band(scale, part), mantissa, bias, *ends, out)

    return codec._replace(encode=encode, round_to=round_to)


def book_codec(book: torch.Tensor, width: int, bits: int) -> Codec:
    """Return the codec of learned codebooks, float32 ``[rows or 1, groups, levels]``."""
    limits = (book[..., :-1] / 2 + book[..., 1:] / 2).contiguous().numpy()
    values = (book + 0.0).contiguous().numpy()  # -0 becomes +0
    ranked = np.arange(book.shape[-1], dtype=np.uint8)
    return _table_codec(np.ones((1, 1), np.float32), min(width, WIDEST), bits, limits, values, values, ranked)


def _integer_codec(parameters: Parameters, element: Element) -> Codec:
    scale, bits, shifted = parameters.scale.contiguous().numpy(), element.bits, parameters.offset is not None
    base = 0.0 if shifted else -element.lowest
    shift = np.full(scale.shape, base, np.float32) if parameters.zero_point is None else parameters.zero_point.numpy()
    offset = np.zeros(scale.shape, np.float32) if parameters.offset is None else parameters.offset.numpy()
    members = (scale, np.ascontiguousarray(shift), np.ascontiguousarray(offset))
    top: Any = np.float32(2**bits - 1)

    def groups(part: slice) -> tuple[int, Array, Array, Array]:
        own = [of_band(member, part) for member in members]
        return min(parameters.width, WIDEST), own[0], own[1], own[2]

    return Codec(
        bits,
        lambda tile, part, out: scaled_kernels.encode(tile, *groups(part), top, bits, out),
        lambda tile, part, out: scaled_kernels.round_to(tile, *groups(part), shifted, top, out),
        lambda packed, part, out: scaled_kernels.decode(packed, *groups(part), shifted, bits, out),
        (*scale.shape, min(parameters.width, WIDEST)),
        large_bands=True,
    )


def _table_codec(
    scale: Array, width: int, bits: int, limits: Array, values: Array, table: Array, ranked: Array
) -> Codec:
    """Return the codec of values out of tables, float32 ``[rows or 1, groups or 1, ...]``.

    ``limits`` and ascending ``values`` (see ``lookup_kernels``) and ``table``, the values by code; ``ranked`` uint8 is
    the code of each rank.
    """

    def groups(part: slice, table: Array) -> tuple[int, Array, Array]:
        return width, of_band(scale, part), of_band(table, part)

    return Codec(
        bits,
        lambda tile, part, out: lookup_kernels.encode(tile, *groups(part, limits), ranked, bits, out),
        lambda tile, part, out: lookup_kernels.round_to(tile, *groups(part, limits), of_band(values, part), out),
        lambda packed, part, out: lookup_kernels.decode(packed, *groups(part, table), bits, out),
        (max(len(scale), len(table)), max(scale.shape[1], table.shape[1]), width),
    )


@cache
def element_tables(element: Element) -> tuple[Array, Array, Array, Array]:
    """Return limits, values and the values by code, ``[1, 1, n]``, and the code of each value, as torch rounds.

    Numbers above a limit go to the next value: the middle, or the number just below it where the middle itself goes up.
    """
    import torch

    values = element.values()
    middles = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    up = element.snap_(torch.from_numpy(middles.copy()), None).numpy() > middles
    limits = np.where(up, np.nextafter(middles, np.float32(-np.inf)), middles).astype(np.float32)
    table = element.decode(torch.arange(1 << element.bits, dtype=torch.int16).to(torch.uint8), None).numpy()
    ranked = element.codes(torch.from_numpy(values.copy()), None).numpy()
    return limits[None, None], values[None, None], table[None, None], ranked


def encode(weight: torch.Tensor, codec: Codec) -> tuple[Array, int]:
    """Return packed codes, uint8 ``[rows, packed width]``, and how many weights are NaN."""
    rows, columns = weight.shape
    codec.require(rows, columns)
    packed, bad = np.empty((rows, packed_width(columns, codec.bits)), np.uint8), []
    elements = band_elements(weight) if codec.large_bands else TILE_ELEMENTS
    in_parallel(
        lambda part: bad.append(codec.encode(plain(weight[part]), part, packed[part])),
        row_tiles(rows, columns, elements=elements),
    )
    return packed, sum(bad)


def rounded(weight: torch.Tensor, codec: Codec) -> torch.Tensor:
    """Return what decoding the encoded matrix would give, float32; NaN stays."""
    import torch

    codec.require(*weight.shape)
    out = output_memory.uninitialised(*weight.shape)
    elements = band_elements(weight) if codec.large_bands else TILE_ELEMENTS
    in_parallel(
        lambda part: codec.round_to(plain(weight[part]), part, out[part]),
        row_tiles(weight.shape[0], weight.shape[1], elements=elements),
    )
    return torch.from_numpy(out)


def decode(packed: Array, shape: tuple[int, int], codec: Codec) -> torch.Tensor:
    """Return the float32 matrix of ``shape`` that packed codes stand for."""
    import torch

    codec.require(*shape)
    out = output_memory.uninitialised(*shape)
    elements = LARGE_BAND if codec.large_bands else TILE_ELEMENTS
    in_parallel(lambda part: codec.decode(packed[part], part, out[part]), row_tiles(*shape, elements=elements))
    return torch.from_numpy(out)
