"""The seconds of a capture follow from the operations of the network."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.models.networks import model_of
from workbench.deployment.onnx import capture_cost
from workbench.models.summary import OutputKind


class Deep(nn.Module):
    """So many layers, each of which is one operation with its bias and one activation."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(depth))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            inputs = layer(inputs).relu()
        return inputs


def test_twice_the_depth_takes_twice_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_cost, "_seconds_each", lambda: 0.01)
    few, many = (capture_cost.capture_seconds(model_of(Deep(depth), OutputKind.EMBEDDING)) for depth in (10, 20))
    assert few >= 0.2 and many == pytest.approx(2 * few, rel=0.1)


def test_what_an_operation_takes_is_tried_once() -> None:
    each = capture_cost._seconds_each()
    assert 1e-4 < each < 10.0 and capture_cost._seconds_each() == each
