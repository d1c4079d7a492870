"""Training from the window: asked for in a form, seen while it runs, cancelled, gone on with, written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from tests.gui.conftest import Person
from workbench.engine.engine import Engine
from workbench.gui.context import edits
from workbench.gui.shell.number_field import NumberField

STEPS = 120


async def _ask(person: Person, out: Path) -> None:
    await person.press(Qt.Key.Key_F8, person.window, control=True)
    await person.until(lambda: person.dialog("form"), 10)
    dialog = person.dialog("form")
    for name, text in (("steps", str(STEPS)), ("learning_rate", "0.02")):
        await person.type(dialog.findChild(NumberField, name).lineEdit(), text)
    lines = [line for line in dialog.findChildren(QLineEdit) if line.accessibleName() == "Path"]
    await person.type(lines[-1], str(out))
    person.picture("form")
    await person.click(dialog.start_button)


def test_training_is_cancelled_gone_on_with_and_written(live: Callable[..., None], tmp_path: Path) -> None:
    out = tmp_path / "trained.safetensors"

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: person.state.session is not None)
        names = [layer.name for layer in person.state.session.model.layers]
        await person.act(lambda: edits.assign(person.context.workspace, names, weights="int4-g32-asym"))
        await _ask(person, out)
        jobs = person.context.jobs
        await person.until(lambda: "step" in jobs.views[-1].text and jobs.views[-1].fraction > 0)
        await person.click(person.window.status.cancel_button)
        await person.until(lambda: person.context.jobs.views[-1].status == "cancelled")
        checkpoint = tmp_path / "trained.safetensors.training"
        await person.until(checkpoint.exists, 20)
        assert not out.exists()
        await person.press(Qt.Key.Key_R, person.window, control=True, shift=True)
        await person.until(lambda: out.exists() and person.context.jobs.views[-1].status == "done")
        assert [message.title for message in person.context.messages.entries if message.level == "error"] == []
        assert person.context.messages.entries[-1].title == f"Done: {person.context.jobs.views[-1].title}"

    live(story, engine=Engine())
