"""Networks that nobody has seen: a few samples choose between the Kronecker and the directional form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.networks import Rows, model_of
from tests.zoo.architectures import save
from workbench.measurement.calibrate import calibrate
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind
from workbench.sensitivity import predicted
from workbench.sensitivity.score import score

SCHEMES = ("int4-channel", "int5-channel", "int6-channel", "int8-channel")


class Summarized(nn.Module):
    """Tokens that all see one mean of positive numbers, to which one layer is applied."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.own, self.mean = nn.Embedding(30, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.head = nn.Linear(16, 30)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        seen = self.mean(torch.relu(3 * x)).mean(dim=1, keepdim=True)
        result: torch.Tensor = self.head(torch.tanh(self.own(x)) + 2 * torch.tanh(seen))
        return result


def ratios(kind: str) -> tuple[np.ndarray, frozenset[str]]:
    """Return predicted over measured losses of ``mean``, and the layers of the directional form."""
    torch.manual_seed(2)
    model, data = model_of(Summarized(), OutputKind.TOKEN_LOGITS), Rows(input_ids=torch.randint(0, 30, (256, 8)))
    model.summary = replace(model.summary, source=replace(model.summary.source, kind=kind))
    curvature = calibrate(model, data, batch_size=64).curvature
    table = score(model, "predicted_kl", SCHEMES, curvature=curvature, dataset=data, batch_size=64)
    measured = score(model, "measured_kl", SCHEMES, dataset=data, batch_size=64, layers=["mean"])
    found = np.array([table.of("mean", scheme) / measured.of("mean", scheme) for scheme in SCHEMES])
    return found, frozenset(() if table.directions is None else table.directions.layers)


def test_a_few_samples_choose_the_form_of_unknown_networks() -> None:
    found, directional = ratios("python_module")
    assert "mean" in directional and "head" not in directional
    assert ((found > 0.7) & (found < 1.4)).all(), found
    others, none = ratios("huggingface")
    assert not none and not ((others > 0.7) & (others < 1.4)).all(), others


def test_more_schemes_of_a_layer_get_its_form(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    model, data = model_of(Summarized(), OutputKind.TOKEN_LOGITS), Rows(input_ids=torch.randint(0, 30, (256, 8)))
    model.summary = replace(model.summary, source=replace(model.summary.source, kind="python_module"))
    curvature = calibrate(model, data, batch_size=64).curvature
    first = score(model, "predicted_kl", SCHEMES[:3], curvature=curvature, dataset=data, batch_size=64)
    monkeypatch.setattr(predicted, "FORMS_APART", 1e9)
    more = score(model, "predicted_kl", SCHEMES, curvature=curvature, dataset=data, batch_size=64, previous=first)
    assert more.directions is not None and more.directions.has("mean", SCHEMES[3])
    assert not more.directions.has("head", SCHEMES[3])


def test_layers_that_run_without_gradients_are_scored(tmp_path: Path) -> None:
    """Reformer's reversible blocks run without gradients, so that a calibration sees none at their layers."""
    save(tmp_path / "reformer", "ReformerModelWithLMHead")
    model = open_model(tmp_path / "reformer")
    batch = model.sample(16)
    assert batch is not None
    data, name = Rows(**batch), "reformer.encoder.layers.0.feed_forward.dense.dense"
    table = score(model, "predicted_kl", ["int3-channel"], curvature={}, dataset=data, batch_size=8, layers=[name])
    measured = score(model, "measured_kl", ["int3-channel"], dataset=data, batch_size=8, layers=[name])
    assert table.of(name, "int3-channel") == pytest.approx(measured.of(name, "int3-channel"), rel=0.3)
