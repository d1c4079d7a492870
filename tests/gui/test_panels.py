"""Every panel with no, partial, full and degenerate data; what a click, a key and a drag do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QListWidget,
    QWidget,
)

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.commands.action import ActionState
from workbench.gui.commands.actions import ACTIONS
from workbench.gui.context.context import Context
from workbench.gui.docks import Docks
from workbench.gui.panels import PANELS
from workbench.gui.panels.distributions.range_editor import range_of
from workbench.gui.panels.reconstruction import ReconstructionPanel
from workbench.gui.plots.heatmap_picture import LOCK_WIDTH
from workbench.gui.plots.plot import Plot
from workbench.gui.shell import theme
from workbench.gui.tables.delegates import FACTS, EntryDelegate
from workbench.gui.tables.layer_columns import LOSS, SCHEME
from workbench.insight.dashboard import cost_in_words
from workbench.measurement.evaluation import Metric
from workbench.planning.plan import KEEP, Plan, with_cache
from workbench.session.session import Session
from workbench.session.workspace import State, Workspace

Q_PROJ = "model.layers.0.self_attn.q_proj"


async def _show_all(person: Person) -> None:
    for spec in PANELS:
        await person.act(lambda name=spec.id: person.window.reveal(name))
        assert person.window.panels[spec.id].isVisible()
        assert not person.window.grab().isNull()


def _one_layer() -> Session:
    facts = sessions.summary(1)
    return sessions.opened(replace(facts, layers=facts.layers[1:2], others=()))


def _nan_scores() -> Session:
    session = sessions.full(2)
    table = sessions.table(session.model)
    score = np.full_like(table.score, np.nan)
    score[0, 0], score[1, 1], score[2, 2] = 0.0, np.inf, 1e30
    return replace(session, sensitivities={"predicted_kl": replace(table, score=score)})


def _all_equal() -> Session:
    session = sessions.full(2)
    table = sessions.table(session.model)
    return replace(session, sensitivities={"predicted_kl": replace(table, score=np.full_like(table.score, 0.25))})


def _not_finite_metric() -> Session:
    session = sessions.full(1)
    run = session.evaluations[0]
    bad = Metric(
        name="kl", unit="nats", value=float("nan"), baseline=0.0, low=float("nan"), high=float("inf"), samples=0,
        higher_is_better=False, per_sample=np.zeros(0),
    )  # fmt: skip
    return replace(session, evaluations=(replace(run, metrics={"kl": bad}, predicted_kl=None),))


def _no_layers() -> Session:
    return sessions.opened(replace(sessions.summary(1), layers=(), others=()))


DEGENERATE: dict[str, Callable[[], Session]] = {
    "only opened": lambda: sessions.opened(),
    "without statistics": lambda: sessions.opened(with_weights=False),
    "one layer": _one_layer,
    "no layer": _no_layers,
    "full": lambda: sessions.full(3),
    "NaN and infinite scores": _nan_scores,
    "all scores equal": _all_equal,
    "non-ASCII names": lambda: sessions.opened(sessions.summary(2, name="модель-模型-é", prefix="層.注意")),
    "metrics that are not finite": _not_finite_metric,
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_every_panel_draws(live: Callable[..., None], name: str) -> None:
    session = DEGENERATE[name]()

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.context.workspace.select([layer.name for layer in session.model.layers[:3]]))
        await _show_all(person)
        person.picture(name.replace(" ", "-"))
        await person.press(Qt.Key.Key_T, control=True)
        await _show_all(person)
        await person.act(person.context.workspace.close)
        assert not [message for message in person.context.messages.entries if message.level == "error"]

    live(story)


def test_ten_thousand_layers(live: Callable[..., None]) -> None:
    session = sessions.opened(replace(sessions.summary(1429), others=()), with_weights=False)
    session = replace(session, sensitivities={"predicted_kl": sessions.table(session.model)})
    assert len(session.model.layers) > 10_000

    async def story(person: Person) -> None:
        await person.open(session)
        await _show_all(person)
        heatmap = person.window.panels["sensitivity"].heatmap
        await person.act(lambda: person.window.reveal("sensitivity"))
        await person.act(lambda: heatmap.verticalScrollBar().setValue(heatmap.verticalScrollBar().maximum()))
        row = len(heatmap.cells.rows) - 1
        await person.click(heatmap.viewport(), heatmap.cell_rect(row, 3).center())
        assert person.state.assignments[heatmap.cells.rows[row]].weights == heatmap.cells.columns[3]
        for _ in range(12):
            await person.act(lambda: heatmap.zoom(0.8))
        assert heatmap.row_height == 3
        layers = person.window.panels["layers"]
        await person.type(layers.filter, "layers.1400.mlp")
        assert len(layers.model.rows.layers) == 3
        person.picture("filtered")

    live(story)


def test_keys_change_the_scheme_of_many_layers(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    names = [layer.name for layer in session.model.layers[1:4]]

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.context.workspace.select(names))
        before = dict(person.state.assignments)
        await person.press(Qt.Key.Key_0, control=True)
        assert {person.state.assignments[name].weights for name in names} == {KEEP}
        assert person.state.undo_name == "Set 3 layers to keep FP"
        size = person.window.status.size_label.text()
        await person.press(Qt.Key.Key_Minus, control=True)
        assert person.state.undo_name == "Fewer bits for 3 layers"
        assert person.window.status.size_label.text() != size
        await person.press(Qt.Key.Key_Z, control=True)
        await person.press(Qt.Key.Key_Z, control=True)
        assert dict(person.state.assignments) == before
        assert not person.window.actions_by_id["undo"].isEnabled()
        await person.press(Qt.Key.Key_L, control=True)
        assert set(names) <= person.state.session.locked

    live(story)


def test_the_tree_selects_and_edits_in_place(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        layers = person.window.panels["layers"]
        index = layers.model.index_of(Q_PROJ, SCHEME)
        await person.click(layers.view.viewport(), layers.view.visualRect(index).center())
        assert person.state.selection == (Q_PROJ,)
        await person.press(Qt.Key.Key_F2, layers.view)
        editor = layers.view.findChild(QComboBox)
        await person.pick(editor, "int6-g32-asym")
        assert person.state.assignments[Q_PROJ].weights == "int6-g32-asym"
        await person.layer("model.layers.0.self_attn.v_proj", modifier=Qt.KeyboardModifier.ShiftModifier)
        assert len(person.state.selection) == 3
        await person.press(Qt.Key.Key_F2, layers.view)
        await person.pick(layers.view.findChild(QComboBox), "int3-g32-asym")
        assert len(person.state.selection) == 3 and person.state.undo_name == "Set 3 layers to int3-g32-asym"
        heading = layers.view.header()
        spot = QPoint(heading.sectionViewportPosition(LOSS) + 20, heading.height() // 2)
        for _ in range(2):  # ascending, then descending
            await person.click(heading.viewport(), spot)
        losses = [layers.model.facts(layers.model.row_at(layers.model.index(row, 0)).layer).loss for row in range(5)]
        assert losses == sorted(losses, reverse=True)

    live(story)


def test_a_dismissed_list_of_schemes_changes_nothing(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        view, before = person.window.panels["layers"].view, person.state.session.plan
        await person.layer(Q_PROJ)
        await person.press(Qt.Key.Key_F2, view)
        editor = view.findChild(QComboBox)
        await person.until(editor.view().isVisible, 5)
        assert editor.width() >= editor.sizeHint().width(), "the longest scheme can be read"
        entries = {editor.itemText(row): editor.itemData(row, FACTS) for row in range(editor.count())}
        state = person.state
        assert entries == {name: cost_in_words(state, (Q_PROJ,), name) for name in entries}
        assert "bits" in entries["int4-g32"] and "nats" in entries["int4-g32"]
        longest = max(view.fontMetrics().horizontalAdvance(f"{name}{facts}") for name, facts in entries.items())
        assert editor.view().width() > longest, "what an entry costs can be read beside it"
        await person.press(Qt.Key.Key_Escape, editor.view())
        await person.until(lambda: view.findChild(QComboBox) is None, 5)
        assert person.state.session.plan is before and person.window.focusWidget() is view

    live(story)


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_what_an_entry_costs_stands_across_from_it(qapp: QApplication, direction: Qt.LayoutDirection) -> None:
    entries = QListWidget(layoutDirection=direction)
    entries.setItemDelegate(EntryDelegate(entries))
    entries.addItem("int4")
    entries.item(0).setData(FACTS, "4.50 bits")
    entries.resize(300, 40)
    entries.show()
    picture = entries.viewport().grab().toImage()
    dark = {
        x for x in range(picture.width()) for y in range(picture.height()) if picture.pixelColor(x, y).lightness() < 120
    }
    assert any(x < 60 for x in dark) and any(x > 240 for x in dark) and not any(110 < x < 190 for x in dark)
    entries.deleteLater()


def test_the_plan_panel_assigns_what_is_chosen(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        combo = person.window.panels["plan"].inputs
        await person.act(combo.setFocus)
        await person.press(Qt.Key.Key_Down, combo)
        assert person.state.assignments[Q_PROJ].inputs == combo.itemData(1)

    live(story)


def test_dragging_the_range_is_an_undoable_edit(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: person.context.workspace.select([Q_PROJ]))
        panel = person.window.panels["distributions"]
        plot, before = panel.plots["input"], person.state.session.active_ranges[Q_PROJ, "input"]
        shown = range_of(person.state.session, Q_PROJ, "input")
        view = plot.item.getViewBox()
        start = plot.mapFromScene(view.mapViewToScene(view.viewRect().center()))
        start.setX(round(plot.mapFromScene(view.mapViewToScene(_at(shown.high, view))).x()))
        end = start - QPoint(40, 0)
        figures = panel.figures.text()
        await person.act(lambda: QTest.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=start))
        for step in range(1, 9):
            await person.act(lambda step=step: _drag(plot.viewport(), start - QPoint(5 * step, 0)))
        assert panel.figures.text() != figures  # the figures follow the mouse
        await person.act(lambda: QTest.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=end))
        after = person.state.session.active_ranges[Q_PROJ, "input"]
        assert after.method == "manual" and after.high < shown.high and after.clipped > 0
        assert person.state.undo_name.endswith("(manual)")
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.active_ranges[Q_PROJ, "input"] == before
        await person.type(panel.high, "nonsense")
        await person.press(Qt.Key.Key_Return, panel.high)
        assert "Not taken" in panel.figures.text()
        assert person.state.session.active_ranges[Q_PROJ, "input"] == before
        await person.type(panel.high, "2.5")
        await person.press(Qt.Key.Key_Return, panel.high)
        assert person.state.session.active_ranges[Q_PROJ, "input"].high == 2.5

    live(story)


def _at(x: float, view: object) -> object:
    from PySide6.QtCore import QPointF

    return QPointF(x, view.viewRect().center().y())  # type: ignore[attr-defined]


def _drag(widget: QWidget, spot: QPoint) -> None:
    from PySide6.QtCore import QPointF
    from PySide6.QtGui import QMouseEvent
    from PySide6.QtWidgets import QApplication

    event = QMouseEvent(
        QMouseEvent.Type.MouseMove, QPointF(spot), QPointF(widget.mapToGlobal(spot)), Qt.MouseButton.NoButton,
        Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)


def test_a_point_of_the_front_becomes_the_plan(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: person.window.reveal("pareto"))
        panel = person.window.panels["pareto"]
        for _ in range(4):
            await person.press(Qt.Key.Key_Right, panel.plot)
        await person.press(Qt.Key.Key_Return, panel.plot)
        assert person.state.totals.nbytes == panel.front.nbytes[3]
        assert np.isclose(person.state.totals.predicted, panel.front.loss[3])
        view, point = panel.plot.item.getViewBox(), panel.plot._points.points()[40]
        spot = panel.plot.mapFromScene(view.mapViewToScene(point.pos()))
        await person.click(panel.plot.viewport(), spot)
        await person.until(lambda: person.state.totals.nbytes != panel.front.nbytes[3], 5)
        assert person.state.undo_name.startswith("Use the plan")

    live(story)


def test_everything_to_act_on_has_a_name_and_a_key(live: Callable[..., None]) -> None:
    from workbench.gui.commands.actions import ACTIONS

    keys = [action.shortcut for action in ACTIONS]
    assert all(keys) and len(set(keys)) == len(keys)

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await _show_all(person)
        for panel in person.window.panels.values():
            for kind in (QComboBox, QLineEdit, QAbstractSpinBox, QAbstractButton, Plot):
                for widget in panel.findChildren(kind):
                    inner = isinstance(widget.parent(), QAbstractSpinBox | QLineEdit) or widget.objectName().startswith(
                        "qt_"
                    )
                    text = getattr(widget, "text", lambda: "")()
                    named = widget.accessibleName() or (isinstance(widget, QAbstractButton) and text)
                    assert inner or named or type(widget).__name__ == "QTableCornerButton", widget
        for action in person.window.actions_by_id.values():
            assert action.isEnabled() or "Not now: " in action.toolTip()

    live(story)


def test_a_locked_out_action_says_why(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        facts = replace(sessions.summary(1), cannot_run="this file holds weights only, so the model cannot be run")
        await person.open(sessions.opened(facts))
        action = person.window.actions_by_id["calibrate"]
        assert not action.isEnabled() and "weights only" in action.toolTip()
        await person.act(lambda: person.window.reveal("timing"))
        assert "No CUDA device is present" in person.window.panels["timing"].device.text()

    live(story)


def test_dragging_paints_layers_as_one_step_and_a_right_click_locks(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        before, heatmap = person.state.session.plan, person.window.panels["sensitivity"].heatmap
        spots = [heatmap.cell_rect(row, 5).center() for row in range(1, 5)]
        await person.act(lambda: QTest.mousePress(heatmap.viewport(), Qt.MouseButton.LeftButton, pos=spots[0]))
        for spot in spots[1:]:
            await person.act(lambda spot=spot: _drag(heatmap.viewport(), spot))
        await person.act(lambda: QTest.mouseRelease(heatmap.viewport(), Qt.MouseButton.LeftButton, pos=spots[-1]))
        names, scheme = heatmap.cells.rows[1:5], heatmap.cells.columns[5]
        assert {person.state.assignments[name].weights for name in names} == {scheme}
        assert person.state.undo_name == "Paint 4 layers"
        await person.act(lambda: _drag(heatmap.viewport(), heatmap.cell_rect(6, 5).center()))
        assert person.state.undo_name == "Paint 4 layers"  # the button is up
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.plan == before and not person.state.undo_name
        await person.click(heatmap.viewport(), spots[2], Qt.MouseButton.RightButton)
        assert person.state.session.locked == {heatmap.cells.rows[3]}

    live(story)


def test_names_of_rows_are_whole_in_the_heatmap_locked_or_not(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        heatmap = person.window.panels["sensitivity"].heatmap
        advance = heatmap.fontMetrics().horizontalAdvance
        # of names with equally many letters, the first is not the widest
        names = ["1.lllllllllll.proj", "1.wwwwwwwwwww.proj"]
        heatmap._names = names
        heatmap._layout()
        assert heatmap.name_width - 10 - LOCK_WIDTH >= max(map(advance, names)) > advance(names[0])

    live(story, size=(1600, 900))


def test_the_heatmap_sorts_by_loss(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        panel = person.window.panels["sensitivity"]
        table = person.state.session.sensitivities["predicted_kl"]
        await person.choose(panel.order_box, 1)
        worst = table.layers[int(np.log(table.score).mean(axis=1).argmax())]
        assert panel.heatmap.cells.rows[0] == worst
        await person.click(panel.heatmap.viewport(), panel.heatmap.cell_rect(0, 6).center())
        assert person.state.assignments[worst].weights == panel.heatmap.cells.columns[6]
        assert panel.heatmap.cells.chosen[0] == 6

    live(story)


def test_rows_of_blocks_and_kinds_hold_sums_and_assign_all_their_layers(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(3))
        panel, before = person.window.panels["sensitivity"], person.state
        table = before.session.sensitivities["predicted_kl"]
        await person.choose(panel.order_box, 2)
        await person.act(lambda: panel.order_box.activated.emit(2))
        cells = panel.heatmap.cells
        names = [layer.name for layer in before.session.model.layers if layer.block == "model.layers.1"]
        row, scheme = cells.rows.index("model.layers.1"), cells.columns[6]
        naive = sum(table.of(name, scheme) for name in names)
        assert len(cells.rows) == 4 and cells.score[row, 6] == pytest.approx(naive)
        assert cells.chosen[row] == -1, "its layers have several schemes"
        await person.click(panel.heatmap.viewport(), panel.heatmap.cell_rect(row, 6).center())
        await person.until(lambda: set(person.state.selection) == set(names), 5)
        assert {person.state.assignments[name].weights for name in names} == {scheme}
        assert panel.heatmap.cells.chosen[row] == 6
        changed = [name for name, of in person.state.assignments.items() if of != before.assignments[name]]
        assert set(changed) <= set(names)
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        assert person.state.session.plan == before.session.plan, "one step to undo"
        await person.choose(panel.order_box, 3)
        await person.act(lambda: panel.order_box.activated.emit(3))
        assert set(panel.heatmap.cells.rows) == {"model.embed_tokens", *sessions.PARTS}
        person.picture("kinds")

    live(story)


def test_an_empty_panel_holds_the_button_of_its_next_step(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.opened())
        for name, action in (("sensitivity", "calibrate"), ("pareto", "score"), ("agreement", "score")):
            await person.act(lambda name=name: person.window.reveal(name))
            panel, triggered = person.window.panels[name], []
            assert panel.next_step.isVisible()
            person.context.trigger = triggered.append
            await person.click(panel.next_step)
            assert triggered == [action]
        await person.open(sessions.full(1))
        assert not person.window.panels["pareto"].next_step.isVisible()

    live(story)


def test_asking_for_a_panel_makes_no_other(qapp: QApplication) -> None:
    docks = Docks(Context(Workspace()), theme.LIGHT)
    assert docks.panel(ReconstructionPanel) is docks.panels["reconstruction"]
    assert list(docks.panels) == ["reconstruction"]
    docks.deleteLater()


@pytest.mark.parametrize("change", ["cache", "transforms", "nothing"])
def test_a_plan_need_not_round_weights_to_be_evaluated_and_exported(change: str) -> None:
    session = replace(sessions.full(1), plan=Plan(name="p", model="m", fingerprint=sessions.full(1).model.fingerprint))
    if change == "cache":
        session = replace(session, plan=with_cache(session.plan, session.model.layers, "int8-token"))
    elif change == "transforms":
        session = replace(session, plan=replace(session.plan, transforms=("smoothquant",)))
    now = ActionState(state=State(session=session))
    reasons = {action.id: action.why_not(now) for action in ACTIONS}
    assert reasons["evaluate"] is None and reasons["export"] is None
    assert "quantizes nothing" in str(reasons["time_kernels"])
