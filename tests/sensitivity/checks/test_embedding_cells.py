"""Coarse cells of embeddings are measured, and the layer's others follow them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.networks import Rows, model_of
from workbench.models.model import Model
from workbench.models.summary import OutputKind
from workbench.sensitivity.checks import small_networks
from workbench.sensitivity.score import score
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("int2-g16-asym", "int3-g16-asym", "int4-g16-asym", "int6-g16-asym", "int8-channel")


@pytest.fixture(autouse=True)
def as_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a network as small as these, all cells would be measured."""
    monkeypatch.setattr(small_networks, "LAYERS", 0)


class Sentences(nn.Module):
    """The mean of words, of which those near 1/3 count: two bits move many there; (N, T) -> (N, 16)."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.inner, self.out = nn.Embedding(64, 32), nn.Linear(32, 32), nn.Linear(32, 16)
        nn.init.uniform_(self.words.weight, -1, 1)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        near = torch.exp(-(3 * self.words(input_ids) - 1).square())
        return self.out(self.inner(near).mean(dim=1))


def sentences() -> tuple[Model, Rows]:
    torch.manual_seed(0)
    model = model_of(Sentences(), OutputKind.EMBEDDING)
    return model, Rows(input_ids=torch.randint(64, (192, 24), generator=torch.Generator().manual_seed(1)))


def table_of(metric: str, schemes: Sequence[str], previous: Sensitivity | None = None) -> Sensitivity:
    model, data = sentences()
    return score(model, metric, schemes, dataset=data, batch_size=32, previous=previous)


def test_an_embedding_costs_what_its_measured_cells_say() -> None:
    predicted, measured = table_of("predicted_kl", SCHEMES), table_of("measured_kl", SCHEMES)
    row, truth = predicted.score[predicted.row["words"]], measured.score[measured.row["words"]]
    plain = predicted.as_predicted().score[predicted.row["words"]]
    assert truth[0] > 1.4 * plain[0], "a network of the second order shows nothing"
    np.testing.assert_allclose(np.log(row / truth)[:2], 0.0, atol=0.15)
    assert row[-1] == plain[-1], "fine cells are of the second order"
    others = [predicted.row["inner"], predicted.row["out"]]
    np.testing.assert_array_equal(predicted.score[others], predicted.as_predicted().score[others])


def test_more_schemes_start_from_what_was_predicted() -> None:
    """Cells that are there already are not corrected twice."""
    first = table_of("predicted_kl", SCHEMES[:2])
    more = table_of("predicted_kl", SCHEMES[:3], previous=first)
    whole = table_of("predicted_kl", SCHEMES[:3])
    np.testing.assert_array_equal(more.score, whole.score)
    assert first.uncorrected is not None
