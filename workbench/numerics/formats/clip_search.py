"""The search for the range of each tile of a matrix that rounds it with the least error."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING

from workbench.numerics.bands import row_tiles, tile_elements
from workbench.numerics.formats.affine import Affine, broadcast
from workbench.numerics.granularity import Grid, grouped, pooled

if TYPE_CHECKING:
    import torch

Snap = Callable[["torch.Tensor", int, Affine], "torch.Tensor"]
"""From float32 ``[rows, columns]``, the columns of a group and parameters ``[rows, groups, 1]`` to values at scale 1,
``[rows, groups, width]``."""


def least_error(
    weight: torch.Tensor, cut: Grid, candidates: list[Affine], importance: torch.Tensor | None, snap: Snap
) -> torch.Tensor:
    """Return for each tile, int64 ``[bands, groups]``, the candidate with the least weighted squared error.

    The first of equals wins.  ``importance`` (broadcastable to ``weight``, None for 1) weighs the elements.
    """
    import torch

    weights = None if importance is None else importance.detach().to(weight.device).expand(weight.shape)
    whole = cut.height >= cut.rows > 1
    total = torch.zeros(len(candidates), 1, cut.groups, dtype=torch.float64, device=weight.device)
    best = torch.zeros(cut.bands, cut.groups, dtype=torch.int64, device=weight.device)
    elements = tile_elements(weight.device)
    for part in row_tiles(cut.rows, cut.columns, 1 if whole else cut.height, elements):
        bands = slice(0, 1) if whole else slice(part.start // cut.height, -(-part.stop // cut.height))
        tile_weights = None if weights is None else weights[part].to(torch.float32)
        local = [affine.apply(itemgetter(bands)) for affine in candidates]
        errors = _errors(weight[part], cut, local, tile_weights, snap)
        if whole:
            total += errors
        else:
            best[bands] = errors.argmin(dim=0)
    return total.argmin(dim=0) if whole else best


def _errors(
    tile: torch.Tensor, cut: Grid, candidates: list[Affine], weights: torch.Tensor | None, snap: Snap
) -> torch.Tensor:
    """Return the weighted squared error of every candidate, ``[candidates, bands of the tile, groups]``."""
    import torch

    local = Grid(tile.shape[0], cut.columns, min(cut.height, tile.shape[0]), cut.width)
    tile = tile.to(torch.float32)
    exact = grouped(tile, cut.width, "edge")
    spread = None if weights is None else grouped(weights, cut.width)
    errors = []
    for candidate in candidates:
        affine = broadcast(candidate.apply(local.spread))
        error = affine.values(snap(tile, cut.width, affine)).sub_(exact).square_()
        error[:, -1, cut.columns - (cut.groups - 1) * cut.width :] = 0  # what fills up the last group
        per_row = (error if spread is None else error.mul_(spread)).sum(dim=-1)
        errors.append(pooled(per_row, local.height, "sum"))
    return torch.stack(errors)
