"""What schemes change of a weight, a large one's held in two bytes a cell, and its products with gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from workbench.memory import Spill, put_away_again
from workbench.numerics.bands import in_parallel, row_tiles

TILE = 1 << 15
"""So many cells of every scheme torch widens to float32 at once, and smaller matrices are held in float32."""

PART = 1 << 17
"""So many cells of every scheme are one thread's part in the compiled products."""


def cell_bytes(cells: int) -> int:
    """Return how many bytes a cell takes of a matrix of so many."""
    return 4 if cells < TILE else 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differences:
    """``values`` float32, of large matrices bfloat16, ``[schemes, rows, columns]``.

    In bfloat16 each is right to 1/512 of itself; products with gradients, sums of many of them, are nearer.  ``rows``
    (int64, in order): only these of the matrix are there.  ``away``: the values lie in a file.
    """

    values: torch.Tensor
    rows: torch.Tensor | None = None
    away: bool = False

    @staticmethod
    def empty(
        schemes: int, weight: torch.Tensor, rows: torch.Tensor | None = None, spill: Spill | None = None
    ) -> Differences:  # fmt: skip
        """Return room for differences from ``weight`` ``[rows, columns]``, in memory or where ``spill`` has it."""
        dtype = torch.float32 if cell_bytes(weight.numel()) == 4 else torch.bfloat16
        like, spill = weight.new_empty(0, dtype=dtype), spill or Spill()
        before = spill.spilled
        values = spill.zeros(like, schemes, *weight.shape)
        return Differences(values=values, rows=rows, away=spill.spilled > before)

    def put_away(self) -> None:
        """Have values that lie in a file leave the memory until they are read again."""
        if self.away:
            put_away_again(self.values.view(torch.uint8).numpy())

    def products(self, gradients: torch.Tensor) -> torch.Tensor:
        """Return ``<gradient of sample n, difference s>``, float32 ``[samples, schemes]``.

        ``gradients`` are float32 ``[samples, rows, columns]`` of the whole matrix.
        """
        if self.rows is not None:
            gradients = gradients[:, self.rows.to(gradients.device)]
        sums = _products(self.values.flatten(1), gradients.flatten(1))
        self.put_away()
        return sums

    def looked_up(self, ids: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
        """Return ``sum_t <gradient_t, row ids_t of difference s>``, float32 ``[samples, schemes]``.

        ``ids`` are int64 ``[samples, tokens]`` of the whole table, ``gradients`` ``[samples, tokens, columns]``.
        """
        if self.rows is not None:
            ids = torch.searchsorted(self.rows.to(ids.device), ids.contiguous())
        sums = gradients.new_zeros(len(ids), len(self.values))
        for sample, (own, gradient) in enumerate(zip(ids, gradients, strict=True)):
            used, place = own.unique(return_inverse=True)
            by_row = torch.zeros(len(used), gradient.shape[-1], device=gradient.device).index_add_(0, place, gradient)
            sums[sample] = _products(self.values[:, used].flatten(1), by_row.flatten()[None])[0]
        self.put_away()
        return sums


def _products(differences: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
    """Return the products of ``[schemes, cells]`` with float32 ``[samples, cells]``, float32 ``[samples, schemes]``."""
    schemes, cells = differences.shape
    if differences.device.type == "cpu" and differences.dtype is torch.bfloat16:
        return _compiled_products(differences, gradients.contiguous())
    sums, wide = gradients.new_zeros(len(gradients), schemes), gradients.new_empty(schemes, TILE)
    for start in range(0, cells, TILE):
        part = differences[:, start : start + TILE]
        sums.addmm_(gradients[:, start : start + TILE], wide[:, : part.shape[1]].copy_(part).T)
    return sums


def _compiled_products(differences: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
    """Return the same of bfloat16 by compiled code, on all threads; the sums do not depend on their number."""
    from workbench.numerics.inner_products import add_products

    (schemes, cells), pitch = differences.shape, differences.stride(0)  # 0: one row for all
    bits = differences.as_strided((pitch * (schemes - 1) + cells,), (1,)).view(torch.int16).numpy().view(np.uint16)
    others, sums = gradients.numpy(), np.zeros((-(-cells // PART), len(gradients), schemes))

    def task(part: slice) -> None:
        add_products(bits, pitch, others, part.start, part.stop, sums[part.start // PART])

    in_parallel(task, row_tiles(cells, 1, elements=PART))
    return torch.from_numpy(sums.sum(axis=0)).float()
