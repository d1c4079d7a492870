"""The least and greatest value of every tile of a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import NonFiniteError
from workbench.numerics.bands import row_tiles, tile_elements
from workbench.numerics.granularity import Grid, grouped, pooled

if TYPE_CHECKING:
    import torch


def extremes(weight: torch.Tensor, cut: Grid, scheme: str, *, compiled: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the least and greatest value of each tile, float32 ``[bands, groups]``, never -0.

    ``compiled`` takes the kernel, which gives the same.  Raises NonFiniteError naming ``scheme``.
    """
    if compiled:
        from workbench.numerics.formats.compiled import scaled_compiled

        low, high, finite = scaled_compiled.extremes(weight, cut.width)
    else:
        low, high = (ends + 0.0 for ends in _row_extremes(weight, cut))
        finite = bool((low.isfinite() & high.isfinite()).all())
    if not finite:
        bad = weight.numel() - sum(int(weight[part].float().isfinite().sum()) for part in row_tiles(*weight.shape))
        raise NonFiniteError(
            f"{bad} of {weight.numel()} values of a {cut.rows} x {cut.columns} matrix are NaN, infinite or beyond "
            f"float32; {scheme} stores finite values only"
        )
    return pooled(low, cut.height, "min"), pooled(high, cut.height, "max")


def _row_extremes(weight: torch.Tensor, cut: Grid) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the least and greatest value of each row's groups, float32 ``[rows, groups]``."""
    import torch

    low = torch.zeros(cut.rows, cut.groups, dtype=torch.float32, device=weight.device)
    high = torch.zeros_like(low)
    for part in row_tiles(cut.rows, cut.columns, elements=tile_elements(weight.device)):
        least, greatest = grouped(weight[part], cut.width, "edge").aminmax(dim=-1)
        low[part], high[part] = least.to(torch.float32), greatest.to(torch.float32)
    return low, high
