"""Tables of activation losses in a session: scored, extended, stored, and counted by the search for a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import BudgetError, MissingResultError, PlanError
from workbench.models.model import Model
from workbench.models.summary import quantizable
from workbench.planning.plan import KEEP, Plan, resolve
from workbench.planning.totals import plan_totals
from workbench.sensitivity.metrics import ACTIVATION_METRICS
from workbench.sensitivity.score import score
from workbench.session.session import Session
from workbench.session.workspace import Workspace
from workbench.steps import session_data

WEIGHTS = ("int4-g32", "int8-channel")
INPUTS = ("int8-token", "int4-token")


@pytest.fixture(scope="module")
def model(llama: Path) -> Model:
    return wb.open(llama)


@pytest.fixture(scope="module")
def calibrated(model: Model, tokens: Path) -> Session:
    return wb.calibrate(model, tokens, batch_size=4)


@pytest.fixture(scope="module")
def scored(model: Model, calibrated: Session) -> Session:
    session = wb.score(calibrated, model=model, schemes=WEIGHTS)
    return wb.score(session, "predicted_kl_inputs", model=model, schemes=INPUTS, batch_size=4)


@pytest.mark.parametrize("metric", ACTIVATION_METRICS)
def test_the_tables_are_those_of_the_functions(model: Model, calibrated: Session, metric: str) -> None:
    result = wb.score(calibrated, metric, model=model, schemes=["int4-token"], samples=4, batch_size=2, seed=1)
    table = result.sensitivities[metric]
    assert calibrated.calibration is not None
    data = session_data.recorded(model, calibrated.calibration, samples=4)
    if metric.endswith("_cache"):
        kind = metric.removesuffix("_cache")
        expected = score(model, f"{kind}_cache", ["int4-token"], dataset=data, batch_size=2, seed=1)
    else:
        kind = metric.removesuffix("_inputs")
        expected = score(model, f"{kind}_inputs", ["int4-token"], dataset=data, batch_size=2, seed=1)
    assert (table.metric, table.unit, table.samples, table.seed) == (metric, "nats", 4, 1)
    assert table.layers == expected.layers and (table.score > 0).all()
    np.testing.assert_array_equal(table.score, expected.score)


@pytest.mark.parametrize("rounded", [{"inputs": "int8-token"}, {"cache": "int8-token"}], ids=["inputs", "cache"])
def test_a_prediction_of_weights_alone_does_not_stand_beside_what_inputs_and_caches_cost_as_well(
    rounded: dict[str, str], model: Model, calibrated: Session
) -> None:
    session = wb.score(calibrated, model=model, schemes=WEIGHTS)
    layers = [layer.name for layer in session.model.layers if layer.name.endswith(("k_proj", "v_proj"))]
    plan = Plan().assign(layers, weights="int8-channel", algorithm="rtn")
    assert wb.evaluate(session, plan, model=model, samples=4).predicted_kl is not None
    also = plan.assign(layers, weights="int8-channel", algorithm="rtn", **rounded)
    assert wb.evaluate(session, also, model=model, samples=4).predicted_kl is None
    metric = f"predicted_kl_{'inputs' if 'inputs' in rounded else 'cache'}"
    priced = wb.score(session, metric, model=model, schemes=list(rounded.values()), batch_size=4)
    assert wb.evaluate(priced, also, model=model, samples=4).predicted_kl is not None


def test_columns_are_kept_beside_new_ones_on_the_same_data_only(model: Model, scored: Session) -> None:
    before = scored.sensitivities["predicted_kl_inputs"]
    again = wb.score(
        scored, "predicted_kl_inputs", model=model, schemes=["fp8-e4m3-token", "int4-token"], batch_size=4
    ).sensitivities["predicted_kl_inputs"]
    assert again.schemes == ("int8-token", "fp8-e4m3-token", "int4-token")
    np.testing.assert_array_equal(again.score[:, 0], before.score[:, before.column["int8-token"]])
    np.testing.assert_allclose(again.score[:, 2], before.score[:, before.column["int4-token"]], rtol=1e-5)
    other = wb.score(scored, "predicted_kl_inputs", model=model, schemes=["int4-token"], seed=1, batch_size=4)
    assert other.sensitivities["predicted_kl_inputs"].schemes == ("int4-token",)


def test_static_schemes_are_scored_with_the_range_in_force(model: Model, calibrated: Session) -> None:
    wide = {key: replace(item, low=-1e3, high=1e3, method="manual") for key, item in calibrated.active_ranges.items()}
    narrow, coarse = (
        wb.score(session, "predicted_kl_inputs", model=model, schemes=["int8-tensor"], samples=4)
        .sensitivities["predicted_kl_inputs"].score
        for session in (calibrated, replace(calibrated, active_ranges=wide))
    )  # fmt: skip
    assert (coarse > narrow).all()


def test_a_session_file_keeps_the_table(scored: Session, tmp_path: Path) -> None:
    scored.save(tmp_path / "s.qwb")
    back = Session.load(tmp_path / "s.qwb").sensitivities["predicted_kl_inputs"]
    table = scored.sensitivities["predicted_kl_inputs"]
    assert (back.metric, back.layers, back.schemes) == (table.metric, table.layers, table.schemes)
    np.testing.assert_array_equal(back.score, table.score)


def test_the_loss_of_a_plan_counts_its_activations(scored: Session) -> None:
    inputs, weights = scored.sensitivities["predicted_kl_inputs"], scored.sensitivities["predicted_kl"]
    names = [layer.name for layer in quantizable(scored.model.layers)]
    bare = wb.search(scored, bits_per_weight=7.0)
    plan = wb.search(scored, bits_per_weight=7.0, inputs="INT4-token")
    assignments = resolve(plan, scored.model.layers)
    assert {assignments[name].inputs for name in names} == {"int4-token"}
    assert {n: a.weights for n, a in assignments.items()} == {
        n: a.weights for n, a in resolve(bare, scored.model.layers).items()
    }
    activations = sum(inputs.of(name, "int4-token") for name in names)
    alone, both = (plan_totals(scored.model, plan, weights, table).second_order for table in (None, inputs))
    assert alone is not None and both == pytest.approx(alone + activations, rel=1e-12) and activations > 0
    lossless = 0.99 * weights.whole(activations)
    assert wb.search(scored, loss=lossless, minimise="nbytes")
    with pytest.raises(BudgetError, match="the least possible loss"):
        wb.search(scored, loss=lossless, minimise="nbytes", inputs="int4-token")


def test_locked_activations_count_and_unscored_ones_leave_the_plan_without_a_prediction(scored: Session) -> None:
    inputs, weights = scored.sensitivities["predicted_kl_inputs"], scored.sensitivities["predicted_kl"]
    name = quantizable(scored.model.layers)[0].name
    locked = replace(scored, plan=Plan().assign([name], inputs="int4-token"), locked=frozenset({name}))
    loss = weights.whole(inputs.of(name, "int4-token"))
    with pytest.raises(BudgetError, match="the least possible loss"):
        wb.search(locked, loss=0.99 * loss, minimise="nbytes")
    smallest = wb.search(locked, loss=1.01 * loss, minimise="nbytes")
    assert resolve(smallest, scored.model.layers)[name].inputs == "int4-token"
    sums = plan_totals(scored.model, Plan().assign([name], inputs="int5-token"), weights, inputs)
    assert (sums.predicted, sums.missing) == (None, 1)


def test_a_budget_of_loss_refuses_what_was_not_scored(scored: Session) -> None:
    name = quantizable(scored.model.layers)[0].name
    for tables in (scored.sensitivities, {"predicted_kl": scored.sensitivities["predicted_kl"]}):
        session = replace(scored, sensitivities=tables, plan=Plan().assign([name], inputs="int5-token"))
        with pytest.raises(MissingResultError, match=rf"int5-token at the input of {name} was not scored"):
            wb.search(session, loss=0.5, minimise="nbytes")
        result = wb.search(session, bits_per_weight=7.0)
        assert resolve(result, scored.model.layers)[name].inputs == "int5-token"


def test_a_layer_that_no_data_reached_keeps_its_input(scored: Session) -> None:
    table, names = scored.sensitivities["predicted_kl_inputs"], [x.name for x in quantizable(scored.model.layers)]
    score = table.score.copy()
    score[table.row[names[1]]] = np.nan
    session = replace(scored, sensitivities={**scored.sensitivities, table.metric: replace(table, score=score)})
    result = wb.search(session, loss=0.5, minimise="nbytes", inputs="int4-token")
    assignments = resolve(result, scored.model.layers)
    assert [name for name in names if assignments[name].inputs is None] == [names[1]]


def test_python_takes_every_budget_of_the_command_line(scored: Session) -> None:
    names = [layer.name for layer in quantizable(scored.model.layers)]
    weights, inputs = (scored.sensitivities[name] for name in ("predicted_kl", "predicted_kl_inputs"))
    both = wb.search(scored, bits_per_weight=9.0, loss=0.05, inputs="int4-token", lock=names[:1],
                        allow={names[1]: ["int8-channel"]}, schemes=["int4-g32", "int8-channel"])  # fmt: skip
    assignments, sums = resolve(both, scored.model.layers), plan_totals(scored.model, both, weights, inputs)
    assert assignments[names[0]].weights == KEEP and assignments[names[1]].weights == "int8-channel"
    assert sums.bits_per_weight <= 9.0 and sums.predicted is not None and sums.predicted <= 0.05
    assert {assignments[name].inputs for name in names[1:]} == {"int4-token"}
    smallest = wb.search(scored, loss=0.05, minimise="nbytes")
    assert plan_totals(scored.model, smallest).nbytes < plan_totals(scored.model, both).nbytes
    assert wb.search(scored, size=sums.nbytes, strategy="top-k").name.startswith("top-k")
    with pytest.raises(PlanError, match="needs a budget"):
        wb.search(scored)


def test_the_window_counts_rounded_inputs(scored: Session) -> None:
    names = [layer.name for layer in quantizable(scored.model.layers)]
    workspace = Workspace()
    workspace.open(replace(scored, plan=Plan().assign(names, weights="int4-g32")), None)
    before = workspace.state.totals
    workspace.edit("round", lambda now: replace(now, plan=now.plan.assign(names[:1], inputs="int4-token")))
    after, expected = workspace.state.totals, plan_totals(
        scored.model, workspace.state.session.plan, scored.sensitivities["predicted_kl"],
        scored.sensitivities["predicted_kl_inputs"],
    )  # fmt: skip
    assert before is not None and after == expected
    cost = scored.sensitivities["predicted_kl_inputs"].of(names[0], "int4-token")
    assert after.second_order == pytest.approx(before.second_order + cost, rel=1e-12) and cost > 0
    workspace.undo()
    assert workspace.state.totals == before


def test_the_search_chooses_among_several_activation_schemes(model: Model, scored: Session) -> None:
    with pytest.raises(MissingResultError, match="int8-tensor were not scored"):
        wb.search(scored, bits_per_weight=12.0, inputs=["int8-token", "int8-tensor"])
    free = wb.search(scored, bits_per_weight=7.0, inputs=INPUTS)
    assert {assignment.inputs for assignment in resolve(free, scored.model.layers).values()} == {None}
    wider = wb.score(scored, "predicted_kl_inputs", model=model, schemes=["int8-tensor"], batch_size=4)
    both = ["INT8-tensor", "int4-token"]
    bound = wb.search(wider, bits_per_weight=12.0, target="edge-tpu", inputs=both)
    assignments = resolve(bound, scored.model.layers).values()
    assert {(a.weights, a.inputs) for a in assignments if a.weights != KEEP} == {("int8-channel", "int8-tensor")}
    with pytest.raises(PlanError, match="chooses no activation schemes"):
        wb.search(scored, bits_per_weight=7.0, inputs=INPUTS, strategy="top-k")


def test_losses_of_other_units_are_not_added(scored: Session) -> None:
    table = scored.sensitivities["predicted_kl_inputs"]
    measured = replace(table, metric="measured_kl_inputs")
    both = replace(scored, sensitivities={**scored.sensitivities, "measured_kl_inputs": measured})
    assert both.inputs_table("predicted_kl") is table and both.inputs_table("measured_kl") is measured
    assert scored.inputs_table("measured_kl") is table and scored.inputs_table("weight_error") is None


def test_what_is_missing_is_said(model: Model, calibrated: Session) -> None:
    with pytest.raises(MissingResultError, match="calibrate first"):
        wb.score(wb.start(model), "predicted_kl_inputs", model=model)
    with pytest.raises(PlanError, match="gptq rounds weights"):
        wb.score(calibrated, "predicted_kl_inputs", model=model, algorithm="gptq")
    with pytest.raises(PlanError, match="predicted_kl_inputs"):
        wb.score(calibrated, "kl_inputs", model=model)


def test_the_command_line_scores_activations_and_plans_with_them(
    scored: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.qwb"
    replace(scored, sensitivities={"predicted_kl": scored.sensitivities["predicted_kl"]}).save(path)
    score = ["sensitivity", str(path), "--metric", "predicted_kl_inputs", "--schemes", "int4-token"]
    assert main([*score, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["metric"] == "predicted_kl_inputs"
    search = ["plan", str(path), "--bits-per-weight", "7", "--inputs", "int4-token", "--quiet"]
    assert main([*search, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    session = Session.load(path)
    weights, inputs = session.sensitivities["predicted_kl"], session.sensitivities["predicted_kl_inputs"]
    assert result["predicted"] == plan_totals(session.model, session.plan, weights, inputs).predicted
    assert set(result["inputs"].values()) == {"int4-token"}
    assert main(search) == 0
    assert "inputs" in capsys.readouterr().out


def test_the_command_line_plans_a_cache_and_measures_it(
    scored: Session, model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.qwb"
    scored.save(path)
    plan = ["plan", str(path), "--bits-per-weight", "9", "--cache", "int4-token", "--quiet"]
    assert main(plan) == 0
    assert "weights only: what the rounded key-value cache costs was not scored" in capsys.readouterr().out
    score = ["sensitivity", str(path), "--metric", "predicted_kl_cache", "--schemes", "int4-token", "--quiet"]
    assert main(score) == 0 and capsys.readouterr().out.startswith("predicted_kl_cache in nats")
    assert main([*plan, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    session = Session.load(path)
    weights, cache = session.sensitivities["predicted_kl"], session.sensitivities["predicted_kl_cache"]
    assert result["predicted_counts"] == "weights and cache" and set(result["cache"]) == set(cache.layers)
    assert result["cache_bytes_per_token"]["plan"] < result["cache_bytes_per_token"]["as computed"] / 2
    assert result["predicted"] == plan_totals(session.model, session.plan, weights, None, cache).predicted
    evaluation = wb.evaluate(session, model=model, samples=4)
    bare = wb.evaluate(session, wb.search(session, bits_per_weight=9.0, cache="none"), model=model, samples=4)
    assert evaluation.predicted_kl == result["predicted"] > bare.predicted_kl
    assert evaluation.metrics["kl"].value > bare.metrics["kl"].value
    out = tmp_path / "w.safetensors"
    assert main(["export", str(path), "--to", "safetensors", "--out", str(out), "--quiet"]) == 0
    assert "note: the key-value cache of" in capsys.readouterr().out
    assert main(["export", str(path), "--to", "state-dict", "--out", str(out), "--quiet"]) == 1
    assert "quantizes the KV cache" in capsys.readouterr().err
    assert main(["audit", str(path), "--samples", "2", "--quiet"]) == 0
    assert "the key-value cache of" in capsys.readouterr().out
