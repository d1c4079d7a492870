"""The knapsack against enumeration of every plan; budgets, locks, sharing, and the front."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from tests.planning.synthetic import SCHEMES, decoder, linear, summary_of, table_of
from workbench.errors import BudgetError, MissingResultError, PlanError, SchemeError
from workbench.models.layer import LayerKind
from workbench.models.summary import quantizable
from workbench.planning.budgets import Budgets
from workbench.planning.constraints import Constraints
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.search.search import pareto, search
from workbench.planning.totals import layer_bits, plan_totals
from workbench.sensitivity.checks.plan_checks import PlanChecks


def best_by_enumeration(summary, table, limit_bits):
    """Return the least loss over every combination of choices within the bits."""
    layers, best = summary.stored, np.inf
    for combination in itertools.product((*table.schemes, KEEP), repeat=len(layers)):
        bits = sum(layer_bits(layer, scheme) for layer, scheme in zip(layers, combination, strict=True))
        if bits <= limit_bits:
            losses = [table.of(x.name, s) for x, s in zip(layers, combination, strict=True) if s != KEEP]
            best = min(best, float(sum(losses)))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_is_the_best_of_all_plans(seed):
    summary = decoder(1, seed)
    table = table_of(summary, seed=seed)
    budget = 3.0 + 0.35 * seed
    plan = search(summary, table, budgets=Budgets(bits_per_weight=budget), base=Plan())
    result = plan_totals(summary, plan, table)
    weights = sum(layer.parameters for layer in summary.stored)
    assert result.bits_per_weight <= budget
    assert result.predicted == pytest.approx(best_by_enumeration(summary, table, budget * weights), rel=1e-9)


def test_a_budget_in_bytes_is_never_exceeded_and_is_best():
    summary = decoder(1, 3)
    table = table_of(summary, seed=5)
    outside = summary.other_nbytes
    inside = sum(layer.parameters for layer in summary.stored)
    for nbytes in range(outside + inside * 3 // 8 + 100, outside + inside, 997):
        result = plan_totals(summary, search(summary, table, budgets=Budgets(nbytes=nbytes), base=Plan()), table)
        assert result.nbytes <= nbytes
        assert result.predicted == pytest.approx(best_by_enumeration(summary, table, 8 * (nbytes - outside)), rel=1e-9)


def test_bits_per_weight_holds_exactly_at_the_edge():
    summary = decoder(2, 1)
    table = table_of(summary)
    base = Plan()
    for index in range(len(pareto(summary, table, base))):
        requested = float(pareto(summary, table, base).bits_per_weight[index])
        assert (
            plan_totals(
                summary, search(summary, table, budgets=Budgets(bits_per_weight=requested), base=base)
            ).bits_per_weight
            <= requested
        )


def test_an_impossible_budget_tells_the_smallest_size():
    summary = decoder(2)
    table = table_of(summary)
    smallest = plan_totals(summary, pareto(summary, table, Plan()).plan(0))
    with pytest.raises(BudgetError, match=f"takes {smallest.nbytes} bytes, {smallest.bits_per_weight:.4f} bits"):
        search(summary, table, budgets=Budgets(bits_per_weight=1.0), base=Plan())
    with pytest.raises(BudgetError, match="smallest possible"):
        search(summary, table, budgets=Budgets(nbytes=smallest.nbytes - 1), base=Plan())
    assert (
        plan_totals(summary, search(summary, table, budgets=Budgets(nbytes=smallest.nbytes), base=Plan())) == smallest
    )


def test_a_search_without_a_budget_is_refused():
    summary = decoder(1)
    with pytest.raises(PlanError, match="needs a budget"):
        search(summary, table_of(summary), budgets=Budgets(), base=Plan())
    with pytest.raises(PlanError, match="finite"):
        search(summary, table_of(summary), budgets=Budgets(bits_per_weight=float("nan")), base=Plan())


def test_locked_layers_keep_what_the_base_plan_gives_them():
    summary = decoder(2)
    name = "model.layers.1.mlp.up_proj"
    base = Plan().assign([name], weights="int8-channel", inputs="int8-token")
    plan = search(
        summary,
        table_of(summary),
        budgets=Budgets(bits_per_weight=4.0),
        base=base,
        constraints=Constraints(locked=frozenset({name})),
    )
    assert resolve(plan, summary.layers)[name].weights == "int8-channel"
    assert resolve(plan, summary.layers)[name].inputs == "int8-token"
    assert plan_totals(summary, plan).bits_per_weight <= 4.0


def test_a_lock_may_leave_no_room():
    summary = decoder(1)
    everything = frozenset(layer.name for layer in summary.layers)
    with pytest.raises(BudgetError, match="32.0000 bits per weight"):
        search(
            summary,
            table_of(summary),
            budgets=Budgets(bits_per_weight=4.0),
            base=Plan(),
            constraints=Constraints(locked=frozenset(everything)),
        )


def test_contradictory_locks_are_named():
    layers = (linear("a", shares_with=("b",)), linear("b", shares_with=("a",)), linear("c"))
    summary = summary_of(*layers)
    base = Plan().assign(["a"], weights="int4-g32-asym")
    with pytest.raises(PlanError, match="a to int4-g32-asym, b to keep"):
        search(
            summary,
            table_of(summary),
            budgets=Budgets(bits_per_weight=6),
            base=base,
            constraints=Constraints(locked=frozenset({"a", "b"})),
        )
    with pytest.raises(PlanError, match="'aa' is not a layer"):
        search(
            summary,
            table_of(summary),
            budgets=Budgets(bits_per_weight=6),
            base=base,
            constraints=Constraints(locked=frozenset({"aa"})),
        )


def test_layers_that_share_get_one_scheme():
    layers = [linear(f"l{n}", rows=4 + n) for n in range(6)]
    layers[0] = linear("l0", shares_with=("l1", "l2"))
    summary = summary_of(*layers)
    for seed in range(5):
        plan = search(summary, table_of(summary, seed=seed), budgets=Budgets(bits_per_weight=4.7), base=Plan())
        assignments = resolve(plan, summary.layers)
        assert assignments["l0"].weights == assignments["l1"].weights == assignments["l2"].weights


def test_embeddings_are_searched_with_their_tied_heads_and_a_lock_leaves_them_out():
    summary = decoder(2)
    table, embedding = table_of(summary), summary.by_name["model.embed_tokens"]
    plan = search(summary, table, budgets=Budgets(bits_per_weight=4.0), base=Plan())
    assignments = resolve(plan, summary.layers)
    assert assignments[embedding.name].weights == assignments["lm_head"].weights != KEEP
    assert plan_totals(summary, plan).nbytes <= summary.other_nbytes + sum(x.parameters for x in summary.stored) // 2
    for weights, locked in ((KEEP, embedding.name), ("int8-channel", "lm_head")):
        base, rules = Plan().assign(["lm_head"], weights=weights), Constraints(locked=frozenset({locked}))
        plan = search(summary, table, budgets=Budgets(bits_per_weight=5.0), base=base, constraints=rules)
        assignments = resolve(plan, summary.layers)
        assert assignments[embedding.name].weights == assignments["lm_head"].weights == weights
        assert plan_totals(summary, plan).bits_per_weight <= 5.0


def _no_embeddings(layer, weights, inputs):
    return "no tables" if layer.kind is LayerKind.EMBEDDING and weights != KEEP else None


def test_an_embedding_that_a_target_or_the_table_lacks_stays_and_eats_no_bits():
    summary, rules = decoder(2), Constraints(legal=_no_embeddings)
    inner = sum(layer.parameters for layer in summary.stored[1:])
    unscored = table_of(summary)
    unscored.score[unscored.row["model.embed_tokens"]] = np.nan
    for table, constraints in ((table_of(summary), rules), (unscored, None)):
        plan = search(summary, table, budgets=Budgets(bits_per_weight=4.0), base=Plan(), constraints=constraints)
        sums = plan_totals(summary, plan)
        assert resolve(plan, summary.layers)["model.embed_tokens"].weights == KEEP
        assert 3.5 < sums.bits_per_weight <= 4.0
        assert sums.nbytes > summary.other_nbytes + inner * 3.5 / 8 + summary.stored[0].nbytes
    base = Plan().assign(["lm_head"], weights="int8-channel")
    plan = search(summary, table_of(summary), budgets=Budgets(bits_per_weight=4.0), base=base, constraints=rules)
    assert resolve(plan, summary.layers)["model.embed_tokens"].weights == KEEP  # what the target refuses does not stay
    plan = search(summary, unscored, budgets=Budgets(bits_per_weight=5.0), base=base)
    assert resolve(plan, summary.layers)["model.embed_tokens"].weights == "int8-channel"  # what the user chose does


def test_a_kept_embedding_counts_in_a_budget_of_bits():
    summary = decoder(2)
    weights, inner = (sum(layer.parameters for layer in summary.stored[start:]) for start in (0, 1))
    table = table_of(summary)
    plans = [plan for plan in map(pareto(summary, table, Plan()).plan, range(len(pareto(summary, table, Plan()))))
            if resolve(plan, summary.layers)["model.embed_tokens"].weights == KEEP]  # fmt: skip
    sums = plan_totals(summary, plans[0])
    stored = sums.nbytes - summary.other_nbytes
    assert sums.bits_per_weight * inner == pytest.approx(8 * (stored - summary.stored[0].nbytes), abs=8)
    requested = 8 * stored / weights - 0.01
    plan = search(summary, table, budgets=Budgets(bits_per_weight=requested), base=Plan())
    assert plan_totals(summary, plan).nbytes < sums.nbytes


def test_schemes_limit_the_search():
    summary = decoder(2)
    plan = search(
        summary,
        table_of(summary),
        budgets=Budgets(bits_per_weight=6),
        base=Plan(),
        constraints=Constraints(schemes=("int4-g32-asym", "int8-channel")),
    )
    used = {a.weights for a in resolve(plan, summary.layers).values()}
    assert used <= {"int4-g32-asym", "int8-channel", KEEP}
    with pytest.raises(SchemeError, match="int4-g32-asym"):
        search(
            summary,
            table_of(summary),
            budgets=Budgets(bits_per_weight=6),
            base=Plan(),
            constraints=Constraints(schemes=("int4-g16-asym",)),
        )


def test_an_enormous_budget_keeps_everything():
    summary = decoder(2)
    assert search(summary, table_of(summary), budgets=Budgets(bits_per_weight=64), base=Plan()).rules == ()


def test_the_front_is_monotone_and_its_plans_cost_what_it_says():
    summary = decoder(3, 7)
    table = table_of(summary, seed=7)
    front = pareto(summary, table, Plan())
    assert (np.diff(front.nbytes) > 0).all() and (np.diff(front.loss) < 0).all()
    slopes = np.diff(front.loss) / np.diff(front.nbytes)
    assert (np.diff(slopes) >= -1e-9 * np.abs(slopes[:-1])).all()
    for index in (0, 1, len(front) // 2, len(front) - 1):
        result = plan_totals(summary, front.plan(index), table)
        assert result.nbytes == front.nbytes[index]
        assert result.bits_per_weight == front.bits_per_weight[index]
        assert result.predicted == pytest.approx(front.loss[index], rel=1e-9, abs=1e-12)
    assert front.index_within(int(front.nbytes[2])) == 2
    with pytest.raises(PlanError, match="numbered from 0"):
        front.plan(len(front))


def test_no_plan_of_the_front_beats_the_exact_search():
    summary = decoder(2, 2)
    table = table_of(summary, seed=2)
    front = pareto(summary, table, Plan())
    for index in range(len(front)):
        exact = plan_totals(
            summary, search(summary, table, budgets=Budgets(nbytes=int(front.nbytes[index])), base=Plan()), table
        )
        assert exact.predicted is not None
        assert exact.predicted <= front.loss[index] * (1 + 1e-9) + 1e-12


def test_rules_are_few_and_readable():
    summary = decoder(6)
    table = table_of(summary)
    table.score[:] = np.array([1.0, 0.1, 0.01, 1e-3, 1e-4])
    odd = table.row["model.layers.3.mlp.up_proj"]
    table.score[odd] *= 1e6
    plan = search(
        summary,
        table,
        budgets=Budgets(bits_per_weight=8.6),
        base=Plan(),
        constraints=Constraints(schemes=("int8-channel",)),
    )
    assert plan.name == "within 8.6 bits per weight" and plan.fingerprint == summary.fingerprint
    assert len(plan.rules) <= 8
    plan = search(
        summary,
        table,
        budgets=Budgets(bits_per_weight=7.2),
        base=Plan(),
        constraints=Constraints(schemes=("int6-g32-asym", "int8-channel")),
    )
    assert resolve(plan, summary.layers)["model.layers.3.mlp.up_proj"].weights != "int6-g32-asym"


def test_a_large_model_takes_little_time():
    summary = decoder(75)
    table = table_of(summary, seed=3)
    pareto(summary, table, Plan())
    start = time.perf_counter()
    pareto(summary, table, Plan())
    assert time.perf_counter() - start < 2
    start = time.perf_counter()
    plan = search(summary, table, budgets=Budgets(bits_per_weight=4.321), base=Plan())
    assert time.perf_counter() - start < 20
    front = pareto(summary, table, Plan())
    best = float(front.loss[front.bits_per_weight <= 4.321].min())
    result = plan_totals(summary, plan, table)
    assert result.predicted is not None and result.predicted <= best
    assert result.bits_per_weight > 4.31


def test_the_front_needs_neither_torch_nor_scipy():
    heavy = "[m for m in ('torch', 'scipy', 'h5py') if m in sys.modules]"
    code = f"import sys, workbench.planning.search.search; print({heavy})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_schemes_of_the_tests_exist():
    summary = decoder(1)
    assert all(layer_bits(summary.layers[1], scheme) > 0 for scheme in SCHEMES)


def test_a_layer_without_scores_is_refused_by_name_unless_it_is_locked():
    summary = decoder(1)
    table = table_of(summary)
    name = "model.layers.0.mlp.up_proj"
    score = table.score.copy()
    score[table.row[name]] = np.nan
    with pytest.raises(MissingResultError, match=f"{name}: not scored.*or lock what has no score"):
        search(summary, replace(table, score=score), budgets=Budgets(bits_per_weight=3.0), base=Plan())
    locked = Constraints(locked=frozenset({name}))
    plan = search(
        summary, replace(table, score=score), budgets=Budgets(bits_per_weight=30.0), base=Plan(), constraints=locked
    )
    assert resolve(plan, summary.layers)[name].weights == KEEP


def test_what_the_output_does_not_depend_on_stays_and_counts_nowhere_or_gets_the_smallest_scheme():
    name, bare = "model.layers.0.mlp.up_proj", decoder(1)
    summary, table = bare.with_unused({name: "its result goes nowhere"}), table_of(bare)
    table.score[table.row[name]] = 0.0
    budgets = Budgets(bits_per_weight=3.5)
    plan = search(summary, table, budgets=budgets, base=Plan())
    sums = plan_totals(summary, plan, table)
    assert resolve(plan, summary.layers)[name].weights == KEEP
    used = replace(bare, layers=tuple(layer for layer in bare.layers if layer.name != name))
    assert sums.predicted == plan_totals(used, search(used, table, budgets=budgets, base=Plan()), table).predicted
    assert sums.bits_per_weight <= 3.5
    small = search(summary, table, budgets=budgets, base=Plan(), constraints=Constraints(shrink_unused=True))
    assert resolve(small, summary.layers)[name].weights == SCHEMES[0]
    assert plan_totals(summary, small, table).predicted <= sums.predicted
    uniform = Plan.uniform(quantizable(summary.layers), SCHEMES[2])
    assert resolve(uniform, summary.layers)[name].weights == KEEP
    with pytest.raises(BudgetError, match=f"does not depend on {name}.*{summary.layer(name).nbytes} bytes"):
        search(summary, table, budgets=Budgets(nbytes=summary.layer(name).nbytes), base=Plan())


def _leaning(gain: float, factor: float):
    """A table where 2 and 4 bits for half of the layers each lose ``gain`` less than 3 bits everywhere, and plans of
    that loss were measured at ``factor`` times as much."""
    summary = summary_of(*(linear(f"layers.{number}.up_proj", 32, 64) for number in range(8)))
    even = np.array([1.0, 0.06, 0.06 * (1 - gain) - 0.02])
    odd = np.array([0.06 * (1 - gain) + 0.02, 0.06, 0.05])
    table = table_of(summary, ("int2-g32-asym", "int3-g32-asym", "int4-g32-asym"))
    table = replace(table, score=np.array([even, odd] * 4), samples=32)
    loss = float(8 * 0.06)
    checks = PlanChecks(
        predicted=np.array([loss / 2, 2 * loss]), measured=np.array([loss / 2, 2 * loss]) * factor,
        error=np.array([0.01, 0.01]), bits=np.array([4.0, 2.0]), samples=32,
    )  # fmt: skip
    return summary, replace(table, checks=checks)


@pytest.mark.parametrize(("gain", "factor", "mixed"), [(0.1, 1.0, True), (0.1, 2.0, False), (0.4, 2.0, True)])
def test_a_uniform_plan_is_taken_where_measured_plans_do_not_tell_it_from_a_better_predicted_one(gain, factor, mixed):
    """The small Llama by 8 windows at 3.3 bits: predicted 14 % less, measured 18 % more."""
    summary, table = _leaning(gain, factor)
    plan = search(summary, table, base=Plan(), budgets=Budgets(bits_per_weight=3.6))
    schemes = [assignment.weights for assignment in resolve(plan, summary.layers).values()]
    assert schemes == (["int4-g32-asym", "int2-g32-asym"] * 4 if mixed else ["int3-g32-asym"] * 8)
    assert plan.name.endswith("(uniform: no mixed one is known to be better)") is not mixed
