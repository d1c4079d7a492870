"""The document: undo gives back exactly what was there, results survive it, listeners hear the truth."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.models import SCHEMES, session, summary, table
from workbench.errors import WorkbenchError
from workbench.numerics.ranges import Range
from workbench.planning.plan import KEEP, Plan, Rule, resolve
from workbench.planning.totals import plan_totals
from workbench.session.budget import Budget, BudgetUnit, known_budget
from workbench.session.edits import BRANCH, EditableParts
from workbench.session.session import Session
from workbench.session.workspace import MAX_UNDO, State, Workspace

LAYERS = [layer.name for layer in summary().layers]
Change = Callable[[Session], Session]


def assign(names: list[str], scheme: str) -> Change:
    """An edit of the plan."""
    return lambda now: replace(now, plan=now.plan.assign(names, weights=scheme))


def lock(name: str) -> Change:
    """An edit of the locks."""
    return lambda now: replace(now, locked=now.locked ^ {name})


def set_range(name: str, low: float) -> Change:
    """An edit of a range."""
    new = Range(low=low, high=1.0, method="manual", clipped=0.0)
    return lambda now: replace(now, active_ranges={**now.active_ranges, (name, "input"): new})


def keep_plan(name: str) -> Change:
    """An edit of the named plans."""
    return lambda now: replace(now, plans={**now.plans, name: now.plan})


edits = st.one_of(
    st.builds(assign, st.lists(st.sampled_from(LAYERS), min_size=1), st.sampled_from([KEEP, *SCHEMES])),
    st.builds(lock, st.sampled_from(LAYERS)),
    st.builds(set_range, st.sampled_from(LAYERS), st.floats(-2, 0)),
    st.builds(keep_plan, st.sampled_from("abc")),
)
steps = st.lists(st.one_of(edits.map(lambda e: ("edit", e)), st.sampled_from([("undo", None), ("redo", None)])))


def opened() -> Workspace:
    """A workspace with a session."""
    workspace = Workspace()
    workspace.open(session(), None)
    return workspace


def edited(state: State) -> EditableParts:
    """Return the edits but for the plans that are kept of other branches: undo leaves those."""
    assert state.session is not None
    parts = EditableParts.of(state.session)
    return replace(parts, plans={name: plan for name, plan in parts.plans.items() if not name.startswith(BRANCH)})


def same(a: EditableParts, b: EditableParts) -> bool:
    """Whether two states of the edits say the same."""
    return all(getattr(a, item.name) == getattr(b, item.name) for item in fields(EditableParts))


@settings(max_examples=60, deadline=None)
@given(changes=st.lists(edits, max_size=30))
def test_undoing_everything_gives_back_what_was_there_and_redoing_what_was_made(changes: list[Change]) -> None:
    workspace = opened()
    start = workspace.state
    trail = [edited(start)]
    for number, change in enumerate(changes):
        workspace.edit(f"edit {number}", change)
        trail.append(edited(workspace.state))
    for number in reversed(range(len(changes))):
        assert workspace.state.undo_name == f"edit {number}"
        workspace.undo()
        assert same(edited(workspace.state), trail[number])
    assert workspace.state.session is not None and start.session is not None
    assert workspace.state.session.plan == start.session.plan
    assert workspace.state.totals == start.totals
    assert workspace.state.undo_name == ""
    workspace.undo()
    for number in range(len(changes)):
        assert workspace.state.redo_name == f"edit {number}"
        workspace.redo()
        assert same(edited(workspace.state), trail[number + 1])
    assert workspace.state.redo_name == ""


@settings(max_examples=60, deadline=None)
@given(sequence=steps)
def test_any_mixture_of_edits_undo_and_redo_follows_the_model_of_two_stacks(sequence: list) -> None:
    workspace = opened()
    past, now, future = [], edited(workspace.state), []
    for kind, change in sequence:
        if kind == "edit":
            past, future = [*past, now], []
            workspace.edit("edit", change)
            now = edited(workspace.state)
        elif kind == "undo":
            workspace.undo()
            if past:
                past, now, future = past[:-1], past[-1], [now, *future]
        else:
            workspace.redo()
            if future:
                past, now, future = [*past, now], future[0], future[1:]
        assert same(edited(workspace.state), now)
        assert bool(workspace.state.undo_name) == bool(past)
        assert bool(workspace.state.redo_name) == bool(future)


@settings(max_examples=40, deadline=None)
@given(changes=st.lists(edits, min_size=1, max_size=10))
def test_totals_and_assignments_always_belong_to_the_plan(changes: list[Change]) -> None:
    workspace = opened()
    for change in changes:
        workspace.edit("edit", change)
        state = workspace.state
        assert state.session is not None
        assert dict(state.assignments) == resolve(state.session.plan, state.session.model.layers)
        assert state.totals == plan_totals(
            state.session.model, state.session.plan, state.session.sensitivities["predicted_kl"]
        )


def test_results_survive_undo() -> None:
    workspace = opened()
    workspace.edit("edit", assign(["blocks.0.proj"], "int4-g32-asym"))
    workspace.update(lambda now: replace(now, notes=("a result",)))
    workspace.undo()
    assert workspace.state.session is not None
    assert workspace.state.session.notes == ("a result",)
    assert workspace.state.session.plan.rules == ()
    workspace.redo()
    assert workspace.state.session.notes == ("a result",)


def test_a_new_table_is_summed_at_once_and_the_shown_metric_can_change() -> None:
    workspace = opened()
    workspace.edit("edit", assign(["blocks.1.proj"], "int2-g32-asym"))
    assert workspace.state.totals is not None and workspace.state.totals.predicted == 2.0
    facts = summary()
    doubled = table(facts, "measured_kl")
    doubled = replace(doubled, score=doubled.score * 2)
    workspace.update(lambda now: replace(now, sensitivities={**now.sensitivities, "measured_kl": doubled}))
    workspace.show_metric("measured_kl")
    assert workspace.state.totals.predicted == 4.0
    workspace.show_metric("weight_error")
    assert workspace.state.totals.predicted is None


def test_a_plan_that_does_not_fit_is_told_and_does_not_raise() -> None:
    workspace = opened()
    wrong = Plan(rules=(Rule(pattern="nowhere", assignment=Plan().of("x")),))
    workspace.edit("edit", lambda now: replace(now, plan=wrong))
    assert "nowhere" in workspace.state.plan_error
    assert workspace.state.totals is None and workspace.state.assignments == {}
    workspace.undo()
    assert workspace.state.plan_error == "" and workspace.state.totals is not None


def test_an_edit_that_changes_nothing_is_no_step() -> None:
    workspace = opened()
    workspace.edit("nothing", lambda now: now)
    assert workspace.state.undo_name == "" and workspace.state.session is not None


def test_an_edit_that_raises_changes_nothing() -> None:
    workspace = opened()
    before = workspace.state

    def broken(now: Session) -> Session:
        raise WorkbenchError("no")

    with pytest.raises(WorkbenchError, match="no"):
        workspace.edit("broken", broken)
    assert workspace.state is before


def test_the_undo_stack_is_bounded() -> None:
    workspace = opened()
    for number in range(MAX_UNDO + 10):
        workspace.edit(f"{number}", lock("embed"))
    steps_back = 0
    while workspace.state.undo_name:
        workspace.undo()
        steps_back += 1
    assert steps_back == MAX_UNDO


def test_a_model_just_opened_is_no_unsaved_work() -> None:
    workspace = Workspace()
    workspace.open(session(), None)
    assert not workspace.state.dirty
    workspace.edit("edit", lock("embed"))
    assert workspace.state.dirty


def test_dirty_follows_edits_and_saves(tmp_path: Path) -> None:
    workspace = Workspace()
    workspace.open(session(), tmp_path / "a.qwb")
    assert not workspace.state.dirty
    workspace.edit("edit", lock("embed"))
    assert workspace.state.dirty
    saved = workspace.state.session
    assert saved is not None
    workspace.edit("edit", lock("head"))
    workspace.saved(tmp_path / "b.qwb", saved)
    assert workspace.state.dirty, "an edit made while saving was taken for saved"
    assert workspace.state.path == tmp_path / "b.qwb"
    assert workspace.state.session is not None
    workspace.saved(tmp_path / "b.qwb", workspace.state.session)
    assert not workspace.state.dirty
    workspace.select(["embed"])
    workspace.show_metric("weight_error")
    assert not workspace.state.dirty, "looking is no edit"


def test_a_session_keeps_the_target_that_was_chosen_for_its_plan(tmp_path: Path) -> None:
    workspace, path = Workspace(), tmp_path / "a.qwb"
    workspace.show_target("gguf")
    workspace.open(session(), None)
    assert (
        workspace.state.session is not None and workspace.state.session.target == "gguf" and not workspace.state.dirty
    )
    workspace.show_target("vllm")
    assert workspace.state.dirty, "it is no longer what was opened"
    workspace.state.session.save(path)
    assert workspace.state.undo_name.startswith("Choose the target")
    workspace.undo()
    assert workspace.state.target == workspace.state.session.target == "gguf" and not workspace.state.dirty
    workspace.redo()
    assert workspace.state.target == workspace.state.session.target == "vllm" and workspace.state.dirty
    workspace.edit("both", lambda now: replace(now, plan=replace(now.plan, name="best"), target="gguf"))
    assert workspace.state.target == "gguf"
    workspace.undo()
    assert workspace.state.target == "vllm", "a plan and its target are one step"
    workspace.close()
    workspace.show_target("")
    workspace.open(Session.load(path), path)
    assert workspace.state.target == workspace.state.session.target == "vllm" and not workspace.state.dirty
    workspace.show_target("")
    anywhere = workspace.state.session
    workspace.show_target("vllm")
    workspace.open(anywhere, path)
    assert workspace.state.target == "" and not workspace.state.dirty, "any runtime was chosen for this plan"
    workspace.show_target("vllm")
    workspace.open(replace(session(), target="of a later version"), path)
    assert workspace.state.target == workspace.state.session.target == "vllm", "what is not known here takes no effect"
    workspace.edit("recovered", lambda now: replace(now, target="of a later version"))
    assert workspace.state.target == ""


def test_listeners_get_old_and_new_and_may_leave_while_being_told() -> None:
    workspace = opened()
    heard: list[tuple[State, State]] = []

    def once(old: State, new: State) -> None:
        heard.append((old, new))
        leave()

    leave = workspace.subscribe(once)
    other: list[State] = []
    workspace.subscribe(lambda old, new: other.append(new))
    before = workspace.state
    workspace.edit("edit", lock("embed"))
    workspace.select(["embed", "embed", "head"])
    workspace.select(["embed", "head"])
    assert [(old is before, new.selection) for old, new in heard] == [(True, ())]
    assert [state.selection for state in other] == [(), ("embed", "head")]


def test_opening_starts_anew_and_closing_empties() -> None:
    workspace = opened()
    workspace.edit("edit", lock("embed"))
    workspace.select(["embed"])
    workspace.open(session(2), None)
    assert workspace.state.undo_name == "" and workspace.state.selection == ()
    workspace.close()
    assert workspace.state.session is None and workspace.state.totals is None
    with pytest.raises(WorkbenchError, match="no model is open"):
        workspace.edit("edit", lock("embed"))


def test_a_change_made_by_a_listener_is_told_in_order() -> None:
    workspace = opened()
    heard: list[tuple[str, ...]] = []

    def follow(old: State, new: State) -> None:
        if new.selection == ("embed",):
            workspace.select(["head"])

    workspace.subscribe(follow)
    workspace.subscribe(lambda old, new: heard.append(new.selection))
    workspace.select(["embed"])
    assert workspace.state.selection == ("head",)
    assert heard[-1] == ("head",), "the last thing a listener heard is out of date"


def test_a_drag_is_one_step() -> None:
    workspace = Workspace()
    first = session()
    workspace.open(first, None)
    workspace.edit("Lock", lock(LAYERS[0]))
    drag = workspace.edit("Slide to 4", assign(LAYERS, SCHEMES[0]))
    for scheme in (SCHEMES[1], SCHEMES[0]):
        drag = workspace.edit(f"Slide to {scheme}", assign(LAYERS, scheme), extend=drag)
    assert workspace.state.undo_name == f"Slide to {SCHEMES[0]}"
    workspace.undo()
    assert workspace.state.undo_name == "Lock"
    assert workspace.state.session is not None and workspace.state.session.plan == first.plan
    workspace.edit("Unlock", lock(LAYERS[0]), extend=drag)
    assert not workspace.state.redo_name
    workspace.undo()
    assert workspace.state.undo_name == "Lock", "an edit joined a step that had been undone"


def test_a_search_that_finishes_during_a_drag_is_a_step_of_its_own() -> None:
    workspace = opened()
    drag = workspace.edit("Slide", assign(LAYERS, SCHEMES[0]))
    searched = Plan(name="searched")
    workspace.edit("Search", lambda now: replace(now, plan=searched))
    drag = workspace.edit("Slide", assign(LAYERS, SCHEMES[1]), extend=drag)
    drag = workspace.edit("Slide on", assign(LAYERS, SCHEMES[0]), extend=drag)
    workspace.undo()
    assert workspace.state.session is not None and workspace.state.session.plan == searched
    assert workspace.state.undo_name == "Search"


def test_undo_leaves_the_ranges_of_a_calibration_in_between() -> None:
    workspace = opened()
    calibrated = Range(low=-3.0, high=3.0, method="loss", clipped=0.0)
    workspace.edit("Assign", assign(LAYERS, SCHEMES[0]))
    workspace.edit("Set a range", set_range(LAYERS[0], -1.0))

    def calibrate(now: Session) -> Session:
        manual = {place: result for place, result in now.active_ranges.items() if result.method == "manual"}
        every = {(name, "input"): calibrated for name in LAYERS}
        ranges = {(name, "input", "loss"): calibrated for name in LAYERS}
        return replace(now, ranges={**now.ranges, **ranges}, active_ranges={**now.active_ranges, **every, **manual})

    workspace.update(calibrate)
    workspace.undo()
    workspace.undo()
    session = workspace.state.session
    assert session is not None and session.plan.rules == ()
    assert {session.active_ranges[name, "input"] for name in LAYERS} == {calibrated}
    workspace.redo()
    workspace.redo()
    session = workspace.state.session
    assert session is not None and session.active_ranges[LAYERS[0], "input"].method == "manual"
    assert session.active_ranges[LAYERS[1], "input"] == calibrated


def test_undo_leaves_a_range_in_force_that_a_result_put_in_the_place_of_an_edited_one() -> None:
    workspace = opened()
    measured = Range(low=-3.0, high=3.0, method="another", clipped=0.0)
    workspace.edit("Set a range", set_range(LAYERS[0], -1.0))
    workspace.update(lambda now: replace(now, active_ranges={**now.active_ranges, (LAYERS[0], "input"): measured}))
    workspace.undo()
    assert workspace.state.session is not None
    assert workspace.state.session.active_ranges[LAYERS[0], "input"] == measured


def test_a_drag_that_a_result_interrupts_is_one_step_and_keeps_the_result() -> None:
    workspace = opened()
    calibrated = Range(low=-3.0, high=3.0, method="min-max", clipped=0.0)
    before = edited(workspace.state)
    drag = workspace.edit("Drag", set_range(LAYERS[0], -1.0))
    workspace.update(lambda now: replace(now, active_ranges={**now.active_ranges, (LAYERS[1], "input"): calibrated}))
    workspace.edit("Drag", set_range(LAYERS[0], -2.0), extend=drag)
    workspace.undo()
    after = edited(workspace.state)
    assert after.active_ranges == {**before.active_ranges, (LAYERS[1], "input"): calibrated}
    assert not workspace.state.undo_name


def test_edits_after_going_back_leave_the_other_branch_as_a_named_plan(tmp_path: Path) -> None:
    workspace = Workspace()
    workspace.open(session(), None)
    names = [layer.name for layer in workspace.state.session.model.layers][:2]

    def store(scheme: str) -> None:
        plan = workspace.state.session.plan.assign(names, weights=scheme)
        workspace.edit(f"Set {scheme}", lambda now: replace(now, plan=plan))

    store("int4-g32-asym")
    store("int3-g32-asym")
    lost = workspace.state.session.plan
    workspace.undo()
    workspace.undo()
    store("int8-channel")
    branch = workspace.state.session.plans["Branch 1"]
    assert replace(branch, name=lost.name) == lost, "where the undone steps had led to"
    workspace.undo()
    store("int8-channel")
    assert list(workspace.state.session.plans) == ["Branch 1"], "the same edit again is no branch; undo leaves it"
    workspace.edit("Use", lambda now: replace(now, plan=replace(branch, name=lost.name)))
    workspace.undo()
    workspace.edit("Lock", lambda now: replace(now, locked=frozenset(names)))
    assert list(workspace.state.session.plans) == ["Branch 1"], "a plan that has a name needs no other"
    workspace.state.session.save(tmp_path / "s.qwb")
    assert Session.load(tmp_path / "s.qwb").plans["Branch 1"] == branch


def test_a_budget_that_comes_with_an_edit_is_searched_within() -> None:
    """Edits that are recovered after a crash are one step: the field showed 4.5 beside a session's 8.1."""
    workspace = Workspace()
    workspace.open(session(), None)
    workspace.edit("Recovered Edits", lambda session: replace(session, budget=Budget(amount=8.1)))
    assert workspace.state.budget == Budget(amount=8.1)
    workspace.undo()
    assert workspace.state.budget == workspace.state.session.budget == Budget()


