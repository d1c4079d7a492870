"""The plan's rules, its text and its history: every change is one step, nonsense keeps the last good plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QMouseEvent, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.gui.panels.plan.dashboard import Tile
from workbench.gui.panels.plan.text import PAUSE_MS, error_line
from workbench.gui.report import report
from workbench.insight import quantities
from workbench.insight.dashboard import Dashboard, Difference, KeyFigure
from workbench.insight.roofline import plan_time
from workbench.insight.rules import rule_rows
from workbench.models.summary import quantizable
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import layer_bits, totals


def send_move(widget: QWidget, spot: QPoint) -> None:
    """Move the mouse with its left button down."""
    none, left = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton
    place = QPointF(widget.mapToGlobal(spot))
    event = QMouseEvent(QMouseEvent.Type.MouseMove, QPointF(spot), place, none, left, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(widget, event)


def drop(widget: QWidget, path: Path) -> None:
    """Drop a file on the window."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(100, 100), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    widget.dropEvent(event)


def test_a_rule_says_what_it_matches_and_what_it_decides() -> None:
    session = sessions.ruled()
    first, second = rule_rows(session.plan, session.model.layers)
    assert (first.decided, len(first.matched)) == (6, 6)
    assert (second.decided, len(second.matched)) == (8, 14)


@pytest.mark.parametrize(
    ("error", "line"),
    [("no JSON: at line 3, column 4", 2), ("the text, /rules/1/weights: no", 5), ("the rule 'b' matches no layer", 5)],
)
def test_an_error_points_at_its_line(error: str, line: int) -> None:
    text = '{\n  "type": "x",\n  "version": 1,\n  "rules": [\n    {"pattern": "a"},\n    {"pattern": "b"}\n  ]\n}\n'
    assert error_line(text, error) == line


def test_rules_are_moved_and_removed(live: Callable[..., None]) -> None:
    session = sessions.ruled()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        await person.tab(panel.tabs, panel.rules)
        buttons = panel.rules.up, panel.rules.down, panel.rules.remove, panel.rules.pick
        assert not any(each.isEnabled() for each in buttons), "no rule is selected"
        await person.row(panel.rules.table, 1)
        assert [each.isEnabled() for each in buttons] == [True, False, True, True], "it is the last one"
        await person.click(panel.rules.pick)
        assert len(person.state.selection) == 14
        await person.click(panel.rules.up)
        assert [rule.pattern for rule in person.state.session.plan.rules] == [sessions.ALL, sessions.MLP]
        assert {person.state.assignments[name].weights for name in person.state.selection} == {"int8-channel"}
        assert panel.rules.table.records.record(1).decided == 0
        person.picture("rules")
        await person.click(panel.rules.remove)
        assert [rule.pattern for rule in person.state.session.plan.rules] == [sessions.MLP]
        await person.press(Qt.Key.Key_Z, control=True)
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.plan == session.plan

    live(story)


def test_a_rule_is_added_with_what_it_matches_told_while_typing(live: Callable[..., None]) -> None:
    session = sessions.ruled()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        rules = panel.rules
        await person.tab(panel.tabs, rules)
        assert not rules.add.isEnabled() and rules.matching.isHidden()
        for typed, words in (
            ("*.no_proj", "Matches no layer"), ("re:(", "the rule 're:(' is not a valid regular expression: missing )"),
            ("re:.*1\\.self_attn\\.[kv]_proj", "Matches 2 layers: model.layers.1.self_attn.k_proj, "),
            ("model.layers.0.mlp.*", "Matches 3 layers: model.layers.0.mlp.gate_proj, "),
        ):  # fmt: skip
            await person.type(rules.pattern, typed)
            assert rules.matching.isVisible() and rules.matching.text().startswith(words)
            assert rules.add.isEnabled() == (" layers: " in words)
            if " layers: " not in words:
                await person.press(Qt.Key.Key_Return, rules.pattern)
            assert person.state.session.plan == session.plan
        await person.choose(rules.scheme, rules.scheme.findText("int3-g32-asym"))
        person.picture("adding")
        await person.click(rules.add)
        first = person.state.session.plan.rules[0]
        assert (first.pattern, first.assignment.weights) == ("model.layers.0.mlp.*", "int3-g32-asym")
        assert person.state.undo_name == "Add the rule model.layers.0.mlp.*" and not rules.pattern.text()
        names = [f"model.layers.0.mlp.{part}_proj" for part in ("gate", "up", "down")]
        assert {person.state.assignments[name].weights for name in names} == {"int3-g32-asym"}
        row = rules.table.records.record(0)
        assert (row.decided, row.matched) == (3, tuple(names)) and rules.table.records.record(1).decided == 3
        cell = rules.table.records.index(0, 4)
        assert cell.data().startswith(names[0]) and cell.data(Qt.ItemDataRole.ToolTipRole) == "\n".join(names)
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == session.plan

    live(story)


