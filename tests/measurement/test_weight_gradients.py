"""Sums of squared weight gradients, against gradients formed one sample at a time in float64."""

from __future__ import annotations

import pytest
import torch

from workbench.measurement.weight_gradients import Products, row_and_column_squares
from workbench.models.layer import Layer, LayerKind


def linear(rows: int, columns: int) -> Layer:
    return Layer(
        name="a", parameter="a.weight", kind=LayerKind.LINEAR, shape=(rows, columns),
        axes=(0, 1), dtype="float32",
    )  # fmt: skip


def naive(x: torch.Tensor, d: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sums of squares by row, and those of each sample."""
    squares = torch.einsum("stc,str->src", x.double(), d.double()).square()
    return squares.sum(dim=(0, 2)), squares.sum(dim=(1, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("positions", "rows", "columns"), [(5, 40, 30), (20, 3000, 90), (64, 40, 30), (200, 400, 350)])
def test_sums_without_the_gradient_itself(positions: int, rows: int, columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, d = torch.randn(3, positions, columns).to(dtype), torch.randn(3, positions, rows).to(dtype)
    x[:, 0] *= 100  # a massive activation
    shared = row_and_column_squares(linear(rows, columns), x, d, 3, None, Products())
    formed = row_and_column_squares(linear(rows, columns), x, d, 3, None)
    assert shared is not None and formed is not None
    alone = torch.einsum("stc,st->c", x.double().square(), d.double().square().sum(dim=2))
    summed = torch.einsum("stc,str->src", x.double(), d.double()).square().sum(dim=(0, 1))
    is_formed = positions == 64  # where the products cost more than the gradient
    torch.testing.assert_close(shared[1], summed if is_formed else alone, rtol=1e-5, atol=0.0)
    by_row, by_sample = naive(x, d)
    for result in (shared, formed):
        torch.testing.assert_close(result[0], by_row, rtol=1e-5, atol=0.0)
        torch.testing.assert_close(result[2], by_sample, rtol=1e-6, atol=0.0)


def test_products_are_shared_until_the_input_changes() -> None:
    torch.manual_seed(0)
    products, x, d = Products(), torch.randn(2, 4, 30), torch.randn(2, 4, 40)
    first = products.between(x)
    assert products.between(x) is first
    x += 1.0
    changed = row_and_column_squares(linear(40, 30), x, d, 2, None, products)
    assert changed is not None
    torch.testing.assert_close(changed[0], naive(x, d)[0], rtol=1e-5, atol=0.0)
