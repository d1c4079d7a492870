"""What goes wrong must not be lost, hidden or fatal: a killed engine, bad files, unsaved work, code to be trusted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.engine.engine import CANCELLED, Engine
from workbench.gui.commands import document
from workbench.gui.shell import settings
from workbench.gui.shell.forms import Form
from workbench.models.sources.bundled import bundled_folder
from workbench.models.sources.weights_only import CANNOT_RUN
from workbench.session.session import Session
from workbench.session.shared_file import stamp_of
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions

FACTORY = """
import torch

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
"""


def test_a_killed_engine_is_said_and_retried(live: Callable[..., None]) -> None:
    engine = Engine()

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: person.state.session is not None)
        session = person.state.session
        await person.act(
            lambda: person.context.runner.submit(
                CALIBRATE.request(session, CalibrateOptions(data="demo:digits-classifier", samples=24))
            )
        )
        await person.until(lambda: person.context.jobs.views[-1].fraction > 0)
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        await person.until(lambda: person.context.jobs.views[-1].status == "failed", 5)
        await person.until(person.window.status.retry_button.isVisible, 5)
        assert any(
            "engine process ended" in f"{message.title} {message.text}" for message in person.context.messages.entries
        )
        assert person.dialog("error") is None  # it mends itself: a line, not a dialog
        person.picture("engine-killed")
        await person.until(lambda: engine.alive, 30)
        await person.click(person.window.status.retry_button)
        await person.until(lambda: person.state.session.calibration is not None)
        assert person.state.session.model.fingerprint == session.model.fingerprint

    live(story, engine=engine)


def test_a_cancelled_job_that_does_not_stop_is_no_fault(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.engine_event("died", CANCELLED))
        assert person.window.status.message.text().startswith("The job is cancelled")
        await person.act(lambda: person.window.engine_event("died", "killed by signal 9"))
        assert [message.level for message in person.context.messages.entries[-2:]] == ["info", "error"]

    live(story)


def test_a_job_is_cancelled_from_the_status_bar(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: person.state.session is not None)
        request = CALIBRATE.request(person.state.session, CalibrateOptions(data="demo:digits-classifier"))
        await person.act(lambda: person.context.runner.submit(request))
        await person.until(person.window.status.cancel_button.isVisible)
        await person.click(person.window.status.cancel_button)
        await person.until(lambda: person.context.jobs.views[-1].status == "cancelled", 5)
        assert person.state.session.calibration is None
        await person.until(lambda: "Cancelled: Calibrate" in person.window.status.message.text(), 5)
        lines = len(person.context.messages.entries)
        for event, text in (("died", CANCELLED), ("restarted", "warm")):  # where it did not stop by itself
            await person.act(lambda event=event, text=text: person.window.engine_event(event, text))
        said = person.window.status.message.text()
        assert said.startswith("Cancelled: Calibrate") and said.endswith("running again; nothing is lost"), said
        assert len(person.context.messages.entries) == lines, "one line, not three"

    live(story)


def test_a_path_that_is_no_model_is_a_dialog_that_blocks_nothing(live: Callable[..., None], tmp_path: Path) -> None:
    bad, session = tmp_path / "broken.safetensors", tmp_path / "broken.qwb"
    bad.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00not json at all")
    session.write_bytes(b"\x89HDF\r\n\x1a\n truncated")

    async def story(person: Person) -> None:
        for path in (bad, session):
            await person.act(lambda path=path: _drop(person.window, path))
            if path == session:
                await person.answer("question", "repair")  # nothing of it is whole
            await person.until(lambda: person.dialog("error"))
            dialog: Any = person.dialog("error")
            assert not dialog.isModal() and path.name in dialog.informativeText() + dialog.text()
            await person.act(dialog.close)
            await person.until(lambda: person.dialog("error") is None, 5)
        assert person.state.session is None
        assert [message.level for message in person.context.messages.entries] == ["error", "warning", "error"]
        assert not [view for view in person.context.jobs.views if view.listed], "refused openings are no jobs"
        assert not person.window.status.retry_button.isVisible()

    live(story)


def test_the_last_line_of_a_repair_says_what_is_lost(live: Callable[..., None], tmp_path: Path) -> None:
    """A long list ended with one of its parts, and hid that the scores were gone."""
    whole, cut = tmp_path / "whole.qwb", tmp_path / "cut.qwb"
    sessions.full(1).save(whole)
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 4 // 5])

    async def story(person: Person) -> None:
        await person.act(lambda: _drop(person.window, cut))
        await person.answer("question", "repair")
        await person.until(lambda: person.state.session is not None)
        lines = person.context.messages.entries
        parts = {line.text.split("/")[1].partition(":")[0] for line in lines if line.title == "Repaired"}
        assert len(parts) > 1 and "sensitivity" in parts
        assert lines[-1].title == "Repaired cut.qwb" and all(part in lines[-1].text for part in parts)
        assert person.window.status.message.text().startswith("Repaired cut.qwb: lost in part or whole: ")

    live(story)


def _drop(widget: QWidget, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(10, 10), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    widget.dropEvent(event)


def test_a_python_file_is_run_only_when_it_is_trusted(live: Callable[..., None], tmp_path: Path) -> None:
    file = tmp_path / "network.py"
    file.write_text(FACTORY)

    async def story(person: Person) -> None:
        document = person.window.document
        for answer in ("cancel", "trust"):
            await person.act(lambda: document.open_path(str(file), factory="build"))
            await person.until(lambda: person.dialog("question"))
            assert str(file) in person.dialog("question").informativeText()
            assert not person.window.status.retry_button.isVisible(), "nothing has failed"
            await person.answer("question", answer)
            if answer == "cancel":
                await person.settle(0.2)
                assert person.state.session is None
        await person.until(lambda: person.state.session is not None)
        assert len(person.state.session.model.layers) == 2
        assert [view.status for view in person.context.jobs.views if view.listed] == ["done"]

    live(story)


def test_a_python_file_is_asked_for_its_weights_and_random_ones_are_warned_of(
    live: Callable[..., None], tmp_path: Path
) -> None:
    file = tmp_path / "network.py"
    file.write_text(FACTORY)

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path(str(file)))
        await person.until(lambda: person.dialog("form"))
        assert {"factory", "weights"} <= person.dialog("form").findChild(Form).widgets.keys()
        await person.answer("form", "Open")
        await person.answer("question", "trust")
        await person.until(lambda: person.state.session is not None and not person.state.session.model.cannot_run)
        last = person.context.messages.entries[-1]
        assert last.level == "warning" and "they are random unless it loads them" in last.text
        assert last.text in person.state.session.notes

    live(story)


def test_undoing_to_what_is_on_disk_takes_the_star_away(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1), tmp_path / "s.qwb")
        for _ in range(2):
            await person.act(lambda: person.context.workspace.select(["model.layers.0.mlp.up_proj"]))
            await person.press(Qt.Key.Key_0, control=True)
            assert person.window.isWindowModified()
            await person.press(Qt.Key.Key_Z, control=True)
            assert not person.window.isWindowModified()
        await person.act(lambda: person.context.workspace.update(lambda session: replace(session, evaluations=())))
        await person.press(Qt.Key.Key_Z, control=True, shift=True)
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.window.isWindowModified(), "a result is not undone"

    live(story)


def test_unsaved_work_is_asked_about(live: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "kept.qwb"

    async def story(person: Person) -> None:
        await person.open(sessions.full(1), path)
        await person.act(lambda: person.context.workspace.select(["model.layers.0.mlp.up_proj"]))
        await person.press(Qt.Key.Key_0, control=True)
        assert person.state.dirty and person.window.isWindowModified()
        await person.act(person.window.close)
        await person.answer("question", "cancel")
        await person.settle(0.1)
        assert person.window.isVisible() and not person.window.closed
        await person.act(person.window.close)
        await person.answer("question", "save")
        await person.until(lambda: person.window.closed)
        assert path.exists()
        assert settings.recent() == [str(path)]

    live(story)


def test_a_file_that_another_window_has_written_is_not_replaced_unasked(
    live: Callable[..., None], tmp_path: Path
) -> None:
    path = tmp_path / "kept.qwb"
    sessions.full(1).save(path)
    other, layer = replace(sessions.full(1), notes=("of the other window",)), "model.layers.0.mlp.up_proj"

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path(str(path)))
        await person.until(lambda: person.state.session is not None)
        await person.act(lambda: person.context.workspace.select([layer]))
        await person.press(Qt.Key.Key_0, control=True)
        other.save(path)
        await person.press(Qt.Key.Key_S, control=True)
        await person.answer("question", "cancel")
        await person.settle(0.1)
        assert Session.load(path).notes == other.notes and person.state.dirty
        await person.press(Qt.Key.Key_S, control=True)
        await person.answer("question", "replace")
        await person.until(lambda: not person.state.dirty)
        assert Session.load(path).notes == () and person.state.assignments[layer].weights == "keep"
        await person.press(Qt.Key.Key_0, control=True)
        await person.press(Qt.Key.Key_Z, control=True)
        await person.press(Qt.Key.Key_S, control=True)
        await person.until(lambda: not person.state.dirty)  # its own file is nobody else's

    live(story)


def test_a_file_that_changes_right_before_it_is_written_is_not_replaced_unasked(
    live: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a command held the file while the window waited for its turn: what that had added was lost."""
    path = tmp_path / "kept.qwb"
    sessions.full(1).save(path)
    other, read = replace(sessions.full(1), notes=("of a command",)), stamp_of(path)

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path(str(path)))
        await person.until(lambda: person.state.session is not None)
        await person.act(lambda: person.context.workspace.select(["model.layers.0.mlp.up_proj"]))
        await person.press(Qt.Key.Key_0, control=True)
        other.save(path)
        with monkeypatch.context() as earlier:
            earlier.setattr(document, "stamp_of", lambda file: read)
            await person.press(Qt.Key.Key_S, control=True)
            await person.until(lambda: person.dialog("question") is not None)
            assert len(person.context.jobs.views) == 2, "after opening it, one save: not tried again and again"
        await person.answer("question", "cancel")
        assert Session.load(path).notes == other.notes and person.state.dirty

    live(story)


