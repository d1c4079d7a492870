"""Why layers have their schemes, every efficient plan, predictions corrected by an audit; also by the command line."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import MissingResultError, PlanError
from workbench.models.model import Model
from workbench.planning.plan import KEEP, Plan
from workbench.planning.totals import plan_totals
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.session.session import Session
from workbench.steps.explain import EXPLAIN, Explained, ExplainOptions
from workbench.steps.front import efficient_plans
from workbench.steps.search_rules import correction_of


def explain_plan(session: Session, plan: Plan | None = None, *, layer: str = "*") -> Explained:
    return EXPLAIN(session if plan is None else replace(session, plan=plan), ExplainOptions(layer=layer))


SCHEMES = ("int4-g32", "int8-channel")


@pytest.fixture(scope="module")
def scored(llama: Path, tokens: Path) -> Session:
    model: Model = wb.open(llama)
    session = wb.score(wb.calibrate(model, tokens, batch_size=4), model=model, schemes=SCHEMES)
    return replace(session, plan=wb.search(session, bits_per_weight=7.0))


def audited(session: Session, factor: float) -> Session:
    losses = np.array([1.0])
    audit = Audit(layers=("a",), predicted=losses, alone=losses, joined=losses, whole=factor, samples=1)
    of = PlanAudit(plan_name="other", plan_hash="sha256:0", rounded_inputs=0, cached=0, audit=audit)
    return replace(session, audit=of)


def test_each_layer_says_bytes_loss_and_price(scored: Session) -> None:
    result, table = explain_plan(scored), scored.sensitivities["predicted_kl"]
    assert [item.layer for item in result.layers] == [layer.name for layer in scored.model.stored]
    for item in result.layers:
        scheme = scored.plan.of(item.layer).weights
        assert item.scheme == scheme
        assert item.added == (0.0 if scheme == KEEP else pytest.approx(table.of(item.layer, scheme), rel=1e-12))
    assert result.totals == plan_totals(scored.model, scored.plan, table)
    bought = result.purchase
    assert bought is not None and bought.loss / bought.nbytes == pytest.approx(result.price, rel=1e-9)
    step = sum(table.of(name, bought.before) - table.of(name, bought.after) for name in bought.layers)
    assert bought.loss == pytest.approx(step, rel=1e-9)


def test_a_locked_layer_has_its_loss_and_an_unscored_one_says_so(scored: Session) -> None:
    name = next(layer.name for layer in scored.model.stored if layer.name.endswith("up_proj"))
    locked = replace(scored, locked=frozenset({name}), plan=scored.plan.assign([name], weights="int8-channel"))
    (layer,) = explain_plan(locked, layer=name).layers
    assert layer.added == scored.sensitivities["predicted_kl"].of(name, "int8-channel") and "locked" in layer.sentence
    (other,) = explain_plan(scored, scored.plan.assign([name], weights="int5-g64"), layer=name).layers
    assert math.isnan(other.added) and "a loss that was not scored" in other.sentence and "nan" not in other.sentence
    with pytest.raises(PlanError, match=r"up_porj.*no layer with a weight of its own"):
        explain_plan(scored, layer="up_porj")


def test_the_front_has_the_plans_of_the_search(scored: Session) -> None:
    front, table = efficient_plans(scored), scored.sensitivities["predicted_kl"]
    assert (np.diff(front.nbytes) > 0).all() and (np.diff(front.loss) < 0).all()
    for index in (0, len(front) // 2, len(front) - 1):
        sums = plan_totals(scored.model, front.plan(index), table)
        assert sums.nbytes == front.nbytes[index] and sums.predicted == pytest.approx(front.loss[index], abs=1e-15)
    assert len(efficient_plans(scored, schemes=["int8-channel"])) < len(front)
    with pytest.raises(MissingResultError):
        efficient_plans(replace(scored, sensitivities={}))


def test_the_command_line_explains_and_lists(
    scored: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.qwb"
    scored.save(path)
    assert main(["explain", str(path), "--layer", "*up_proj", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    expected = explain_plan(scored, layer="*up_proj")
    assert [item["sentence"] for item in result["layers"]] == [item.sentence for item in expected.layers]
    assert result["price"] == expected.price and result["next"]["loss"] == expected.purchase.loss
    assert main(["explain", str(path)]) == 0
    assert "at this size a byte avoids" in capsys.readouterr().out
    assert main(["front", str(path), "--points", "3", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    front = efficient_plans(scored)
    assert [item["bytes"] for item in listed["plans"]] == front.nbytes[[0, round((len(front) - 1) / 2), -1]].tolist()
    assert main(["front", str(path)]) == 0 and "convex front of predicted_kl" in capsys.readouterr().out


def test_a_correction_is_used_when_asked_for_only(
    scored: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, table = audited(scored, 2.0), scored.sensitivities["predicted_kl"]
    assert correction_of(session, "predicted_kl") == 2.0
    plain = wb.search(session, loss=0.02, minimise="nbytes")
    result = wb.search(session, loss=0.02, minimise="nbytes", corrected=True)
    half = wb.search(session, loss=0.01, minimise="nbytes")
    assert result.rules == half.rules != plain.rules and "loss of 0.02, corrected by an audit" in result.name
    path = tmp_path / "s.qwb"
    session.save(path)
    words = ["plan", str(path), "--bits-per-weight", "7", "--quiet"]
    assert main([*words, "--json"]) == 0 and json.loads(capsys.readouterr().out)["corrected"] is None
    assert main([*words, "--corrected", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    predicted = plan_totals(session.model, Session.load(path).plan, table).predicted
    assert output["predicted"] == predicted and output["corrected"]["loss"] == pytest.approx(2 * predicted, rel=1e-12)
    assert output["corrected"]["audit_of"] == "other"
    assert main([*words, "--corrected"]) == 0 and "fitted to the audit of “other”" in capsys.readouterr().out


def test_a_correction_that_does_not_apply_is_refused(scored: Session) -> None:
    with pytest.raises(MissingResultError, match="no audit to correct by"):
        correction_of(scored, "predicted_kl")
    with pytest.raises(MissingResultError, match="audit of “other” has no correction"):
        correction_of(audited(scored, math.nan), "predicted_kl")
    with pytest.raises(PlanError, match="weight_error"):
        correction_of(audited(scored, 2.0), "weight_error")
    name = scored.model.stored[-1].name
    rounded = replace(audited(scored, 2.0), plan=Plan().assign([name], inputs="int8-token"))
    with pytest.raises(PlanError, match="of weights alone"):
        wb.search(rounded, loss=0.02, minimise="nbytes", corrected=True)
