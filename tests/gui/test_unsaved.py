"""Unsaved work outlives a crash; files are opened by mouse; a timing job runs from the window."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLineEdit
from safetensors.torch import save_file

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.engine.files_engine import FilesEngine
from workbench.errors import SessionError
from workbench.gui.commands.closing import unfinished
from workbench.gui.context import edits
from workbench.gui.recovery import Recovery
from workbench.gui.shell import dialogs, settings
from workbench.session.autosave import recoverable, recovery_folder, recovery_path, window_folders, write_recovery
from workbench.session.journal import read_journal
from workbench.session.session import Session
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.files.keep_recovery import KEEP_RECOVERY
from workbench.steps.score import SCORE, ScoreOptions, with_table

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
        await person.until(lambda: all(view.status.over for view in person.context.jobs.views), 10)
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


async def edited(person: Person, path: Path) -> Recovery:
    """Open the session at ``path``, edit a layer by a key, and wait until the edit is written."""
    recovery = Recovery(person.context, person.window, seconds=1000)
    await person.open(sessions.full(1), path)
    await person.act(lambda: person.context.workspace.select([LAYER]))
    start = time.monotonic()
    await person.press(Qt.Key.Key_0, control=True)
    await person.until(recoverable, 10)
    print(f"written after {time.monotonic() - start:.2f} s")
    return recovery


def test_edits_are_written_within_a_second_and_recovered(live: Callable[..., None], tmp_path: Path) -> None:
    """Also where the window has not had the time for a copy of the whole session."""
    path = tmp_path / "kept.qwb"
    sessions.full(1).save(path)

    async def crash(person: Person) -> None:
        recovery = await edited(person, path)
        (entry,) = recoverable()
        assert entry.base == entry.original == path and entry.edits is not None and not entry.file.exists()
        recovery.end(discard=False)

    async def again(person: Person) -> None:
        recovery = Recovery(person.context, person.window)
        await person.act(lambda: person.context.tasks.start(recovery.offer()))
        await person.answer("question", "recover")
        await person.until(lambda: person.state.session is not None)
        assert person.state.assignments[LAYER].weights == "keep" and person.state.dirty
        assert person.state.session.sensitivities, "the results come from the session's own file"
        assert person.state.undo_name == "Recovered Edits" and len(person.state.selection) == 1
        await person.press(Qt.Key.Key_Z, control=True)
        assert person.state.assignments[LAYER].weights != "keep" and not person.state.undo_name
        await person.act(person.context.workspace.redo)
        assert person.state.assignments[LAYER].weights == "keep" and person.state.dirty
        await person.until(lambda: not any(recovery._busy.values()), 20)
        recovery.end(discard=True)
        assert not recoverable() and not window_folders()

    live(crash)
    live(again)


def test_edits_that_the_copy_has_as_well_are_no_step_to_undo(live: Callable[..., None], tmp_path: Path) -> None:
    """Undoing it changed nothing."""
    path = tmp_path / "kept.qwb"
    sessions.full(1).save(path)

    async def crash(person: Person) -> None:
        recovery = await edited(person, path)
        recovery.copy_now()
        recovery.end(discard=False)

    async def again(person: Person) -> None:
        recovery = Recovery(person.context, person.window)
        (entry,) = recoverable()
        assert entry.edits is not None and entry.file.exists()
        await person.act(lambda: person.context.tasks.start(recovery.restore(entry)))
        await person.until(lambda: person.state.session is not None)
        await person.until(lambda: not any(recovery._busy.values()), 20)
        assert person.state.assignments[LAYER].weights == "keep" and person.state.dirty
        assert not person.state.undo_name
        recovery.end(discard=True)

    live(crash)
    live(again)


def test_edits_to_a_file_that_another_window_has_saved_since_are_recovered_and_replace_it_when_told(
    live: Callable[..., None], tmp_path: Path
) -> None:
    path = tmp_path / "kept.qwb"
    sessions.full(1).save(path)
    other = replace(sessions.full(1), notes=("of the other window",))

    async def crash(person: Person) -> None:
        recovery = Recovery(person.context, person.window, seconds=1000)
        await person.act(lambda: person.window.document.open_path(str(path)))
        await person.until(lambda: person.state.session is not None)
        await person.act(lambda: person.context.workspace.select([LAYER]))
        await person.press(Qt.Key.Key_0, control=True)
        await person.until(recoverable, 10)
        other.save(path)
        os.utime(path, (time.time() + 1,) * 2)
        recovery.end(discard=False)

    async def again(person: Person) -> None:
        recovery = Recovery(person.context, person.window)
        await person.act(lambda: person.context.tasks.start(recovery.offer()))
        assert "has changed that file since" in person.dialog("question").informativeText()
        await person.answer("question", "recover")
        await person.until(lambda: person.state.session is not None)
        assert person.state.assignments[LAYER].weights == "keep" and person.state.dirty
        await person.press(Qt.Key.Key_S, control=True)
        await person.answer("question", "cancel")
        assert Session.load(path).notes == other.notes and person.state.dirty
        await person.act(lambda: person.context.tasks.start(recovery.restore(entries[0])))
        await person.answer("question", "cancel")
        assert person.state.dirty and person.state.undo_name == "Recovered Edits", "unsaved work here is asked about"
        await person.until(lambda: not any(recovery._busy.values()), 20)
        recovery.end(discard=True)

    live(crash)
    entries = recoverable()
    live(again)


def test_a_copy_without_newer_edits_adds_no_step_and_leaves_the_target(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        person.context.workspace.show_target("vllm")
        write_recovery(sessions.full(1), None, recovery_folder() / "gone")
        (entry,) = recoverable()
        recovery = Recovery(person.context, person.window)
        await person.act(lambda: person.context.tasks.start(recovery.restore(entry)))
        await person.until(lambda: person.state.session is not None)
        assert person.state.target == "vllm" and person.state.undo_name == "" and person.state.dirty
        await person.until(lambda: not any(recovery._busy.values()), 20)
        recovery.end(discard=True)

    live(story)


def test_a_copy_that_failed_is_tried_again(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    failing, save = [True], Session.save

    def saved(self: Session, path: Any) -> None:
        if failing:
            raise SessionError("the disk is full")
        save(self, path)

    monkeypatch.setattr(Session, "save", saved)

    async def story(person: Person) -> None:
        recovery = Recovery(person.context, person.window, seconds=0.05)
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([LAYER]))
        await person.press(Qt.Key.Key_0, control=True)
        await person.until(lambda: any("recovery" in entry.title for entry in person.context.messages.entries), 20)
        assert not recoverable()
        failing.clear()
        await person.until(recoverable, 20)
        recovery.end(discard=True)

    live(story)


def test_a_copy_discarded_while_it_is_written_is_not_offered(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, go_on, save = threading.Event(), threading.Event(), Session.save

    def saved(self: Session, path: Any) -> None:
        writing.set()
        go_on.wait(60)
        save(self, path)

    monkeypatch.setattr(Session, "save", saved)

    async def story(person: Person) -> None:
        recovery = Recovery(person.context, person.window, seconds=0.05)
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.select([LAYER]))
        await person.press(Qt.Key.Key_0, control=True)
        await person.until(writing.is_set, 20)
        await person.act(lambda: person.context.workspace.close())
        go_on.set()
        await person.until(lambda: not any(recovery._busy.values()), 20)
        assert not recoverable()
        recovery.end(discard=True)

    live(story)


def test_edits_made_while_another_model_opens_are_asked_about(live: Callable[..., None], tmp_path: Path) -> None:
    sessions.full(2).save(tmp_path / "other.qwb")

    async def story(person: Person) -> None:
        await person.open(sessions.full(1))
        await person.act(lambda: person.context.workspace.saved(tmp_path / "saved.qwb", person.state.session))
        before = person.state.session
        await person.act(lambda: person.context.workspace.select([LAYER]))
        reading = person.context.tasks.start(person.window.document.open(str(tmp_path / "other.qwb")))
        edits.assign(person.context.workspace, [LAYER], weights="keep")
        await person.answer("question", "cancel")
        assert not await reading
        assert person.state.session.model is before.model and person.state.dirty

    live(story)


@pytest.mark.parametrize("answer", ["stay", "wait", "cancel", "background"])
def test_closing_asks_about_a_running_job(live: Callable[..., None], answer: str) -> None:
    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path("demo:digits-classifier"))
        await person.until(lambda: person.state.session is not None)
        await person.until(lambda: not unfinished(person.context))
        options = CalibrateOptions(data="demo:digits-classifier", samples=200)
        request = CALIBRATE.request(person.state.session, options)
        await person.act(lambda: person.context.runner.submit(request))
        await person.act(person.window.close)
        await person.until(lambda: person.dialog("question"), 20)
        await person.answer("question", answer)
        if answer == "stay":
            assert person.window.isVisible() and not person.window.closed
        await person.until(lambda: not unfinished(person.context), 60)
        status = person.context.jobs.views[-1].status
        assert status == ("cancelled" if answer == "cancel" else "done")
        if answer in ("wait", "cancel"):
            if person.state.dirty:
                await person.answer("question", "discard")
            await person.until(lambda: person.window.closed, 20)
        else:
            await person.until(person.window.isVisible, 20)
            assert not person.window.closed and person.state.session.calibration is not None

    live(story)


def test_a_damaged_session_is_repaired_from_the_window(live: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "damaged.qwb"
    sessions.full(1).save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    async def story(person: Person) -> None:
        await person.act(lambda: person.window.document.open_path(str(path)))
        await person.until(lambda: person.dialog("question"), 30)
        await person.answer("question", "repair")
        await person.until(lambda: person.state.session is not None, 60)
        assert person.state.dirty and person.state.path is None and path.read_bytes() == data
        assert person.state.session.model.layers == sessions.full(1).model.layers

    live(story)


async def _menu_item(person: Person, title: str, item: str) -> None:
    """Open a menu of the menu bar with the mouse and click the item that begins with ``item``."""
    bar = person.window.menuBar()
    menu = person.window.menus[title]
    await person.click(bar, bar.actionGeometry(menu.menuAction()).center())
    await person.until(menu.isVisible, 5)
    result = next(action for action in menu.actions() if action.text().replace("&", "").startswith(item))
    await person.click(menu, menu.actionGeometry(result).center())


async def _recent(person: Person) -> QAction:
    await _menu_item(person, "&File", "Open Recent")
    await person.until(person.window.recent_menu.isVisible, 5)
    return next(action for action in person.window.recent_menu.actions() if action.toolTip().endswith("kept.qwb"))


def test_quitting_while_a_save_runs_asks_nothing(live: Callable[..., None], tmp_path: Path) -> None:
    path = tmp_path / "kept.qwb"

    async def story(person: Person) -> None:
        await person.open(sessions.full(1), path)
        await person.layer("model.layers.0.mlp.up_proj")
        await person.press(Qt.Key.Key_Equal, control=True)
        assert person.state.dirty

        def both() -> None:
            person.window.actions_by_id["save"].trigger()
            person.window.actions_by_id["quit"].trigger()

        await person.act(both)
        asked: list[object] = []
        await person.until(lambda: asked.extend(filter(None, [person.dialog("question")])) or person.window.closed, 20)
        assert not asked and not person.state.dirty and path.exists()

    live(story)


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
        result = await _recent(person)
        await person.click(person.window.recent_menu, person.window.recent_menu.actionGeometry(result).center())
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


def test_what_edits_are_made_to_is_written_before_the_first_one(
    live: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is nothing to be offered."""
    monkeypatch.setattr("workbench.gui.recovery.READY_MS", 50)

    async def story(person: Person) -> None:
        recovery = Recovery(person.context, person.window, seconds=1000)
        await person.open(sessions.full(1))
        await person.until(lambda: [*recovery._folder.glob("*.base")], 20)
        assert not recoverable()
        await person.act(lambda: person.context.workspace.select([LAYER]))
        await person.press(Qt.Key.Key_0, control=True)
        await person.until(recoverable, 10)
        (entry,) = recoverable()
        assert entry.edits is not None and entry.base.suffix == ".base" and entry.original is None
        session = read_journal(entry.edits, Session.load(entry.base))
        assert session.plan == person.state.session.plan and session.model == person.state.session.model
        recovery.end(discard=True)

    live(story)


