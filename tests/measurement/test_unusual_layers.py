"""Layers that are not called as most are: shared positions, masks instead of ids, several outputs, padding by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.measurement.moments import whole_curvature
from tests.models.networks import Rows, images, model_of, recurrent, sequences, tokens
from workbench.measurement.calibrate import calibrate
from workbench.measurement.gradients import GradientPass
from workbench.models.execution.network import NetworkModel
from workbench.models.layer import LayerKind
from workbench.models.summary import OutputKind
from workbench.sensitivity.score import score

SCHEMES = ("int4-channel", "int8-channel")


class Positions(nn.Module):
    """An encoder whose position ids are ``[1, tokens]`` for all samples (or ``[tokens]``)."""

    def __init__(self, flat: bool = False) -> None:
        super().__init__()
        self.words, self.places, self.out = nn.Embedding(13, 8), nn.Embedding(7, 8), nn.Linear(8, 4)
        self.flat = flat

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(ids.shape[1])
        x = torch.tanh(self.words(ids) + self.places(positions if self.flat else positions[None]))
        result: torch.Tensor = self.out(x).mean(dim=1)
        return result


class FromMask(nn.Embedding):
    """Positions counted from the mask, which is the first argument, as OPT and BART have them."""

    def forward(self, mask: torch.Tensor, offset: int = 0) -> torch.Tensor:  # type: ignore[override]
        return super().forward(mask.long().cumsum(dim=1) - 1 + offset)


class Scaled(nn.Embedding):
    """Rows that are scaled after the look-up, as Gemma has them."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return 3.0 * super().forward(ids)


class Masked(nn.Module):
    """A decoder with such embeddings and a head that is tied to one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.up = Scaled(13, 8), FromMask(7, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 13, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(ids.shape, dtype=torch.float32)
        result: torch.Tensor = self.head(torch.tanh(self.up(self.words(ids) + self.places(mask))))
        return result


class Router(nn.Linear):
    """A linear layer that returns scores and logits."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        logits = super().forward(x)
        return logits.sigmoid(), logits


class Routed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.router, self.out = nn.Embedding(13, 8), Router(8, 8), nn.Linear(8, 13)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        result: torch.Tensor = self.out(x * self.router(x)[0])
        return result


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.out = nn.EmbeddingBag(13, 8), nn.Linear(8, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.out(torch.tanh(self.bag(ids)))
        return result


class Valid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.out = nn.Conv2d(2, 4, 2, stride=2, padding="valid"), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.out(torch.tanh(self.patches(x)).mean(dim=(2, 3)))
        return result


def made(network: type[nn.Module], output: OutputKind, *arguments: bool) -> NetworkModel:
    torch.manual_seed(0)
    return model_of(network(*arguments), output)


def near(model: NetworkModel, data: Rows, layer: str, low: float, high: float) -> None:
    """The predicted loss of a layer is near the measured one."""
    predicted = score(model, "predicted_kl", SCHEMES, dataset=data, layers=[layer], batch_size=3)
    measured = score(model, "measured_kl", SCHEMES, dataset=data, layers=[layer], batch_size=3)
    ratio = predicted.score / measured.score
    assert ratio.min() > low and ratio.max() < high


@pytest.mark.parametrize("flat", [False, True])
def test_position_ids_without_an_axis_of_samples(flat: bool) -> None:
    model, data = made(Positions, OutputKind.CLASS_LOGITS, flat), tokens(200, 7)
    whole = calibrate(model, data, batch_size=3).curvature["places"]
    single = calibrate(model, data, batch_size=1, seed=1).curvature["places"]
    assert whole.columns.sum() == pytest.approx(single.columns.sum(), rel=0.3)
    near(model, data, "places", 0.7, 1.4)


def test_embeddings_with_a_forward_of_their_own_are_differentiated_themselves() -> None:
    model, data = made(Masked, OutputKind.TOKEN_LOGITS), tokens(60, 7)
    assert not {"words", "places"} & model.tappable
    calibrate(model, data, batch_size=3)
    near(model, data, "places", 0.6, 1.6)
    near(model, data, "words", 0.6, 1.6)


def test_bags_of_embeddings() -> None:
    model, data = made(Bag, OutputKind.CLASS_LOGITS), tokens(60, 7)
    assert model.summary.by_name["bag"].kind is LayerKind.EMBEDDING
    calibrate(model, data, batch_size=3)
    near(model, data, "bag", 0.6, 1.6)


def test_a_linear_layer_that_returns_more_than_its_output() -> None:
    model, data = made(Routed, OutputKind.TOKEN_LOGITS), tokens(6, 7)
    result = calibrate(model, data, batch_size=3)
    assert ("router", "input") not in result.statistics and ("out", "input") in result.statistics
    assert any("router" in note for note in result.notes)


def test_padding_by_name() -> None:
    model, data = made(Valid, OutputKind.CLASS_LOGITS), images(60)
    assert whole_curvature(model, data, batch_size=7)["patches"].full is not None
    near(model, data, "patches", 0.6, 1.6)


def test_no_layers_are_no_layers() -> None:
    """Of a network in which nothing that is asked for can be tapped, no layer is tapped."""
    model, data = recurrent(), sequences(6)
    received: list[str] = []
    batch = next(data.batches(3))
    model.run(batch, tap=lambda name, tensor, output: received.append(name), layers=())
    assert not received
    table = score(model, "predicted_kl", SCHEMES, dataset=data, layers=["lstm.weight_ih_l0"], batch_size=3)
    assert (table.score > 0).all()


def test_no_gradient_at_the_models_own_weights_is_formed() -> None:
    model, data = made(Positions, OutputKind.CLASS_LOGITS), tokens(6, 7)
    formed: list[str] = []
    for name, parameter in model.body.network.named_parameters():
        parameter.register_hook(lambda gradient, name=name: formed.append(name))
    layers: list[str] = []
    batch = next(data.batches(6))
    GradientPass(model).run(batch, 0, 0, None, lambda name, tensor, gradient: layers.append(name))
    assert set(layers) == {"words", "places", "out"} and not formed
    assert all(parameter.grad is None for parameter in model.body.network.parameters())
