"""A model that gives NaN on some samples: measurements leave those batches out, say so, and are right on the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.networks import Rows, model_of
from workbench.errors import DataError
from workbench.measurement.evaluate import evaluate
from workbench.measurement.finite_batches import FiniteBatches, first_non_finite
from workbench.measurement.most_changed import MostChanged
from workbench.models.execution.network import NetworkModel
from workbench.models.summary import OutputKind
from workbench.planning.plan import Plan
from workbench.quantization.quantize import quantize
from workbench.sensitivity.audit import Audit, audit_weights
from workbench.sensitivity.error_budget import measured_budget, noise_gains
from workbench.sensitivity.score import score

WARNING = "batch 2 was left out: the output of first holds NaN or infinite values"


class Overflowing(nn.Linear):
    """A layer whose output is NaN where its first feature is above 100."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x[:, :1] > 100, torch.nan, super().forward(x))


class Spoiled(nn.Module):
    """Samples whose first feature is above 100 become NaN in the first layer; the unused one never runs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.unused = Overflowing(4, 6), nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)))


@pytest.fixture
def model() -> NetworkModel:
    torch.manual_seed(0)
    return model_of(Spoiled(), OutputKind.CLASS_LOGITS)


def rows(*spoiled: int) -> Rows:
    x = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
    x[list(spoiled), 0] = 1000.0
    return Rows(inputs=x)


class Without(Rows):
    """The same rows without some batches of four."""

    def __init__(self, data: Rows, *left: int) -> None:
        super().__init__(**data.tensors)
        object.__setattr__(self, "left", left)

    def batches(self, batch_size: int) -> Iterator[Mapping[str, torch.Tensor]]:
        return (item for number, item in enumerate(super().batches(batch_size)) if number not in self.left)


def test_the_place_is_named_once(model: NetworkModel) -> None:
    data, finite = rows(5), FiniteBatches(model=model)
    assert first_non_finite(model, data.tensors) == "the output of first"
    ran: list[int] = []

    def run(number: int, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        ran.append(number)
        return model.run(batch)

    for _ in range(2):
        assert [number for number, _, _ in finite.of(data, 4, run)] == [0, 2]
    assert finite.notes == [WARNING] and ran == [0, 1, 2, 0, 2]


@pytest.mark.parametrize("metric", ["measured_kl", "output_error"])
def test_scores_are_those_of_the_other_batches(model: NetworkModel, metric: str) -> None:
    notes: list[str] = []
    layers, schemes = ["first", "second"], ("int4-channel", "int8-channel")
    result = score(model, metric, schemes, dataset=rows(5), layers=layers, batch_size=4, notes=notes)
    rest = score(model, metric, schemes, dataset=Without(rows(5), 1), layers=layers, batch_size=4)
    assert np.array_equal(result.score, rest.score) and np.isfinite(rest.score).all()
    assert notes[0] == WARNING


@pytest.mark.parametrize("metric", ["measured_kl", "predicted_kl"])
def test_so_are_those_of_inputs(model: NetworkModel, metric: str) -> None:
    notes: list[str] = []
    arguments = {"dataset": rows(5), "layers": ["second"], "batch_size": 4, "notes": notes}
    result = score(model, f"{metric}_inputs", ["int4-token"], **arguments)
    assert notes == [WARNING] and result.of("second", "int4-token") > 0


def test_an_audit_leaves_out_batches_and_layers_that_nothing_reaches(model: NetworkModel) -> None:
    weights = {name: model.weight(name) * 1.1 for name in ("first", "second", "unused")}
    predicted = {"first": 0.1, "second": 0.2, "unused": float("nan")}
    result = audit_weights(model, weights, rows(5), predicted=predicted, batch_size=4)
    rest = audit_weights(model, weights, Without(rows(5), 1), predicted=predicted, batch_size=4)
    assert result.whole == rest.whole and np.array_equal(result.alone, rest.alone, equal_nan=True)
    assert result.notes[0] == WARNING and "never reached the layer unused" in result.notes[1]
    assert np.isnan(result.alone[2]) and result.alone_sum == result.alone[:2].sum() > 0
    assert result.predicted_sum == pytest.approx(0.3) and "nan" not in result.sentence("nats")
    assert result.most_interacting(3)[-1] == "unused"


def test_a_prediction_that_lacks_a_cell_is_not_known() -> None:
    two = np.array([0.1, 0.2])
    result = Audit(layers=("a", "b"), predicted=np.array([0.1, np.nan]), alone=two, joined=two, whole=0.3, samples=1)
    assert "predicted not known" in result.sentence("nats") and np.isnan(result.correction)


def test_an_evaluation_goes_on_without_the_batch(model: NetworkModel) -> None:
    notes: list[str] = []
    bound = quantize(model, Plan().assign(["second"], weights="int4-channel")).bind(model)
    changed = MostChanged()
    result = evaluate(model, bound, rows(5), batch_size=4, most_changed=changed, notes=notes)
    assert {item.sample for item in changed.units()} == {0, 1, 2, 3, 8, 9, 10, 11}
    rest = evaluate(model, bound, Without(rows(5), 1), batch_size=4)
    assert result["kl"].value == rest["kl"].value > 0 and result["kl"].samples == 8
    assert notes[0] == WARNING and "rows has no labels" in notes[1]


def test_an_error_budget_goes_on_too(model: NetworkModel) -> None:
    notes: list[str] = []
    bound = quantize(model, Plan().assign(["second"], weights="int4-channel")).bind(model)
    gains = noise_gains(model, rows(5), batch_size=4, notes=notes)
    assert np.array_equal(gains.gain, noise_gains(model, Without(rows(5), 1), batch_size=4).gain)
    measured = measured_budget(model, bound, rows(5), batch_size=4, notes=notes)
    assert np.isfinite(measured.noise).all() and measured.noise[-1] > 0 and notes == [WARNING, WARNING]


def test_data_of_which_nothing_is_left_are_refused(model: NetworkModel) -> None:
    bad, named = rows(1, 5, 9), "no batch of rows ran without NaN or infinity: batch 3"
    bound = quantize(model, Plan()).bind(model)
    with pytest.raises(DataError, match=named):
        score(model, "measured_kl", ["int4-channel"], dataset=bad, batch_size=4)
    with pytest.raises(DataError, match=named):
        score(model, "predicted_kl_inputs", ["int4-token"], dataset=bad, batch_size=4)
    with pytest.raises(DataError, match=named):
        evaluate(model, bound, bad, batch_size=4)
    with pytest.raises(DataError, match=named):
        measured_budget(model, bound, bad, batch_size=4)
    with pytest.raises(DataError, match=named):
        noise_gains(model, bad, batch_size=4)