def test_a_save_that_fails_keeps_the_document_dirty(live: Callable[..., None], tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.open(sessions.full(1), tmp_path / "no" / "such" / "folder" / "s.qwb")
        await person.act(lambda: person.context.workspace.select(["model.layers.0.mlp.up_proj"]))
        await person.press(Qt.Key.Key_0, control=True)
        await person.press(Qt.Key.Key_S, control=True)
        await person.until(lambda: person.dialog("error"))
        assert person.state.dirty
        await person.act(person.dialog("error").close)

    live(story)


def test_the_window_loads_no_engine_libraries() -> None:
    code = (
        "import sys; import workbench.gui.app, workbench.gui.screenshot\n"
        "loaded = {'torch', 'h5py', 'cupy', 'transformers', 'scipy', 'onnx'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_whole_run_of_the_window_loads_no_engine_libraries(tmp_path: Path) -> None:
    """Open a model through the real engine, go to every panel, see every form, close: no torch in this process.

    The model is none of those that came with the workbench, of which more is known without looking.
    """
    shutil.copytree(bundled_folder("language-model"), tmp_path / "little")
    code = f"""
import sys
from dataclasses import replace
from PySide6.QtCore import QSettings, QTimer
from PySide6.QtWidgets import QDialog
QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, {str(tmp_path)!r})
from workbench.gui import app, window
from workbench.gui.commands.actions import ACTIONS
from workbench.gui.panels import PANELS

forms = [action.id for action in ACTIONS if action.text.endswith("…")]
assert {{"calibrate", "score", "evaluate", "export", "open_file"}} <= set(forms)
seen = set()

def step():
    tops = app.application().topLevelWidgets()
    shown = [w for w in tops if isinstance(w, window.Window)]
    if not shown or (session := shown[0].context.workspace.state.session) is None or session.model.cannot_run:
        return
    dialogs = [w for w in tops if isinstance(w, QDialog) and w.isVisible()]
    for dialog in dialogs:
        seen.add(dialog.objectName())
        dialog.reject()
    if dialogs:
        return
    if forms:
        return shown[0].trigger(forms.pop())
    for spec in PANELS:
        shown[0].reveal(spec.id)
    timer.stop()
    shown[0].context.workspace.state = replace(shown[0].context.workspace.state, dirty=False)
    QTimer.singleShot(300, shown[0].close)

application = app.application()
timer = QTimer()
timer.timeout.connect(step)
timer.start(50)
assert app.run({str(tmp_path / "little")!r}) == 0
assert {{"form", "path"}} <= seen, seen
loaded = {{"torch", "h5py", "cupy", "transformers", "onnx"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)


def test_qt_keeps_its_references_of_none(qapp: Any) -> None:
    """PySide6 6.12.0 drops a reference of None at every call that returns nothing, until Python aborts."""
    widget = QWidget()
    before = sys.getrefcount(None)
    for number in range(200):
        widget.setObjectName(f"name {number}")
    assert sys.getrefcount(None) > before - 100
    widget.deleteLater()


def test_a_file_of_a_folder_opens_the_model_in_it(live: Callable[..., None], tmp_path: Path) -> None:
    """Dialogs for files show what is in a model's folder: whatever of it is chosen, the model is within reach."""
    folder = tmp_path / "little"
    shutil.copytree(bundled_folder("language-model"), folder)

    async def story(person: Person) -> None:
        async def choose_weights(answer: str) -> None:
            await person.act(lambda: person.window.document.open_path(str(folder / "model.safetensors")))
            await person.until(lambda: person.dialog("question"))
            assert str(folder) in person.dialog("question").informativeText()
            await person.answer("question", answer)

        await person.act(lambda: person.window.document.open_path(str(folder / "config.json")))
        await person.until(lambda: person.state.session and person.state.session.model.cannot_run is None)
        assert person.state.session.model.name == "little" and settings.recent() == [str(folder)]
        assert person.context.jobs.views[-1].title == "Open little"
        whole = person.state.session
        await choose_weights("cancel")
        await person.settle(0.2)
        assert person.state.session is whole
        await choose_weights("weights")
        await person.until(lambda: person.state.session and person.state.session.model.cannot_run == CANNOT_RUN)
        await choose_weights("model")
        await person.until(lambda: person.state.session and person.state.session.model == whole.model)

    live(story)
