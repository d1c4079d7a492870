"""Roles and taps of weights come from what runs: odd networks, judged by plain autograd and by measured losses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.models.networks import Rows
from workbench.measurement.calibrate import calibrate
from workbench.models.data.inputs import InputSpec
from workbench.models.execution.network import NetworkModel
from workbench.models.layer import LayerKind
from workbench.models.sources.layers import find_layers
from workbench.models.sources.python_module import call_by_name
from workbench.models.sources.source import network_model
from workbench.models.sources.stored import contents_of, tensors_in_memory
from workbench.models.summary import ModelSource, OutputKind
from workbench.sensitivity.score import score

IDS = Rows(input_ids=torch.randint(0, 13, (256, 5), generator=torch.Generator().manual_seed(1)))
VECTORS = Rows(inputs=torch.randn(160, 7, 8, generator=torch.Generator().manual_seed(2)))
IMAGES = Rows(inputs=torch.randn(160, 3, 8, 8, generator=torch.Generator().manual_seed(3)))


def opened(network: nn.Module, output: OutputKind, data: Rows) -> NetworkModel:
    """Return the network as a source opens it."""
    parts = find_layers(network, lambda name, tensor: str(tensor.dtype).removeprefix("torch."))
    fingerprint = contents_of(tensors_in_memory(network.state_dict())).fingerprint
    return network_model(
        ModelSource(kind="test", path="test"), network, parts, fingerprint, output,
        partial(call_by_name, InputSpec()), InputSpec(), lambda count: next(data.batches(count)),
    )  # fmt: skip


class Functional(nn.Module):
    """Weights that are used without calling their module, by every function that multiplies."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.back = nn.Linear(8, 24), nn.Linear(8, 8)
        self.depthwise = nn.Conv1d(8, 8, 3, groups=8)
        self.stored, self.heads = nn.Parameter(torch.randn(8, 8) / 3), nn.Parameter(torch.randn(8, 2, 4) / 3)
        self.out = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = F.linear(x, self.qkv.weight, self.qkv.bias).chunk(3, dim=-1)
        x = x + torch.softmax(q @ k.mT / 3, dim=-1) @ v
        x = x + (self.back.weight @ x.mT + self.back.bias[:, None]).mT
        x = x + F.conv1d(F.pad(x.mT, (2, 0)), self.depthwise.weight, self.depthwise.bias, groups=8).mT
        x = x + torch.tanh(x @ self.stored) + torch.einsum("btd,dhk->bthk", x, self.heads).flatten(2)
        logits: torch.Tensor = self.out(x.mean(dim=1))
        return logits


class Scaled(nn.Embedding):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return super().forward(ids) * 8.0


class Wide(nn.Linear):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        y = super().forward(x)
        return 3 * y, y


class Standardized(nn.Conv2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
        return F.conv2d(x, w / w.std(dim=(1, 2, 3), keepdim=True) / 4, self.bias, padding=1)


class Odd(nn.Module):
    """A scaled embedding that is also the head, a layer that returns two, one that runs five times."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.wide, self.again = Scaled(13, 8), Wide(8, 8), nn.Linear(8, 8)
        self.place = nn.Embedding(16, 8)
        with torch.no_grad():
            self.embed.weight.mul_(0.3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids) + self.place(torch.arange(ids.shape[1]))
        x = x + self.wide(x.cumsum(dim=1) / ids.shape[1])[0]
        for _ in range(5):
            x = torch.tanh(x + self.again(x))
        return F.linear(x, self.embed.weight)


class Shared(nn.Module):
    """Two modules with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.first, self.second = nn.Embedding(13, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight, self.head = self.first.weight, nn.Linear(8, 13)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(self.embed(ids).cumsum(dim=1) / 3))
        logits: torch.Tensor = self.head(x + self.second(x))
        return logits


class SequenceFirst(nn.Module):
    """Tokens come first, and as many of them as samples; plain modules."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(13, 8), nn.Linear(8, 8), nn.Linear(8, 13)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids.T)
        x = x + torch.tanh(self.mix(x.cumsum(dim=0) / len(x)))
        logits: torch.Tensor = self.head(x).transpose(0, 1)
        return logits


class Pictures(nn.Module):
    """A weight-standardized convolution, one with padding by name, one with weight normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.valid = Standardized(3, 8, 3), nn.Conv2d(8, 8, 3, padding="valid")
        self.normed = torch.nn.utils.parametrizations.weight_norm(nn.Conv2d(8, 8, 3))
        self.out = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.normed(torch.tanh(self.valid(torch.tanh(self.first(x))))))
        logits: torch.Tensor = self.out(x.mean(dim=(2, 3)))
        return logits


