"""The front over microseconds: every plan of it is what its sums say, and none below the hull is beaten."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.planning.synthetic import decoder, table_of
from workbench.models.layer import LayerKind
from workbench.planning.budgets import MeasuredTimes, plan_microseconds
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.search.search import pareto
from workbench.planning.totals import plan_totals


def _times(summary, table, seed=0, without=()):
    rng = np.random.default_rng(seed)
    shapes = sorted({layer.matrix for layer in summary.layers if layer.kind is LayerKind.LINEAR})
    quantized = {
        (shape, name): float(rng.uniform(1, 9)) for shape in shapes for name in table.schemes if name not in without
    }
    return MeasuredTimes(device="d", batch=1, quantized=quantized, baseline={shape: 10.0 for shape in shapes})


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_those_of_the_plans(seed):
    summary = decoder(2, seed)
    table = table_of(summary, seed=seed)
    times = _times(summary, table, seed)
    front = pareto(summary, table, Plan(), times=times)
    assert len(front) > 3 and (np.diff(front.microseconds) > 0).all() and (np.diff(front.loss) < 0).all()
    for index in range(0, len(front), max(len(front) // 6, 1)):
        plan = front.plan(index)
        assignments = resolve(plan, summary.layers)
        totals = plan_totals(summary, plan, table)
        assert plan_microseconds(summary, assignments, times) == pytest.approx(front.microseconds[index])
        assert totals.predicted == pytest.approx(front.loss[index], abs=1e-12)
        assert totals.nbytes == front.nbytes[index]
        assert totals.bits_per_weight == pytest.approx(front.bits_per_weight[index])
        assert front.index_within(front.microseconds[index]) == index


def test_no_plan_beats_the_front():
    summary = decoder(1, 3)
    table = table_of(summary, seed=3)
    times = _times(summary, table, 3)
    front = pareto(summary, table, Plan(), times=times)
    groups = front.space.groups
    for picks in itertools.islice(itertools.product(*(range(len(group.candidates)) for group in groups)), 0, None, 97):
        spent = sum(float(group.microseconds[pick]) for group, pick in zip(groups, picks, strict=True))
        loss = sum(float(group.loss[pick]) for group, pick in zip(groups, picks, strict=True))
        spent, loss = spent + front.space.fixed_microseconds, loss + front.space.fixed_loss
        hull = np.interp(spent, front.microseconds, front.loss)
        assert loss >= hull - 1e-9 or spent < front.microseconds[0] - 1e-9


def test_what_was_not_timed_takes_no_part():
    summary = decoder(1, 0)
    table = table_of(summary)
    missing = table.schemes[0]
    front = pareto(summary, table, Plan(), times=_times(summary, table, without=(missing,)))
    used = {option.weights for group in front.space.groups for option in group.candidates}
    assert missing not in used and KEEP in used
