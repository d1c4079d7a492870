"""Fronts and searches that count the interaction of layers, against totals and brute force."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.planning.synthetic import decoder, table_of
from workbench.errors import BudgetError
from workbench.planning.budgets import Budgets, MeasuredTimes
from workbench.planning.constraints import Constraints
from workbench.planning.plan import Plan
from workbench.planning.search import exchange
from workbench.planning.search.search import assignments_of, pareto, search
from workbench.planning.totals import plan_totals, totals
from workbench.sensitivity.interaction import Directions


def sloped(table, draws: int = 64, seed: int = 0, lean: float = 1.0):
    """The table with random slopes that ``lean`` to one side, the same in either half of the samples."""
    rng = np.random.default_rng(seed)

    def slopes() -> np.ndarray:
        some = rng.standard_normal((draws // 4, 1, 2)) + lean * rng.choice([-1, 1])
        return some.repeat(2, axis=1).reshape(-1).astype(np.float32)

    rows = {name: {scheme: slopes() for scheme in table.schemes} for name in table.layers}
    return replace(table, directions=Directions.gather(table.schemes, rows))


def test_every_plan_of_a_front_has_the_loss_that_totals_give_it():
    summary = decoder(2)
    table = sloped(table_of(summary))
    front = pareto(summary, table, Plan())
    assert len(front) > 5 and (np.diff(front.loss) < 0).all() and (np.diff(front.nbytes) >= 0).all()
    for index in range(len(front)):
        sums = plan_totals(summary, front.plan(index), table)
        assert sums.predicted == pytest.approx(front.loss[index], rel=1e-9)
        assert sums.nbytes == front.nbytes[index]
    assert any(plan_totals(summary, front.plan(index), table).interaction for index in range(len(front)))
    assert len(front) < len(pareto(summary, replace(table, directions=None), Plan())), "some are beaten by smaller ones"


def test_a_front_of_time_counts_interactions_too():
    summary = decoder(2)
    table = sloped(table_of(summary))
    shapes = {layer.matrix for layer in summary.layers}
    names = [*table.schemes]
    times = MeasuredTimes(
        device="cpu", batch=1, baseline=dict.fromkeys(shapes, 100.0),
        quantized={(shape, name): 10.0 + 7 * index for shape in shapes for index, name in enumerate(names)},
    )  # fmt: skip
    front = pareto(summary, table, Plan(), times=times)
    for index in range(len(front)):
        assert plan_totals(summary, front.plan(index), table).predicted == pytest.approx(front.loss[index], rel=1e-9)


def test_locked_layers_interact_with_those_that_are_searched():
    summary = decoder(2)
    table = sloped(table_of(summary))
    locked = next(layer.name for layer in summary.stored if layer.name in table.row and "mlp" in layer.name)
    base = Plan.uniform([summary.by_name[locked]], table.schemes[0])
    front = pareto(summary, table, base, constraints=Constraints(locked=frozenset({locked})))
    for index in (0, len(front) - 1):
        assert plan_totals(summary, front.plan(index), table).predicted == pytest.approx(front.loss[index], rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_come_near_the_best_of_all_choices(seed, monkeypatch):
    monkeypatch.setattr(exchange, "SHARES", (1.0,))
    monkeypatch.setattr(exchange, "JUDGES", 8)
    summary = decoder(1)
    few = table_of(summary, seed=seed)
    table = sloped(replace(few, schemes=few.schemes[:3], score=few.score[:, :3]), seed=seed)
    budget = 5.0
    result = plan_totals(summary, search(summary, table, budgets=Budgets(bits_per_weight=budget), base=Plan()), table)
    plain = replace(table, directions=None)
    alone = plan_totals(summary, search(summary, plain, budgets=Budgets(bits_per_weight=budget), base=Plan()), table)
    assert result.bits_per_weight <= budget
    assert result.predicted <= alone.predicted
    best = _best(summary, table, budget)
    assert best <= result.predicted * (1 + 1e-9) and result.predicted < 1.5 * best


def test_few_samples_judge_no_exchange():
    """Their slopes would gain; of 16 samples a few carry it."""
    summary = decoder(1)
    few = table_of(summary)
    table = sloped(replace(few, schemes=few.schemes[:3], score=few.score[:, :3]))
    plans = [search(summary, each, budgets=Budgets(bits_per_weight=5.0), base=Plan())
             for each in (table, replace(table, directions=None))]  # fmt: skip
    assert plans[0].rules == plans[1].rules


def _best(summary, table, budget: float) -> float:
    """The least loss of all choices within a budget, by trying them."""
    space = pareto(summary, table, Plan()).space
    menus = [range(len(group.candidates)) for group in space.groups]
    bits = [group.bits for group in space.groups]
    every = [np.array(picks) for picks in itertools.product(*menus)]
    small = [picks for picks in every if space.bits_per_weight(sum(map(np.take, bits, picks))) <= budget]
    return min(totals(summary, assignments_of(space, picks), table).predicted for picks in small)


def test_a_budget_of_loss_counts_the_interaction():
    summary = decoder(2)
    table = sloped(table_of(summary))
    front = pareto(summary, table, Plan())
    for loss in (float(front.loss[len(front) // 4]), float(front.loss[len(front) // 2])):
        plan = search(summary, table, budgets=Budgets(loss=loss), minimise="nbytes", base=Plan())
        assert plan_totals(summary, plan, table).predicted <= loss * (1 + 1e-9)


def test_a_loss_that_interaction_makes_impossible_is_said():
    summary = decoder(1)
    plain = table_of(summary)
    same = {name: {scheme: np.ones(64, np.float32) for scheme in plain.schemes} for name in plain.layers}
    table = replace(plain, directions=Directions.gather(plain.schemes, same))
    smallest = pareto(summary, plain, Plan())
    budgets = Budgets(loss=float(smallest.loss[0]), nbytes=int(smallest.nbytes[0]))
    with pytest.raises(BudgetError, match="cost more together than separately"):
        search(summary, table, budgets=budgets, minimise="nbytes", base=Plan())


@pytest.mark.parametrize("seed", range(4))
def test_few_samples_exchange_nothing(seed):
    summary = decoder(2)
    plain = table_of(summary)
    table = sloped(plain, draws=28, seed=seed)
    for bits in (3.5, 4.5, 5.5):
        plans = [search(summary, each, budgets=Budgets(bits_per_weight=bits), base=Plan()) for each in (plain, table)]
        assert plans[0] == plans[1]
        assert plan_totals(summary, plans[1], table).interaction == 0


def noisy(table, draws: int, seed: int):
    """The table with slopes of chance alone: no layers interact, though some seem to on few samples."""
    rng = np.random.default_rng(seed)
    rows = {
        name: {scheme: rng.standard_normal(draws).astype(np.float32) for scheme in table.schemes}
        for name in table.layers
    }
    return replace(table, directions=Directions.gather(table.schemes, rows))


@pytest.mark.parametrize("seed", range(6))
def test_chance_among_few_samples_is_no_reason_for_an_exchange(seed):
    summary = decoder(4, seed)
    plain = table_of(summary, seed=seed)
    table, budgets = noisy(plain, 160, seed), Budgets(bits_per_weight=4.2)
    chosen = search(summary, table, budgets=budgets, base=Plan())
    sums, least = plan_totals(summary, chosen, table), search(summary, plain, budgets=budgets, base=Plan())
    truth, best = plan_totals(summary, chosen, plain).predicted, plan_totals(summary, least, plain).predicted
    assert truth <= 1.02 * best, "what seemed to cancel cost a better plan"
    assert 0.75 < sums.predicted / truth < 1.33, "a plan is judged on what did not choose it"
