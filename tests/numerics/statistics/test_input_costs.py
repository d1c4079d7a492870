"""What an error costs at each value of an input, as calibration notes it, against gradients by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.models.networks import Rows, model_of
from workbench.measurement.calibrate import calibrate
from workbench.models.summary import OutputKind
from workbench.numerics.statistics.input_costs import InputCosts
from workbench.numerics.statistics.layer_statistics import BINS
from workbench.numerics.statistics.squares_by_value import squares_by_value
from workbench.session.calibrated_ranges import all_ranges


def by_value(values: torch.Tensor, gradients: torch.Tensor, exponent: int) -> np.ndarray:
    place = np.floor(values.double().numpy().ravel() * (BINS / 2 ** (exponent + 1))) + BINS // 2
    squares = gradients.double().numpy().ravel() ** 2
    return np.bincount(place.clip(0, BINS - 1).astype(int), squares, BINS)


@pytest.mark.parametrize("shape", [(3, 5), (7, 1234), (2, 300, 301)])
def test_squares_are_added_in_the_bins_of_their_values(shape: tuple[int, ...]) -> None:
    drawn = torch.Generator().manual_seed(1)
    values, gradients = (torch.randn(shape, generator=drawn) for _ in range(2))
    for x in (values, values * 1e-6, values.mT if len(shape) == 2 else values.half()):
        g = gradients.reshape(x.shape)
        found = squares_by_value(x, g, 1)
        np.testing.assert_allclose(found, by_value(x.float(), g, 1), rtol=1e-12)
        assert found.sum() == pytest.approx(float(gradients.double().square().sum()))


def test_batches_add_up_over_the_widest_range() -> None:
    values, gradients = torch.linspace(-3.9, 3.9, 500), torch.linspace(0, 1, 500)
    both, other = InputCosts(), InputCosts()
    both.note("a", values / 4, gradients, 0)
    other.note("a", values, gradients, 2)
    other.note("b", values, gradients * float("inf"), 2)
    both.add(other)
    exponent, sums = both.sums["a"]
    assert exponent == 2 and list(both.sums) == ["a"], "what is not finite is left out"
    np.testing.assert_allclose(sums, by_value(torch.cat([values / 4, values]), gradients.repeat(2), 2), atol=1e-12)


class Residual(torch.nn.Module):
    """An input that two layers and a sum share: each layer's gradient is the one through it alone."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.out = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 0.0
        return self.out(x + self.first(x).tanh() * self.second(x))


def test_each_layer_has_the_gradient_through_it_alone() -> None:
    """The expected squares of drawn gradients are the diagonal of the Fisher matrix of inputs, by the Jacobian."""
    network, data = Residual(), torch.randn(400, 6, generator=torch.Generator().manual_seed(3))
    model = model_of(network, OutputKind.EMBEDDING)
    seen = calibrate(model, Rows(inputs=data), batch_size=64).statistics
    first, second = network.first(data), network.second(data)
    through = second * (1 - first.tanh().square())  # how the hidden state answers to the output of the first
    jacobian = torch.einsum("oh,nh,hi->noi", network.out.weight, through, network.first.weight)
    expected = by_value(data, jacobian.square().sum(dim=1).sqrt().detach(), seen["first", "input"].exponent) / 800
    costs = seen["first", "input"].costs
    assert costs.sum() == pytest.approx(expected.sum(), rel=0.1)
    folded = [each.reshape(16, -1).sum(axis=1) for each in (costs, expected)]
    np.testing.assert_allclose(*folded, atol=0.15 * folded[1].max())
    assert not np.array_equal(costs, seen["second", "input"].costs)
    assert seen["first", "output"].costs.size == 0
    ranges = all_ranges(seen)
    assert ranges["first", "input", "loss"].method == "loss" and ("first", "output", "loss") not in ranges
    assert ranges["first", "input", "mse"] is ranges["second", "input", "mse"]
