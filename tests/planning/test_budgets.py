"""Several budgets and any of them minimised, against enumeration of every plan; limits by pattern; tables that add."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.planning.synthetic import decoder, linear, summary_of, table_of
from workbench.errors import BudgetError, MissingResultError, PlanError, SchemeError
from workbench.measurement.evaluation import Timing
from workbench.models.layer import Layer
from workbench.planning.budgets import Budgets, MeasuredTimes, plan_microseconds
from workbench.planning.constraints import Constraints
from workbench.planning.groups import EXPERTS, FUSED_EXPERTS, FUSED_GATE_UP, FUSED_QKV, bonds_of
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.search.search import search
from workbench.planning.totals import layer_bits, plan_totals
from workbench.sensitivity.table import Sensitivity

SCHEMES = ("int2-g32-asym", "int4-g32-asym", "int8-channel")


class Clock:
    """Made-up times: more bits are not always slower."""

    factor = {"int2-g32-asym": 1.3, "int4-g32-asym": 0.7, "int8-channel": 0.5, KEEP: 1.0}

    def of(self, layer: Layer, weights: str, inputs: str | None) -> float:
        """Return microseconds that grow with the layer."""
        if "embed" in layer.name:
            return math.nan
        saved = 0.3 if inputs and weights != KEEP else 0.0
        return layer.parameters / 100 * (self.factor.get(weights, 1.1) - saved)


def every_plan(summary, table, times):
    """Yield (loss, bytes, microseconds) of every combination."""
    layers, fixed = summary.stored, summary.other_nbytes
    for combination in itertools.product((*table.schemes, KEEP), repeat=len(layers)):
        pairs = list(zip(layers, combination, strict=True))
        yield (
            math.fsum(table.of(layer.name, scheme) for layer, scheme in pairs if scheme != KEEP),
            sum(layer_bits(layer, scheme) for layer, scheme in pairs) // 8 + fixed,
            math.fsum(times.of(layer, scheme, None) for layer, scheme in pairs if "embed" not in layer.name),
        )


GOALS = {"loss": 0, "nbytes": 1, "microseconds": 2}


@pytest.mark.parametrize("minimise", GOALS)
@pytest.mark.parametrize("seed", range(6))
def test_any_goal_under_the_other_two_is_the_best_of_all_plans(minimise: str, seed: int):
    summary = decoder(1, seed)
    summary = replace(summary, layers=summary.layers[:-1])  # without the tied head
    table, times = table_of(summary, SCHEMES, seed), Clock()
    everything = np.array(list(every_plan(summary, table, times)))
    rng = np.random.default_rng(seed)
    for _ in range(4):
        held = {goal: float(np.quantile(everything[:, at], rng.uniform(0.3, 0.8)))
                for goal, at in GOALS.items() if goal != minimise}  # fmt: skip
        inside = np.all([everything[:, GOALS[goal]] <= limit for goal, limit in held.items()], axis=0)
        if "nbytes" in held:
            held["nbytes"] = int(held["nbytes"])
        budgets = Budgets(**held)
        if not inside.any():
            with pytest.raises(BudgetError):
                search(summary, table, budgets=budgets, minimise=minimise, base=Plan(), times=times)
            continue
        plan = search(summary, table, budgets=budgets, minimise=minimise, base=Plan(), times=times)
        sums = plan_totals(summary, plan, table)
        spent = {
            "loss": sums.predicted, "nbytes": sums.nbytes,
            "microseconds": plan_microseconds(summary, resolve(plan, summary.layers), times),
        }  # fmt: skip
        assert spent[minimise] == pytest.approx(everything[inside, GOALS[minimise]].min(), rel=1e-9)
        assert all(spent[goal] <= limit * (1 + 1e-9) for goal, limit in held.items())


def test_the_smallest_plan_within_a_loss_and_back():
    summary = decoder(3, 5)
    table = table_of(summary, seed=5)
    small = search(summary, table, budgets=Budgets(loss=0.5), minimise="nbytes", base=Plan())
    sums = plan_totals(summary, small, table)
    assert sums.predicted is not None and sums.predicted <= 0.5 * (1 + 1e-9)
    best = plan_totals(summary, search(summary, table, budgets=Budgets(nbytes=sums.nbytes), base=Plan()), table)
    assert best.predicted is not None and best.predicted <= sums.predicted
    with pytest.raises(BudgetError):
        search(summary, table, budgets=Budgets(loss=0.5, nbytes=sums.nbytes - 8), base=Plan())


def test_what_cannot_be_met_is_told_for_every_kind_of_budget():
    summary = decoder(2)
    table = table_of(summary)
    with pytest.raises(BudgetError, match="fastest possible takes .* microseconds"):
        search(summary, table, budgets=Budgets(microseconds=0.1), base=Plan(), times=Clock())
    with pytest.raises(BudgetError, match="least possible loss is 0"):
        search(summary, table, budgets=Budgets(loss=-1.0), minimise="nbytes", base=Plan())
    smallest = plan_totals(summary, search(summary, table, budgets=Budgets(loss=1e9), minimise="nbytes", base=Plan()))
    with pytest.raises(BudgetError, match="under the other budgets"):
        search(summary, table, budgets=Budgets(loss=1e-9, nbytes=smallest.nbytes + 200), base=Plan())
    with pytest.raises(MissingResultError, match="kernel times"):
        search(summary, table, budgets=Budgets(microseconds=5.0), base=Plan())
    with pytest.raises(PlanError, match="cannot minimise 'joules'"):
        search(summary, table, budgets=Budgets(nbytes=10**6), minimise="joules", base=Plan())


def test_patterns_limit_their_layers_and_contradictions_are_named():
    summary = decoder(2)
    table = table_of(summary, SCHEMES)
    rules = Constraints(allowed=(("*.down_proj", ("int8-channel",)), ("model.layers.0.*", ("int4-g32-asym", KEEP))))
    plan = search(summary, table, budgets=Budgets(bits_per_weight=12), base=Plan(), constraints=rules)
    schemes = {name: a.weights for name, a in resolve(plan, summary.layers).items()}
    assert all(schemes[f"model.layers.{n}.mlp.down_proj"] == "int8-channel" for n in range(2))
    assert schemes["model.layers.0.mlp.up_proj"] in ("int4-g32-asym", KEEP)
    name = "model.layers.0.mlp.down_proj"
    locked = replace(rules, locked=frozenset({name}))
    with pytest.raises(PlanError, match=f"{name} is locked to keep, but its pattern allows only int8-channel"):
        search(summary, table, budgets=Budgets(bits_per_weight=8), base=Plan(), constraints=locked)
    with pytest.raises(PlanError, match="matches no layer"):
        search(
            summary,
            table,
            budgets=Budgets(bits_per_weight=8),
            base=Plan(),
            constraints=Constraints(allowed=(("x.*", (KEEP,)),)),
        )
    with pytest.raises(SchemeError, match="no column"):
        search(
            summary,
            table,
            budgets=Budgets(bits_per_weight=8),
            base=Plan(),
            constraints=Constraints(allowed=(("*", ("int5",)),)),
        )
    shared = Constraints(allowed=(("a", ("int8-channel",)), ("b", ("int4-g32-asym",))), bonds=(("a", "b"),))
    pair = summary_of(linear("a"), linear("b"))
    with pytest.raises(PlanError, match="a may take int8-channel, b may take int4-g32-asym"):
        search(pair, table_of(pair, SCHEMES), budgets=Budgets(bits_per_weight=8), base=Plan(), constraints=shared)


def test_fused_layers_and_experts_are_found_by_name():
    names = [f"l.{b}.self_attn.{p}_proj" for b in range(2) for p in "qkvo"]
    names += [f"l.0.mlp.experts.{e}.{p}_proj" for e in range(3) for p in ("gate", "up", "down")]
    layers = [linear(name) for name in names]
    bonds = bonds_of(layers, (FUSED_QKV, FUSED_GATE_UP, EXPERTS))
    assert ("l.1.self_attn.q_proj", "l.1.self_attn.k_proj", "l.1.self_attn.v_proj") in bonds
    assert ("l.0.mlp.experts.1.gate_proj", "l.0.mlp.experts.1.up_proj") in bonds
    assert max(map(len, bonds)) == 9
    fused = [linear(f"l.{b}.mlp.experts.{p}") for b in range(2) for p in ("gate_up_proj", "down_proj", "bias")]
    assert [len(bond) for bond in bonds_of(fused, (FUSED_EXPERTS,))] == [4]


def test_tables_of_other_algorithms_and_of_activations_widen_the_choice():
    summary = summary_of(*(linear(f"l{n}", 32, 64) for n in range(4)))
    table = table_of(summary, SCHEMES)
    better = replace(table, score=table.score * np.array([[0.1], [2.0], [0.1], [2.0]]), algorithm="gptq")
    plan = search(summary, table, budgets=Budgets(bits_per_weight=5.0), base=Plan(), algorithms=[better])
    assignments = resolve(plan, summary.layers)
    assert {assignments["l0"].algorithm, assignments["l2"].algorithm} <= {"gptq", "rtn-clip"}
    for name, other in (("l0", "rtn-clip"), ("l1", "gptq"), ("l3", "gptq")):
        assert assignments[name].weights == KEEP or assignments[name].algorithm != other
    inputs = Sensitivity(
        metric="predicted_kl", unit="nats", layers=table.layers, schemes=("int8-token",),
        score=np.array([[1e-9], [1e9], [1e-9], [1e9]]), samples=1, seed=0,
    )  # fmt: skip
    plan = search(
        summary, table, budgets=Budgets(loss=1e6), minimise="microseconds", base=Plan(), times=Clock(), inputs=inputs
    )
    assignments = resolve(plan, summary.layers)
    assert [assignments[f"l{n}"].inputs for n in range(4)] == ["int8-token", None, "int8-token", None]
    assert {a.weights for a in assignments.values()} == {"int8-channel"}


def timing(shape: tuple[int, int], scheme: str, batch: int, us: float) -> Timing:
    """A timing of one sample."""
    return Timing(
        layer="l", scheme=scheme, kernel="k", baseline_kernel="b", shape=shape, batch=batch, device="cpu", note="",
        samples=np.array([us]), baseline_samples=np.array([10.0]),
    )  # fmt: skip


def test_measured_times_are_those_of_one_batch_size():
    timings = [timing((8, 64), "int8-channel", 1, 4.0), timing((8, 64), "int8-channel", 16, 7.0)]
    times = MeasuredTimes.from_timings(timings, 1)
    layer = linear("l", 8, 64)
    assert (times.of(layer, "int8-channel", None), times.of(layer, KEEP, None)) == (4.0, 10.0)
    assert math.isnan(times.of(layer, "int4-g32", None)) and math.isnan(times.of(linear("m", 9, 64), KEEP, None))
    with pytest.raises(MissingResultError, match="batch size 3; there are timings at 1, 16"):
        MeasuredTimes.from_timings(timings, 3)
    summary = summary_of(layer, linear("other", 9, 64))
    plan = search(summary, table_of(summary, SCHEMES), budgets=Budgets(microseconds=5.0), base=Plan(), times=times)
    assignments = resolve(plan, summary.layers)
    assert assignments["l"].weights == "int8-channel" and assignments["other"].weights == KEEP