def test_the_panel_says_what_the_plan_comes_to(live: Callable[..., None]) -> None:
    session = sessions.full(2)

    async def story(person: Person) -> None:
        await person.open(replace(session, timings=()))
        board, sums = person.window.panels["plan"].dashboard, person.state.totals
        size, bits, loss, measured, kernels = board.tiles
        assert size.value.text() == quantities.data_size(sums.nbytes)
        assert bits.value.text() == f"{sums.bits_per_weight:.3f}"
        assert bits.detail.text() == f"{8 * sums.nbytes / session.model.parameters:.2f} whole model"
        assert loss.title.text() == "Predicted KL (nats)" and loss.value.text() == quantities.number(sums.predicted)
        assert measured.detail.text() == "not evaluated" and kernels.detail.text() == "not timed"
        assert not kernels.isVisible() and loss.isVisible()
        board.grab()
        assert size.value.shown and "scales and zero points" in size.toolTip()
        shape, plan = (256, 256), session.plan.assign(["model.layers.0.self_attn.q_proj"], weights="int8-channel")
        timed = replace(sessions.timing("q", np.random.default_rng(0)), shape=shape, samples=np.full(9, 60.0))
        await person.open(replace(session, plan=plan, timings=(timed,)))
        result = plan_time(session.model, person.state.assignments, (timed,), 1)
        assert kernels.detail.text() == f"{result.missing} layers not timed"

    live(story)


def test_figures_of_thousands_of_layers_are_compared_with_uniform_plans(live: Callable[..., None]) -> None:
    session = sessions.opened(sessions.summary(500), with_weights=False)
    session = replace(session, sensitivities={"predicted_kl": sessions.table(session.model)})
    names = [layer.name for layer in session.model.layers[1:-1]]

    async def story(person: Person) -> None:
        await person.open(session)
        size, _, loss, *_ = person.window.panels["plan"].dashboard.tiles
        for scheme, layers in (("int4-g32-asym", names), ("int8-channel", names[:9])):
            edits.assign(person.context.workspace, layers, weights=scheme)
            await person.until(lambda: all("everywhere" in tile.changes[0].text() for tile in (size, loss)), 10)
        figure = Dashboard().figures(person.state)[2]
        assert loss.changes[0].text().startswith(figure.differences[0].text), "as it is after the last edit"

    live(story)


def test_a_narrow_figure_marks_that_it_leaves_out_of_what_it_speaks(qapp: QApplication) -> None:
    tile, change = Tile("Size"), Difference(kind="saved", against="before", text="+86 kB", better=False)
    tile.show_figure(KeyFigure(title="Size", value="1 MB", differences=(change,)))
    tile.show()
    line = tile.changes[0]
    for shown in ("+86 kB vs before", "+86 kB vs saved", "+86 kB saved", "+86 kB …", "+86 kB"):
        line.resize(line.fontMetrics().horizontalAdvance(shown) + 1, line.height())
        assert line.shown == shown and line.text() == "+86 kB vs before"
    same = Difference(kind="uniform", against="int4-g64 everywhere", text="the same", better=None)
    tile.show_figure(KeyFigure(title="Size", value="1 MB", differences=(same,)))
    for shown in ("the same as int4-g64 everywhere", "the same as uniform", "as uniform"):
        line.resize(line.fontMetrics().horizontalAdvance(shown) + 1, line.height())
        assert line.shown == shown, "the same as what"
    tile.close()


def test_key_figures_say_what_changed_since_the_saved_plan_and_against_uniform_ones(live: Callable[..., None]) -> None:
    session = sessions.full(2)

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        size, _, loss, measured, _ = panel.dashboard.tiles
        assert "everywhere" in size.changes[0].text(), "nothing was saved: only uniform plans"
        await person.tab(panel.tabs, panel.history)
        await person.type(panel.history.name, "before")
        await person.click(panel.history.keep_button)
        await person.tab(panel.tabs, 0)
        await person.layer("model.layers.1.mlp.up_proj")
        before = person.state.totals
        await person.choose(panel.weights, panel.weights.findData("int8-channel"))
        await person.act(lambda: panel.weights.activated.emit(panel.weights.currentIndex()))
        after = person.state.totals
        assert after.nbytes != before.nbytes
        more = quantities.signed(after.nbytes - before.nbytes, quantities.data_size)
        assert size.changes[0].text() == f"{more} vs before"
        worse = quantities.signed(after.predicted - before.predicted, quantities.number)
        assert loss.changes[0].text() == f"{worse} vs before"
        table, model = person.state.session.sensitivities["predicted_kl"], session.model
        fitting = []
        for scheme in table.schemes:  # by the plan's own sums, one plan after the other
            uniform = totals(model, resolve(Plan.uniform(quantizable(model.layers), scheme), model.layers), table)
            if uniform.nbytes <= after.nbytes:
                fitting.append((uniform.predicted, scheme))
        assert loss.changes[1].text().endswith(f" vs {min(fitting)[1]} everywhere but in embeddings")
        assert (
            loss.changes[1].text().startswith(quantities.signed(after.predicted - min(fitting)[0], quantities.number))
        )
        run = replace(sessions.evaluation(4.5, 0.12), plan_hash=person.state.session.plan.hash, nbytes=after.nbytes)
        await person.open(replace(person.state.session, evaluations=(run,)))
        assert measured.value.text().startswith("0.12") and " to " in measured.detail.text()
        person.picture("dashboard")

    live(story)


