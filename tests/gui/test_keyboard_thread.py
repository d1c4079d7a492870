"""The whole job by keyboard alone: keys are sent to what has the keyboard, never to a widget that was picked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QWidget

from tests.gui.conftest import Person
from workbench.engine.engine import Engine
from workbench.gui.panels import PANELS

NONE, CONTROL, SHIFT, ALT = (
    Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)  # fmt: skip
MAX_TABS = 40


class Keyboard:
    """Keys go where Qt says the keyboard is."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._popup: QWidget | None = None

    @property
    def at(self) -> QWidget:
        """What gets the next key: within an open list, as Qt does it, what has the keyboard there."""
        self._popup = QApplication.activePopupWidget()  # without it, what is inside counts as deleted
        inside = self._popup.focusWidget() if self._popup is not None else None
        return inside or self._popup or QApplication.focusWidget() or self._person.window

    async def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = NONE) -> None:
        """Press one key."""
        if QApplication.activeWindow() is None and QApplication.activePopupWidget() is None:
            await self._person.act(self._person.window.activateWindow)  # what a window manager does
        await self._person.act(lambda: QTest.keyClick(self.at, key, modifiers))

    async def text(self, text: str) -> None:
        """Type over what is there."""
        await self.key(Qt.Key.Key_A, CONTROL)
        await self._person.act(lambda: QTest.keyClicks(self.at, text))

    async def tab_to(self, name: str) -> None:
        """Press Tab until the field of that accessible name has the keyboard."""
        for _ in range(MAX_TABS):
            if name in (self.at.accessibleName(), _holder(self.at)):
                return
            await self.key(Qt.Key.Key_Tab)
        raise AssertionError(f"Tab never reaches {name!r}")

    async def start(self, dialog: str = "form") -> None:
        """Start what an open dialog asks for: Enter, wherever in it the keyboard is."""
        await self.key(Qt.Key.Key_Return)
        await self._person.until(lambda: self._person.dialog(dialog) is None, 10)


def _holder(widget: QWidget) -> str:
    parent = widget.parentWidget()
    return parent.accessibleName() if isinstance(parent, QAbstractSpinBox) or parent is not None else ""


async def _form(person: Person, board: Keyboard, key: Qt.Key, samples: str) -> None:
    await board.key(key)
    await person.until(lambda: person.dialog("form"), 10)
    await board.tab_to("Samples")
    await board.text(samples)
    await board.start()


async def _measured(person: Person, board: Keyboard) -> None:
    await board.key(Qt.Key.Key_D, CONTROL | SHIFT)
    await person.until(lambda: person.state.session is not None and person.state.session.model.cannot_run is None)
    await _form(person, board, Qt.Key.Key_F5, "4")
    await person.until(lambda: person.state.session.calibration is not None)
    await _form(person, board, Qt.Key.Key_F6, "4")
    await person.until(lambda: "predicted_kl" in person.state.session.sensitivities)


async def _planned(person: Person, board: Keyboard) -> None:
    await board.key(Qt.Key.Key_1, ALT)
    await board.key(Qt.Key.Key_Home)
    await board.key(Qt.Key.Key_Down)
    await board.key(Qt.Key.Key_Down)
    (layer,) = person.state.selection
    before = person.state.assignments[layer].weights
    await board.key(Qt.Key.Key_F2)
    await board.key(Qt.Key.Key_Down)
    await board.key(Qt.Key.Key_Down)
    await board.key(Qt.Key.Key_Return)
    await person.until(lambda: person.state.assignments[layer].weights != before, 5)
    chosen = person.state.assignments[layer].weights
    await board.key(Qt.Key.Key_Z, CONTROL)
    assert person.state.assignments[layer].weights == before
    await board.key(Qt.Key.Key_Z, CONTROL | SHIFT)
    assert person.state.assignments[layer].weights == chosen
    await board.key(Qt.Key.Key_2, ALT)
    await board.tab_to("Budget")
    await board.text("4.5")
    await board.key(Qt.Key.Key_Return)
    await person.until(lambda: person.state.undo_name.startswith("Search"))
    assert person.state.totals.bits_per_weight <= 4.5


async def _kept(person: Person, board: Keyboard, folder: Path) -> None:
    await _form(person, board, Qt.Key.Key_F8, "4")
    await person.until(lambda: person.state.session.evaluations)
    await board.key(Qt.Key.Key_S, CONTROL)
    await person.until(lambda: person.dialog("path"), 10)
    await board.text(str(folder / "session.qwb"))
    await board.start("path")
    await person.until(lambda: (folder / "session.qwb").exists() and not person.state.dirty)
    await board.key(Qt.Key.Key_E, CONTROL | SHIFT)
    await person.until(lambda: person.dialog("form"), 10)
    await board.tab_to("Path")
    await board.text(str(folder / "plan.json"))
    await board.start()
    await person.until(lambda: (folder / "plan.json").exists())


def test_the_whole_thread_by_keyboard_alone(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        board = Keyboard(person)
        await _measured(person, board)
        await _planned(person, board)
        await _kept(person, board, tmp_path)
        person.picture("done")
        assert not [message for message in person.context.messages.entries if message.level == "error"]

    live(story, engine=Engine())


def test_every_panel_takes_the_keyboard_and_shows_it(live: Callable[..., None]) -> None:
    from tests.gui import sessions

    async def story(person: Person) -> None:
        await person.open(sessions.full(2))
        board = Keyboard(person)
        assert len({spec.key for spec in PANELS}) == len(PANELS)
        for spec in PANELS:
            keys = QKeySequence(spec.key)[0]
            await board.key(keys.key(), keys.keyboardModifiers())
            panel = person.window.panels[spec.id]
            assert panel.isVisible() and panel.isAncestorOf(board.at), (spec.id, board.at)

    live(story)
