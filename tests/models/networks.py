"""Tiny networks behind the Model contract, and data for them."""

from __future__ import annotations

import torch
from torch import nn

from workbench.models.data.datasets import Dataset
from workbench.models.data.inputs import InputSpec
from workbench.models.data.record import DataRecord
from workbench.models.execution.network import Body, NetworkModel
from workbench.models.sources.layers import find_layers
from workbench.models.summary import ModelSource, ModelSummary, OutputKind


class Rows(Dataset):
    """Tensors as a data set."""

    def __init__(self, **tensors: torch.Tensor) -> None:
        record = DataRecord(
            name="rows", path="rows", split="all", samples=len(next(iter(tensors.values()))), seed=0,
            content_hash="sha256:rows",
        )  # fmt: skip
        super().__init__(record=record, tensors=tensors)


def model_of(network: nn.Module, output: OutputKind) -> NetworkModel:
    """Return ``network`` as a model that takes ``input_ids`` or ``inputs``."""
    network.eval()
    parts = find_layers(network, lambda name, tensor: str(tensor.dtype).removeprefix("torch."))
    summary = ModelSummary(
        name=type(network).__name__, source=ModelSource(kind="test", path="test"), fingerprint="sha256:test",
        output=output, layers=parts.layers, others=tuple(parts.others), non_finite=tuple(parts.non_finite),
    )  # fmt: skip
    body = Body(
        network=network, hooks=parts.hooks,
        call=lambda forward, batch: forward(batch["input_ids"] if "input_ids" in batch else batch["inputs"]),
    )  # fmt: skip
    return NetworkModel(summary, body, InputSpec())


class Decoder(nn.Module):
    """Embedding, a causal mean of values (so that positions are correlated), a perceptron, a tied head."""

    def __init__(self, vocabulary: int = 13, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.value, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 12), nn.Linear(12, width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        steps = torch.arange(1, ids.shape[1] + 1)[:, None]
        x = x + self.value(x).cumsum(dim=1) / steps
        x = x + self.down(torch.tanh(self.up(x)))
        result: torch.Tensor = self.head(x)
        return result


class Convolutions(nn.Module):
    """One of every convolution that a gradient is formed for, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.grouped = nn.Conv2d(4, 6, 3, padding=2, dilation=2, groups=2)
        self.back = nn.ConvTranspose2d(6, 4, 2, stride=2, bias=False)
        self.line = nn.Conv1d(4, 5, 3, padding=1)
        self.wrapped = nn.Conv1d(5, 5, 3, padding=1, padding_mode="circular")
        self.out = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.back(torch.tanh(self.grouped(torch.tanh(self.first(x))))))
        x = torch.tanh(self.wrapped(torch.tanh(self.line(x.flatten(2)))))
        result: torch.Tensor = self.out(x.mean(dim=2))
        return result


class Recurrent(nn.Module):
    """An LSTM, whose weights no tap sees, and an embedding of the last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.out = nn.Linear(4, 6)
        self.unused = nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.out(self.lstm(x)[0][:, -1])
        return result


def decoder(seed: int = 0) -> NetworkModel:
    torch.manual_seed(seed)
    return model_of(Decoder(), OutputKind.TOKEN_LOGITS)


def convolutions(seed: int = 0) -> NetworkModel:
    torch.manual_seed(seed)
    return model_of(Convolutions(), OutputKind.CLASS_LOGITS)


def recurrent(seed: int = 0) -> NetworkModel:
    torch.manual_seed(seed)
    return model_of(Recurrent(), OutputKind.EMBEDDING)


def tokens(samples: int = 10, length: int = 7, seed: int = 1) -> Rows:
    return Rows(input_ids=torch.randint(0, 13, (samples, length), generator=torch.Generator().manual_seed(seed)))


def images(samples: int = 10, seed: int = 1) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    return Rows(
        inputs=torch.randn(samples, 2, 8, 8, generator=generator),
        labels=torch.randint(0, 3, (samples,), generator=generator),
    )


def sequences(samples: int = 10, seed: int = 1) -> Rows:
    return Rows(inputs=torch.randn(samples, 5, 3, generator=torch.Generator().manual_seed(seed)))


def sample_gradients(
    model: NetworkModel, data: Rows, name: str, batch_size: int, seed: int, draws: int = 1
) -> torch.Tensor:
    """Return each sample's gradients at a weight's matrix by plain autograd on the weight itself, float32.

    The ``draws`` random gradients at the output are those that the workbench draws for the batch.
    """
    from workbench.measurement.gradients import drawn_gradients, sample_generators

    leaf = model.weight(name).clone().requires_grad_()
    view, gradients = model.with_weights({name: leaf}), []
    for number, batch in enumerate(data.batches(batch_size)):
        output = view.run(batch)
        generators = sample_generators(seed, number * batch_size, batch)
        for drawn in drawn_gradients(output, batch, model.summary.output, generators, draws):
            for sample in range(output.shape[0]):
                only = torch.zeros_like(drawn)
                only[sample] = drawn[sample]
                gradients.append(torch.autograd.grad(output, leaf, only, retain_graph=True)[0])
    return torch.stack(gradients)
