"""Distributions: every tensor's range is dragged, formats stand on the axis, many layers are compared."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.test_panels import _drag
from workbench.gui.panels.distributions import MANY, OVERLAY
from workbench.gui.range_line import range_of

Q_PROJ = "model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize("tap", ["weight", "output"])
def test_the_range_of_weights_and_outputs_is_dragged(live: Callable[..., None], tap: str) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.desk.workspace.select([Q_PROJ]))
        panel = person.window.panels["distributions"]
        plot, before = panel.plots[tap], range_of(person.state.session, Q_PROJ, tap)
        view = plot.item.getViewBox()
        height = view.viewRect().center().y()
        start = plot.mapFromScene(view.mapViewToScene(QPointF(before.high, height)))
        await person.act(lambda: QTest.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=start))
        for step in range(1, 7):
            await person.act(lambda step=step: _drag(plot.viewport(), start - QPoint(5 * step, 0)))
        assert panel.line.tap == tap and "for judging only" in panel.figures.text()
        end = start - QPoint(30, 0)
        await person.act(lambda: QTest.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=end))
        after = person.state.session.active_ranges[Q_PROJ, tap]
        assert after.method == "manual" and after.high < before.high
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.active_ranges.get((Q_PROJ, tap)) == (before if tap == "output" else None)

    live(story)


def test_formats_stand_on_the_axis_and_layers_are_compared(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        names = [layer.name for layer in person.state.session.model.layers[1:8]]
        await person.act(lambda: person.desk.workspace.select(names))
        panel = person.window.panels["distributions"]
        planned = person.state.assignments[names[0]].weights
        assert list(panel.plots["weight"]._grids) == [planned]
        assert panel.plots["weight"]._grids[planned].size == 256
        action = next(one for one in panel.formats.actions() if one.text() == "nf4-b64")
        await person.act(action.trigger)
        assert panel.plots["weight"]._grids["nf4-b64"].size == 16
        assert panel.plots["weight"].item.viewRange()[1][0] < 0  # room below the axis
        await person.act(lambda: (panel.view.setCurrentText(OVERLAY), panel.view.activated.emit(1)))
        assert len(panel.plots["weight"]._others) == 5
        person.picture("overlay")
        await person.act(lambda: (panel.view.setCurrentText(MANY), panel.view.activated.emit(2)))
        assert panel.multiples.isVisible() and len(panel.multiples._entries) == len(names)
        person.picture("side-by-side")
        await person.click(panel.multiples, panel.multiples.rect_of(3).center())
        assert person.state.selection == (names[3],)

    live(story)
