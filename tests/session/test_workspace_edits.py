"""An edit resolves and adds up only what it changes, and says the very same as starting over would."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.synthetic import SCHEMES, decoder, linear, summary_of, table_of
from tests.session.models import session as small_session
from workbench.models.layer import LayerKind
from workbench.models.summary import ModelSummary
from workbench.planning.plan import KEEP, Plan, Rule, changed_names, resolve
from workbench.planning.totals import Ledger, totals
from workbench.sensitivity.table import Sensitivity
from workbench.session.workspace import Workspace


def tied_model() -> ModelSummary:
    """Two blocks, and a tensor that three layers share."""
    plain = decoder(2).layers
    return summary_of(
        *plain, linear("aux", 50, 64, tied_to="model.embed_tokens"), linear("last", kind=LayerKind.LINEAR)
    )


MODEL = tied_model()
NAMES = [layer.name for layer in MODEL.layers]
PATTERNS = ("model.layers.*.mlp.*", "re:.*q_proj", "*", "model.layers.1.*")
SOME = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)
EDITS = st.one_of(
    st.tuples(st.just("assign"), SOME, st.sampled_from([KEEP, *SCHEMES])),
    st.tuples(st.just("inputs"), SOME, st.sampled_from(["int8-token", None])),
    st.tuples(st.just("pattern"), st.sampled_from(PATTERNS), st.sampled_from([KEEP, *SCHEMES])),
    st.tuples(st.just("drop"), st.integers(0, 40), st.none()),
    st.tuples(st.just("turn"), st.integers(0, 40), st.none()),
    st.tuples(st.sampled_from(["undo", "redo"]), st.none(), st.none()),
)


def opened(table: Sensitivity, plan: Plan, model: ModelSummary = MODEL) -> Workspace:
    """A workspace with a session of the model."""
    workspace = Workspace()
    facts = replace(small_session(), model=model, plan=plan, sensitivities={"predicted_kl": table})
    workspace.open(facts, None)
    return workspace


def change(plan: Plan, kind: str, where: object, what: object) -> Plan:
    """Return the plan after an edit."""
    if kind == "assign":
        return plan.assign(where, weights=what)  # type: ignore[arg-type]
    if kind == "inputs":
        return plan.assign(where, inputs=what)  # type: ignore[arg-type]
    if kind == "pattern":
        rule = Rule(pattern=str(where), assignment=replace(plan.of(NAMES[1]), weights=str(what)))
        return replace(plan, rules=(rule, *plan.rules))
    at = int(where) % max(len(plan.rules), 1)  # type: ignore[call-overload]
    if kind == "turn":
        return replace(plan, rules=plan.rules[at:] + plan.rules[:at])
    return replace(plan, rules=plan.rules[:at] + plan.rules[at + 1 :])


@settings(max_examples=150, deadline=None)
@given(edits=st.lists(EDITS, max_size=25), seed=st.integers(0, 3), holes=st.booleans())
def test_every_edit_says_what_a_full_resolve_says(edits: list[tuple[str, object, object]], seed: int, holes: bool):
    table = table_of(MODEL, seed=seed)
    if holes:
        table.score[2, 1], table.score[3, 2] = np.nan, np.inf
    workspace = opened(table, Plan())
    for kind, where, what in edits:
        if kind in ("undo", "redo"):
            getattr(workspace, kind)()
        else:
            workspace.edit(kind, lambda now, k=kind, w=where, v=what: replace(now, plan=change(now.plan, k, w, v)))
        state = workspace.state
        assert state.session is not None and state.plan_error == ""
        full = resolve(state.session.plan, MODEL.layers)
        assert state.assignments == full and list(state.assignments) == list(full)
        assert state.totals == totals(MODEL, full, table)


def test_an_unknown_name_or_scheme_is_refused_as_a_full_resolve_refuses_it():
    workspace = opened(table_of(MODEL), Plan().assign(NAMES[1:3], weights="int8-channel"))
    workspace.edit("bad", lambda now: replace(now, plan=now.plan.assign(["nowhere"], weights=KEEP)))
    assert "matches no layer" in workspace.state.plan_error and workspace.state.totals is None
    workspace.undo()
    assert workspace.state.plan_error == "" and workspace.state.totals is not None
    workspace.edit("bad", lambda now: replace(now, plan=now.plan.assign(NAMES[1:2], weights="int77")))
    assert "int77" in workspace.state.plan_error


@settings(max_examples=100, deadline=None)
@given(scores=st.lists(st.floats(0, allow_infinity=False), min_size=len(MODEL.stored), max_size=len(MODEL.stored)))
def test_the_ledger_adds_floats_as_exactly_as_fsum(scores: list[float]):
    table = table_of(MODEL)
    table.score[:] = np.array(scores)[:, None]
    plan = Plan().assign([layer.name for layer in MODEL.stored], weights="int8-channel")
    assignments = resolve(plan, MODEL.layers)
    try:
        expected = totals(MODEL, assignments, table)
    except OverflowError:
        return
    assert Ledger.of(MODEL, assignments, table).totals == expected


def test_changed_names_follow_many_edits_and_give_up_on_patterns_and_long_differences():
    plan = Plan().assign([f"l{n}" for n in range(300)], weights="int8-channel")
    assert changed_names(plan, plan) == set()
    few = plan.assign(["l7", "l250", "l9"], weights=KEEP)
    assert changed_names(plan, few) == changed_names(few, plan) == {"l7", "l250", "l9"}
    assert changed_names(plan, replace(plan, rules=plan.rules[100:] + plan.rules[:100])) is None
    globbed = replace(plan, rules=(Rule(pattern="l*", assignment=plan.of("l1")), *plan.rules))
    assert changed_names(plan, globbed) is None


def test_the_first_rule_that_matches_wins_whatever_its_kind():
    rules = [Rule(pattern=p, assignment=Plan().assign(["x"], weights=w).of("x"))
             for p, w in (("a.b", "int8-channel"), ("a.*", "int4-g32"), ("a.c", "fp16"), ("a.b", "bf16"))]  # fmt: skip
    plan = Plan(rules=tuple(rules))
    assert [plan.of(name).weights for name in ("a.b", "a.c", "b")] == ["int8-channel", "int4-g32", KEEP]
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert len(pickle.dumps(plan)) == len(pickle.dumps(Plan(rules=plan.rules)))
