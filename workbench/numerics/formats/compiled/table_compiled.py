"""Between torch matrices and the kernels of small floats and of elements with a table; see ``scaled_compiled``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.numerics.bands import in_parallel
from workbench.numerics.element import Element
from workbench.numerics.formats.compiled import float_kernels, output_memory, table_kernels
from workbench.numerics.formats.compiled.scaled_compiled import plain
from workbench.numerics.packing import packed_width
from workbench.numerics.scheme import Parameters
from workbench.numerics.tiles import row_tiles

if TYPE_CHECKING:
    import torch

Array = Any


@cache
def ranks(element: Element) -> tuple[Array, Array, Array]:
    """Return ``limits``, ``values`` (ascending) and the code of each value, as the readable version rounds.

    Numbers above a limit go to the next value: the middle, or the number just below it where the middle itself goes up.
    """
    import torch

    values = element.values()
    middles = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    up = element.snap_(torch.from_numpy(middles.copy()), None).numpy() > middles
    limits = np.where(up, np.nextafter(middles, np.float32(-np.inf)), middles).astype(np.float32)
    return limits, values, element.codes(torch.from_numpy(values.copy()), None).numpy()


@cache
def table(element: Element) -> Array:
    """Return the value of every code as the readable version decodes it, float32."""
    import torch

    return element.decode(torch.arange(1 << element.bits, dtype=torch.int16).to(torch.uint8), None).numpy()


def encode(weight: torch.Tensor, parameters: Parameters, element: Element) -> tuple[Array, int]:
    """Return packed codes, uint8 ``[rows, packed width]``, and how many weights are NaN."""
    rows, columns = weight.shape
    scale, width = parameters.scale.contiguous().numpy(), min(parameters.width, columns)
    packed = np.empty((rows, packed_width(columns, element.bits)), np.uint8)
    binary, ends, bad = element.binary, (np.float32(element.lowest), np.float32(element.highest)), []

    def task(part: slice) -> None:
        tile, band = plain(weight[part]), scale[part] if scale.shape[0] > 1 else scale
        if binary is None:
            limits, _, ranked = ranks(element)
            bad.append(table_kernels.encode(tile, width, band, limits, ranked, element.bits, packed[part]))
        else:
            layout = (binary.mantissa_bits, binary.bias, binary.complement)
            bad.append(float_kernels.encode(tile, width, band, *layout, *ends, element.bits, packed[part]))

    in_parallel(task, row_tiles(rows, columns))
    return packed, sum(bad)


def decode(packed: Array, shape: tuple[int, int], parameters: Parameters, element: Element) -> torch.Tensor:
    """Return the float32 matrix of ``shape`` that packed codes stand for."""
    import torch

    scale, width = parameters.scale.contiguous().numpy(), min(parameters.width, shape[1])
    known = table(element)
    out = output_memory.uninitialised(*shape)

    def task(part: slice) -> None:
        band = scale[part] if scale.shape[0] > 1 else scale
        table_kernels.decode(packed[part], width, band, known, element.bits, out[part])

    in_parallel(task, row_tiles(*shape))
    return torch.from_numpy(out)


def rounded(weight: torch.Tensor, parameters: Parameters, element: Element) -> torch.Tensor:
    """Return what decoding the encoded matrix would give, float32; NaN stays."""
    import torch

    rows, columns = weight.shape
    scale, width = parameters.scale.contiguous().numpy(), min(parameters.width, columns)
    binary, ends = element.binary, (np.float32(element.lowest), np.float32(element.highest))
    out = output_memory.uninitialised(rows, columns)

    def task(part: slice) -> None:
        tile, band = plain(weight[part]), scale[part] if scale.shape[0] > 1 else scale
        if binary is None:
            limits, values, _ = ranks(element)
            table_kernels.round_to(tile, width, band, limits, values, out[part])
        else:
            float_kernels.round_to(tile, width, band, binary.mantissa_bits, binary.bias, *ends, out[part])

    in_parallel(task, row_tiles(rows, columns))
    return torch.from_numpy(out)
