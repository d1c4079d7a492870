"""Networks with operations that have no derivative: where the output depends on them, and where they are not to be
differentiated at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.networks import Rows, model_of
from workbench.measurement.calibrate import calibrate
from workbench.models.execution.gradient_flow import Flow, flow_of
from workbench.models.summary import OutputKind
from workbench.sensitivity.score import score

SCHEME = "int5-channel"


@torch.library.custom_op("tests_gradient_flow::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


class Doubled(nn.Module):
    """Three layers and an operation without a derivative; ``stopped``: it runs under ``no_grad``, beside the states."""

    def __init__(self, stopped: bool) -> None:
        super().__init__()
        self.a, self.b, self.c, self.stopped = nn.Linear(6, 12), nn.Linear(12, 12), nn.Linear(12, 5), stopped

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = self.a(x).relu()
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.stopped):
            more = doubled(states)
        return self.c(self.b(states + more).relu())


class Trained(torch.autograd.Function):
    """A way back of a network's own, which asserts that it is trained (Reformer)."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        raise AssertionError("put the model into training mode")


class Reversible(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.c = nn.Linear(6, 12), nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(Trained.apply(self.a(x).relu()))


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.c = nn.Linear(6, 12), nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(self.a(x).relu().detach())


@pytest.mark.parametrize(("network", "flow"), [
    (Doubled(stopped=False), Flow.NONE), (Doubled(stopped=True), Flow.AS_WRITTEN), (Plain(), Flow.THROUGH_STOPS),
    (Reversible(), Flow.NONE),
])  # fmt: skip
def test_what_has_no_derivative_is_measured(network: nn.Module, flow: Flow) -> None:
    torch.manual_seed(0)
    for parameter in network.parameters():
        nn.init.normal_(parameter)
    model, data = model_of(network, OutputKind.CLASS_LOGITS), Rows(inputs=torch.randn(64, 6))
    calibration = calibrate(model, data, batch_size=16)
    assert flow_of(model) is flow_of(model.with_weights({})) is flow
    assert set(calibration.curvature) == (set() if flow is Flow.NONE else set(model.summary.by_name))
    predicted = score(model, "predicted_kl", (SCHEME,), curvature=calibration.curvature, dataset=data, batch_size=16)
    measured = score(model, "measured_kl", (SCHEME,), dataset=data, batch_size=16)
    if flow is Flow.NONE:
        assert set(predicted.measured) == set(model.summary.by_name)
        np.testing.assert_array_equal(predicted.score, measured.score)
    assert (predicted.score > 0).all()
    inputs = score(model, "predicted_kl_inputs", (SCHEME,), dataset=data, batch_size=16)
    assert flow is Flow.NONE or (inputs.score > 0).all()
