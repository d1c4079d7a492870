"""Named plans: saved, compared, used and deleted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.gui.panels.plan.history import PRESENT, _alone
from workbench.insight.plan_differences import Difference, differences, priced
from workbench.planning.plan import Assignment, Plan, Rule


def test_plans_are_kept_compared_and_taken_back(live: Callable[..., None]) -> None:
    session = sessions.ruled()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        history = panel.history
        await person.tab(panel.tabs, history)
        await person.type(history.name, "before")
        await person.press(Qt.Key.Key_Return, history.name)
        assert list(person.state.session.plans) == ["before"]
        assert person.context.messages.entries[-1].title == "Saved the current plan as before"
        await person.type(history.name, "before")
        await person.press(Qt.Key.Key_Return, history.name)
        assert person.context.messages.entries[-1].title == "Replaced the saved plan before; undo brings it back"
        await person.type(history.name, "Branch 3")
        await person.press(Qt.Key.Key_Return, history.name)
        assert list(person.state.session.plans) == ["before"] and history.name.text() == "Branch 3"
        assert person.context.messages.entries[-1].title == "Choose another name"
        await person.type(history.name, "with the keyboard")
        for key in (Qt.Key.Key_Tab, Qt.Key.Key_Return):
            await person.press(key)
        assert list(person.state.session.plans) == ["before", "with the keyboard"], "Return presses a button as well"
        await person.act(lambda: person.context.trigger("undo"))
        await person.act(
            lambda: edits.assign(person.context.workspace, ["model.layers.1.mlp.up_proj"], weights="int3-g32-asym")
        )
        assert [item.name for item in history.plans.records.records] == [PRESENT, "before"]
        await person.row(history.plans, 1)
        (change,) = history.changes.records.records
        assert change.layer == "model.layers.1.mlp.up_proj"
        assert change.schemes == ("int3-g32-asym", "int4-g32-asym") and change.nbytes[0] < change.nbytes[1]
        person.picture("plans")
        await person.click(history.take_button)
        assert person.state.assignments["model.layers.1.mlp.up_proj"].weights == "int4-g32-asym"
        await person.row(history.plans, 1)
        await person.click(history.delete_button)
        assert not person.state.session.plans

    live(story)


def test_of_two_plans_that_are_compared_neither_is_used(live: Callable[..., None]) -> None:
    session = sessions.ruled()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        history = panel.history
        await person.tab(panel.tabs, history)
        for name in ("one", "two"):
            await person.type(history.name, name)
            await person.press(Qt.Key.Key_Return, history.name)
        await person.row(history.plans, 1)
        assert history.take_button.isEnabled()
        spot = history.plans.visualRect(history.plans.model().index(2, 0)).center()
        await person.click(history.plans.viewport(), spot, modifier=Qt.KeyboardModifier.ControlModifier)
        assert len(history.plans.selected()) == 2
        assert not history.take_button.isEnabled() and history.delete_button.isEnabled()

    live(story)


def test_a_plan_that_does_not_fit_is_listed_as_such() -> None:
    session = sessions.ruled()
    other = Plan(rules=(Rule(pattern="no.such.layer", assignment=Assignment(weights="int8-channel")),))
    held = priced(session, "other", other, "predicted_kl")
    assert held.totals is None
    assert differences(session, held, priced(session, "own", session.plan, "predicted_kl"), "predicted_kl") == ()


def test_a_saved_plan_may_have_any_name(live: Callable[..., None]) -> None:
    session = sessions.ruled()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        history = panel.history
        await person.tab(panel.tabs, history)
        await person.type(history.name, "current plan")
        await person.press(Qt.Key.Key_Return, history.name)
        assert [item.name for item in history.plans.records.records] == [PRESENT, "current plan"]
        await person.row(history.plans, 1)
        await person.click(history.delete_button)
        assert not person.state.session.plans

    live(story)


def test_rows_that_do_not_add_up_to_the_difference_of_plans_say_so() -> None:
    """A row of +0.0010 stood below a difference of +4.7e-5, without a word."""
    rows = [Difference(layer="a", schemes=("x", "y"), nbytes=(1, 2), losses=(0.001, 0.002))]
    assert _alone(rows, 4.7e-5) == "; the rows add up to +0.00100, each layer as if it were the only one"
    assert _alone(rows, 0.00101) == "" == _alone([replace(rows[0], losses=(math.nan, 0.002))], 0.5)