def test_the_budget_of_a_search_comes_back_with_the_session(tmp_path: Path) -> None:
    """A session for ONNX Runtime, searched within 8.1 bits, came back with 4.5, for which it has no plan."""
    workspace, file = Workspace(), tmp_path / "s.qwb"
    workspace.show_budget(Budget(amount=8.1))
    workspace.open(session(), file)
    assert not workspace.state.dirty, "the budget that was chosen before is the session's"
    workspace.state.session.save(file)
    again = Workspace()
    again.open(Session.load(file), file)
    assert again.state.budget == Budget(amount=8.1)
    again.edit("Lock", lock(LAYERS[0]))
    again.show_budget(Budget(amount=2.5, unit=BudgetUnit.MEGABYTES, problem="typed nonsense last"))
    again.undo()
    assert again.state.dirty and again.state.budget.amount == 2.5, "a budget is no edit"
    again.show_budget(Budget(amount=8.1))
    assert not again.state.dirty
    again.show_budget(Budget(amount=2.5, unit=BudgetUnit.MEGABYTES))
    again.state.session.save(file)
    assert Session.load(file).budget == Budget(amount=2.5, unit=BudgetUnit.MEGABYTES)


def test_nothing_of_a_document_stays_when_it_is_closed_or_another_is_opened() -> None:
    """The assignments and sums of the one before stayed, with its tables, until the next edits."""
    workspace = Workspace()
    for leave in (workspace.close, lambda: workspace.open(session(), None)):
        workspace.open(session(), None)
        workspace.edit("Assign", assign(LAYERS[:1], SCHEMES[0]))
        assert workspace.state.session is not None
        plan = weakref.ref(workspace.state.session.plan)
        leave()
        gc.collect()
        assert plan() is None


ODD_BUDGETS = (
    (None, None), ("nan", "bits per weight"), (-1, "bits per weight"), (4.5, "lb"), (1e305, "MB of the whole model"),
    (1e-12, "predicted loss"), ("inf", "predicted loss"),
)  # fmt: skip


@pytest.mark.parametrize("written", ODD_BUDGETS)
def test_a_budget_that_is_none_is_not_read(written: tuple[object, object]) -> None:
    assert known_budget(*written) is None


def test_only_the_newest_branches_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.session.edits.MAX_BRANCHES", 3)
    workspace = Workspace()
    workspace.open(session(), None)
    names = [layer.name for layer in workspace.state.session.model.layers]
    for number in range(5):
        for scheme in (f"int{number + 3}-channel", f"int{number + 3}-tensor"):
            plan = workspace.state.session.plan.assign(names[:1], weights=scheme)
            workspace.edit("Set", lambda now, plan=plan: replace(now, plan=plan))
            workspace.undo()
        plan = workspace.state.session.plan.assign(names[:2], weights="int8-tensor")
    assert [int(name.split()[-1]) for name in workspace.state.session.plans] == [7, 8, 9]
