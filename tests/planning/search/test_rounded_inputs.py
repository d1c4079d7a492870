"""Targets that round inputs on their own account: what that costs beside each scheme of weights is counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.planning.synthetic import linear, summary_of, table_of
from workbench.numerics.formats.gguf.inputs import inputs_beside
from workbench.planning.budgets import Budgets
from workbench.planning.constraints import Constraints
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.search.search import pareto, search
from workbench.planning.totals import layer_bits, totals
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("q4_0", "q4_k", "q6_k", "q8_0")
MODEL = summary_of(
    linear("embed", 6, 256), linear("up", 8, 256), linear("down", 8, 512), linear("head", 6, 256, tied_to="embed"),
    linear("alone", 4, 256),
)  # fmt: skip
INPUTS = Sensitivity(
    metric="predicted_kl_inputs", unit="nats", layers=("up", "down", "head"), schemes=("int8-g32", "int8-g256"),
    score=np.array([[0.001, 0.04], [0.002, 0.5], [0.003, 0.3]]), samples=1, seed=0,
)  # fmt: skip


def cost_beside(layer: str, weights: str) -> float:
    """What the inputs of a layer, and of those that share its weights, cost; nothing where none is known."""
    scheme = inputs_beside(weights)
    readers = [each.name for each in MODEL.layers if layer in (each.name, each.tied_to)]
    costs = [INPUTS.of(name, scheme) for name in readers] if scheme else []
    return sum(cost for cost in costs if not np.isnan(cost))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bits", (4.6, 6.0, 8.5))
def test_the_plan_is_the_best_of_all_plans_with_what_their_inputs_cost(seed: int, bits: float) -> None:
    table, weights = table_of(MODEL, SCHEMES, seed=seed), sum(layer.parameters for layer in MODEL.stored)
    names = [layer.name for layer in MODEL.stored]
    rules = Constraints(rounding=inputs_beside, keep_inputs=True)
    plan = search(MODEL, table, base=Plan(), budgets=Budgets(bits_per_weight=bits), constraints=rules, inputs=INPUTS)

    def cost(chosen: dict[str, str]) -> float:
        return sum(
            (0.0 if scheme == KEEP else table.of(name, scheme)) + cost_beside(name, scheme)
            for name, scheme in chosen.items()
        )

    best = min(
        cost(chosen)
        for schemes in product((*SCHEMES, KEEP), repeat=len(names))
        for chosen in [dict(zip(names, schemes, strict=True))]
        if sum(layer_bits(MODEL.by_name[name], scheme) for name, scheme in chosen.items()) <= bits * weights
    )
    found = resolve(plan, MODEL.layers)
    assert cost({name: found[name].weights for name in names}) == pytest.approx(best)


def test_a_front_leaves_out_what_the_inputs_cost_and_no_less_than_nothing() -> None:
    rules = Constraints(rounding=inputs_beside, keep_inputs=True)
    for seed in range(20):
        table = table_of(MODEL, SCHEMES, seed=seed)
        inputs = replace(INPUTS, score=INPUTS.score * np.random.default_rng(seed).uniform(0, 3, INPUTS.score.shape))
        front = pareto(MODEL, table, Plan(), constraints=rules, inputs=inputs)
        plans = [resolve(front.plan(index), MODEL.layers) for index in range(len(front))]
        expected = [totals(MODEL, plan, table).predicted for plan in plans]
        np.testing.assert_allclose(front.loss, np.array(expected, float), rtol=0, atol=1e-15)
        assert front.loss[-1] == 0.0


def test_where_nothing_is_known_of_inputs_the_weights_decide() -> None:
    table, within = table_of(MODEL, SCHEMES), Budgets(bits_per_weight=5.0)
    plain = search(MODEL, table, base=Plan(), budgets=within)
    rules = Constraints(rounding=inputs_beside, keep_inputs=True)
    assert search(MODEL, table, base=Plan(), budgets=within, constraints=rules).rules == plain.rules
    other = replace(INPUTS, schemes=("int8-token", "int4-token"))
    assert search(MODEL, table, base=Plan(), budgets=within, constraints=rules, inputs=other).rules == plain.rules


def test_the_blocks_are_those_of_the_products_in_llama_cpp() -> None:
    assert [inputs_beside(name) for name in ("q4_k", "iq2_xs", "tq2_0", "iq4_xs")] == ["int8-g256"] * 4
    assert [inputs_beside(name) for name in ("q4_0", "q5_1", "q8_0", "iq4_nl", "mxfp4")] == ["int8-g32"] * 5
    assert [inputs_beside(name) for name in ("keep", "fp16", "bf16")] == [None] * 3