def test_a_scheme_in_a_list_says_what_it_would_change(live: Callable[..., None]) -> None:
    session = sessions.full(1)

    async def story(person: Person) -> None:
        await person.open(session)
        panel, name = person.window.panels["plan"], "model.layers.0.mlp.up_proj"
        await person.layer(name)
        before, present = person.state.totals, person.state.assignments[name].weights
        await person.act(panel.weights.showPopup)
        view = panel.weights.view()
        for _ in range(2):
            await person.press(Qt.Key.Key_Up, view)
        scheme = panel.weights.itemData(view.currentIndex().row())
        assert layer_bits(session.model.by_name[name], scheme) != layer_bits(session.model.by_name[name], present)
        then = totals(session.model, resolve(session.plan.assign([name], weights=scheme), session.model.layers),
                      session.sensitivities["predicted_kl"])  # fmt: skip
        size = quantities.signed(then.nbytes - before.nbytes, quantities.data_size)
        assert f"{size}, {quantities.signed(then.predicted - before.predicted, quantities.number)} nats" in (
            panel.whom.text()
        )
        await person.press(Qt.Key.Key_Escape, view)
        assert panel.whom.text() == name
        heat = person.window.panels["sensitivity"]
        row, column = heat._table.row[name], heat._table.schemes.index(scheme)
        heat.heatmap.cursor_cell = row, column - 1
        await person.press(Qt.Key.Key_Right, heat.heatmap)
        assert f"this cell: {size}" in heat.figure.text()
        card = heat.heatmap.viewport().toolTip().splitlines()
        assert any(line.startswith(f"this cell: {size}") for line in card) and "K-FAC" in card[-1]
        menu = person.window.panels["layers"]._menu((name,))
        title = menu.actions()[0]
        assert title.text() == name and not title.isSeparator(), "a style sheet draws no text of a section"
        family = next(action.menu() for action in menu.actions() if action.menu())
        family.aboutToShow.emit()
        text = family.actions()[0].text()
        bits, weights = layer_bits(session.model.by_name[name], text.partition("\t")[0]), 768 * 256
        assert f"{bits / weights:.2f} bits · {quantities.data_size(bits / 8)}" in text
        menu.deleteLater()

    live(story)


def test_the_plan_is_edited_as_text(live: Callable[..., None]) -> None:
    session = sessions.ruled()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        await person.tab(panel.tabs, panel.text)
        text, edit = panel.text, panel.text.edit
        good = edit.toPlainText()
        await asyncio.sleep(2 * PAUSE_MS / 1000)
        assert not text.apply_button.isEnabled() and not text.revert_button.isEnabled(), "nothing is changed"

        def put(content: str) -> None:
            cursor = edit.textCursor()
            cursor.select(QTextCursor.SelectionType.Document)
            cursor.insertText(content)

        for wrong, word in (
            (good[:-4], "JSON"), (good.replace("int8-channel", "int8-chanel"), "int8-channel"),
            (good.replace("mlp", "mpl"), "matches no layer"), (good.replace('"rules"', '"ruels"'), "rules"),
        ):  # fmt: skip
            await person.act(lambda wrong=wrong: put(wrong))
            await person.until(lambda word=word: word in text.error.text(), 5)
            assert not text.apply_button.isEnabled() and text.revert_button.isEnabled()
            assert edit.extraSelections()
            assert person.state.session.plan == session.plan
        person.picture("text")
        await person.act(lambda: put(good.replace("int8-channel", "int6-g32-asym")))
        await person.until(lambda: not text.error.text(), 5)
        await person.click(text.apply_button)
        assert person.state.undo_name == "Edit the plan as text"
        assert person.state.assignments["model.layers.0.self_attn.q_proj"].weights == "int6-g32-asym"
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == session.plan

    live(story)


