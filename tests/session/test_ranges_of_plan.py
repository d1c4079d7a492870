"""Static ranges follow the plan's range method, for the very scheme, unless a person set one; also by command line."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.deployment.proof.record import RuntimeProof
from workbench.errors import PlanError, RangeError
from workbench.insight.dashboard import evaluation_of
from workbench.measurement.evaluation import Evaluation
from workbench.models.model import Model
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import range_method
from workbench.planning.plan import Plan, resolve
from workbench.quantization.quantized_model import QuantizedModel
from workbench.session.calibrated_ranges import identity, ranges_of_plan, set_by_hand, statistics_for_plan
from workbench.session.session import Session
from workbench.session.table import Table
from workbench.steps.checks import runtime
from workbench.steps.checks.error_budget import ERROR_BUDGET, ErrorBudgetOptions
from workbench.steps.checks.reconstruction import RECONSTRUCTION, ReconstructionOptions, reconstructions
from workbench.steps.checks.runtime import RUNTIME, RuntimeOptions
from workbench.steps.evaluate import EVALUATE, EvaluateOptions
from workbench.steps.session_data import totals_of
from workbench.steps.step import Context

SCHEME = "int4-tensor-asym"


@pytest.fixture(scope="module")
def model(llama: Path) -> Model:
    return wb.open(llama)


@pytest.fixture(scope="module")
def session(model: Model, tokens: Path) -> Session:
    return wb.calibrate(model, tokens, batch_size=4)


def layer_of(session: Session) -> str:
    return next(layer.name for layer in session.model.stored if layer.name.endswith("down_proj"))


@pytest.mark.parametrize("method", ["min-max", "moving-average", "percentile", "entropy", "mse", "loss"])
def test_the_plan_says_which_method(session: Session, method: str) -> None:
    name = layer_of(session)
    plan = Plan().assign([name], inputs=SCHEME, range_method=method)
    expected = range_method(method).range(session.statistics[name, "input"], parse_scheme(SCHEME))
    assert ranges_of_plan(session, plan)[name, "input"] == expected
    bare = replace(session, statistics={})
    assert ranges_of_plan(bare, plan)[name, "input"] == session.ranges[name, "input", method]
    others = {key: value for key, value in ranges_of_plan(session, plan).items() if key != (name, "input")}
    assert others == {key: one for key, one in session.active_ranges.items() if key != (name, "input")}


@pytest.mark.parametrize("method", ["loss", "mse", "entropy", "min-max"])
def test_nvfp4_inputs_keep_the_whole_range(session: Session, model: Model, method: str) -> None:
    name = layer_of(session)
    plan = Plan().assign([name], inputs="nvfp4", range_method=method)
    largest = session.statistics[name, "input"].absmax
    for known in (session, replace(session, statistics={})):
        chosen = ranges_of_plan(known, plan)[name, "input"]
        assert max(-chosen.low, chosen.high) == pytest.approx(largest, rel=1e-6) and chosen.clipped == 0.0
    mine = set_by_hand(session, name, -0.5, 0.25)
    assert ranges_of_plan(mine, plan)[name, "input"].method == "manual"


def test_nvfp4_inputs_are_scored_with_the_whole_range(session: Session, model: Model) -> None:
    losses = {}
    for schemes in (("nvfp4", "int8-tensor"), ("nvfp4",), ("int8-tensor",)):
        scored = wb.score(session, model=model, metric="predicted_kl_inputs", schemes=schemes)
        table = scored.sensitivities["predicted_kl_inputs"]
        losses[schemes] = {name: table.score[:, place].tolist() for name, place in table.column.items()}
    assert losses["nvfp4", "int8-tensor"] == losses["nvfp4",] | losses["int8-tensor",]
    whole = Plan().assign(["*"], range_method="min-max")
    scored = wb.score(replace(session, plan=whole), model=model, metric="predicted_kl_inputs", schemes=("nvfp4",))
    assert losses["nvfp4",]["nvfp4"] == scored.sensitivities["predicted_kl_inputs"].score[:, 0].tolist()


def test_the_method_loss_has_the_least_predicted_loss(session: Session, model: Model, tokens: Path) -> None:
    names = [layer.name for layer in session.model.stored if (layer.name, "input") in session.statistics]
    names = [name for name in names if session.statistics[name, "input"].costs.size]
    assert len(names) == len(session.model.stored) - 1, "all but the embedding"
    losses = {}
    for method in ("loss", "min-max", "percentile", "mse"):
        plan = Plan().assign(names, inputs=SCHEME, range_method=method)
        planned = replace(session, plan=plan, active_ranges=ranges_of_plan(session, plan))
        table = wb.score(planned, model=model, metric="predicted_kl_inputs", schemes=(SCHEME,))
        losses[method] = table.sensitivities["predicted_kl_inputs"].score[:, 0]
    for method in ("min-max", "percentile", "mse"):
        assert (losses["loss"] <= losses[method] * 1.05).all(), method
        assert losses["loss"].sum() < 0.98 * losses[method].sum(), method


def test_costs_are_kept_and_their_lack_is_told(
    session: Session, model: Model, tokens: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, name = tmp_path / "s.qwb", layer_of(session)
    session.save(path)
    plan = Plan().assign([name], inputs=SCHEME, range_method="loss")
    assert ranges_of_plan(Session.load(path), plan) == ranges_of_plan(session, plan)
    bare = {key: replace(each, costs=np.zeros(0)) for key, each in session.statistics.items()}
    ranges = {key: each for key, each in session.ranges.items() if key[2] != "loss"}
    replace(session, statistics=bare, ranges=ranges).save(path)
    without = Session.load(path)
    assert ranges_of_plan(without, plan)[name, "input"].method == "mse", "what an earlier version calibrated"
    assert ranges_of_plan(replace(without, statistics={}), plan)[name, "input"].method == "mse"
    words = ["--uniform", "int8-channel", "--inputs", SCHEME, "--range-method", "loss", "--quiet"]
    assert main(["plan", str(path), *words]) == 1
    assert "needs gradients at inputs, and this calibration has none; calibrate again" in capsys.readouterr().err


def test_what_is_evaluated_follows_it(session: Session, model: Model) -> None:
    name = layer_of(session)
    losses = []
    for method in ("min-max", "mse"):
        plan = Plan().assign([name], inputs=SCHEME, range_method=method)
        quantized = wb.quantize(model, plan, session=session)
        assert quantized.ranges[name, "input"].method == method
        losses.append(wb.evaluate(session, plan, model=model, samples=4).metrics["kl"].value)
    assert losses[0] != losses[1]


def test_a_range_by_hand_comes_first(session: Session) -> None:
    name = layer_of(session)
    mine = set_by_hand(session, name, -0.5, 0.25)
    plan = Plan().assign([name], inputs=SCHEME, range_method="mse")
    result = ranges_of_plan(mine, plan)[name, "input"]
    assert (result.low, result.high, result.method) == (-0.5, 0.25, "manual") and 0 < result.clipped < 1
    for low, high in ((0.1, 1.0), (None, 1.0), (0.0, 0.0), (-1.0, float("inf"))):
        with pytest.raises(RangeError, match="a low of at most 0"):
            set_by_hand(session, name, low, high)
    with pytest.raises(PlanError, match="down_porj"):
        set_by_hand(session, "down_porj", -1.0, 1.0)


def test_a_request_carries_what_the_methods_look_at(session: Session) -> None:
    name = layer_of(session)
    planned = replace(session, plan=Plan().assign([name], inputs=SCHEME, range_method="mse"))
    assert set(statistics_for_plan(planned)) == {(name, "input")} and statistics_for_plan(session) == {}
    slimmed = EVALUATE.request(planned, EvaluateOptions()).reduced().session
    assert ranges_of_plan(slimmed, planned.plan) == ranges_of_plan(planned, planned.plan)


def test_a_method_that_does_not_exist_is_named(session: Session) -> None:
    plan = Plan().assign([layer_of(session)], inputs=SCHEME, range_method="min_max")
    with pytest.raises(RangeError, match="min_max.*min-max"):
        ranges_of_plan(session, plan)


def test_the_command_line_lists_sets_and_plans(
    session: Session, model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, name = tmp_path / "s.qwb", layer_of(session)
    wb.score(session, model=model, schemes=("int8-channel",)).save(path)
    assert main(["ranges", str(path), "--layer", name, "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["layers"]
    methods = [entry["method"] for entry in listed["ranges"]]
    assert methods == ["min-max", "moving-average", "percentile", "entropy", "mse", "loss"]
    assert listed["in_force"]["method"] == "loss"
    words = ["plan", str(path), "--bits-per-weight", "9", "--inputs", SCHEME, "--range-method", "entropy", "--quiet"]
    assert main(words) == 0
    assert {a.range_method for a in resolve(Session.load(path).plan, session.model.layers).values() if a.inputs} == {
        "entropy"
    }
    capsys.readouterr()
    assert main(["ranges", str(path), "--layer", name]) == 0
    assert any("*" in line and "entropy" in line for line in capsys.readouterr().out.splitlines())
    assert main(["ranges", str(path), "--layer", name, "--low", "-1", "--high", "2"]) == 0
    by_hand = set_by_hand(session, name, -1.0, 2.0).active_ranges[name, "input"]
    assert Session.load(path).active_ranges[name, "input"] == by_hand
    assert any("*" in line and "manual" in line for line in capsys.readouterr().out.splitlines())
    assert main(["plan", str(path), "--bits-per-weight", "9", "--inputs", "none", "--range-method", "mse"]) == 1
    assert "the plan rounds none" in capsys.readouterr().err
    assert main(["ranges", str(path), "--layer", "nope"]) == 1 and "matches no layer" in capsys.readouterr().err


def test_an_evaluation_is_one_of_the_ranges_that_it_had(session: Session, model: Model) -> None:
    """Moving a range by hand changes what the plan's inputs are rounded to, so an earlier loss is another plan's."""
    name, other = layer_of(session), next(layer.name for layer in session.model.stored if "q_proj" in layer.name)
    planned = replace(session, plan=Plan().assign([name], inputs="int8-tensor-asym"), target=None)
    totals, runs = totals_of(planned, planned.plan, "predicted_kl"), list[Evaluation]()
    for low in (None, -0.5, -0.25):
        moved = planned if low is None else set_by_hand(planned, name, low, 0.25)
        assert evaluation_of(replace(moved, evaluations=tuple(runs)), moved.plan, totals) is None
        runs.append(wb.evaluate(moved, moved.plan, model=model, batch_size=4))
        for where in (moved, set_by_hand(moved, other, -1.0, 1.0)):  # whose inputs the plan does not round
            assert evaluation_of(replace(where, evaluations=tuple(runs)), where.plan, totals) is runs[-1]
    assert len({run.plan_hash for run in runs}) == 3 and runs[0].plan_hash == planned.plan.hash


def test_a_run_in_a_runtime_is_one_of_the_ranges_that_it_had(
    session: Session, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window said that this plan ran in its runtime when a range had been moved since."""
    numbers = {field.name: 0 for field in fields(RuntimeProof)}
    texts = {"runtime": "one", "plan_name": "", "unit": "nats", "tokens": "", "data": "", "layers": ""}

    def run(quantized: QuantizedModel, *_: object) -> RuntimeProof:
        return RuntimeProof(**numbers | texts | {"plan": quantized.plan.hash})  # type: ignore[arg-type]

    monkeypatch.setattr(runtime, "_runner", lambda _: run)
    moved = replace(session, plan=Plan().assign([layer_of(session)], inputs="int8-tensor-asym"), target=None)
    for low, count in ((None, 1), (-0.5, 2), (-0.25, 3), (-0.5, 3)):
        moved = moved if low is None else set_by_hand(moved, layer_of(session), low, 0.25)
        options = RuntimeOptions(samples=2, baseline=False)
        moved = replace(moved, results={runtime.NAME: RUNTIME.run(Context(document=moved, opened=model), options)})
        known = [proof.plan for proof in runtime.proofs(moved)]
        assert known[-1] == identity(moved, moved.plan) and len({*known}) == len(known) == count


