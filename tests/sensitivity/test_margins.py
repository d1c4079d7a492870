"""A detector that chooses its queries by rank: what rounding costs through the choice, and objects that are found."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.models.networks import Rows, model_of
from workbench.errors import DataError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.execution.network import NetworkModel
from workbench.models.summary import OutputKind
from workbench.sensitivity.score import score


class Proposing(nn.Module):
    """A detector that lists its best proposals, from which its training lets no gradient flow back."""

    def __init__(self, places: int = 12, chosen: int = 4) -> None:
        super().__init__()
        self.encoder, self.scores, self.boxes = nn.Linear(8, 16), nn.Linear(16, 3), nn.Linear(16, 4)
        self.decoder, self.chosen = nn.Linear(16, 16), chosen

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        memory = torch.tanh(2 * self.encoder(pictures))
        best = self.scores(memory).amax(dim=-1).topk(self.chosen, dim=1).indices
        queries = memory.gather(1, best.unsqueeze(-1).expand(-1, -1, 16)).detach()
        hidden = queries + torch.tanh(self.decoder(queries))
        return torch.cat([3 * self.scores(hidden), self.boxes(hidden).sigmoid()], dim=-1)


def proposing() -> tuple[NetworkModel, Rows]:
    torch.manual_seed(0)
    return model_of(Proposing(), OutputKind.DETECTIONS), Rows(inputs=torch.randn(400, 12, 8))


@pytest.mark.parametrize("scheme", ["int4-channel", "int6-channel"])
def test_what_a_detector_loses_is_predicted_through_its_choice_and_its_stopped_gradients(scheme: str) -> None:
    model, data = proposing()
    curvature = calibrate(model, data, batch_size=50).curvature
    predicted = score(model, "predicted_kl", (scheme,), curvature=curvature, dataset=data, batch_size=50)
    measured = score(model, "measured_kl", (scheme,), dataset=data, batch_size=50)
    for name in predicted.layers:
        assert predicted.of(name, scheme) == pytest.approx(measured.of(name, scheme), rel=0.45), name
    assert predicted.rerouting_of("encoder", scheme) > 0
    assert predicted.rerouting_of("boxes", scheme) == 0


def test_an_evaluation_says_how_many_objects_are_found() -> None:
    model, data = proposing()
    weight = model.weight("decoder")
    figures = evaluate(model, model.with_weights({"decoder": weight + 0.01 * torch.randn_like(weight)}), data)
    assert set(figures) == {"kl", "objects_found"}
    assert 90 < figures["objects_found"].value <= 100 == figures["objects_found"].baseline
    with torch.no_grad():
        model.body.network.scores.bias.sub_(50)  # nothing is as likely as a half
    notes = list[str]()
    assert set(evaluate(model, model, data, notes=notes)) == {"kl"}
    assert any("no figure for Objects found: the floating-point model answers nothing" in note for note in notes)


def test_a_plan_that_changes_nothing_finds_all_objects() -> None:
    model, data = proposing()
    same = evaluate(model, model, data)
    assert (same["kl"].value, same["objects_found"].value) == (0, 100)


def test_outputs_that_are_no_objects_are_refused() -> None:
    model = model_of(nn.Linear(8, 4), OutputKind.DETECTIONS)
    with pytest.raises(DataError, match=r"returned \(5, 12, 4\), detections are samples x objects x"):
        model.run({"inputs": torch.randn(5, 12, 8)})