class Routed(nn.Module):
    """Experts stored inputs x outputs, their biases, a router, a decay."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.up = nn.Linear(8, 4), nn.Parameter(torch.randn(4, 8, 12) / 3)
        self.down, self.bias = nn.Parameter(torch.randn(4, 12, 8) / 3), nn.Parameter(torch.randn(4, 16))
        self.A_log = nn.Parameter(torch.rand(8, 16))
        self.out = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * torch.exp(-torch.exp(self.A_log)).sum(dim=1)
        weights, chosen = torch.softmax(self.router(x), dim=-1).topk(2, dim=-1)
        mixed = torch.zeros_like(x)
        for expert in range(4):
            share = (weights * (chosen == expert)).sum(dim=-1, keepdim=True)
            hidden = torch.relu(x @ self.up[expert] + self.bias[expert, :12])
            mixed = mixed + share * (hidden @ self.down[expert])
        logits: torch.Tensor = self.out((x + mixed).mean(dim=1))
        return logits


class Answering(nn.Module):
    """A class and a box: the best class is an answer, which nothing else depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.kind, self.box = nn.Linear(8, 4), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.softmax(self.kind(x.mean(dim=1)), dim=-1)
        best, box = scores.argmax(dim=-1, keepdim=True), self.box(x.mean(dim=1))
        return torch.cat([scores, best, box], dim=-1)


class Reading(nn.Module):
    """A mixture at the end, which gives Python the numbers of the experts."""

    def __init__(self, read: Callable[[torch.Tensor], list[int]]) -> None:
        super().__init__()
        self.read, self.router = read, nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.mean(dim=1)
        chosen = self.read(self.router(x).argmax(dim=-1))
        return torch.stack([self.experts[expert](row) for expert, row in zip(chosen, x, strict=True)])


