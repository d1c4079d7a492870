"""What sending tokens to other experts costs, against the measured loss of single layers and of whole plans."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from tests.measurement.test_experts import Mixture
from tests.models.execution.test_uses import IDS, opened
from tests.models.networks import Rows
from workbench.errors import CancelledError
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.execution.network import NetworkModel
from workbench.models.summary import OutputKind
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import totals
from workbench.quantization.quantize import quantize
from workbench.sensitivity.choices import Choices
from workbench.sensitivity.score import score
from workbench.sensitivity.table import Sensitivity

SCHEME = "int4-channel"


class Mixed(Mixture):
    """A mixture whose experts differ a lot behind a layer that nothing but rounding disturbs."""

    def __init__(self) -> None:
        super().__init__("loop")
        self.before, self.middle = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        with torch.no_grad():
            self.experts.up.mul_(3)
            self.experts.down.mul_(2)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(input_ids)
        x = self.middle(torch.tanh(self.before(x + x.cumsum(dim=1)))).reshape(-1, 8)
        shares, chosen = self.choice(torch.softmax(self.router(x), dim=-1))
        logits: torch.Tensor = self.head(x + self.experts(x, chosen, shares)).reshape(*input_ids.shape, -1)
        return logits

    def choice(self, shares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        best = torch.topk(shares, 2)
        return best.values, best.indices


class Single(Mixed):
    """Every token goes to the one best expert, as in Switch Transformers."""

    def choice(self, shares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = torch.argmax(shares, dim=-1, keepdim=True)
        return torch.max(shares, dim=-1).values.unsqueeze(-1), chosen


class Masked(Mixed):
    """The first token of each sample has two experts to choose from, so that no margin is finite there."""

    def choice(self, shares: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first = torch.arange(len(shares)) % IDS.tensors["input_ids"].shape[1] == 0
        closed = first[:, None] & (torch.arange(shares.shape[1]) >= 2)
        best = torch.topk(shares.log().masked_fill(closed, -torch.inf), 2)
        return best.values.exp(), best.indices


class Twice(Mixed):
    """A layer is called twice with the tokens of all samples in one row, so that no tap tells the samples apart."""

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(input_ids)
        x = torch.tanh(self.before((x + x.cumsum(dim=1)).reshape(-1, 8)))
        x = self.middle(torch.tanh(2 * self.before(x)))
        shares, chosen = self.choice(torch.softmax(self.router(x), dim=-1))
        logits: torch.Tensor = self.head(x + self.experts(x, chosen, shares)).reshape(*input_ids.shape, -1)
        return logits


@cache
def scored(network: type[Mixed] = Mixed) -> tuple[NetworkModel, Sensitivity, Sensitivity]:
    model = opened(network(), OutputKind.TOKEN_LOGITS, IDS)
    curvature = calibrate(model, IDS, batch_size=64).curvature
    layers = ["before", "middle", "head", *model.routed]
    predicted = score(model, "predicted_kl", (SCHEME,), curvature=curvature, dataset=IDS, batch_size=64, layers=layers)
    return model, predicted, score(model, "measured_kl", (SCHEME,), dataset=IDS, batch_size=64, layers=layers)


@pytest.mark.parametrize("network", [Mixed, Single, Masked, Twice])
def test_layers_before_a_router_pay_for_what_they_send_elsewhere(network: type[Mixed]) -> None:
    _, predicted, measured = scored(network)
    assert predicted.rerouting is not None
    for name in ("before", "middle"):
        own, part = measured.of(name, SCHEME), predicted.rerouting_of(name, SCHEME)
        assert part > 0.2 * own and 0.6 < predicted.of(name, SCHEME) / own < 1.6
        assert (predicted.of(name, SCHEME) - part) / own < 0.8
    assert predicted.rerouting_of("head", SCHEME) == 0


def test_every_pass_for_a_router_is_reported_and_can_be_cancelled() -> None:
    model = opened(Mixed(), OutputKind.TOKEN_LOGITS, IDS)
    curvature = calibrate(model, IDS, batch_size=64).curvature
    seen: list[tuple[float, str]] = []
    score(model, "predicted_kl", (SCHEME,), curvature=curvature, dataset=IDS, batch_size=64,
          progress=lambda fraction, text, partial=None: seen.append((fraction, text)))  # fmt: skip
    routers = [fraction for fraction, text in seen if ", batch" in text]
    assert len(set(routers)) == len(routers) > 2 and routers == sorted(routers) and 0 < routers[-1] < 0.5
    assert seen[-1][0] == 1.0

    def cancel(fraction: float, text: str, partial: object = None) -> None:
        if "sent elsewhere" in text:
            raise CancelledError("enough")

    batch = next(IDS.batches(2))
    before = model.run(batch)
    with pytest.raises(CancelledError, match="enough"):
        score(model, "predicted_kl", (SCHEME,), curvature=curvature, dataset=IDS, batch_size=64, progress=cancel)
    assert torch.equal(model.run(batch), before)


def test_rerouting_of_a_plan_adds_up_in_squares() -> None:
    model, predicted, _ = scored()
    layers = tuple(model.summary.by_name[name] for name in predicted.layers)
    plan = Plan.uniform(layers, SCHEME)
    assignments = resolve(plan, model.summary.layers)
    whole = totals(model.summary, assignments, predicted).predicted
    assert predicted.rerouting is not None and whole is not None
    parts = predicted.rerouting[:, 0]
    expected = (predicted.score[:, 0] - parts).sum() + np.sqrt((parts**2).sum())
    assert whole == pytest.approx(expected + 0.0, rel=0.05)
    loss = evaluate(model, quantize(model, plan).bind(model), IDS, batch_size=64)["kl"].value
    assert whole == pytest.approx(loss, rel=0.4)


def test_few_tokens_that_change_sides_leave_a_loss_unsure() -> None:
    """How many there are is a matter of chance: the error is that of losses measured on other draws of the data."""
    model, scheme, layers = scored()[0], "int6-channel", ["before"]
    curvature = calibrate(model, IDS, batch_size=64).curvature
    table = score(model, "predicted_kl", (scheme,), curvature=curvature, dataset=IDS, batch_size=64, layers=layers)
    others = [torch.randint(0, 13, (256, 5), generator=torch.Generator().manual_seed(seed)) for seed in range(50, 66)]
    measured = [
        score(model, "measured_kl", (scheme,), dataset=Rows(input_ids=ids), batch_size=64, layers=layers)
        for ids in others
    ]
    losses = np.array([each.of("before", scheme) for each in measured])
    assert 0.5 < table.error_of("before", scheme) / losses.std(ddof=1) < 1.5
    assert table.scatter_of("before", scheme) < 0.3 * losses.std(ddof=1)
    assignments = resolve(Plan.uniform((model.summary.by_name["before"],), scheme), model.summary.layers)
    whole = totals(model.summary, assignments, table)
    assert whole.error is not None and whole.predicted == pytest.approx(table.of("before", scheme), rel=0.05)
    assert whole.error > 0.9 * table.error_of("before", scheme)


def test_a_table_that_goes_on_keeps_the_parts() -> None:
    model, predicted, _ = scored()
    again = score(
        model, "predicted_kl", (SCHEME,), dataset=IDS, batch_size=64, layers=predicted.layers, previous=predicted,
        curvature={},
    )  # fmt: skip
    assert again.rerouting is not None and predicted.rerouting is not None
    assert again.one_token == predicted.one_token > 0
    assert np.array_equal(again.rerouting, predicted.rerouting) and np.array_equal(again.score, predicted.score)


def test_a_token_goes_to_the_next_best_expert() -> None:
    scores = torch.tensor([[0.1, 0.5, 0.4], [3.0, 1.0, 2.0]])
    with Choices(0, torch.tensor([0])) as rankings:
        chosen = torch.topk(scores, 2)
    assert sorted(chosen.indices[0].tolist()) == [0, 1] and sorted(chosen.indices[1].tolist()) == [0, 2]
    assert chosen.values[0].tolist() == pytest.approx([0.5, 0.1])
    assert rankings.margins[0].tolist() == pytest.approx([0.3, 1.0])


def test_a_token_with_one_expert_goes_to_the_second() -> None:
    scores = torch.tensor([[0.1, 0.5, 0.4], [3.0, 1.0, 2.0]])
    with Choices(0, torch.tensor([0])) as rankings:
        chosen, shares = torch.argmax(scores, dim=-1), torch.max(scores, dim=-1)
        assert torch.max(scores) == 3 and torch.argmax(scores) == 3  # of all scores: no ranking
    assert chosen.tolist() == shares.indices.tolist() == [2, 0]
    assert shares.values.tolist() == pytest.approx([0.4, 3.0])
    assert len(rankings.margins) == 1 and rankings.margins[0].tolist() == pytest.approx([0.1, 1.0])


class Sparse(torch.nn.Module):
    """Classes by one of 16 experts, and then by one of 8: rounding a first expert moves the few samples that it got."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.head = torch.nn.Linear(8, 16), torch.nn.Linear(8, 8), torch.nn.Linear(8, 5)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(16))
        self.others = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(8))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = torch.stack([expert(inputs) for expert in self.experts], dim=1)
        x = 3 * x[torch.arange(len(x)), self.first(inputs).argmax(dim=-1)]
        y = torch.stack([torch.tanh(3 * expert(x)) for expert in self.others], dim=1)
        logits: torch.Tensor = self.head(3 * y[torch.arange(len(x)), self.second(x).argmax(dim=-1)])
        return logits


def test_an_expert_moves_only_the_samples_that_it_got() -> None:
    """In the mean square its noise is that of all samples, and would be taken to send four times too many elsewhere."""
    data = Rows(inputs=torch.randn(4096, 8, generator=torch.Generator().manual_seed(4)))
    model = opened(Sparse(), OutputKind.CLASS_LOGITS, data)
    names = [f"experts.{number}" for number in range(16)]
    predicted, measured = (
        score(model, metric, ("int6-channel",), dataset=data, batch_size=512, layers=names)
        for metric in ("predicted_kl", "measured_kl")
    )
    assert predicted.rerouting is not None and predicted.rerouting.sum() > 0.5 * measured.score.sum()
    assert predicted.score.sum() == pytest.approx(measured.score.sum(), rel=0.4)
