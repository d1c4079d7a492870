"""Sums of squared weight gradients, against gradients formed one sample at a time in float64."""

from __future__ import annotations

import pytest
import torch

from workbench.measurement.weight_gradients import Sketches, row_and_column_squares
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


def sketches(samples: int, seed: int = 0) -> Sketches:
    return Sketches(generators=[torch.Generator().manual_seed(1000 * seed + number) for number in range(samples)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("positions", "rows", "columns"), [(5, 40, 30), (20, 3000, 90), (64, 40, 30), (64, 900, 350)])
def test_sums_without_the_gradient_itself(positions: int, rows: int, columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, d = torch.randn(3, positions, columns).to(dtype), torch.randn(3, positions, rows).to(dtype)
    x[:, 0] *= 100  # a massive activation
    shared = row_and_column_squares(linear(rows, columns), x, d, 3, None, sketches(3))
    formed = row_and_column_squares(linear(rows, columns), x, d, 3, None)
    assert shared is not None and formed is not None
    alone = torch.einsum("stc,st->c", x.double().square(), d.double().square().sum(dim=2))
    summed = torch.einsum("stc,str->src", x.double(), d.double()).square().sum(dim=(0, 1))
    is_formed = rows == 40 and positions == 64  # where the products cost more than the gradient
    torch.testing.assert_close(shared[1], summed if is_formed else alone, rtol=1e-5, atol=0.0)
    by_row, by_sample = naive(x, d)
    for result in (shared, formed):
        torch.testing.assert_close(result[0], by_row, rtol=1e-5, atol=0.0)
        torch.testing.assert_close(result[2], by_sample, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_many_positions_are_sketched_without_bias(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, d = torch.randn(2, 200, 400).to(dtype), torch.randn(2, 200, 500).to(dtype)
    x[:, 0, 7] *= 100  # of one channel: seen by every direction alike
    by_row, by_sample = naive(x, d)
    tries = [row_and_column_squares(linear(500, 400), x, d, 2, None, sketches(2, seed)) for seed in range(40)]
    rows, each = (torch.stack([squares[place] for squares in tries if squares is not None]) for place in (0, 2))
    scatter = (rows / by_row).std(dim=0)  # two samples of 64 directions each, at most sqrt(2 / 64 / 2)
    assert 0.01 < float(scatter.mean()) < (2 / 64 / 2) ** 0.5
    assert float(((rows / by_row).mean(dim=0) - 1).abs().max()) < 4.5 * (2 / 64 / 2 / 40) ** 0.5
    assert float((each / by_sample - 1).abs().max()) < 0.08  # many rows: their scatter is small beside a row's


def test_a_sketch_depends_on_its_own_sample_alone() -> None:
    torch.manual_seed(0)
    x, d = torch.randn(2, 200, 400), torch.randn(2, 200, 500)
    both = row_and_column_squares(linear(500, 400), x, d, 2, None, sketches(2))
    alone = Sketches(generators=[torch.Generator().manual_seed(1)])
    second = row_and_column_squares(linear(500, 400), x[1:], d[1:], 1, None, alone)
    assert both is not None and second is not None
    torch.testing.assert_close(both[2][1:], second[2], rtol=1e-6, atol=0.0)


def test_a_sketch_is_shared_until_the_input_changes() -> None:
    torch.manual_seed(0)
    shared, x = sketches(2), torch.randn(2, 100, 400)
    first = shared.of(x)
    assert shared.of(x) is first
    x *= 2.0
    torch.testing.assert_close(shared.of(x), 2 * first)