def built(kind: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(5)
    return kind()


def test_roles_axes_and_reasons_are_facts() -> None:
    model = opened(built(Routed), OutputKind.CLASS_LOGITS, VECTORS)
    layers = model.summary.by_name
    assert layers["up"].kind is LayerKind.EXPERTS and layers["up"].matrix == (4 * 12, 8)
    assert layers["down"].matrix == (4 * 8, 12)
    assert "router" in layers["router"].keep and not layers["out"].keep and not layers["up"].keep
    assert "exp" in layers["A_log"].keep and "not as the matrix" in layers["bias"].keep
    assert not any(layer.keep for layer in opened(built(Answering), OutputKind.EMBEDDING, VECTORS).summary.layers)
    functional = opened(built(Functional), OutputKind.CLASS_LOGITS, VECTORS).summary.by_name
    assert (functional["stored"].kind, functional["stored"].axes) == (LayerKind.LINEAR, (1, 0))
    assert (functional["heads"].matrix, functional["heads"].axes) == ((8, 8), (1, 2, 0))
    odd = opened(built(Odd), OutputKind.TOKEN_LOGITS, IDS).summary.by_name
    assert "positions" in odd["place"].keep and odd["embed.weight"].tied_to == "embed"
    pictures = opened(built(Pictures), OutputKind.CLASS_LOGITS, IMAGES).summary
    reasons = {layer.name: layer.keep for layer in pictures.layers}
    assert "weight normalization" in reasons["normed.parametrizations.weight.original1"] and not reasons["first"]


@pytest.mark.parametrize("read", [
    torch.Tensor.tolist, lambda chosen: [each.item() for each in chosen], lambda chosen: list(map(int, chosen)),
    lambda chosen: list(chosen.numpy()), lambda chosen: [0 if each == 0 else 1 for each in chosen],
])  # fmt: skip
def test_a_router_of_which_python_reads_the_ranks(read: Callable[[torch.Tensor], list[int]]) -> None:
    layers = opened(built(partial(Reading, read)), OutputKind.EMBEDDING, VECTORS).summary.by_name
    assert "router" in layers["router"].keep and not layers["experts.0"].keep


class Ranking(nn.Module):
    """Two products, and what one gives between them."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.between, self.up, self.out = between, nn.Linear(8, 16), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.between(torch.relu(self.up(x))))
        return logits


@pytest.mark.parametrize("between, routes", [
    (lambda x: x.max(dim=1)[0], False), (lambda x: torch.max(x, 1, keepdim=True)[0][:, 0], False),
    (lambda x: x.topk(2, dim=1)[0].mean(dim=1), False), (lambda x: x.amax(dim=1), False),
    (lambda x: (x * (x == x.max(dim=-1, keepdim=True)[0])).mean(dim=1), True),
    (lambda x: (x * (x >= x.topk(2)[0][..., 1:])).mean(dim=1), True),
    (lambda x: x.gather(1, x.max(dim=1, keepdim=True)[1])[:, 0], True),
])  # fmt: skip
def test_the_largest_of_positions_pool_and_the_largest_of_outputs_route(
    between: Callable[[torch.Tensor], torch.Tensor], routes: bool
) -> None:
    layers = opened(built(partial(Ranking, between)), OutputKind.CLASS_LOGITS, VECTORS).summary.by_name
    assert ("router" in layers["up"].keep) == routes


class Biased(nn.Module):
    """Attention with a table of biases, looked up by places in a row, as Swin's."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 5)
        self.relative_position_bias_table = nn.Parameter(torch.randn(13, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        places = torch.arange(7)[:, None] - torch.arange(7) + 6
        bias = self.relative_position_bias_table[places.flatten()].view(7, 7, 8).sum(dim=-1)
        logits: torch.Tensor = self.out((torch.softmax(q @ k.mT / 3 + bias, dim=-1) @ v).mean(dim=1))
        return logits


def test_a_table_that_is_looked_up_and_added_is_kept() -> None:
    by_name = opened(Biased(), OutputKind.CLASS_LOGITS, VECTORS).summary.by_name
    assert by_name["relative_position_bias_table"].keep.startswith("it acts through __getitem__")
    assert not by_name["qkv"].keep and not by_name["out"].keep


def test_functions_are_tapped_and_their_inputs_replaced() -> None:
    network = built(Functional)
    model, batch = opened(network, OutputKind.CLASS_LOGITS, VECTORS), next(VECTORS.batches(4))
    assert {"qkv", "back", "depthwise", "stored"} <= model.tappable
    received: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    plain = model.run(batch, tap=lambda name, x, y: received.update({name: (x, y)}))
    assert torch.equal(plain, network(batch["inputs"]))
    for name in ("qkv", "back", "stored"):
        x, y = received[name]
        bias = dict(network.named_parameters()).get(f"{name}.bias") if name == "qkv" else None
        torch.testing.assert_close(y, F.linear(x, model.weight(name), bias))
    halved = model.run(batch, inputs={"back": lambda x: x / 2})
    expected = built(Functional)
    with torch.no_grad():
        expected.back.weight.div_(2)
    torch.testing.assert_close(halved, expected(batch["inputs"]))


class Video(nn.Module):
    """Frames go through a convolution one by one: its first axis is not that of the samples."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = nn.Conv2d(3, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frames(x.flatten(0, 1)).unflatten(0, x.shape[:2]).mean(dim=(1, 3, 4))


def test_channels_are_not_samples() -> None:
    """The probe has as many samples as a picture has channels."""
    pictures = Rows(inputs=torch.randn(16, 2, 3, 8, 8))
    model = opened(Video(), OutputKind.EMBEDDING, pictures)
    shapes: list[tuple[int, ...]] = []
    model.run(next(pictures.batches(4)), tap=lambda name, x, y: shapes.append(tuple(x.shape)))
    assert shapes == [(8, 3, 8, 8)]


@pytest.mark.parametrize(
    ("kind", "output", "data", "batch"),
    [(Functional, OutputKind.CLASS_LOGITS, VECTORS, 32), (Shared, OutputKind.TOKEN_LOGITS, IDS, 32),
     (Odd, OutputKind.TOKEN_LOGITS, IDS, 32),
     (SequenceFirst, OutputKind.TOKEN_LOGITS, IDS, 5), (Pictures, OutputKind.CLASS_LOGITS, IMAGES, 32),
     (Routed, OutputKind.CLASS_LOGITS, VECTORS, 32)],
)  # fmt: skip
def test_tiny_losses_are_predicted(
    kind: Callable[[], nn.Module], output: OutputKind, data: Rows, batch: int, tmp_path: Path
) -> None:
    model = opened(built(kind), output, data)
    names = [layer.name for layer in model.summary.stored if not layer.keep]
    curvature = calibrate(model, data, batch_size=batch).curvature
    schemes = ("int7-channel",)
    predicted = score(model, "predicted_kl", schemes, curvature=curvature, dataset=data, batch_size=batch, layers=names)
    measured = score(model, "measured_kl", schemes, dataset=data, batch_size=batch, layers=names)
    ratios = {name: predicted.of(name, *schemes) / measured.of(name, *schemes) for name in names}
    assert all(0.6 <= ratio <= 1.4 for ratio in ratios.values()), ratios  # a few drawn labels: 0.66 to 0.84 by the seed