def test_a_rule_is_dragged_to_another_place_as_one_step(live: Callable[..., None]) -> None:
    session = sessions.ruled()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        rules = panel.rules
        await person.tab(panel.tabs, rules)
        port, before = rules.table.viewport(), [rule.pattern for rule in session.plan.rules]
        height = rules.table.rowHeight(0)
        await person.act(lambda: QTest.mousePress(port, Qt.MouseButton.LeftButton, pos=QPoint(30, height // 2)))
        for y in (height, 3 * height // 2, 2 * height + height // 4):
            await person.act(lambda y=y: send_move(port, QPoint(30, y)))
        person.picture("dragging")
        end = QPoint(30, 2 * height + height // 4)
        await person.act(lambda: QTest.mouseRelease(port, Qt.MouseButton.LeftButton, pos=end))
        after = [rule.pattern for rule in person.state.session.plan.rules]
        assert after == [before[1], before[0], *before[2:]]
        assert person.state.undo_name == f"Move the rule {before[0]}"
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == session.plan and not person.state.undo_name

    live(story)


def test_transforms_are_ticked_in_their_usual_order(live: Callable[..., None]) -> None:
    session = sessions.ruled()

    async def story(person: Person) -> None:
        await person.open(session)
        panel = person.window.panels["plan"]
        page = panel.transforms
        await person.tab(panel.tabs, page)

        def row(name: str) -> int:
            return next(at for at in range(page.list.count()) if page.list.item(at).data(256) == name)

        for name in ("awq", "fold-norms"):
            await person.act(lambda name=name: page.list.setCurrentRow(row(name)))
            await person.press(Qt.Key.Key_Space, page.list)
            assert person.state.undo_name == f"Add the transform {name}"
        assert person.state.session.plan.transforms == ("fold-norms", "awq")
        person.picture("transforms")
        await person.act(lambda: page.list.setCurrentRow(row("awq")))
        await person.click(page.up)
        assert person.state.session.plan.transforms == ("awq", "fold-norms")
        await person.act(lambda: page.list.setCurrentRow(row("awq")))
        await person.press(Qt.Key.Key_Space, page.list)
        assert person.state.session.plan.transforms == ("fold-norms",)
        for _ in range(4):
            await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == session.plan

    live(story)


def test_a_dropped_plan_becomes_the_plan_and_a_foreign_one_is_refused(
    live: Callable[..., None], tmp_path: Path
) -> None:
    session = sessions.ruled()
    good, foreign = tmp_path / "good.json", tmp_path / "foreign.json"
    Plan(name="dropped", rules=session.plan.rules[:1]).save(good)
    Plan(name="foreign", rules=session.plan.rules, fingerprint="sha256:" + "1" * 64).save(foreign)

    async def story(person: Person) -> None:
        await person.act(lambda: drop(person.window, good))
        await person.answer("error", "Close")
        assert "open its model" in person.context.messages.entries[-1].text
        await person.open(session)
        await person.act(lambda: drop(person.window, good))
        assert person.state.session.plan.name == "dropped" and person.state.undo_name == "Open the plan dropped"
        await person.act(lambda: drop(person.window, foreign))
        await person.answer("error", "Close")
        assert person.state.session.plan.name == "dropped"
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == session.plan

    live(story)


def test_a_range_set_by_hand_is_said_in_the_plan_and_in_the_report(live: Callable[..., None]) -> None:
    """The Plan panel said "loss" of it, and a choice there changed nothing; the report left it out."""

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        name, other = (layer.name for layer in person.state.session.model.layers[1:3])
        box = person.window.panels["plan"].ranges
        await person.act(lambda: person.context.workspace.select([name]))
        await person.act(lambda: edits.assign(person.context.workspace, [name], inputs="int8-tensor-asym"))
        manual = Range(low=-0.125, high=0.75, method="manual", clipped=0.01)
        await person.act(lambda: edits.set_range(person.context.workspace, name, "input", manual))
        assert box.currentText() == "set by hand"
        page = report.html(person.state)
        assert "Input ranges set by hand" in page and "−0.125" in page and "0.75" in page
        await person.act(lambda: person.context.workspace.select([name, other]))
        assert box.currentText() == "(several)" and "1 × set by hand" in box.toolTip()
        box.setCurrentIndex(box.findData("percentile"))
        await person.act(lambda: box.activated.emit(box.currentIndex()))
        session = person.state.session
        assert {session.plan.of(each).range_method for each in (name, other)} == {"percentile"}
        assert session.active_ranges[name, "input"] == session.ranges[name, "input", "percentile"]
        assert "Input ranges set by hand" not in report.html(person.state)
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.active_ranges[name, "input"] == manual and box.currentText() == "(several)"

    live(story)
