"""What schemes change of a weight, held in two bytes a cell, and its products with gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from workbench.memory import Spill, put_away_again

TILE = 1 << 15
"""So many cells of every scheme are widened to float32 at once; half as many take a tenth longer."""

DIFFERENCE_CELL = 2
"""The bytes of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differences:
    """``values`` float16 ``[schemes, rows, columns]`` times ``scale`` float32 ``[schemes]``.

    The scale is the largest difference, so that each is right to 1/2,048 of itself or to 6e-8 of the largest; products
    with gradients, sums of many of them, are nearer.  ``rows`` (int64, in order): only these of the matrix are there.
    ``away``: the values lie in a file.
    """

    values: torch.Tensor
    scale: torch.Tensor
    rows: torch.Tensor | None = None
    away: bool = False

    @staticmethod
    def empty(
        schemes: int, weight: torch.Tensor, rows: torch.Tensor | None = None, spill: Spill | None = None
    ) -> Differences:  # fmt: skip
        """Return room for differences from ``weight`` ``[rows, columns]``, in memory or where ``spill`` has it."""
        like, spill = weight.new_empty(0, dtype=torch.float16), spill or Spill()
        before = spill.spilled
        values = spill.zeros(like, schemes, *weight.shape)
        scale = weight.new_ones(schemes, dtype=torch.float32)
        return Differences(values=values, scale=scale, rows=rows, away=spill.spilled > before)

    def put(self, scheme: int, difference: torch.Tensor) -> None:
        """Hold the difference (float32 ``[rows, columns]``, which is overwritten) that a scheme makes."""
        largest = difference.abs().max() if difference.numel() else difference.new_zeros(())
        if bool(largest.isfinite()) and bool(largest > 0):
            self.scale[scheme] = largest
            difference /= largest
        self.values[scheme] = difference

    def put_away(self) -> None:
        """Have values that lie in a file leave the memory until they are read again."""
        if self.away:
            put_away_again(self.values.numpy())

    def of(self, scheme: int) -> torch.Tensor:
        """Return the difference that a scheme makes, float32 ``[rows, columns]``."""
        return self.values[scheme].float() * self.scale[scheme]

    def products(self, gradients: torch.Tensor) -> torch.Tensor:
        """Return ``<gradient of sample n, difference s>``, float32 ``[samples, schemes]``.

        ``gradients`` are float32 ``[samples, rows, columns]`` of the whole matrix.
        """
        if self.rows is not None:
            gradients = gradients[:, self.rows.to(gradients.device)]
        gradients, flat = gradients.flatten(1), self.values.flatten(1)
        sums, wide = gradients.new_zeros(len(gradients), len(flat)), gradients.new_empty(len(flat), TILE)
        for start in range(0, flat.shape[1], TILE):
            part = flat[:, start : start + TILE]
            sums.addmm_(gradients[:, start : start + TILE], wide[:, : part.shape[1]].copy_(part).T)
        self.put_away()
        return sums * self.scale

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
            sums[sample] = torch.stack([torch.sum(each[used] * by_row, dtype=torch.float32) for each in self.values])
        self.put_away()
        return sums * self.scale
