"""Unsaved work outlives a crash; files are opened by mouse; a timing job runs from the window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLineEdit

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.context import edits
from workbench.gui.recovery import Recovery
from workbench.gui.shell import dialogs, settings
from workbench.session.autosave import recoverable, window_folders
from workbench.steps.files.keep_recovery import KEEP_RECOVERY

LAYER = "model.layers.0.mlp.up_proj"


def test_unsaved_work_is_kept_aside_and_offered_after_a_crash(live: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "kept.qwb"

    async def crash(person: Person) -> None:
        recovery = Recovery(person.context, person.window, seconds=0.05)
        await person.open(sessions.full(1), path)
        await person.settle(0.3)
        assert not recoverable()  # nothing is newer than the file
        await person.act(lambda: person.context.workspace.select([LAYER]))
        await person.press(Qt.Key.Key_0, control=True)
        await person.until(recoverable, 10)
        assert KEEP_RECOVERY.title not in [view.title for view in person.window.panels["jobs"]._views]
        recovery.end(discard=False)

    async def again(person: Person) -> None:
        recovery = Recovery(person.context, person.window)
        await person.act(lambda: person.context.tasks.start(recovery.offer()))
        await person.answer("question", "recover")
        await person.until(lambda: person.state.session is not None)
        assert person.state.dirty and person.state.path == path
        assert person.state.assignments[LAYER].weights == "keep"
        await person.press(Qt.Key.Key_S, control=True)
        await person.until(lambda: path.exists() and not person.state.dirty)
        assert not recoverable()
        recovery.end(discard=True)

    live(crash)
    live(again)


def test_two_windows_keep_their_work_apart(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        first, second = (Recovery(person.context, person.window, seconds=0.05) for _ in range(2))
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([LAYER]))
        await person.press(Qt.Key.Key_0, control=True)
        await person.until(lambda: len(recoverable()) == 2, 10)  # never saved, and yet each has a file of its own
        third = Recovery(person.context, person.window)
        await person.act(lambda: person.context.tasks.start(third.offer()))
        await person.settle(0.2)
        assert person.dialog("question") is None  # both windows are open
        first.end(discard=False)
        await person.act(lambda: person.context.tasks.start(third.offer()))
        await person.answer("question", "discard")
        await person.until(lambda: len(recoverable()) == 1, 10)
        third.end(discard=False)
        second.end(discard=True)
        assert not recoverable() and not window_folders()

    live(story)


async def _menu_item(person: Person, title: str, item: str) -> None:
    """Open a menu of the menu bar with the mouse and click the item that begins with ``item``."""
    bar = person.window.menuBar()
    menu = person.window.menus[title]
    await person.click(bar, bar.actionGeometry(menu.menuAction()).center())
    await person.until(menu.isVisible, 5)
    found = next(action for action in menu.actions() if action.text().replace("&", "").startswith(item))
    await person.click(menu, menu.actionGeometry(found).center())


async def _recent(person: Person) -> QAction:
    await _menu_item(person, "&File", "Open Recent")
    await person.until(person.window.recent_menu.isVisible, 5)
    return next(action for action in person.window.recent_menu.actions() if action.toolTip().endswith("kept.qwb"))


def test_the_open_dialog_and_a_recent_file_by_mouse(live: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "kept.qwb"
    sessions.full(1).save(path)

    async def story(person: Person) -> None:
        await _menu_item(person, "&File", "Open Session")
        await person.until(lambda: person.dialog("path"), 10)
        dialog: Any = person.dialog("path")
        frame = dialog.findChild(dialogs.Frame)
        assert frame is not None and frame.geometry() == dialog.rect()
        person.picture("dialog")
        await person.type(dialog.findChild(QLineEdit, "fileNameEdit"), str(path))
        await person.answer("path", "Open")
        await person.until(lambda: person.state.session is not None)
        assert settings.recent() == [str(path)]
        await person.press(Qt.Key.Key_W, control=True)
        await person.until(lambda: person.state.session is None)
        found = await _recent(person)
        await person.click(person.window.recent_menu, person.window.recent_menu.actionGeometry(found).center())
        await person.until(lambda: person.state.session is not None)
        assert person.state.path == path

    live(story)


def test_a_timing_job_fills_the_panel(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: person.state.session is not None)
        names = [layer.name for layer in person.state.session.model.layers]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="int8-channel"))
        await person.press(Qt.Key.Key_F9)
        await person.until(lambda: person.dialog("form"), 10)
        await person.type(person.dialog("form").findChildren(QLineEdit, "qt_spinbox_lineedit")[1], "5")
        await person.click(person.dialog("form").start_button)
        await person.until(lambda: person.state.session.timings)
        panel = person.window.panels["timing"]
        await person.until(panel.isVisible, 10)
        assert panel.table.records.rowCount() == len(person.state.session.timings) > 0
        assert all(timing.samples.size == 5 for timing in person.state.session.timings)
        assert "No CUDA device" in panel.device.text()
        person.picture("timed")

    live(story)