def test_a_tied_layer_has_the_inputs_of_its_owner(session: Session) -> None:
    """Where no rule of its own says another: its range by hand then makes another plan, too."""
    name, owner = layer_of(session), next(layer.name for layer in session.model.stored if "q_proj" in layer.name)
    layers = [replace(each, tied_to=owner if each.name == name else None) for each in session.model.layers]
    tied = replace(session, model=replace(session.model, layers=tuple(layers)))
    plan = Plan().assign([owner], inputs="int8-tensor-asym")
    moved = set_by_hand(tied, name, -0.5, 0.25)
    assert resolve(plan, layers)[name].inputs and ranges_of_plan(moved, plan)[name, "input"].method == "manual"
    assert identity(moved, plan) != identity(tied, plan) == plan.hash
    assert identity(moved, own := plan.assign([name], inputs=None)) == own.hash


def test_an_error_budget_and_a_reconstruction_are_of_the_ranges_that_they_had(session: Session, model: Model) -> None:
    """They were known by the plan's hash alone, and passed for those of a range that had been moved since."""
    plan = Plan().assign([layer_of(session)], weights="int8-channel", inputs="int8-tensor-asym")
    planned = replace(session, plan=plan)
    budget = ERROR_BUDGET(planned, ErrorBudgetOptions(samples=2), model=model)
    rows = RECONSTRUCTION(planned, ReconstructionOptions(), model=model)
    done = replace(planned, error_budget=budget, results={RECONSTRUCTION.name: rows})
    assert reconstructions(done) and budget.plan_hash == plan.hash
    moved = set_by_hand(done, layer_of(session), -0.5, 0.25)
    assert reconstructions(moved) == ()
    again = ERROR_BUDGET(moved, ErrorBudgetOptions(samples=2), model=model)
    assert again.plan_hash == identity(moved, plan) != budget.plan_hash


def test_what_a_plan_is_known_by_is_looked_up_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every redraw of the window asks for it: of 60,000 layers, hashes and ranges took half a second each time."""
    plan = Plan().assign([layer_of(session)], inputs="int8-tensor-asym")
    moved = set_by_hand(replace(session, plan=plan), layer_of(session), -0.5, 0.25)
    known = identity(moved, plan)
    monkeypatch.setattr(json, "dumps", None)
    monkeypatch.setattr(Table, "__iter__", None)
    assert identity(replace(moved, notes=("another state",)), plan) == known


def test_a_session_that_was_saved_knows_its_plan_by_the_same_ranges(session: Session, tmp_path: Path) -> None:
    """numpy's numbers and whole ones come back as Python's floats."""
    planned = replace(session, plan=Plan().assign([layer_of(session)], inputs="int8-tensor-asym"))
    for low, high in ((np.float64(-0.1), np.float64(0.3)), (np.float32(-0.1), np.float32(0.3)), (-1, 2)):
        moved = set_by_hand(planned, layer_of(session), low, high)  # type: ignore[arg-type]
        moved.save(tmp_path / "moved.qwb")
        assert identity(Session.load(tmp_path / "moved.qwb"), moved.plan) == identity(moved, moved.plan)
