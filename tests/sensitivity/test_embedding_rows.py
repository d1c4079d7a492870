"""Rows that data look up, and losses that count these rows only."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.models.networks import Rows, decoder, model_of, sample_gradients, tokens
from workbench.models.summary import OutputKind
from workbench.numerics.rounding.round_weight import round_weight
from workbench.sensitivity.directional_losses import DRAWS
from workbench.sensitivity.embedding_rows import looked_up
from workbench.sensitivity.score import score

SCHEMES = ("int4-g8", "int3-channel", "int4-tensor")


class Encoder(nn.Module):
    """Words and positions (whose ids all samples share), a perceptron, the mean over the positions."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(40, 16), nn.Embedding(9, 16)
        self.up, self.down = nn.Linear(16, 24), nn.Linear(24, 16)
        self.runs: list[str] = []

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1])[None])
        self.runs.append("behind the embeddings")
        return (x + self.down(torch.relu(self.up(x)))).mean(dim=1)


class Narrow(Encoder):
    """Takes the positions out of their batch of one, so that they cannot be repeated."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1])[None]).view(ids.shape[1], 16)
        return (x + self.down(torch.relu(self.up(x)))).mean(dim=1)


def encoder(kind: type[Encoder] = Encoder):
    torch.manual_seed(0)
    return model_of(kind(), OutputKind.EMBEDDING)


def some_words() -> Rows:
    return Rows(input_ids=torch.randint(5, 30, (10, 6), generator=torch.Generator().manual_seed(3)))


def test_the_rows_are_those_of_the_data_and_the_pass_ends_behind_the_last_embedding():
    model, data = encoder(), some_words()
    rows = looked_up(model, data, [layer.name for layer in model.summary.layers], 4)
    assert rows.keys() == {"words", "positions"}
    assert rows["words"].tolist() == data.tensors["input_ids"].unique().tolist()
    assert rows["positions"].tolist() == [*range(6)]
    assert not model.body.network.runs


def test_an_embedding_that_is_the_head_too_is_left_out():
    assert looked_up(decoder(), tokens(), ["embed", "head", "up"], 4) == {}


@pytest.mark.parametrize("kind", [Encoder, Narrow])
def test_losses_are_those_of_each_samples_gradient_at_the_whole_table(kind):
    model, data = encoder(kind), some_words()
    table = score(model, "predicted_kl", SCHEMES, curvature={}, dataset=data, batch_size=4, seed=3).as_predicted()
    for name in table.layers:
        gradients = sample_gradients(model, data, name, 4, 3, DRAWS).double()
        for scheme in SCHEMES:
            values = round_weight(name, model.weight(name), scheme, table.algorithm).values
            products = (gradients * (values - model.weight(name)).double()).sum(dim=(1, 2))
            expected = 0.5 * float(products.square().sum()) / len(data) / DRAWS
            assert table.of(name, scheme) == pytest.approx(expected, rel=2e-3), (name, scheme)
