"""Two plans side by side in tree and heatmap; all rows of a large heatmap at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QFontMetrics

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.gui.plots import heatmap_picture
from workbench.gui.plots.cells import Cells
from workbench.gui.plots.minimap import worst_rows
from workbench.gui.shell.foreign import elided
from workbench.gui.tables.layer_columns import CHANGE
from workbench.insight.arrangement import Order, arranged
from workbench.insight.dashboard import Dashboard
from workbench.insight.plan_differences import PRESENT
from workbench.planning.plan import KEEP
from workbench.planning.totals import layer_bits

Q, UP = "model.layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj"


def test_two_plans_are_marked_where_they_differ(live: Callable[..., None]) -> None:
    session = sessions.full(2)
    base = session.plan.assign([Q, UP], weights="int4-g32-asym")
    session = replace(session, plan=base, plans={"other": base.assign([UP], weights="int8-channel")})

    async def story(person: Person) -> None:
        await person.open(session)
        plan, layers = person.window.panels["plan"], person.window.panels["layers"]
        heatmap, history = person.window.panels["sensitivity"].heatmap, plan.history
        await person.tab(plan.tabs, history)
        await person.row(history.plans, 1)
        assert not person.state.contrast and layers.view.header().isSectionHidden(CHANGE)
        await person.click(history.mark)
        await person.settle()
        assert person.state.contrast == (PRESENT, "other")
        layer = session.model.by_name[UP]
        more = (layer_bits(layer, "int8-channel") - layer_bits(layer, "int4-g32-asym")) / 8
        text = layers.model.index_of(UP, CHANGE).data()
        assert text.startswith("int4-g32-asym to int8-channel, +") and f"{more / 1000:.3g}" in text and "nats" in text
        assert not layers.model.index_of(Q, CHANGE).data() and not layers.view.header().isSectionHidden(CHANGE)
        first, second = heatmap._contrast
        names, schemes = heatmap.cells.rows, heatmap.cells.columns
        assert [names[row] for row in np.flatnonzero(second >= 0)] == [UP]
        assert (schemes[first[names.index(UP)]], schemes[second[names.index(UP)]]) == ("int4-g32-asym", "int8-channel")
        assert "1 layer differs, +" in history.figure.text()
        await person.act(lambda: heatmap.verticalScrollBar().setValue(heatmap.verticalScrollBar().maximum()))
        person.picture("marked")
        await person.act(lambda: person.context.workspace.edit(
            "Change", lambda now: replace(now, plan=now.plan.assign([UP], weights="int8-channel"))))  # fmt: skip
        assert heatmap._contrast is None, "the plans are alike now"
        await person.click(history.delete_button)
        assert not layers.model.index_of(UP, CHANGE).data()
        await person.click(history.mark)
        assert not person.state.contrast and layers.view.header().isSectionHidden(CHANGE)

    live(story, size=(1600, 1000))


def test_mark_without_a_selection_marks_the_plan_that_was_saved_last_or_says_why_not(live: Callable[..., None]) -> None:
    session = replace(sessions.full(1), plans={})

    async def story(person: Person) -> None:
        await person.open(session)
        plan = person.window.panels["plan"]
        await person.tab(plan.tabs, plan.history)
        await person.click(plan.history.mark)
        assert not plan.history.mark.isChecked() and "Nothing to mark" in person.window.status.message.text()
        for name, scheme in (("first", "int8-channel"), ("last", "int4-g32-asym")):
            await person.act(lambda name=name, scheme=scheme: person.context.workspace.edit(name, lambda now: replace(
                now, plans={**now.plans, name: now.plan.assign([Q], weights=scheme)})))  # fmt: skip
        await person.click(plan.history.mark)
        await person.settle()
        assert plan.history.mark.isChecked() and person.state.contrast == (PRESENT, "last")
        await person.press(Qt.Key.Key_Z, control=True)
        assert "Undone: last" in person.window.status.message.text(), "the message before is over"
        for scheme in ("int6-channel", "int3-channel"):
            await person.act(lambda scheme=scheme: edits.assign(person.context.workspace, [Q], weights=scheme))
            await person.act(person.context.workspace.undo if scheme == "int6-channel" else lambda: None)
        assert list(person.state.session.plans) == ["first", "Branch 1"], "what was undone is kept, and not saved"
        await person.click(plan.history.mark)
        await person.click(plan.history.mark)
        assert person.state.contrast == (PRESENT, "first")
        for name in ("first", "other", "first"):
            await person.act(lambda name=name: plan.history.name.setText(name))
            await person.click(plan.history.keep_button)
        await person.act(lambda: edits.assign(person.context.workspace, [Q], weights="int2-g16"))
        figures = Dashboard().figures(person.state)
        assert {each.against for each in figures[0].differences if each.kind == "saved"} == {"first"}

    live(story, size=(1600, 1000))


def test_the_minimap_shows_the_worst_rows_and_goes_there(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        panel = person.window.panels["sensitivity"]
        assert panel.minimap.isHidden(), "a few rows need no map"
        await person.open(sessions.full(40))
        assert panel.minimap.isVisible()
        strip = panel.minimap
        await person.click(strip, QPoint(5, strip.height() - 2))
        assert panel.heatmap.verticalScrollBar().value() == panel.heatmap.verticalScrollBar().maximum()
        assert abs(strip.visible_part().bottom() - strip.height()) <= 2
        await person.click(strip, QPoint(5, strip.height() // 2))
        shown = strip.visible_part()
        assert abs(shown.center().y() - strip.height() // 2) <= 3
        person.picture("minimap")
        await _painted_anew(person)

    live(story)


async def _painted_anew(person: Person) -> None:
    """Scores that a running job adds are drawn, although nothing of the layout changes."""
    panel, table = person.window.panels["sensitivity"], person.state.session.table("predicted_kl")
    before = panel.minimap.grab().toImage()
    events: list[QEvent.Type] = []

    class Events(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            events.append(event.type())
            return False

    observer = Events()
    panel.minimap.installEventFilter(observer)
    await person.act(lambda: panel.show_partial(replace(table, score=table.score[::-1] * 100)))
    assert QEvent.Type.Paint in events
    assert panel.minimap.grab().toImage() != before
    panel.minimap.removeEventFilter(observer)


def test_a_line_of_the_minimap_is_the_worst_of_its_rows() -> None:
    score = np.arange(50, dtype=float).reshape(10, 5)
    score[7] = np.nan
    score[3, 2] = 1e3
    cells = Cells(rows=tuple("abcdefghij"), columns=tuple("vwxyz"), score=score, chosen=np.zeros(10), low=1.0, high=9.0)
    lines = worst_rows(cells, 5)
    assert lines.shape == (5, 5) and lines[1, 2] == 1e3 and lines[3, 0] == score[6, 0]
    assert np.isnan(worst_rows(cells, 100)[7]).all() and worst_rows(cells, 100).shape == score.shape


def test_layers_stand_by_the_loss_of_each_byte_that_rounding_them_saves() -> None:
    session = sessions.full(2)
    table, model = session.table("predicted_kl"), session.model
    shown = arranged(table, Order.SAVING, model).table
    assert sorted(shown.layers) == sorted(table.layers)

    def rate(name: str) -> float:
        layer = model.by_name[name]
        saved = [(layer_bits(layer, KEEP) - layer_bits(layer, scheme)) / 8 for scheme in shown.schemes]
        pairs = zip(shown.score[shown.row[name]], saved, strict=True)
        rates = [np.log10(loss / more) for loss, more in pairs if loss > 0 and more > 0]
        return float(np.mean(rates)) if rates else -np.inf

    rates = [rate(name) for name in shown.layers]
    assert rates == sorted(rates, reverse=True) and len(set(rates)) > 3


def test_names_of_experts_that_are_cut_still_differ(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[str, str] = {}

    def noted(metrics: QFontMetrics, text: str, room: int, cut: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> str:
        shown[text] = elided(metrics, text, room, cut)
        return shown[text]

    monkeypatch.setattr(heatmap_picture, "elided", noted)

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        rows = tuple(f"{block}.a_mixture_of_experts.experts.25.down_projection" for block in range(8))
        score, chosen = np.ones((8, 1)), np.zeros(8, np.int64)
        cells = Cells(rows=rows, columns=("int4",), score=score, chosen=chosen, low=0.1, high=1.0)
        await person.act(lambda: person.window.panels["sensitivity"].heatmap.show_cells(cells))
        names = {text: cut for text, cut in shown.items() if "mixture" in text}
        assert len(names) > 3 and all("…" in cut for cut in names.values())
        assert len(set(names.values())) == len(names), names

    live(story)
