"""Two sessions side by side: what differs is marked, what is equal is not, other models do not stop it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gui import sessions
from workbench.insight.compare import compare_sessions
from workbench.planning.plan import KEEP
from workbench.planning.totals import plan_totals


def test_a_session_does_not_differ_from_itself():
    session = sessions.full(2)
    result = compare_sessions(session, session)
    assert result.same_model
    assert not any(row.differs for rows in (result.facts, result.layers, result.metrics) for row in rows)
    assert [pair.name for pair in result.layers] == [layer.name for layer in session.model.layers]


def test_layers_evaluations_and_facts_that_differ():
    first = sessions.full(2)
    changed = first.model.layers[3].name
    second = replace(
        first, plan=first.plan.assign([changed], weights="nf4-b64", inputs="int8-token"), locked=frozenset([changed]),
        evaluations=(first.evaluations[0], replace(first.evaluations[1], data_hash="other", data_name="other data")),
    )  # fmt: skip
    result = compare_sessions(first, second)
    (pair,) = [pair for pair in result.layers if pair.differs]
    assert pair.name == changed and pair.second.assignment.inputs == "int8-token"
    assert pair.second.loss == first.sensitivities["predicted_kl"].of(changed, "nf4-b64")
    assert {fact.title for fact in result.facts if fact.differs} == {
        "Locked layers", "Bits per weight", "Bytes", "Loss of the plan",
    }  # fmt: skip
    facts = {fact.title: fact for fact in result.facts}
    totals = plan_totals(second.model, second.plan, second.sensitivities["predicted_kl"])
    assert facts["Bytes"].second == f"{totals.nbytes:,}"
    kl = {pair.data: pair for pair in result.metrics if pair.metric == "kl"}
    assert kl["other data"].first is None and kl["other data"].differs
    assert kl["text"].first.value == first.evaluations[2].metrics["kl"].value, "the newest one"
    assert kl["text"].second.value == pytest.approx(0.81) and kl["text"].differs


def test_models_with_other_layers_are_compared_by_name():
    first, second = sessions.full(1), sessions.opened(sessions.summary(2, name="another"))
    model = replace(second.model, fingerprint="sha256:" + "1" * 64)
    second = replace(second, model=model, plan=replace(second.plan, fingerprint=None))
    result = compare_sessions(first, second)
    assert not result.same_model
    only = [pair for pair in result.layers if pair.first is None]
    assert len(only) == 7 and all(pair.differs and pair.name.startswith("model.layers.1") for pair in only)
    assert result.layers[-1].second.bits > 0


def test_an_evaluation_says_which_plan_it_is_of_and_the_present_plans_comes_first():
    first = sessions.full(2)
    (older, newer), own = first.evaluations[:2], first.plan.hash
    own_first = replace(first, evaluations=(replace(older, plan_hash=own, plan_name="mine"), newer))
    pairs = {pair.metric: pair for pair in compare_sessions(own_first, first).metrics}
    assert pairs["kl"].first.value == older.metrics["kl"].value, "a newer one is of another plan"
    assert pairs["kl"].plans == ("mine", f"{first.evaluations[2].plan_name} (not the present plan)")


def test_losses_of_different_metrics_are_not_compared():
    full = sessions.full(2)
    table = full.sensitivities["predicted_kl"]
    first = replace(full, sensitivities={"predicted_kl": table})
    second = replace(full, sensitivities={"weight_error": full.sensitivities["weight_error"]})
    result = compare_sessions(first, second)
    others = [pair.second for pair in result.layers if pair.second.assignment.weights != KEEP]
    assert result.unit == table.unit and others and all(side.loss is None for side in others)


def test_losses_of_one_metric_in_different_units_are_not_compared():
    """The predicted loss of a language model is in nats, that of an encoder half a squared distance."""
    first = sessions.full(1)
    table = replace(first.sensitivities["predicted_kl"], unit="half squared distance")
    encoder = replace(first, sensitivities={"predicted_kl": table})
    nats = replace(first, sensitivities={"predicted_kl": first.sensitivities["predicted_kl"]})
    for one, two, unit in ((encoder, first, "half squared distance"), (nats, encoder, "nats")):
        result = compare_sessions(one, two)
        assert result.unit == unit and {pair.second.loss for pair in result.layers} <= {None, 0.0}
    scored = replace(
        first, sensitivities={**encoder.sensitivities, "weight_error": first.sensitivities["weight_error"]}
    )
    assert compare_sessions(scored, first).unit == first.sensitivities["weight_error"].unit, "what both have"
