"""The slider re-plans while it moves, as one step to undo; a layer's scheme is explained."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QStyle, QStyleOptionSlider

from tests.gui import sessions
from tests.gui.conftest import Person
from tests.gui.test_panels import _drag

LAYER = "model.layers.0.mlp.down_proj"


def _handle(slider: object) -> QPoint:
    option = QStyleOptionSlider()
    slider.initStyleOption(option)  # type: ignore[attr-defined]
    control, part = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
    return slider.style().subControlRect(control, option, part, slider).center()  # type: ignore[attr-defined,no-any-return]


def test_the_slider_replans_while_it_moves(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        await person.act(lambda: person.desk.lock([LAYER], True))
        await person.act(lambda: person.window.show_panel("pareto"))
        panel, before = person.window.panels["pareto"], person.state.session.plan
        held = person.state.assignments[LAYER]
        start = _handle(panel.slider)
        seen = []
        await person.act(lambda: QTest.mousePress(panel.slider, Qt.MouseButton.LeftButton, pos=start))
        for step in range(1, 6):
            await person.act(lambda step=step: _drag(panel.slider, start - QPoint(12 * step, 0)))
            seen.append(person.state.totals.nbytes)
            index = panel.slider.value()
            assert person.state.totals.nbytes == panel.front.nbytes[index]
            assert np.isclose(person.state.totals.predicted, panel.front.loss[index])
        assert seen == sorted(seen, reverse=True) and len(set(seen)) > 3
        end = start - QPoint(60, 0)
        await person.act(lambda: QTest.mouseRelease(panel.slider, Qt.MouseButton.LeftButton, pos=end))
        assert person.state.assignments[LAYER] == held  # locked
        assert person.state.undo_name.startswith("Slide to")
        person.picture("slid")
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.session.plan == before
        assert person.state.undo_name.startswith("Lock")

    live(story)


def test_the_slider_by_keyboard_and_what_the_next_byte_buys(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.window.show_panel("pareto"))
        panel = person.window.panels["pareto"]
        await person.act(panel.slider.setFocus)
        await person.press(Qt.Key.Key_Home, panel.slider)
        assert person.state.totals.nbytes == panel.front.nbytes[0]
        await person.press(Qt.Key.Key_Right, panel.slider)
        assert person.state.totals.nbytes == panel.front.nbytes[1]
        moved = panel.front.space.groups[int(panel.front.moves.group[1])].layers[0]
        await person.act(lambda: person.desk.workspace.select([moved]))
        scheme = panel.front.choices(2)[moved]
        assert f"{scheme} would take" in panel.why.text() and f"take {moved} from" in panel.why.text()
        await person.press(Qt.Key.Key_End, panel.slider)
        await person.act(lambda: person.desk.workspace.select([moved]))
        assert "would take" not in panel.why.text() and "Nothing that costs" in panel.why.text()

    live(story)
