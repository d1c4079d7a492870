"""Searches with targets, locks, times and strategies on a tiny Llama."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.errors import BudgetError, MissingResultError, PlanError, SchemeError
from workbench.models.model import Model
from workbench.models.summary import quantizable
from workbench.numerics.formats.gguf import inputs
from workbench.planning.budgets import MeasuredTimes, plan_microseconds
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.totals import plan_totals
from workbench.session.session import Session
from workbench.steps.search_rules import rounding_remark
from workbench.steps.timing.candidates import candidate_timings

SCHEMES = ("int3-g32-asym", "int4-g32", "int8-channel")


@pytest.fixture(scope="module")
def model(llama: Path) -> Model:
    return wb.open(llama)


@pytest.fixture(scope="module")
def scored(model: Model, tokens: Path) -> Session:
    session = wb.calibrate(model, tokens, batch_size=4)
    session = wb.score(session, "weight_error", model=model, schemes=SCHEMES)
    return wb.score(session, model=model, schemes=SCHEMES)


def test_locks_and_targets_hold(scored: Session) -> None:
    plan = wb.search(scored, bits_per_weight=30.0, target="torchao", lock=["*.mlp.*"])
    schemes = {name: a.weights for name, a in resolve(plan, scored.model.layers).items()}
    assert {scheme for name, scheme in schemes.items() if ".mlp." in name} == {KEEP}
    assert set(schemes.values()) <= {"int4-g32", "int8-channel", KEEP} and len(set(schemes.values())) > 1
    with pytest.raises(PlanError, match=r"the lock '\*.nope' matches no layer"):
        wb.search(scored, bits_per_weight=8.0, lock=["*.nope"])
    with pytest.raises(PlanError, match="no target 'vlm'; the closest are vllm"):
        wb.search(scored, bits_per_weight=8.0, target="vlm")


def test_a_target_that_runs_nothing_of_the_table_is_scored_for_by_its_name(scored: Session, model: Model) -> None:
    """The default columns are integers, which llama.cpp has not: a search for it said that no plan fits."""
    with pytest.raises(MissingResultError, match="GGUF .* runs none of the schemes that were scored") as raised:
        wb.search(scored, bits_per_weight=8.6, target="gguf")
    assert raised.value.command == "workbench sensitivity S.qwb --target gguf"
    fresh = wb.score(replace(scored, sensitivities={}), "weight_error", model=model, target="gguf")
    columns = fresh.require_table("weight_error").schemes
    assert {"q8_0", "q4_0", "iq4_nl"} <= {*columns} and not {"int4-g32", "int8-channel"} & {*columns}
    plan = wb.search(fresh, bits_per_weight=8.6, target="gguf", metric="weight_error")
    assert {a.weights for a in resolve(plan, scored.model.layers).values()} - {KEEP}


def test_layers_without_a_score_are_locked_in_one_step(scored: Session) -> None:
    """Experts that no token was sent to: one by one they may be hundreds."""
    table = scored.require_table("predicted_kl")
    names = [name for name in table.layers if name.endswith("up_proj")]
    score = table.score.copy()
    score[[table.row[name] for name in names]] = np.nan
    session = replace(scored, sensitivities={table.metric: replace(table, score=score)})
    with pytest.raises(MissingResultError, match="or lock what has no score") as raised:
        wb.search(session, bits_per_weight=8.0)
    assert raised.value.command == "workbench plan S.qwb --lock unscored ..."
    plan = wb.search(session, bits_per_weight=30.0, lock=["unscored"])
    schemes = {name: each.weights for name, each in resolve(plan, session.model.layers).items()}
    assert names and {schemes[name] for name in names} == {KEEP} and len(set(schemes.values())) > 1
    with pytest.raises(BudgetError, match=r"locked are model.layers.0.mlp.up_proj, .*: \d+ bytes .*one scheme gives"):
        wb.search(session, bits_per_weight=4.2, lock=["unscored"])
    coarse = replace(session, plan=Plan.uniform(quantizable(session.model.layers), "int4-g32"))
    plan = wb.search(coarse, bits_per_weight=4.8, lock=["unscored"])
    assert {resolve(plan, session.model.layers)[name].weights for name in names} == {"int4-g32"}
    with pytest.raises(PlanError, match="the lock 'unscore' matches no layer"):
        wb.search(session, bits_per_weight=8.0, lock=["unscore"])


def test_patterns_allow_schemes(scored: Session) -> None:
    allow = {"*.mlp.down_proj": ["INT8-channel"], "*.mlp.*": ["int4-g32", "keep"]}
    plan = wb.search(scored, bits_per_weight=30.0, allow=allow)
    schemes = {layer.name: resolve(plan, scored.model.layers)[layer.name].weights for layer in scored.model.layers}
    assert {scheme for name, scheme in schemes.items() if name.endswith("down_proj")} == {"int8-channel"}
    others = {scheme for name, scheme in schemes.items() if ".mlp." in name and not name.endswith("down_proj")}
    assert others <= {"int4-g32", KEEP}
    with pytest.raises(PlanError, match=r"the pattern '\*.nope' matches no layer"):
        wb.search(scored, bits_per_weight=8.0, allow={"*.nope": ["int4-g32"]})
    with pytest.raises(SchemeError, match="has no column for 'int5-g32'"):
        wb.search(scored, bits_per_weight=8.0, allow={"*.mlp.*": ["int5-g32"]})


def test_schemes_that_a_pattern_allows_twice_add_up(scored: Session) -> None:
    pairs = [("*.mlp.*", ["int8-channel"]), ("*", [KEEP]), ("*.mlp.*", ["int4-g32"])]
    plan = wb.search(scored, bits_per_weight=64.0, allow=pairs)
    schemes = {name: each.weights for name, each in resolve(plan, scored.model.layers).items()}
    assert {scheme for name, scheme in schemes.items() if ".mlp." in name} == {"int8-channel"}
    assert {scheme for name, scheme in schemes.items() if ".mlp." not in name} == {KEEP}


def test_a_target_that_computes_in_integers_needs_the_activations(scored: Session) -> None:
    with pytest.raises(PlanError, match="activations must be int8, not floating-point"):
        wb.search(scored, bits_per_weight=9.5, target="edge-tpu")
    plan = wb.search(scored, bits_per_weight=12.0, target="edge-tpu", inputs="INT8-tensor")
    assignments = resolve(plan, scored.model.layers)
    searched = [assignments[layer.name] for layer in quantizable(scored.model.layers)]
    assert {(a.weights, a.inputs) for a in searched} == {("int8-channel", "int8-tensor")}


def test_microseconds_are_measured_at_the_batch_and_kept(scored: Session) -> None:
    timings = candidate_timings(scored, SCHEMES, batch=4, repeats=3)
    session = replace(scored, timings=timings)
    times = MeasuredTimes.from_timings(timings, 4)
    fast = wb.search(session, loss=1e9, minimise="microseconds", batch=4)
    unquantized = resolve(Plan(), scored.model.layers)
    result = resolve(fast, scored.model.layers)
    assert plan_microseconds(scored.model, result, times) <= plan_microseconds(scored.model, unquantized, times)
    assert candidate_timings(session, SCHEMES, batch=4) == timings


def test_strategies_are_compared_at_one_size(scored: Session) -> None:
    losses = {}
    for name in ("optimal", "threshold", "top-k"):
        sums = plan_totals(
            scored.model, wb.search(scored, bits_per_weight=9.0, strategy=name), scored.sensitivities["predicted_kl"]
        )
        assert sums.bits_per_weight <= 9.0 and sums.predicted is not None
        losses[name] = sums.predicted
    assert losses["optimal"] == min(losses.values())
    with pytest.raises(PlanError, match="minimises nothing"):
        wb.search(scored, bits_per_weight=9.0, strategy="top-k", minimise="nbytes")


def test_what_llama_cpp_rounds_is_counted_once_it_is_scored(model: Model, tokens: Path, scored: Session) -> None:
    session = wb.score(scored, model=model, schemes=("q4_0", "q8_0"))
    assert rounding_remark(session, "vllm", "predicted_kl") == rounding_remark(session, None, "predicted_kl") == ""
    remark = rounding_remark(session, "llama.cpp", "predicted_kl")
    assert remark.endswith("--metric predicted_kl_inputs --schemes int8-g32,int8-g256")
    known = wb.score(session, "predicted_kl_inputs", model=model, schemes=inputs.SCHEMES)
    assert rounding_remark(known, "llama.cpp", "predicted_kl") == ""
    within = partial(wb.search, bits_per_weight=20.0, target="gguf", schemes=("q4_0", "q8_0"))
    plain = resolve(within(session), session.model.layers)
    first = next(name for name, each in plain.items() if each.weights != KEEP and ".mlp." in name)
    table = known.sensitivities["predicted_kl_inputs"]
    costly = replace(table, score=np.where([[name == first] for name in table.layers], 1e3, 0.0 * table.score))
    known = replace(known, sensitivities={**known.sensitivities, costly.metric: costly})
    assert within(known).of(first).weights == KEEP
