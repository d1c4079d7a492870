"""Explanations against the tables they speak of; simple rules against the search."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.planning.synthetic import decoder, linear, summary_of, table_of
from workbench.errors import BudgetError, PlanError
from workbench.insight import quantities
from workbench.planning.budgets import Budgets
from workbench.planning.constraints import Constraints
from workbench.planning.explain import Explanation, Step, explain, next_purchase
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.search.search import pareto, search
from workbench.planning.strategies import Threshold, TopK, simple_plan
from workbench.planning.totals import layer_bits, plan_totals


@pytest.mark.parametrize("seed", range(3))
def test_every_choice_of_the_front_is_justified_by_the_price(seed: int):
    summary = decoder(3, seed)
    table = table_of(summary, seed=seed)
    front = pareto(summary, table, Plan())
    index = len(front) // 2
    assignments = resolve(front.plan(index), summary.layers)
    price = front.price(int(front.nbytes[index]))
    for layer in summary.layers[1:-1]:
        why = explain(front, assignments, layer.name)
        scheme = assignments[layer.name].weights
        assert why.saved == (layer_bits(layer, KEEP) - layer_bits(layer, scheme)) / 8
        assert why.added == (0.0 if scheme == KEEP else table.of(layer.name, scheme))
        assert why.price == price
        if why.bigger:
            assert why.bigger.nbytes > 0 and why.bigger.price <= price * (1 + 1e-9)
        if why.smaller:
            assert why.smaller.nbytes < 0 and why.smaller.price >= price * (1 - 1e-9)
        assert f" saves {quantities.data_size(why.saved)} and" in why.sentence and "e-0" not in why.sentence


def test_a_scheme_that_another_beats_in_every_respect_has_its_own_loss():
    summary = decoder(2, 0)
    table = table_of(summary, seed=0)
    layer, worse = summary.layers[1].name, table.schemes[-1]
    score = table.score.copy()
    score[table.row[layer]] = np.where(np.array(table.schemes) == worse, 1.0, 1e-9)
    table = replace(table, score=score)
    front, plan = pareto(summary, table, Plan()), Plan().assign([layer], weights=worse)
    assert worse not in next(group for group in front.space.groups if layer in group.layers).schemes
    why = explain(front, resolve(plan, summary.layers), layer, table)
    assert why.added == 1.0 and "not scored" not in why.sentence
    assert math.isnan(explain(front, resolve(plan, summary.layers), layer).added), "without a table"


def test_the_next_purchase_is_the_next_plan_of_the_front():
    summary = decoder(2, 4)
    front = pareto(summary, table_of(summary, seed=4), Plan())
    for index in range(len(front) - 1):
        bought = next_purchase(front, int(front.nbytes[index]))
        assert bought is not None
        before, after = front.choices(index), front.choices(index + 1)
        assert {n for n in before if before[n] != after[n]} == set(bought.layers)
        assert bought.loss == pytest.approx(front.loss[index] - front.loss[index + 1], rel=1e-6, abs=1e-15)
        assert bought.loss / bought.nbytes == pytest.approx(front.price(int(front.nbytes[index])))
    assert next_purchase(front, int(front.nbytes[-1])) is None and front.price(int(front.nbytes[-1])) == 0.0


def test_layers_outside_the_search_say_so_and_unknown_ones_are_named():
    summary = decoder(1)
    locked = summary.layers[2].name
    base = Plan().assign([locked], weights="int8-channel")
    table = table_of(summary)
    table.score[table.row["model.embed_tokens"]] = math.nan
    front = pareto(summary, table, base, constraints=Constraints(locked=frozenset({locked})))
    assignments = resolve(front.plan(0), summary.layers)
    assert explain(front, assignments, locked).fixed == "locked"
    assert "outside the search" in explain(front, assignments, "model.embed_tokens").sentence
    assert " nats" in explain(front, assignments, summary.layers[1].name, table_of(summary)).sentence
    assert " nats" not in explain(front, assignments, summary.layers[1].name).sentence
    with pytest.raises(PlanError, match="up_proj"):
        explain(front, assignments, "model.layers.0.mlp.up_prj")


def test_thresholds_are_the_rule_that_they_say():
    summary = summary_of(*(linear(f"l{n}") for n in range(4)))
    table = table_of(summary)
    table.score[:] = np.array([0.01, 0.15, 0.5, 1.0])[:, None] * np.array([9, 3, 1, 0.1, 0.01])
    rule = Threshold(steps=((0.1, "int4-g32-asym"), (0.3, "int8-channel")))
    assignments = resolve(simple_plan(rule, summary, table, Plan(), Budgets()), summary.layers)
    assert [assignments[f"l{n}"].weights for n in range(4)] == ["int4-g32-asym", "int8-channel", KEEP, KEEP]
    absolute = Threshold(steps=((0.6, "int4-g32-asym"),), relative=False)
    assignments = resolve(simple_plan(absolute, summary, table, Plan(), Budgets()), summary.layers)
    assert [assignments[f"l{n}"].weights for n in range(4)] == ["int4-g32-asym"] * 3 + [KEEP]


def test_top_k_gives_the_most_sensitive_layers_more():
    summary = summary_of(*(linear(f"l{n}") for n in range(5)))
    table = table_of(summary)
    table.score[:] = np.array([0.2, 0.9, 0.1, 0.8, 0.3])[:, None] * np.array([9, 3, 1, 0.1, 0.01])
    assignments = resolve(simple_plan(TopK(count=2), summary, table, Plan(), Budgets()), summary.layers)
    assert [name for name, a in assignments.items() if a.weights == "int8-channel"] == ["l1", "l3"]
    assert {a.weights for a in assignments.values()} == {"int8-channel", "int4-g32-asym"}


@pytest.mark.parametrize("name", ["threshold", "top-k"])
def test_within_a_budget_no_simple_rule_beats_the_search(name: str):
    summary = decoder(4, 1)
    table = table_of(summary, seed=1)
    locked = summary.layers[3].name
    base = Plan().assign([locked], weights="int6-g32-asym")
    rules = Constraints(locked=frozenset({locked}))
    for bits in (6.0, 7.0, 8.5):
        budget = Budgets(bits_per_weight=bits)
        simple = simple_plan(name, summary, table, base, budget, rules)
        best = search(summary, table, base=base, budgets=budget, constraints=rules)
        assert resolve(simple, summary.layers)[locked].weights == "int6-g32-asym"
        plain, other = plan_totals(summary, simple, table), plan_totals(summary, best, table)
        assert plain.bits_per_weight <= bits
        assert plain.predicted is not None and other.predicted is not None and other.predicted <= plain.predicted
    with pytest.raises(BudgetError, match="smallest takes"):
        simple_plan(name, summary, table, base, Budgets(bits_per_weight=1.0), rules)
    with pytest.raises(PlanError, match="optimal, threshold, top-k"):
        simple_plan("magic", summary, table, base, Budgets())


def test_a_price_that_reads_the_same_is_not_called_less():
    step = Step(scheme="int6", nbytes=1000, loss=0.0344 - 1e-9)
    why = Explanation(layer="a", layers=("a",), scheme="int5", saved=0, added=0, price=3.44e-5, bigger=step)
    assert "3.44e-2 for each kB, as much as one buys elsewhere" in why.sentence
    cheaper = replace(why, bigger=replace(step, loss=0.01))
    assert "1.00e-2 for each kB, less than the 3.44e-2 that one buys elsewhere" in cheaper.sentence


def test_a_scheme_that_is_smaller_and_better_is_not_said_to_add_less_than_nothing():
    step = Step(scheme="int2", nbytes=-960, loss=0.00238)
    why = Explanation(layer="a", layers=("a",), scheme="int3", saved=0, added=0.1, price=1e-5, smaller=step)
    assert why.sentence.endswith("int2 would save 960 B more and avoid 2.38e-3, too")
    worse = replace(why, smaller=None, bigger=Step(scheme="int5", nbytes=960, loss=-0.1))
    assert "int5" not in worse.sentence, "it would take more bytes for more loss"
