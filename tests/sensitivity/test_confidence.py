"""Intervals of predictions: against the scatter of tables from other samples, and the sentence that users read."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.networks import convolutions, images
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.sensitivity.confidence import interval, resolution
from workbench.sensitivity.score import score


def test_the_standard_error_is_the_scatter_of_tables_from_other_samples() -> None:
    model = convolutions()
    plan = Plan.uniform(model.summary.layers, "int4-channel")
    sums = []
    for seed in range(12):
        table = score(model, "predicted_kl", ("int4-channel",), dataset=images(60, seed), batch_size=30, seed=seed)
        sums.append(plan_totals(model.summary, plan, table))
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
