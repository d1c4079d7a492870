"""Between torch matrices and the compiled kernels of ranges: extremes, and the rules that follow from them.

Imported when a large matrix is worked on, because it brings numba.  Bands of about a megabyte are converted to float32
and handed to a kernel, several at a time on plain threads; no copy of the whole tensor is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.numerics.bands import TILE_ELEMENTS, in_parallel, row_tiles
from workbench.numerics.formats.affine import OFFSET_REACH, Affine
from workbench.numerics.formats.compiled import scaled_kernels, scaled_rules
from workbench.numerics.scale_format import BF16, FP16, FP32, ScaleFormat

if TYPE_CHECKING:
    import torch

Array = Any

LARGE_BAND = 1 << 20
"""Where no band is copied, fewer and larger ones cost less of the interpreter's time."""


def band_elements(weight: torch.Tensor) -> int:
    """Return how many elements a band should have, so that few are copied."""
    import torch

    return LARGE_BAND if weight.dtype == torch.float32 and weight.is_contiguous() else TILE_ELEMENTS


def extremes(weight: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Return the least and greatest value of every ``width`` columns, float32 ``[rows, groups]``, never -0.

    The last member says whether all values are finite; NaN and infinity come through.
    """
    import torch

    rows, columns = weight.shape
    low = np.empty((rows, -(-columns // width)), np.float32)
    high = np.empty_like(low)
    finite = []

    def task(part: slice) -> None:
        tile = plain(weight[part]).view(np.int32)
        finite.append(scaled_kernels.extremes(tile, width, low[part].view(np.int32), high[part].view(np.int32)))

    in_parallel(task, row_tiles(rows, columns, elements=band_elements(weight)))
    return torch.from_numpy(low), torch.from_numpy(high), all(finite)


_FORMS = {FP32: scaled_rules.FLOAT32, FP16: scaled_rules.FLOAT16, BF16: scaled_rules.BFLOAT16}


def affine(
    low: torch.Tensor, high: torch.Tensor, ends: tuple[float, float], scale_format: ScaleFormat,
    offset_format: ScaleFormat | None, *, symmetric: bool, signed: bool,
) -> Affine:  # fmt: skip
    """Return the parameters of the ranges ``low`` to ``high``, float32 of one shape.

    ``ends`` are the element's least and greatest value; :mod:`workbench.numerics.formats.scaled` states the rules.
    """
    import torch

    lowest, highest = ends
    levels: Any = np.float32(highest - lowest)
    headroom = -lowest if symmetric else highest - lowest
    form = (_FORMS[scale_format], np.float32(scale_format.smallest), np.float32(scale_format.limit(headroom)))
    scale = torch.empty_like(low)
    second = None if symmetric else torch.empty_like(low)
    least, greatest, scales = (member.numpy().reshape(-1) for member in (low, high, scale))
    if second is None:
        scaled_rules.symmetric(least, greatest, np.float32(lowest), np.float32(highest), signed, *form, scales)
        return Affine(scale)
    seconds = second.numpy().reshape(-1)
    if offset_format is None:
        scaled_rules.with_zero_point(least, greatest, levels, *form, scales, seconds)
        return Affine(scale, second)
    bounds = np.float32(offset_format.largest), np.float32(OFFSET_REACH)
    scaled_rules.with_offset(least, greatest, levels, *form, _FORMS[offset_format], *bounds, scales, seconds)
    return Affine(scale, None, second)


def within_shared(
    low: torch.Tensor, high: torch.Tensor, highest: float, shared: torch.Tensor, scale_format: ScaleFormat
) -> torch.Tensor:
    """Return the E4M3 scales of the ranges ``low`` to ``high``, times ``shared``: float32 of their shape."""
    import torch

    scale = torch.empty(low.shape)
    least, greatest = (each.contiguous().numpy().reshape(-1) for each in (low, high))
    ends = np.float32(highest), np.float32(float(shared))
    bounds = np.float32(scale_format.smallest), np.float32(scale_format.largest)
    scaled_rules.within_shared(least, greatest, *ends, *bounds, scale.numpy().reshape(-1))
    return scale


def plain(tile: torch.Tensor) -> Array:
    """Return a band as contiguous float32, without a copy where it is that already."""
    import torch

    return tile.to(torch.float32).contiguous().numpy()
