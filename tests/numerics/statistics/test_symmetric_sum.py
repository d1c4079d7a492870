"""Sums of products of which half is held, against whole products."""

from __future__ import annotations

import pytest
import torch

from workbench.memory import Spill
from workbench.numerics.statistics.symmetric_sum import STRIP, SymmetricSum, held_bytes


@pytest.mark.parametrize("size", [1, STRIP - 1, STRIP, STRIP + 1, 3 * STRIP + 7])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("room", [0, 1 << 30])
def test_the_mean_is_that_of_whole_products_and_symmetric(size: int, groups: int, room: int) -> None:
    rows = torch.randn(groups, 2 * 37, size, generator=torch.Generator().manual_seed(size))
    total = SymmetricSum(groups, size, rows, Spill(room=room))
    for part in torch.split(rows, 37, dim=1):
        total.add(part)
    mean, exact = total.mean(74), rows.double().transpose(1, 2) @ rows.double() / 74
    assert torch.equal(mean, mean.transpose(1, 2))
    torch.testing.assert_close(mean.double(), exact, rtol=1e-5, atol=1e-6)
    assert torch.equal(mean, total.mean(74))  # asked for again, nothing has changed


def test_large_matrices_are_held_in_little_more_than_half_of_their_size() -> None:
    size, rows = 16 * STRIP, torch.zeros(1, 1, 16 * STRIP)
    spill = Spill(room=0)
    SymmetricSum(1, size, rows, spill)
    assert spill.spilled <= held_bytes(size) < 0.54 * 4 * size**2
