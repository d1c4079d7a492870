"""Mixtures of experts in every way in which networks multiply with them, against a plain loop over the experts."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.models.execution.test_uses import IDS, opened
from workbench.measurement.calibrate import Calibration, calibrate
from workbench.measurement.gradients import GradientPass
from workbench.measurement.second_moments import SecondMoments
from workbench.models.execution.network import NetworkModel
from workbench.models.layer import LayerKind
from workbench.models.model import Routed
from workbench.models.summary import OutputKind
from workbench.planning.plan import Plan
from workbench.quantization.quantize import quantize
from workbench.sensitivity.score import score

COUNT, WIDTH, HIDDEN, CHOSEN = 5, 8, 12, 2
STYLES = ("loop", "turned", "gathered", "grouped", "batched", "stacked")


class Experts(nn.Module):
    """Two products for each expert, with the weights stored and multiplied in the way of ``style``."""

    def __init__(self, style: str) -> None:
        super().__init__()
        self.style = style
        up, down = torch.randn(COUNT, HIDDEN, WIDTH) / 3, torch.randn(COUNT, WIDTH, HIDDEN) / 3
        if style in ("turned", "batched"):
            up, down = up.mT.contiguous(), down.mT.contiguous()
        if style == "stacked":
            up, down = up.reshape(-1, WIDTH), down.mT.reshape(-1, WIDTH).contiguous()
        self.up, self.down = nn.Parameter(up), nn.Parameter(down)

    def forward(self, x: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        if self.style in ("gathered", "grouped"):
            return self.sorted_rows(x, chosen, shares)
        if self.style == "batched":  # as Llama 4 does: the module is given no choice, but every expert's share
            dense = chosen
            entering = (x * (dense.T[..., None] > 0)).reshape(COUNT, -1, WIDTH)
            leaving = torch.bmm(torch.tanh(torch.bmm(entering, self.up)), self.down)
            return (leaving * dense.T[..., None]).sum(dim=0)
        result = torch.zeros_like(x)
        for expert in range(COUNT):
            token, place = torch.where(chosen == expert)
            if self.style == "loop":
                out = F.linear(torch.tanh(F.linear(x[token], self.up[expert])), self.down[expert])
            elif self.style == "turned":
                out = torch.tanh(x[token] @ self.up[expert]) @ self.down[expert]
            else:
                up, down = (each.view(COUNT, HIDDEN, WIDTH)[expert] for each in (self.up, self.down))
                out = torch.tanh(x[token].matmul(up.T)).matmul(down)
            result = result.index_add(0, token, out * shares[token, place, None])
        return result

    def sorted_rows(self, x: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        numbers, order = chosen.reshape(-1).sort()
        rows = x[order // chosen.shape[1]]
        if self.style == "gathered":
            out = torch.tanh(torch.bmm(self.up[numbers], rows[..., None]).squeeze(-1))
            out = torch.bmm(self.down[numbers], out[..., None]).squeeze(-1)
        else:
            ends = torch.bincount(numbers, minlength=COUNT).cumsum(0).to(torch.int32)
            out = F.grouped_mm(torch.tanh(F.grouped_mm(rows, self.up.mT, offs=ends)), self.down.mT, offs=ends)
        weighted = out * shares.reshape(-1)[order, None]
        return torch.zeros_like(x).index_add(0, order // chosen.shape[1], weighted)


class Mixture(nn.Module):
    """Token logits of a mixture; ``starved`` is an expert that no token is sent to."""

    def __init__(self, style: str, starved: int = -1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.router = nn.Embedding(13, WIDTH), nn.Linear(WIDTH, COUNT)
        self.experts, self.head = Experts(style), nn.Linear(WIDTH, 13)
        if starved >= 0:
            with torch.no_grad():
                self.router.bias[starved] = -1e3

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(input_ids).reshape(-1, WIDTH)
        shares, chosen = torch.topk(torch.softmax(self.router(x), dim=-1), CHOSEN)
        if self.experts.style == "batched":
            chosen = torch.zeros(len(x), COUNT).scatter(1, chosen, shares)
        x = x + self.experts(x, chosen, shares)
        logits: torch.Tensor = self.head(x).reshape(*input_ids.shape, -1)
        return logits


def mixture(style: str, starved: int = -1) -> NetworkModel:
    return opened(Mixture(style, starved), OutputKind.TOKEN_LOGITS, IDS)


def tokens_of(network: Mixture) -> list[torch.Tensor]:
    """Return what each expert gets of IDS, by a plain loop."""
    x = network.embedding(IDS.tensors["input_ids"]).reshape(-1, WIDTH)
    _, chosen = torch.topk(torch.softmax(network.router(x), dim=-1), CHOSEN)
    return [x[(chosen == expert).any(dim=1)].detach().double() for expert in range(COUNT)]


@cache
def seen(style: str, starved: int = -1, **options: bool) -> tuple[NetworkModel, Calibration]:
    model = mixture(style, starved)
    return model, calibrate(model, IDS, batch_size=64, **options)


@pytest.mark.parametrize("style", STYLES)
def test_every_expert_is_seen_with_its_own_tokens(style: str) -> None:
    model, seen_by = seen(style)
    up, down = (model.summary.by_name[f"experts.{name}"] for name in ("up", "down"))
    assert (up.kind, up.matrix, down.matrix) == (LayerKind.EXPERTS, (COUNT * HIDDEN, WIDTH), (COUNT * WIDTH, HIDDEN))
    assert model.summary.by_name["router"].keep and dict(model.routed) == {up.name: COUNT, down.name: COUNT}
    own, curvature = tokens_of(Mixture(style)), seen_by.curvature[up.name]
    assert curvature.counts is not None and curvature.counts.tolist() == [len(tokens) for tokens in own]
    expected = torch.stack([tokens.square().mean(dim=0) for tokens in own]).numpy()
    np.testing.assert_allclose(curvature.columns, expected, rtol=1e-5)
    assert seen_by.statistics[up.name, "input"].count == WIDTH * sum(map(len, own))
    assert seen_by.statistics[down.name, "output"].maximum > 0


@pytest.mark.parametrize("style", STYLES)
def test_all_ways_of_multiplying_give_one_curvature(style: str) -> None:
    (model, own), (_, loop) = seen(style), seen("loop")
    for name in model.routed:
        np.testing.assert_allclose(own.curvature[name].rows, loop.curvature[name].rows, rtol=2e-4, atol=1e-12)
        np.testing.assert_allclose(own.curvature[name].columns, loop.curvature[name].columns, rtol=2e-4)
        assert torch.equal(model.weight(name), mixture("loop").weight(name))


@pytest.mark.parametrize("style", STYLES)
def test_columns_weigh_as_the_gradients_of_each_expert_s_tokens_say(style: str) -> None:
    """Tokens that the output hardly depends on count as little in a prediction and in GPTQ's moments."""
    model, own = seen(style)
    pairs: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    class Collected:
        def forward(self, *_: object) -> None: ...

        def backward(self, name: str, routed: Routed, x: torch.Tensor, gradient: torch.Tensor) -> None:
            if name == "experts.up":
                pairs.append((routed.numbers, routed.rows(x).double(), routed.rows(gradient).double()))

    for number, batch in enumerate(IDS.batches(64)):
        GradientPass(model).run(batch, 64 * number, 0, lambda *_: None, lambda *_: None, experts=Collected())
    numbers, x, d = (torch.cat(each) for each in zip(*pairs, strict=True))
    known = SecondMoments(model, IDS, own.curvature, batch_size=64)["experts.up"]
    assert known.by_loss is not None and known.full is not None
    for expert in range(COUNT):
        of, squares = x[numbers == expert], d[numbers == expert].square().sum(dim=1)
        moment = torch.einsum("t,ti,tj->ij", squares, of, of)
        moment *= of.square().mean(dim=0).sum() / moment.trace()
        np.testing.assert_allclose(known.full[expert], moment.numpy(), rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(known.weighing[expert], moment.diagonal().numpy(), rtol=1e-3)


def test_the_prediction_is_what_is_measured() -> None:
    model, own = seen("grouped")
    names = list(model.routed)
    options = {"dataset": IDS, "batch_size": 64, "layers": names}
    predicted = score(model, "predicted_kl", ("int6-channel",), curvature=own.curvature, **options)
    measured = score(model, "measured_kl", ("int6-channel",), **options)
    assert measured.score == pytest.approx(predicted.score, rel=0.3)


@pytest.mark.parametrize("style", ("loop", "gathered", "grouped", "stacked"))
def test_all_experts_see_all_tokens_and_the_output_stays(style: str) -> None:
    (model, own), (_, usual) = seen(style, starved=3, all_experts=True), seen(style, starved=3)
    everything, name = IDS.tensors["input_ids"].numel(), "experts.up"
    tokens, before = own.curvature[name].counts, usual.curvature[name].counts
    assert before is not None and before[3] == 0 and before.sum() == CHOSEN * everything
    assert tokens is not None and tokens.tolist() == before.tolist(), "what the router chose stays known"
    assert (own.curvature[name].shown, usual.curvature[name].shown) == (everything, 0)
    x = Mixture(style, 3).embedding(IDS.tensors["input_ids"]).reshape(-1, WIDTH).detach().double()
    np.testing.assert_allclose(own.curvature[name].columns[3], x.square().mean(dim=0), rtol=1e-5)
    energy = [(each.rows.reshape(COUNT, -1) * each.columns.sum(axis=1, keepdims=True)).sum()
              for each in (own.curvature[name], usual.curvature[name])]  # fmt: skip
    assert energy[0] == pytest.approx(energy[1], rel=1e-6)
    assert torch.equal(model.run(next(IDS.batches(8))), model.run(next(IDS.batches(8)), everywhere=True))
    assert any("expert 3 saw 0" in note for note in usual.notes) and not any("expert 3" in note for note in own.notes)


def test_a_mixture_that_is_not_given_the_choice_says_so() -> None:
    _, own = seen("batched", all_experts=True)
    assert any("saw only the tokens that were sent to them" in note for note in own.notes)
    assert not any("--all-experts" in note for note in own.notes), "which was given"


def test_a_network_without_mixtures_says_that_all_experts_change_nothing() -> None:
    network = nn.Sequential(nn.Embedding(13, WIDTH), nn.Linear(WIDTH, 13))
    own = calibrate(opened(network, OutputKind.TOKEN_LOGITS, IDS), IDS, all_experts=True)
    assert any("all experts changed nothing (--all-experts)" in note for note in own.notes)


@pytest.mark.parametrize("all_experts", (False, True))
def test_second_moments_of_each_expert(all_experts: bool) -> None:
    model, own = seen("grouped", starved=1, all_experts=all_experts)
    plain = {name: dataclasses.replace(known, by_loss=None) for name, known in own.curvature.items()}
    full = SecondMoments(model, IDS, plain, batch_size=64)["experts.up"].full
    tokens = tokens_of(Mixture("grouped", 1))
    if all_experts:
        x = Mixture("grouped", 1).embedding(IDS.tensors["input_ids"]).reshape(-1, WIDTH).detach().double()
        tokens = [x] * COUNT
    assert full is not None and full.shape == (COUNT, WIDTH, WIDTH)
    for expert, rows in enumerate(tokens):
        rows = rows if len(rows) else torch.cat(tokens)
        np.testing.assert_allclose(full[expert], (rows.T @ rows / len(rows)).numpy(), rtol=1e-4, atol=1e-5)


def test_gptq_rounds_each_expert_by_its_own_tokens() -> None:
    model, own = seen("loop")
    moments = SecondMoments(model, IDS, own.curvature, batch_size=64)
    table = {
        algorithm: score(model, "measured_kl", ("int3-channel",), dataset=IDS, layers=list(model.routed),
                         algorithm=algorithm, curvature=moments).score.sum()
        for algorithm in ("rtn-clip", "gptq")
    }  # fmt: skip
    assert table["gptq"] < 0.8 * table["rtn-clip"]


def test_inputs_of_experts_are_quantized() -> None:
    model, own = seen("grouped")
    plan = Plan.uniform(tuple(model.summary.by_name[name] for name in model.routed), "int8-channel")
    rules = tuple(
        dataclasses.replace(rule, assignment=dataclasses.replace(rule.assignment, inputs="int4-token"))
        for rule in plan.rules
    )
    batch, plain = next(IDS.batches(8)), quantize(model, plan, curvature=own.curvature).bind(model)
    quantized = quantize(model, dataclasses.replace(plan, rules=rules), curvature=own.curvature).bind(model)
    with torch.no_grad():
        assert not torch.allclose(quantized.run(batch), plain.run(batch), atol=1e-4)
