"""Gradients go through where a network's code stops them, and not through what a caller does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tests.models.networks import Rows, model_of
from workbench.measurement.calibrate import calibrate
from workbench.models.execution.stopped_gradients import ThroughStops, not_the_network
from workbench.models.summary import OutputKind
from workbench.sensitivity.score import score

STOPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "no_grad": lambda x: torch.no_grad()(torch.mul)(x, 1.0),
}


class Stopped(nn.Module):
    """Two layers with a stop between them."""

    def __init__(self, stop: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.before, self.after, self.stop = nn.Linear(6, 12), nn.Linear(12, 5), stop

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.stop(torch.tanh(self.before(x))))


class Tower(nn.Module):
    """A frozen tower that runs without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.tower, self.head = nn.Linear(6, 12), nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            states = torch.relu(self.tower(x))
        return self.head(states)


@pytest.mark.parametrize("network", [*(Stopped(stop) for stop in STOPS.values()), Tower()], ids=[*STOPS, "tower"])
def test_layers_before_a_stop_are_predicted(network: nn.Module) -> None:
    torch.manual_seed(0)
    for parameter in network.parameters():
        nn.init.normal_(parameter)
    model, data = model_of(network, OutputKind.CLASS_LOGITS), Rows(inputs=torch.randn(300, 6))
    scheme = "int6-channel"
    curvature = calibrate(model, data, batch_size=50).curvature
    predicted = score(model, "predicted_kl", (scheme,), curvature=curvature, dataset=data, batch_size=50)
    measured = score(model, "measured_kl", (scheme,), dataset=data, batch_size=50)
    assert not predicted.measured
    for name in predicted.layers:
        assert predicted.of(name, scheme) == pytest.approx(measured.of(name, scheme), rel=0.3), name


def test_gradients_are_those_of_the_function() -> None:
    x = torch.randn(4, 6, requires_grad=True)
    for stop in STOPS.values():
        with ThroughStops():
            y = stop(torch.sin(x)).sum()
        (gradient,) = torch.autograd.grad(y, x)
        torch.testing.assert_close(gradient, torch.cos(x))


def test_straight_through_estimators_keep_their_slope() -> None:
    x = torch.randn(4, 6, requires_grad=True)
    with ThroughStops():
        y = (x + (x.round() - x).detach()).sum()
    assert torch.equal(torch.autograd.grad(y, x)[0], torch.ones(4, 6))


def test_what_is_not_the_network_stops_gradients() -> None:
    x = torch.randn(3, requires_grad=True)
    with ThroughStops():
        with not_the_network():
            assert not x.detach().requires_grad and not x.data.requires_grad
            with torch.no_grad():
                assert not (2 * x).requires_grad
        assert x.detach().requires_grad
    assert torch.is_grad_enabled() and not x.detach().requires_grad
