"""A few whole plans are measured when a table is scored, and say what others cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.networks import Rows, convolutions, images, model_of, tokens
from workbench import memory
from workbench.measurement.calibrate import calibrate
from workbench.measurement.evaluate import evaluate
from workbench.models.data.even_samples import EvenSamples
from workbench.models.model import Model
from workbench.models.summary import OutputKind, quantizable
from workbench.planning.budgets import Budgets
from workbench.planning.plan import Plan
from workbench.planning.search.search import search
from workbench.planning.totals import plan_totals
from workbench.quantization.quantize import quantize
from workbench.sensitivity.checks import measured_losses, measured_parts
from workbench.sensitivity.checks.measured_losses import samples_measured
from workbench.sensitivity.metrics.refined import refined_table
from workbench.sensitivity.score import score
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("int2-g32", "int3-g32", "int4-g32", "int5-g32", "int6-g32", "int8-channel")


class Residual(nn.Module):
    """Blocks whose errors add up over a depth; (N, T) -> (N, T, 16)."""

    def __init__(self, strength: float, blocks: int = 4, width: int = 64) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(16, width), nn.Linear(width, 16)
        self.up = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.down = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        with torch.no_grad():
            self.head.weight *= strength

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        states = self.embed(input_ids)
        for up, down in zip(self.up, self.down, strict=True):
            states = states + 2 * down(torch.tanh(up(states.cumsum(1) / 2)))
        return self.head(states)


def sure(strength: float = 12.0) -> Model:
    """A decoder whose answers are so sure that coarse plans leave the second order."""
    torch.manual_seed(0)
    return model_of(Residual(strength), OutputKind.TOKEN_LOGITS)


def scored(
    model: Model, data: Rows, schemes: Sequence[str] = SCHEMES, previous: Sensitivity | None = None
) -> Sensitivity:
    curvature = calibrate(model, data, batch_size=16).curvature
    return score(
        model, "predicted_kl", schemes, curvature=curvature, dataset=data, batch_size=16, previous=previous
    )  # fmt: skip


def test_measuring_plans_has_its_share_of_the_progress() -> None:
    model, data, seen = sure(), tokens(64), list[tuple[float, str]]()
    score(
        model, "predicted_kl", SCHEMES, curvature=calibrate(model, data, batch_size=16).curvature, dataset=data,
        batch_size=16, progress=lambda fraction, text, partial=None: seen.append((fraction, text)),
    )  # fmt: skip
    plans = [fraction for fraction, text in seen if text.startswith("checking the prediction")]
    assert plans == sorted(plans)
    first = [fraction for fraction, text in seen if text.startswith("checking the prediction, plan 1 of")]
    assert len(set(first)) > 4, "layers that are rounded and batches that run tell that it goes on"
    assert all(fraction < 1 for fraction, text in seen if text.startswith(("measuring", "checking")))
    assert max(plans) < 1 == seen[-1][0] and [each for each, _ in seen] == sorted(each for each, _ in seen)


def test_coarse_plans_are_predicted_where_the_second_order_is_not_enough() -> None:
    """On other data; plans of other sizes than those that were measured, and uniform ones."""
    model = sure()
    table, held_out = scored(model, tokens(128)), tokens(64, seed=5)
    layers = quantizable(model.summary.layers)
    plans = [Plan.uniform(layers, scheme) for scheme in SCHEMES[:4]]
    plans += [search(model.summary, table, base=Plan(), budgets=Budgets(bits_per_weight=bits)) for bits in (3.6, 4.4)]
    ratios, plain = [], []
    for plan in plans:
        sums = plan_totals(model.summary, plan, table)
        loss = evaluate(model, quantize(model, plan).bind(model), held_out)["kl"].value
        ratios.append(sums.predicted / loss)
        plain.append(sums.second_order / loss)
    assert min(ratios) > 0.75 and max(ratios) < 1.33
    assert min(plain) < 0.75 or max(plain) > 1.33, "a model that the second order predicts shows nothing"


def test_tables_that_are_extended_or_refined() -> None:
    model, data = sure(), tokens(128)
    table = scored(model, data, SCHEMES[:3])
    assert table.checks is not None
    assert scored(model, data, SCHEMES[:3], previous=table).checks is table.checks, "nothing new to measure"
    more = scored(model, data, SCHEMES, previous=table)
    assert more.checks is not None and more.checks.predicted[0] < table.checks.predicted[0], "finer plans"
    measured = replace(table, metric="measured_kl", score=2 * table.score)
    assert refined_table(table, measured).checks is None


def test_too_few_samples_or_too_little_memory_measure_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = sure()
    few = scored(model, tokens(7))
    assert few.checks is None and few.doubt(0.5) > 0.5 and "evaluate or audit" in few.remark(0.5)
    monkeypatch.setattr(measured_parts, "available_memory", lambda: 1000)
    assert scored(model, tokens(32)).checks is None


def test_plans_in_files_cost_what_plans_in_memory_do(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = sure(), tokens(64)
    expected = scored(model, data, SCHEMES[:3]).checks
    left: list[str] = []
    leave = measured_losses.InFiles.leave
    monkeypatch.setattr(measured_losses.InFiles, "leave", lambda files, name: (left.append(name), leave(files, name)))
    monkeypatch.setattr(memory, "HELD", 0)
    monkeypatch.setattr(memory, "SPILLED", 0)
    checks = scored(model, data, SCHEMES[:3]).checks
    assert expected is not None and checks is not None
    np.testing.assert_array_equal(checks.measured, expected.measured)
    assert any("up.0" in name for name in left), "a layer leaves the memory after it has run"


def test_convolutions_with_their_interaction() -> None:
    """Plans are predicted by slopes there; what a measured plan was predicted at is what its totals say."""
    model, data = convolutions(), images(64)
    table = score(model, "predicted_kl", ("int3-channel", "int4-channel", "int8-channel"), dataset=data, batch_size=32)
    assert table.checks is not None and table.directions is not None
    layers = [layer for layer in model.summary.layers if not layer.keep]
    plan = Plan.uniform(layers, "int3-channel")
    assert table.checks.predicted[-1] == pytest.approx(
        plan_totals(model.summary, plan, replace(table, checks=None)).predicted, rel=1e-6
    )


def test_pictures_are_measured_on_more() -> None:
    """Of 40 pictures a loss scatters by a quarter and says nothing; the losses of a window's tokens average out."""
    counts = [samples_measured(count, OutputKind.CLASS_LOGITS) for count in (7, 40, 160, 800, 5000)]
    assert counts == [0, 40, 128, 200, 256]
    assert [samples_measured(count, OutputKind.EMBEDDING) for count in (80, 250)] == [40, 62]


@pytest.mark.parametrize(
    ("count", "measured"), [(7, 0), (8, 8), (32, 8), (80, 20), (250, 62), (1000, 250), (5000, 256)]
)
def test_samples_are_spread_evenly(count: int, measured: int) -> None:
    assert samples_measured(count, OutputKind.TOKEN_LOGITS) == measured
    if not measured:
        return
    data = Rows(input_ids=torch.arange(count)[:, None])
    part = EvenSamples(data, measured)
    chosen = torch.cat([batch["input_ids"] for batch in part.batches(6)])[:, 0]
    steps = chosen.diff()
    assert len(chosen) == measured and chosen[0] == 0 and steps.max() - steps.min() <= 1
    whole = list(EvenSamples(data, measured, 6).batches(6))
    assert all(len(batch["input_ids"]) == min(6, count) for batch in whole[:-1])
