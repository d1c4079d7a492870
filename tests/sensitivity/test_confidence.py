"""Intervals of predictions: against the scatter of tables from other samples, and the sentence that users read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.models.networks import convolutions, images
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.sensitivity.confidence import coarseness, higher_orders, interval, resolution
from workbench.sensitivity.score import score


def test_the_standard_error_is_the_scatter_of_tables_from_other_samples() -> None:
    model = convolutions()
    plan = Plan.uniform(model.summary.layers, "int4-channel")
    sums = []
    for seed in range(12):
        table = score(model, "predicted_kl", ("int4-channel",), dataset=images(60, seed), batch_size=30, seed=seed)
        sums.append(plan_totals(model.summary, plan, replace(table, checks=None)))
    predicted, errors = [each.predicted for each in sums], [each.error for each in sums]
    assert all(each.samples == 60 for each in sums)
    assert 0.6 < np.median(errors) / np.std(predicted, ddof=1) < 2.5


def test_few_samples_are_said_with_what_more_would_do() -> None:
    assert resolution(1.0, 0.3 / 1.96, 80) == "too few samples: 80 samples resolve this to ±30 %; 400 would to ±13 %"
    assert resolution(1.0, 0.1 / 1.96, 80) == "80 samples resolve this to ±10 %"
    for unknown in ((None, 0.1), (1.0, None), (1.0, float("nan")), (0.0, 0.0)):
        assert resolution(*unknown, 80) == "" and interval(*unknown) is None
    low, high = interval(2.0, 2.0 * 0.5 / 1.96)
    assert low * high == pytest.approx(4.0) and high / low == pytest.approx(np.exp(1.0))


@pytest.mark.parametrize(("predicted", "measured"), [
    (0.0735, 0.0699), (0.1539, 0.1773), (0.3102, 0.4234), (0.6397, 1.3856), (1.2819, 3.0215),
    (0.6936, 0.8340), (1.4224, 1.1904), (0.1690, 0.1709),
])  # fmt: skip
def test_the_interval_of_a_coarse_plan_holds_what_was_measured(predicted: float, measured: float) -> None:
    """Plans of 2.5 to 4.5 bits of the small Llama, then of SmolLM2-135M (tests/benchmarks/budgets.py)."""
    low, high = interval(predicted, 0.04 * predicted, higher_orders(predicted))
    assert low < measured < high
    plain = interval(predicted, 0.04 * predicted)
    assert low < plain[0] and plain[1] < high
    assert ("evaluate or audit" in coarseness(predicted)) == (predicted > 0.1)


def test_fine_plans_keep_their_interval() -> None:
    assert interval(0.004, 0.0002, higher_orders(0.004)) == pytest.approx(interval(0.004, 0.0002), rel=1e-3)
    assert coarseness(0.09) == "" == coarseness(None) == coarseness(float("inf"))
    assert "0.31 nats" in coarseness(0.31) and "-37 %, +59 %" in coarseness(0.31)
