"""Row and column sums of single samples' squared weight gradients: those of the Fisher information's diagonal."""

from __future__ import annotations

import torch

from workbench.measurement.geometry import Geometry, linear_gradients
from workbench.models.layer import Layer, LayerKind

GRADIENT_CELLS = 1 << 24
"""So many elements of single samples' weight gradients are formed at once."""


def row_and_column_squares(
    layer: Layer, x: torch.Tensor, d: torch.Tensor, samples: int, geometry: Geometry | None
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the sums over samples of each sample's squared weight gradient, by row and by column, float64.

    ``x`` is the layer's input, ``d`` the gradient at its output.  None for a convolution whose geometry is not known.
    """
    if layer.kind is LayerKind.EMBEDDING:
        return _embedding_squares(layer, x, d, samples)
    if layer.kind.value.startswith("conv"):
        if geometry is None:
            return None
        squares = geometry.weight_gradients(layer, x.float(), d.float()).square()
        return squares.sum(dim=(0, 2)).double(), squares.sum(dim=(0, 1)).double()
    if x.shape[0] != samples:  # tokens of all samples in one row, as experts get them: taken as independent
        x, d = x.reshape(-1, x.shape[-1]).float(), d.reshape(-1, d.shape[-1]).float()
        by_row = d.square().T @ x.square().sum(dim=1)
        return by_row.double(), (x.square().T @ d.square().sum(dim=1)).double()
    step = max(GRADIENT_CELLS // layer.parameters, 1)
    rows, columns = torch.zeros(layer.matrix[0]).double(), torch.zeros(layer.matrix[1]).double()
    for part_x, part_d in zip(torch.split(x, step), torch.split(d, step), strict=True):
        squares = linear_gradients(part_x.float(), part_d.float()).square_()
        rows, columns = rows + squares.sum(dim=(0, 2)), columns + squares.sum(dim=(0, 1))
    return rows, columns


def _embedding_squares(
    layer: Layer, ids: torch.Tensor, d: torch.Tensor, samples: int
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = (torch.zeros(size, dtype=torch.float64) for size in layer.matrix)
    ids, d = ids.reshape(samples, -1), d.reshape(samples, -1, d.shape[-1]).float()
    for one, gradient in zip(ids, d, strict=True):
        used, place = one.unique(return_inverse=True)
        squares = torch.zeros(used.numel(), d.shape[-1]).index_add_(0, place, gradient).square()
        rows[used] += squares.sum(dim=1)
        columns += squares.sum(dim=0)
    return rows, columns
