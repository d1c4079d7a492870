"""The search in the Plan panel: its budget, what is refused beside it, what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.test_pareto import _timed
from workbench.gui.context import edits
from workbench.insight.roles import role
from workbench.measurement.timing import device_name
from workbench.planning.search.search import pareto
from workbench.session.budget import BudgetUnit


@pytest.mark.parametrize(("typed", "key"), [("much", None), ("-3", Qt.Key.Key_F7), ("4,5", Qt.Key.Key_Return),
                                            ("", Qt.Key.Key_Return)])  # fmt: skip
def test_nonsense_in_the_budget_is_told_beside_it_and_keeps_the_last_good_value(
    live: Callable[..., None], typed: str, key: Qt.Key | None
) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        panel = person.window.panels["plan"]
        field = panel.budget.lineEdit()
        await person.type(field, typed)
        if not typed:
            await person.press(Qt.Key.Key_Delete, field)
        await (person.click(panel.search_button) if key is None else person.press(key, field))
        assert panel.refused.isVisible() and (typed or "Enter a number") in panel.refused.text()
        assert panel.budget.value() == 4.5 and field.text() == "4.5" and not person.context.jobs.views
        await person.click(panel.search_button)
        await person.until(lambda: person.state.undo_name == "Search within 4.5 bits per weight", 10)
        assert panel.refused.isHidden()

    live(story)


def test_another_budget_by_the_arrows_makes_nonsense_forgotten(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        panel = person.window.panels["plan"]
        await person.type(panel.budget.lineEdit(), "much")
        await person.press(Qt.Key.Key_Tab, panel.budget)
        assert panel.refused.isVisible()
        await person.press(Qt.Key.Key_Up, panel.budget)
        assert panel.refused.isHidden() and panel.budget.value() == 4.75
        await person.click(panel.search_button)
        await person.until(lambda: person.state.undo_name == "Search within 4.75 bits per weight", 10)

    live(story)


def test_a_budget_that_is_too_small_is_refused_beside_it(live: Callable[..., None]) -> None:
    session = sessions.full(1)
    least = pareto(session.model, session.sensitivities["predicted_kl"], session.plan).bits_per_weight[0]

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        await person.type(panel.budget.lineEdit(), "0.5")
        await person.press(Qt.Key.Key_Return, panel.budget.lineEdit())
        await person.until(panel.refused.isVisible, 10)
        assert f"{least:.4f} bits per weight" in panel.refused.text() and person.dialog("error") is None
        assert person.state.session.plan is session.plan
        person.picture("refused")
        await person.click(panel.search_line.smallest)
        await person.until(lambda: person.state.undo_name.startswith("Search within"), 10)
        assert person.state.totals.bits_per_weight == pytest.approx(least) and panel.refused.isHidden()
        await person.type(panel.budget.lineEdit(), "0.5")
        await person.press(Qt.Key.Key_Return, panel.budget.lineEdit())
        await person.until(panel.refused.isVisible, 10)
        await person.type(panel.budget.lineEdit(), "5")
        assert panel.refused.isHidden()
        await person.press(Qt.Key.Key_Return, panel.budget.lineEdit())
        await person.until(lambda: person.state.undo_name == "Search within 5 bits per weight", 10)

    live(story)


@pytest.mark.parametrize(("unit", "amount"), [(BudgetUnit.LOSS, "0.4"), (BudgetUnit.MEGABYTES, "2.5")])
def test_a_plan_is_searched_within_a_loss_or_a_size(live: Callable[..., None], unit: BudgetUnit, amount: str) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        line = person.window.panels["plan"].search_line
        await person.choose(line.unit, line.unit.findText(unit))
        await person.act(lambda: line.unit.activated.emit(line.unit.currentIndex()))
        await person.type(line.budget.lineEdit(), amount)
        await person.press(Qt.Key.Key_Return, line.budget.lineEdit())
        await person.until(lambda: person.state.undo_name.startswith("Search within"), 20)
        totals = person.state.totals
        spent = totals.predicted if unit is BudgetUnit.LOSS else totals.nbytes / 1e6
        assert 0.5 * float(amount) < spent <= float(amount)

    live(story)


def test_a_plan_is_searched_within_a_time(live: Callable[..., None]) -> None:
    session = _timed(sessions.full(1))
    # Timings of another device would be measured again.
    here = tuple(replace(run, device=device_name()) for run in session.timings)
    session = replace(session, timings=here)
    micro = {(run.shape, run.scheme): float(np.median(run.samples)) for run in session.timings}

    async def story(person: Person) -> None:
        await person.open(session)
        line = person.window.panels["plan"].search_line
        await person.choose(line.unit, line.unit.findText(BudgetUnit.MICROSECONDS))
        await person.act(lambda: line.unit.activated.emit(line.unit.currentIndex()))
        await person.type(line.budget.lineEdit(), "230")
        await person.press(Qt.Key.Key_Return, line.budget.lineEdit())
        await person.until(lambda: person.state.undo_name or person.state.search_error, 20)
        assert person.state.undo_name == "Search within 230 µs", person.state.search_error
        chosen = {name: each.weights for name, each in person.state.assignments.items()}
        spent = [micro.get((layer.matrix, chosen[layer.name]), 40.0) for layer in session.model.layers]
        dearer = 40.0 - max(each for each in spent if each < 40.0)  # what one more layer in floating point takes
        assert sum(spent) <= 230 < sum(spent) + dearer, (sum(spent), chosen)

    live(story)


def test_the_search_says_which_layers_it_leaves_out(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        line, names = person.window.panels["plan"].search_line, ["model.embed_tokens"]
        assert not line.left_out.text(), "the embedding is searched"
        await person.act(lambda: person.context.workspace.show_target("vllm"))
        assert "leaves out 1 layer" in line.left_out.text() and "stays in floating point" in line.left_out.text()
        await person.act(lambda: person.context.workspace.show_target(""))
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="int4-g64"))
        await person.act(lambda: edits.lock(person.context.workspace, names, True))
        assert "model.embed_tokens (embedding) stays int4-g64" in line.left_out.text()
        await person.act(lambda: edits.lock(person.context.workspace, names, False))
        assert not line.left_out.text()

    live(story)


def test_who_came_for_int8_in_onnx_runtime_gets_static_inputs_once(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        person.window._choose_role(role("onnx"))
        await person.open(sessions.full(1))
        panel = person.window.panels["plan"]
        await person.type(panel.budget.lineEdit(), "8.2")
        await person.click(panel.search_button)
        await person.until(lambda: person.state.undo_name == "Search within 8.2 bits per weight", 10)
        products = [layer.name for layer in person.state.session.model.layers if layer.block]
        pairs = {(each.weights, each.inputs) for each in map(person.state.assignments.get, products)}
        assert pairs == {("int8-channel", "int8-tensor-asym")}
        edits.assign(person.context.workspace, products[:1], inputs=None)
        await person.type(panel.budget.lineEdit(), "9")
        await person.click(panel.search_button)
        await person.until(lambda: person.state.undo_name == "Search within 9 bits per weight", 10)
        own = [person.state.assignments[name].inputs for name in products[:2]]
        assert own == [None, "int8-tensor-asym"]  # what the user said of inputs stays

    live(story)


def test_the_interval_folds_while_a_refusal_is_shown_and_comes_back(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        panel = person.window.panels["plan"]
        details = [tile.detail for tile in panel.dashboard.tiles[:3]]
        assert all(detail.isVisible() for detail in details)
        await person.type(panel.budget.lineEdit(), "0.5")
        await person.press(Qt.Key.Key_Return, panel.budget.lineEdit())
        await person.until(panel.refused.isVisible, 10)
        await person.settle(0.1)
        boxes = (panel.weights, panel.inputs, panel.algorithm, panel.ranges)
        assert all(box.height() >= box.minimumSizeHint().height() for box in boxes), "nothing is squeezed"
        await person.click(panel.search_line.smallest)
        await person.until(panel.refused.isHidden, 10)
        await person.settle(0.1)
        assert all(detail.isVisible() for detail in details)

    live(story, size=(1440, 900))


def test_run_all_says_beside_the_budget_why_there_is_no_plan(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        session = sessions.full(1)
        saved = replace(session.plan, rules=())
        await person.open(replace(session, plan=saved))
        panel = person.window.panels["plan"]
        await person.type(panel.budget.lineEdit(), "0.5")
        await person.act(lambda: person.context.trigger("run_all"))
        await person.until(panel.refused.isVisible, 20)
        assert panel.search_line.smallest.isVisible() and person.dialog("error") is None

    live(story)


def test_why_no_plan_was_found_is_over_once_it_may_not_hold(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        workspace = person.context.workspace
        line = person.window.panels["plan"].search_line
        for change in (
            lambda: workspace.show_target("vllm"),
            lambda: workspace.update(lambda now: replace(now, sensitivities={
                name: replace(table) for name, table in now.sensitivities.items()})),
        ):  # fmt: skip
            await person.act(lambda: workspace.show_search_error("no plan fits into 4.5 bits per weight", 7.5))
            assert line.failure.isVisible() and person.state.smallest_budget == 7.5
            await person.act(change)
            assert not line.failure.isVisible() and person.state.smallest_budget is None

    live(story)


def test_the_keyboard_stays_at_the_budget_that_was_searched(live: Callable[..., None]) -> None:
    """It went to the scheme of the selected layers, which the next arrow key would have changed."""

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.layer("model.layers.0.mlp.up_proj")
        panel = person.window.panels["plan"]
        await person.act(lambda: person.window.activateWindow())
        await person.act(panel.budget.setFocus)
        await person.press(Qt.Key.Key_Return, panel.budget)
        await person.until(lambda: person.state.undo_name == "Search within 4.5 bits per weight", 10)
        assert panel.budget.hasFocus()
        await person.act(person.window.panels["layers"].view.setFocus)
        await person.act(lambda: person.window.reveal("plan"))
        assert panel.isAncestorOf(QApplication.focusWidget()), "from another panel it comes here"

    live(story)