def test_edits_during_a_save_are_offered(live: Callable[..., None], tmp_path: Path) -> None:
    """The file is newer than the line that was written meanwhile, and does not hold it."""
    path = tmp_path / "kept.qwb"
    sessions.full(1).save(path)

    def newest() -> Any:
        return next((read_journal(entry.edits, sessions.full(1)).plan for entry in recoverable() if entry.edits), None)

    async def story(person: Person) -> None:
        recovery = Recovery(person.context, person.window, seconds=1000)
        await person.open(sessions.full(1), path)
        await person.act(lambda: edits.assign(person.context.workspace, [LAYER], weights="int3-g32"))
        saving = person.state.session
        await person.act(lambda: edits.assign(person.context.workspace, [LAYER], weights="keep"))
        await person.until(lambda: newest() == person.state.session.plan, 10)
        saving.save(path)
        assert not recoverable()
        await person.act(lambda: person.context.workspace.saved(path, saving))
        await person.until(recoverable, 10)
        recovery.end(discard=True)

    live(story)


def test_edits_are_written_where_nothing_else_works(live: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """No process writes, and the event loop stands still: the journal is there within a second."""

    async def never(self: FilesEngine, *arguments: Any) -> Any:
        await asyncio.sleep(1000)

    async def story(person: Person) -> None:
        recovery = Recovery(person.context, person.window, seconds=1000)
        await person.open(sessions.full(1), path := Path("/nowhere/kept.qwb"))
        monkeypatch.setattr(FilesEngine, "run", never)
        edits.assign(person.context.workspace, [LAYER], weights="keep")
        end, journal = time.monotonic() + 1, recovery._folder / f"{recovery_path(path, Path()).stem}.edits"
        while not journal.exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert journal.exists()
        recovery.end(discard=True)

    live(story)


def test_edits_stay_in_the_recovery_copy_when_a_score_is_joined(live: Callable[..., None], tmp_path: Path) -> None:
    """A table makes new facts of the model, which passed for another document: its edits were dropped for seconds."""
    table, path = sessions.full(1).sensitivities["predicted_kl"], tmp_path / "kept.qwb"
    sessions.full(1).save(path)

    def kept() -> bool:
        edits_of = [entry.edits for entry in recoverable() if entry.edits is not None]
        return any(read_journal(each, sessions.full(1)).plan.of(LAYER).weights == "int6-channel" for each in edits_of)

    async def story(person: Person) -> None:
        workspace = person.context.workspace
        recovery = Recovery(person.context, person.window, seconds=1000)
        await person.open(sessions.full(1), path)
        await person.act(lambda: edits.assign(workspace, [LAYER], weights="int6-channel"))
        await person.until(kept, 20)
        await person.act(lambda: workspace.update(lambda session: with_table(session, None, table)))
        assert kept()
        recovery.end(discard=True)

    live(story)


def test_a_save_that_ends_after_another_model_was_opened_is_not_that_models_file(
    live: Callable[..., None], tmp_path: Path
) -> None:
    first, second = sessions.full(1), sessions.full(2)

    async def story(person: Person) -> None:
        run = person.context.runner.run

        async def meanwhile(*arguments: Any, **options: Any) -> Any:
            result = await run(*arguments, **options)
            person.context.workspace.open(second, None)
            return result

        await person.open(first, tmp_path / "first.qwb")
        person.context.runner.run = meanwhile
        assert await person.window.document.save()
        assert (tmp_path / "first.qwb").exists() and person.state.session.model is second.model
        assert person.state.path is None, "the next save would write the second model over the first one's session"

    live(story)


def test_a_save_that_ends_after_a_score_is_the_documents_file(live: Callable[..., None], tmp_path: Path) -> None:
    """A table says which layers are unused: the facts of the model are other ones then."""
    table = sessions.full(1).sensitivities["predicted_kl"]

    async def story(person: Person) -> None:
        run, workspace = person.context.runner.run, person.context.workspace

        async def meanwhile(*arguments: Any, **options: Any) -> Any:
            result = await run(*arguments, **options)
            workspace.update(lambda session: with_table(session, None, table))
            return result

        await person.open(sessions.full(1), tmp_path / "first.qwb")
        await person.act(lambda: edits.assign(workspace, [LAYER], weights="int6-channel"))
        assert person.state.undo_name
        saved, person.context.runner.run = person.state.session, meanwhile
        assert await person.window.document.save()
        assert workspace.on_disk is saved and person.state.dirty

    live(story)


def test_a_session_goes_on_with_its_model_at_another_place(live: Callable[..., None], tmp_path: Path) -> None:
    before, after = tmp_path / "model.safetensors", tmp_path / "moved.safetensors"
    save_file({"up.weight": torch.ones(8, 64), "down.weight": torch.ones(64, 8)}, before)

    async def story(person: Person) -> None:
        document, workspace = person.window.document, person.context.workspace
        assert await document.open(str(before))
        await person.act(lambda: edits.assign(workspace, ["up"], weights="int8-channel"))
        workspace.saved(tmp_path / "S.qwb", person.state.session)
        before.rename(after)
        request = SCORE.request(person.state.session, ScoreOptions(metric="weight_error", schemes=("int8-channel",)))
        assert await person.context.runner.work(request) is None
        said = person.dialog("error").informativeText()
        assert "is not there any more; put it back, or open it where it is now" in said
        await person.act(person.dialog("error").reject)
        assert await document.open(str(after))
        assert person.state.assignments["up"].weights == "int8-channel" and person.state.undo_name
        assert person.state.path == tmp_path / "S.qwb" and person.state.dirty
        request = SCORE.request(person.state.session, ScoreOptions(metric="weight_error", schemes=("int8-channel",)))
        assert await person.context.runner.work(request) is not None

    live(story)
