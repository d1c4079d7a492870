"""Predictions that measurements do not confirm are said to be, and have no interval."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.networks import Decoder, images, model_of, tokens
from workbench.measurement.calibrate import calibrate
from workbench.models.model import Model
from workbench.models.summary import OutputKind
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.sensitivity.checks import small_networks
from workbench.sensitivity.score import score
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("int4-channel", "int6-channel")


def predicted(model: Model, notes: list[str], samples: int = 64) -> Sensitivity:
    data = tokens(samples)
    curvature = calibrate(model, data, batch_size=16).curvature
    return score(model, "predicted_kl", SCHEMES, curvature=curvature, dataset=data, batch_size=16, notes=notes)


def test_losses_beyond_the_second_order_are_said() -> None:
    """Where one answer is certain to 1e-30 or another wins outright, no slope says what rounding costs."""
    torch.manual_seed(0)
    network, notes = Decoder(), list[str]()
    with torch.no_grad():
        network.head.weight *= 40
    model = model_of(network, OutputKind.TOKEN_LOGITS)
    table = predicted(model, notes)
    assert len(notes) == 1 and re.match(r"the predicted losses are about \S+e\+\d+ times what embed", notes[0])
    assert "use the metric measured_kl" in notes[0]
    assert table.error is None or np.isnan(table.error).all()
    whole = plan_totals(model.summary, Plan.uniform(model.summary.layers, "int4-channel"), table)
    assert whole.predicted is not None and whole.error is None


def test_predictions_that_hold_keep_their_intervals() -> None:
    torch.manual_seed(0)
    notes = list[str]()
    table = predicted(model_of(Decoder(), OutputKind.TOKEN_LOGITS), notes)
    assert notes == [] and table.error is not None and np.isfinite(table.error).all()


class Queries(nn.Module):
    """A detector that answers the three places with the highest scores, in their order; (N, 2, 8, 8) -> (N, 3, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.rank, self.out = nn.Conv2d(2, 16, 3, padding=1), nn.Linear(16, 1), nn.Linear(16, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        places = self.body(inputs).flatten(2).mT
        best = self.best(self.rank(places)[..., 0].detach())
        answers: torch.Tensor = self.out(places.gather(1, best[..., None].expand(-1, -1, 16)))
        return 8 * answers

    def best(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.stack([scores.kthvalue(scores.shape[1] - place, dim=1).indices for place in range(3)], dim=1)


class Nearest(nn.Module):
    """Classes by the codes that are nearest to what a network says; (N, 2, 8, 8) -> (N, 5)."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.out = nn.Conv2d(2, 16, 3, padding=1), nn.Linear(16, 5)
        self.codes = nn.Parameter(torch.randn(24, 16))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        places = self.body(inputs).flatten(2).mT
        nearest = self.codes[self.nearest(torch.cdist(places, self.codes[None]))]
        answers: torch.Tensor = self.out((places + (nearest - places).detach()).amax(dim=1))
        return 3 * answers

    def nearest(self, distances: torch.Tensor) -> torch.Tensor:
        return distances.argmin(dim=-1)


class Lowest(Nearest):
    """The same through ``topk``."""

    def nearest(self, distances: torch.Tensor) -> torch.Tensor:
        return distances.topk(1, dim=-1, largest=False).indices[..., 0]


def test_a_model_that_chooses_by_rank_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_networks, "LAYERS", 0)  # all its cells would be measured
    torch.manual_seed(0)
    model, data, notes = model_of(Queries(), OutputKind.EMBEDDING), images(48), list[str]()
    curvature = calibrate(model, data, batch_size=16).curvature
    score(model, "predicted_kl", ("int6-channel",), curvature=curvature, dataset=data, batch_size=16, notes=notes)
    sentence = r"the predicted losses are about 0\.0[3-9]\d* times what body, out cost"
    assert [note for note in notes if re.match(sentence, note)], notes


@pytest.mark.parametrize("kind", [Nearest, Lowest])
def test_choices_of_the_nearest_are_predicted(kind: type[Nearest]) -> None:
    torch.manual_seed(0)
    model, data, notes = model_of(kind(), OutputKind.CLASS_LOGITS), images(192), list[str]()
    tables = [score(model, metric, ("int4-channel",), dataset=data, batch_size=48, notes=notes)
              for metric in ("predicted_kl", "measured_kl")]  # fmt: skip
    ratio = tables[0].of("body", "int4-channel") / tables[1].of("body", "int4-channel")
    assert 0.6 < ratio < 1.6 and not any("the predicted losses are about" in note for note in notes)
