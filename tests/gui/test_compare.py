"""Another session is opened beside the open one, read only; differences are marked and can be had alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from tests.gui import sessions
from tests.gui.conftest import Person, empty_text
from workbench.gui.context import edits


def test_another_session_is_compared(live: Callable[..., None], tmp_path: Path) -> None:
    session = sessions.full(2)
    session.save(tmp_path / "before.qwb")
    changed = session.model.layers[4].name

    async def story(person: Person) -> None:
        await person.open(session)
        await person.act(lambda: person.window.reveal("compare"))
        panel = person.window.panels["compare"]
        assert empty_text(panel).startswith("Open another session") and not panel.tabs.isVisible()
        await person.press(Qt.Key.Key_Space, panel.next_step)
        await person.until(lambda: person.dialog("path"))
        name = person.dialog("path").findChild(QLineEdit, "fileNameEdit")
        await person.type(name, str(tmp_path / "before.qwb"))
        await person.press(Qt.Key.Key_Return, name)
        await person.until(lambda: person.state.compared is not None)
        layers = panel.tables["Layers"].records
        assert layers.rowCount() == len(session.model.layers)
        assert panel.figure.text().endswith(f"0 layers of {len(session.model.layers)} differ")
        await person.act(lambda: edits.assign(person.context.workspace, [changed], weights="nf4-b64"))
        await person.until(lambda: "(the same weights): 1 layer of" in panel.figure.text())
        await person.press(Qt.Key.Key_Space, panel.differing)
        assert [row.name for row in layers.records] == [changed]
        for page in range(panel.tabs.count()):
            await person.tab(panel.tabs, page)
            person.picture(f"tab-{page}")
        await person.press(Qt.Key.Key_Z, person.window, control=True)
        await person.until(lambda: not layers.records)
        assert person.state.compared.plan == session.plan

    live(story)
