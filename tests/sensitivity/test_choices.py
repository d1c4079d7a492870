"""Thresholds, orders and rounding: their other outcomes, and what rounding weights costs by them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.models.networks import Rows, model_of
from workbench.measurement.calibrate import calibrate
from workbench.models.execution.dependence import unused_layers
from workbench.models.summary import OutputKind
from workbench.sensitivity.choices import Choices
from workbench.sensitivity.score import score

SCHEME = "int4-channel"


@pytest.mark.parametrize(
    ("step", "number", "margin", "other"),
    [
        (lambda x: x > 0.5, 0.7, 0.2, False), (lambda x: torch.le(x, other=x + 3), 0.7, 3.0, False),
        (lambda x: x < x, 0.7, math.inf, True),
        (torch.round, 2.8, 0.3, 2.0), (torch.round, 2.3, 0.2, 3.0),
        (torch.floor, 2.8, 0.2, 3.0), (torch.floor, 3.1, 0.1, 2.0),
        (torch.ceil, 2.8, 0.2, 4.0), (torch.ceil, 3.1, 0.1, 3.0),
        (torch.trunc, -2.8, 0.2, -3.0), (torch.trunc, -3.1, 0.1, -2.0), (torch.trunc, 0.2, math.inf, 0.0),
        (lambda x: x.long(), 2.8, 0.2, 3), (torch.sign, -0.5, 0.5, 1.0),
    ],
)  # fmt: skip
def test_a_step_falls_out_the_other_way(step, number: float, margin: float, other: float) -> None:
    x = torch.tensor([number, number])
    with Choices(0, torch.tensor([1])) as choices:
        result = step(x)
    assert choices.margins[0].tolist() == pytest.approx([margin, margin], abs=1e-6)
    assert result.dtype == step(x).dtype and result.tolist() == [step(x)[0], other]


@pytest.mark.parametrize("descending", [False, True])
def test_neighbours_in_an_order_change_places(descending: bool) -> None:
    x = torch.tensor([[3.0, 1.0, 1.5], [0.0, 2.0, 2.25]])
    with Choices(0, torch.tensor([1, 2, 3])) as choices:  # of neighbouring pairs only the first
        order = x.sort(dim=1, descending=descending)
    plain = x.sort(dim=1, descending=descending)
    assert choices.margins[0].tolist() == plain.values.diff(dim=1).abs().flatten().tolist()
    assert order.indices[0].tolist() == plain.indices[0, [0, 2, 1]].tolist()
    assert torch.equal(order.indices[1], plain.indices[1]) and torch.equal(order.values, x.gather(1, order.indices))
    with Choices(0, torch.tensor([1])):
        assert torch.equal(x.argsort(dim=1, descending=descending)[0], order.indices[0])


def test_scores_that_are_equal_are_no_choice() -> None:
    """Those of an index of keys behind a ReLU are zeros side by side, which no rounding brings out of order."""
    with Choices() as choices:
        torch.topk(torch.tensor([[0.0, 3.0, 0.0, 0.0], [0.5, 3.0, 2.0, 0.0]]), 2)
    assert choices.margins[0].tolist() == [math.inf, 1.5]


def test_what_is_no_number_of_the_network_is_no_step() -> None:
    with Choices() as choices:
        torch.arange(3).gt(1), torch.arange(3).sort(), torch.topk(torch.ones(2), 2)
        choices.close()
        torch.ones(3).gt(0)
    assert choices.margins == []


class Gated(nn.Module):
    """Each sample goes through one of two layers, by a number that a third layer gives."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.gate = nn.Linear(16, 32), nn.Linear(32, 1)
        self.one, self.other, self.out = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.body(x))
        result: torch.Tensor = self.out(self.gated(hidden, 8 * self.gate(hidden)))
        return result

    def gated(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return torch.where(gate > 0, torch.tanh(self.one(x)), torch.tanh(self.other(x)))


class InPython(Gated):
    """The same, sample by sample in Python."""

    def gated(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        first = [number.item() > 0 for number in gate]
        return torch.tanh(
            torch.stack([(self.one if own else self.other)(row) for own, row in zip(first, x, strict=True)])
        )


class Rounded(Gated):
    """What a layer gives is rounded with a straight-through estimator, as codes are."""

    def gated(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        codes = 2 * torch.tanh(self.one(x))
        return codes + (codes.round() - codes).detach()


class Ordered(Gated):
    """The places of the three largest of six numbers."""

    def gated(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        places = self.one(x)[:, :6].argsort(dim=1, descending=True)[:, :3]
        return torch.zeros_like(x).scatter(1, places, 1.0) + 0.1 * self.one(x)


class Leaking(Gated):
    """A continuous function that is written with a comparison."""

    def gated(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        y = self.one(x)
        return torch.where(y > 0, y, 0.1 * y)


class Checked(Gated):
    """A network that checks its own numbers."""

    def gated(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        if not bool((x.abs() < 2).all()):
            raise ValueError("numbers are out of range")
        return torch.tanh(self.one(x))


def tables(kind: type[Gated]):
    torch.manual_seed(0)
    model, data = model_of(kind(), OutputKind.CLASS_LOGITS), Rows(inputs=torch.randn(256, 16))
    curvature, notes = calibrate(model, data, batch_size=64).curvature, list[str]()
    predicted = score(model, "predicted_kl", (SCHEME,), curvature=curvature, dataset=data, batch_size=64, notes=notes)
    return predicted, score(model, "measured_kl", (SCHEME,), dataset=data, batch_size=64), notes


@pytest.mark.parametrize("kind", [Gated, Rounded, Ordered])
def test_layers_before_a_step_pay_for_what_they_turn(kind: type[Gated]) -> None:
    predicted, measured, _ = tables(kind)
    own = measured.of("body", SCHEME)
    assert predicted.rerouting_of("body", SCHEME) > 0.3 * own
    assert abs(predicted.of("body", SCHEME) - own) < max(0.5 * own, 2 * predicted.error_of("body", SCHEME))
    assert predicted.rerouting_of("out", SCHEME) == 0


def test_a_step_of_a_continuous_function_costs_next_to_nothing() -> None:
    predicted, measured, _ = tables(Leaking)
    assert predicted.rerouting_of("body", SCHEME) < 0.1 * predicted.of("body", SCHEME)
    assert predicted.of("body", SCHEME) == pytest.approx(measured.of("body", SCHEME), rel=0.3)


def test_a_check_that_always_holds_costs_nothing() -> None:
    predicted, measured, _ = tables(Checked)
    assert predicted.rerouting is None
    assert predicted.of("body", SCHEME) == pytest.approx(measured.of("body", SCHEME), rel=0.3)


def test_what_python_decides_by_is_measured() -> None:
    predicted, measured, notes = tables(InPython)
    assert set(predicted.measured) == {"body", "gate"} and not predicted.unused
    assert predicted.of("body", SCHEME) == pytest.approx(measured.of("body", SCHEME), rel=1e-6)
    assert "measured, not predicted, since no gradient tells what it decides: body, gate" in notes


def test_a_layer_that_the_first_sample_passes_by_is_used() -> None:
    torch.manual_seed(0)
    model, data = model_of(InPython(), OutputKind.CLASS_LOGITS), Rows(inputs=torch.randn(64, 16))
    assert unused_layers(model, data) == {}
    one = Rows(inputs=data.tensors["inputs"][:1].repeat(4, 1))
    object.__setattr__(one.record, "content_hash", "sha256:one")
    assert len(unused_layers(model, one)) == 1
