"""Between torch matrices and the kernels of values out of tables and of small floats; see ``scaled_compiled``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.numerics.bands import in_parallel, row_tiles
from workbench.numerics.element import Binary, Element
from workbench.numerics.formats.compiled import float_kernels, lookup_kernels, output_memory
from workbench.numerics.formats.compiled.scaled_compiled import of_band, plain
from workbench.numerics.packing import packed_width

if TYPE_CHECKING:
    import torch

Array = Any


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """What the kernels take: ``scale`` float32 ``[rows or 1, groups or 1]``, groups of ``width`` columns, ``bits``.

    Float32 ``[rows or 1, groups or 1, ...]``: ``limits`` and ascending ``values`` (see ``lookup_kernels``) and
    ``table``, the values by code.  ``ranked`` uint8 is the code of each rank.  ``binary`` elements, whose ends are
    ``values``' ends, are rounded without limits.
    """

    scale: Array
    width: int
    bits: int
    limits: Array
    values: Array
    table: Array
    ranked: Array
    binary: Binary | None = None

    @property
    def binary_layout(self) -> tuple[int, int, bool, Array, Array]:
        """Mantissa bits, bias, whether codes are two's complement, least and greatest value."""
        assert self.binary is not None
        ends = self.values[0, 0, 0], self.values[0, 0, -1]
        return (self.binary.mantissa_bits, self.binary.bias, self.binary.complement, *ends)


def element_lookup(scale: torch.Tensor, width: int, element: Element) -> Lookup:
    """Return the lookup of an element with ``scale`` float32 ``[rows or 1, groups]``."""
    return Lookup(scale.contiguous().numpy(), width, element.bits, *_element_tables(element), element.binary)


def book_lookup(book: torch.Tensor, width: int, bits: int) -> Lookup:
    """Return the lookup of learned codebooks, float32 ``[rows or 1, groups, levels]``."""
    limits = (book[..., :-1] / 2 + book[..., 1:] / 2).contiguous().numpy()
    values = (book + 0.0).contiguous().numpy()  # -0 becomes +0
    ranked = np.arange(book.shape[-1], dtype=np.uint8)
    return Lookup(np.ones((1, 1), np.float32), width, bits, limits, values, values, ranked)


@cache
def _element_tables(element: Element) -> tuple[Array, Array, Array, Array]:
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


def encode(weight: torch.Tensor, lookup: Lookup) -> tuple[Array, int]:
    """Return packed codes, uint8 ``[rows, packed width]``, and how many weights are NaN."""
    rows, columns = weight.shape
    width, bits, bad = min(lookup.width, columns), lookup.bits, []
    packed = np.empty((rows, packed_width(columns, bits)), np.uint8)

    def task(part: slice) -> None:
        tile, scale, out = plain(weight[part]), of_band(lookup.scale, part), packed[part]
        if lookup.binary is None:
            limits = of_band(lookup.limits, part)
            bad.append(lookup_kernels.encode(tile, width, scale, limits, lookup.ranked, bits, out))
        else:
            bad.append(float_kernels.encode(tile, width, scale, *lookup.binary_layout, bits, out))

    in_parallel(task, row_tiles(rows, columns))
    return packed, sum(bad)


def decode(packed: Array, shape: tuple[int, int], lookup: Lookup) -> torch.Tensor:
    """Return the float32 matrix of ``shape`` that packed codes stand for."""
    width = min(lookup.width, shape[1])

    def write(part: slice, out: Array) -> None:
        scale, table = of_band(lookup.scale, part), of_band(lookup.table, part)
        lookup_kernels.decode(packed[part], width, scale, table, lookup.bits, out)

    return _filled(shape, write)


def rounded(weight: torch.Tensor, lookup: Lookup) -> torch.Tensor:
    """Return what decoding the encoded matrix would give, float32; NaN stays."""
    width = min(lookup.width, weight.shape[1])

    def write(part: slice, out: Array) -> None:
        tile, scale = plain(weight[part]), of_band(lookup.scale, part)
        if lookup.binary is None:
            limits, values = of_band(lookup.limits, part), of_band(lookup.values, part)
            lookup_kernels.round_to(tile, width, scale, limits, values, out)
        else:
            mantissa, bias, _, lowest, highest = lookup.binary_layout
            float_kernels.round_to(tile, width, scale, mantissa, bias, lowest, highest, out)

    return _filled((weight.shape[0], weight.shape[1]), write)


def _filled(shape: tuple[int, int], write: Callable[[slice, Array], None]) -> torch.Tensor:
    """Return a float32 matrix that ``write`` fills band by band."""
    import torch

    out = output_memory.uninitialised(*shape)
    in_parallel(lambda part: write(part, out[part]), row_tiles(*shape))
    return torch.from_numpy(out)
