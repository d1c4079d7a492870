"""Sums of ``X^T X``, of which no more than half is computed and held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.memory import Spill

if TYPE_CHECKING:
    import torch

STRIP = 128
"""Rows of the matrix that are one product: of these, the columns before the first row are left out."""


class SymmetricSum:
    """The sum of ``x x^T``, float32 ``[groups, n, n]``: its upper half in strips of rows, which ``spill`` holds.

    Every entry is the sum of the same products in the same order as in one product of whole matrices.
    """

    def __init__(self, groups: int, size: int, like: torch.Tensor, spill: Spill) -> None:
        self._groups, self._size = groups, size
        memory = spill.zeros(like, sum(groups * rows * (size - start) for start, rows in self._places()))
        self._strips: list[tuple[int, torch.Tensor]] = []
        for start, rows in self._places():
            count = groups * rows * (size - start)
            self._strips.append((start, memory[:count].view(groups, rows, size - start)))
            memory = memory[count:]

    def _places(self) -> Iterator[tuple[int, int]]:
        return ((start, min(STRIP, self._size - start)) for start in range(0, self._size, STRIP))

    def add(self, rows: torch.Tensor) -> None:
        """Add the products of ``rows``, float32 ``[groups, positions, n]``."""
        for start, strip in self._strips:
            part = rows[:, :, start : start + strip.shape[1]]
            strip.baddbmm_(part.transpose(1, 2), rows[:, :, start:])

    def mean(self, count: int) -> torch.Tensor:
        """Return the sum divided by ``count``, float32 ``[groups, n, n]`` on the CPU, exactly symmetric."""
        import torch

        whole = torch.empty(self._groups, self._size, self._size)
        for start, strip in self._strips:
            stop = start + strip.shape[1]
            upper = strip.cpu() / count
            whole[:, start:stop, start:] = upper
            whole[:, stop:, start:stop] = upper[:, :, stop - start :].transpose(1, 2)
            corner = upper[:, :, : stop - start].triu()
            whole[:, start:stop, start:stop] = corner + corner.triu(1).transpose(1, 2)
        return whole


def held_bytes(size: int, groups: int = 1) -> int:
    """Return the bytes of the sum of ``groups`` matrices ``[size, size]``, at most."""
    return 2 * groups * size * (size + STRIP)
