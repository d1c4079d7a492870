"""Between torch matrices and the compiled clip search: bands of rows with the candidates of their own tiles.

Candidates are made band by band, so that their parameters take little memory beside the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.numerics.bands import in_parallel, row_tiles
from workbench.numerics.element import Element
from workbench.numerics.formats.affine import Affine
from workbench.numerics.formats.compiled import clip_choice, clip_kernels
from workbench.numerics.formats.compiled.codecs import WIDEST, element_tables
from workbench.numerics.formats.compiled.scaled_compiled import plain
from workbench.numerics.granularity import Grid
from workbench.numerics.scheme import Parameters

if TYPE_CHECKING:
    import torch

Array = Any
Sixteen = tuple[Any, ...]  # float32

BAND = 1 << 19
"""Elements of a band: enough work for each call, and parameters of a few megabytes."""

Candidates = Callable[[slice], Affine]
"""From bands of tiles to the parameters of every candidate, ``[bands, groups, candidates]``."""


def least_error(
    weight: torch.Tensor, cut: Grid, candidates: Candidates, importance: torch.Tensor | None, element: Element,
    ends: tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:  # fmt: skip
    """Return for each tile, int64 ``[bands, groups]``, the candidate with the least weighted squared error.

    The first of equals wins; see :func:`workbench.numerics.formats.clip_search.least_error`.  ``ends`` are each tile's
    least and greatest element, float32 ``[bands, groups]``, or 0 in place of them.
    """
    if cut.height == 1 and cut.rows > 1:
        return _least_of_rows(weight, cut, candidates, importance, element, ends)
    return _least_of_bands(weight, cut, candidates, importance, element)


def _least_of_rows(
    weight: torch.Tensor, cut: Grid, candidates: Candidates, importance: torch.Tensor | None, element: Element,
    ends: tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:  # fmt: skip
    """Do so where every row has groups of its own."""
    import torch

    best, width = np.zeros((cut.rows, cut.groups), np.int64), min(cut.width, WIDEST)
    low, high = (each.contiguous().numpy() for each in ends)
    kind, top, mantissa, normal, lowest, highest, limits, values = kernel_element(element)
    magic = np.float32(1.5 * 2.0 ** (23 - mantissa))
    spread = None if importance is None else importance.detach().float().expand(weight.shape)

    def task(part: slice) -> None:
        scale, zero, offset = _arrays(candidates(part), element)
        tile, weighed = plain(weight[part]), None if spread is None else plain(spread[part])
        results = weighed, low[part], high[part], best[part]
        if kind == clip_kernels.TABLE:
            clip_choice.least_table_errors(tile, width, scale, limits, values, *results)
            return
        whole = kind == clip_kernels.INTEGER
        span: tuple[Any, Any, Any, Any] = (
            (np.float32(0), top, magic, None) if whole else (lowest, highest, magic, normal)
        )
        clip_choice.least_errors(tile, width, scale, zero, offset, *span, *results)

    in_parallel(task, row_tiles(cut.rows, cut.columns, elements=BAND))
    return torch.from_numpy(best)


def _least_of_bands(
    weight: torch.Tensor, cut: Grid, candidates: Candidates, importance: torch.Tensor | None, element: Element
) -> torch.Tensor:
    """Do so where rows share tiles."""
    import torch

    weights = None if importance is None else importance.detach().float().expand(weight.shape)
    whole = cut.height >= cut.rows > 1
    best = torch.zeros(cut.bands, cut.groups, dtype=torch.int64)
    totals: dict[int, Array] = {}
    known = _arrays(candidates(slice(0, 1)), element) if whole else None

    def task(part: slice) -> None:
        bands = slice(0, 1) if whole else slice(part.start // cut.height, -(-part.stop // cut.height))
        arrays = _arrays(candidates(bands), element) if known is None else known
        tile = plain(weight[part])
        weighed = np.empty((len(tile), 0, 0), np.float32) if weights is None else plain(weights[part])[:, None]
        total = np.zeros(arrays[0].shape, np.float64)
        width, height = min(cut.width, WIDEST), min(cut.height, max(cut.rows, 1))
        clip_kernels.add_errors(tile, width, height, *arrays, *kernel_element(element), weighed, total)
        if whole:
            totals[part.start] = total
        else:
            best[bands] = torch.from_numpy(total.argmin(axis=-1))

    in_parallel(task, row_tiles(cut.rows, cut.columns, 1 if whole else cut.height, elements=BAND))
    return torch.from_numpy(sum(totals[start] for start in sorted(totals)).argmin(axis=-1)) if whole else best


def candidate_errors(
    weight: torch.Tensor, fitted: Parameters, importance: torch.Tensor, element: Element, count: int
) -> torch.Tensor:
    """Return the weighted squared error of every row with each of ``count`` candidates, float64 ``[count, rows]``.

    ``weight`` is float32 ``[rows, columns]``, ``fitted`` the parameters of as many matrices of one scale a row, one
    below the other, ``importance`` ``[1, columns]``.
    """
    import torch

    rows, columns = weight.shape
    members = Affine(fitted.scale, fitted.zero_point, fitted.offset).apply(
        lambda each: each.reshape(count, rows, 1).permute(1, 2, 0)
    )
    arrays = _arrays(members, element)
    totals = np.zeros((rows, 1, count))

    def task(part: slice) -> None:
        scale, zero, offset = (member[part] for member in arrays)
        tile = plain(weight[part])
        weighed = plain(importance.expand(len(tile), -1))[:, None]
        clip_kernels.add_errors(tile, WIDEST, 1, scale, zero, offset, *kernel_element(element), weighed, totals[part])

    in_parallel(task, row_tiles(rows, columns, elements=BAND // 8))
    return torch.from_numpy(totals[:, 0].T)


def _arrays(affine: Affine, element: Element) -> tuple[Array, Array, Array]:
    """Return scales, codes of 0 and offsets, float32 ``[bands, groups, candidates]``; at least eight candidates."""
    scale, zero, offset, _ = affine
    base = -element.lowest if element.shiftable and offset is None else 0.0
    return _filled(scale, scale, 1.0), _filled(zero, scale, base), _filled(offset, scale, 0.0)


def _filled(member: torch.Tensor | None, like: torch.Tensor, value: float) -> Array:
    """Return a member, or one of ``value``; the last candidate is repeated where there are few."""
    filled = like.new_full((), value).expand(like.shape) if member is None else member
    array = filled.contiguous().numpy()
    few = array.shape[-1] < clip_choice.EIGHT
    return (
        np.concatenate([array, array[..., -1:].repeat(clip_choice.EIGHT - array.shape[-1], -1)], -1) if few else array
    )


def kernel_element(element: Element) -> tuple[int, Any, int, Any, Any, Any, Sixteen, Sixteen]:
    """Return what the kernels take of an element: of a table of fewer than 16 values the last is repeated."""
    zero = np.float32(0)
    nothing = (zero,) * 15, (zero,) * 16
    if element.shiftable:
        top = np.float32(2**element.bits - 1)
        return clip_kernels.INTEGER, top, 0, zero, zero, zero, *nothing
    ends = np.float32(element.lowest), np.float32(element.highest)
    if element.binary is not None:
        normal = np.float32(2.0 ** (1 - element.binary.bias))
        return clip_kernels.FLOAT, zero, element.binary.mantissa_bits, normal, *ends, *nothing
    limits, values, _, _ = element_tables(element)
    limits, values = (tuple(np.pad(each.reshape(-1), (0, 16 - values.size), "edge")) for each in (limits, values))
    return clip_kernels.TABLE, zero, 0, zero, *ends, limits, values
