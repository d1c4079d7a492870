"""Copies unsaved work every few seconds, and offers it after a crash."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QLockFile, QTimer
from PySide6.QtWidgets import QWidget

from workbench.errors import SessionError, WorkbenchError
from workbench.gui.commands.document import first_layer
from workbench.gui.context.context import Context
from workbench.gui.shell import dialogs
from workbench.models.summary import ModelSummary
from workbench.session import autosave
from workbench.session.edits import EditableParts, same
from workbench.session.journal import Journal, read_journal
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.files.first_session import is_first_look
from workbench.steps.files.keep_recovery import KEEP_RECOVERY, KeepRecoveryOptions
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions

SECONDS = 20.0
"""How often unsaved work is copied, if it changed."""

READY_MS = 2500
"""How soon after a document is there what the edits of a model that was never saved are made to is written: the first
edit shall not wait for that."""


class Recovery:
    """Copies the document while it has unsaved changes, and removes the copy once it is saved or discarded.

    Each window has a folder of its own for copies; a lock in it tells other windows that the window is open.  The
    whole session is copied now and then, edits are written at once (see ``session/journal.py``).
    """

    def __init__(self, context: Context, parent: QWidget, seconds: float = SECONDS) -> None:
        self._context, self._parent = context, parent
        self._copied: Session | None = None
        self._document = context.workspace.document
        self._busy = {False: False, True: False}  # whether a copy (of the base: True) is being written
        self._journal = Journal(self._journal_failed)
        self._noted: Path | None = None  # the recovery file whose journal is offered
        self._on_disk: Session | None = None  # by the newest line of the journal
        self._discarded = 0  # how often: what was being written by then is removed once it is there
        self._folder = autosave.recovery_folder() / secrets.token_hex(6)
        self._lock: QLockFile | None = None  # of the folder, once there is something in it
        self._file: Path | None = None  # the copy of the document
        self._restored: Path | None = None  # another window's copy that is open here, until this window has its own
        self._warned = False
        self._based: ModelSummary | None = None  # the model whose state before the first edit is written
        self._loop = asyncio.get_running_loop()
        self._timer = QTimer(parent, interval=round(seconds * 1000))
        self._timer.timeout.connect(lambda: self._context.tasks.start(self.copy()))
        self._timer.start()
        self._ready = QTimer(parent, singleShot=True, interval=READY_MS)
        self._ready.timeout.connect(self._make_ready)
        self._unsubscribe: Callable[[], None] | None = context.workspace.subscribe(self._changed)

    async def offer(self) -> None:
        """Ask about every copy that a crashed window left behind; open the first that the user recovers."""
        with _left_behind() as folders:
            await self._offer(autosave.recoverable(folders))

    async def _offer(self, entries: tuple[autosave.Recoverable, ...]) -> None:
        for entry in entries:
            answer = await dialogs.ask(
                self._parent, f"Recover unsaved work on {entry.model}?", _question(entry),
                (("recover", "&Recover"), ("discard", "&Discard"), ("later", "&Later")), "recover",
            )  # fmt: skip
            if answer == "discard":
                autosave.discard_recovery(entry.file)
            elif answer == "recover" and await self.restore(entry):
                return

    async def restore(self, entry: autosave.Recoverable) -> bool:
        """Open a copy as the unsaved state of the file that it belongs to, after asking about unsaved work here.

        Returns whether it is open now.  The edits that are newer than the copy are one step to undo.
        """
        session = await self._read(entry)
        edited: Session | None = None
        if session is not None and entry.edits is not None:
            try:
                edited = await asyncio.to_thread(read_journal, entry.edits, session)
            except SessionError as error:
                self._context.messages.say("The newest edits could not be recovered", str(error), "warning")
        if session is None or not await self._context.may_discard():
            return False
        self._context.workspace.open(session, entry.original, unsaved=True, read=entry.read)
        if edited is not None and not same(EditableParts.of(edited).into(session), session):  # the copy may have them
            self._context.workspace.edit("Recovered Edits", EditableParts.of(edited).into)
        self._context.workspace.select(first_layer(session))
        self._restored = entry.file
        await self.copy()
        self._context.messages.say(f"Recovered {session.model.name}", "save it to keep it")
        return True

    async def _read(self, entry: autosave.Recoverable) -> Session | None:
        request = OPEN_SESSION.request(None, OpenSessionOptions(path=str(entry.base)))
        return await self._context.runner.run(request, lambda: self._context.tasks.start(self.restore(entry)))

    async def copy(self) -> None:
        """Copy the document now, if it is newer than its file and than the copy; a failure is tried again later."""
        session = self._context.workspace.state.session
        if session is not self._copied and await self._write(base=False):
            self._copied = session
            self._remove_restored()

    def _write_edits(self, state: State, session: Session) -> None:
        """Have the edits written; a line that fails is tried again."""
        try:
            self._file = self._noted = autosave.recovery_path(state.path, self._make_folder())
            self._journal.put(session, state.path, self._noted, self._context.workspace.read)
        except OSError as error:
            self._warn(str(error))
        self._on_disk = self._context.workspace.on_disk

    def _journal_failed(self, error: Exception) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._warn, str(error))

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._context.messages.say("The recovery copy could not be written", reason, "warning")
        self._warned = True

    async def _write(self, *, base: bool) -> bool:
        """Write the unsaved document, or its base; returns whether that is done, and nobody has discarded it since."""
        state = self._context.workspace.state
        if state.session is None or not (state.dirty or base) or is_first_look(state.session) or self._busy[base]:
            return False
        discarded, path, self._busy[base] = self._discarded, None if state.path is None else str(state.path), True
        try:
            self._file = file = autosave.recovery_path(state.path, self._make_folder())
            read = self._context.workspace.read
            options = KeepRecoveryOptions(path=path, folder=str(self._folder), base=base, read=read)
            request = KEEP_RECOVERY.request(state.session, options).reduced()
            written = Path(await self._context.jobs.submit(request).result())
        except (WorkbenchError, OSError) as error:
            self._warn(str(error))
            return False
        finally:
            self._busy[base] = False
        self._warned = False
        if discarded != self._discarded:
            written.unlink(missing_ok=True)
            if self._noted != file:
                autosave.discard_recovery(file)
        return discarded == self._discarded

    def copy_now(self) -> str:
        """Copy the document in this process, without an event loop; returns what to tell the user."""
        state = self._context.workspace.state
        session = state.session
        if session is None or not state.dirty or is_first_look(session):
            return ""
        if session is not self._copied:
            try:
                autosave.write_recovery(session, state.path, self._make_folder(), read=self._context.workspace.read)
            except (WorkbenchError, OSError) as error:
                return f"; unsaved work on {session.model.name} is lost: {error}"
        return f"; unsaved work on {session.model.name} was kept; the workbench offers it at the next start"

    def stop(self) -> None:
        """Write no more copies."""
        self._timer.stop()
        self._ready.stop()
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._unsubscribe = None
        self._journal.close()

    def end(self, *, discard: bool) -> None:
        """Stop; ``discard`` removes the copies, because the user has decided about the work.

        Called when nothing is being written any more.
        """
        self.stop()
        if discard:
            self._discard()
        if self._lock is not None:
            if discard:
                shutil.rmtree(self._folder, ignore_errors=True)
            _release(self._lock, self._folder)

    def _make_folder(self) -> Path:
        """Return this window's folder, made and locked; raises OSError."""
        if self._lock is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = _lock(self._folder)
            self._lock.tryLock(0)
        return self._folder

    def _changed(self, old: State, new: State) -> None:
        """Write new edits soon; remove the copy when its document was saved, closed or replaced: each asks first."""
        before, self._document = self._document, self._context.workspace.document
        gone = new.session is None or (old.session is not None and self._document != before)
        if gone or (old.dirty and not new.dirty):
            self._discard()
        if new.session is not None and new.dirty and not is_first_look(new.session):
            saved = self._noted is not None and self._on_disk is not self._context.workspace.on_disk
            if saved or _edited(old.session, new.session):  # the file that was saved meanwhile is newer than the line
                self._write_edits(new, new.session)
        if new.dirty:
            self._make_ready()
        elif new.session is not None and (old.session is None or gone) and not is_first_look(new.session):
            self._ready.start()

    def _make_ready(self) -> None:
        """Write what edits of a model without a file begin with."""
        self._ready.stop()
        state = self._context.workspace.state
        if state.path is None and state.session is not None and state.session.model is not self._based:
            self._based = state.session.model
            self._context.tasks.start(self._write(base=True))

    def _discard(self) -> None:
        """Remove the copies of what the user has decided about."""
        self._discarded += 1
        self._journal.forget()
        if self._file is not None:
            autosave.discard_recovery(self._file)
        self._remove_restored()
        self._file = self._noted = self._copied = self._based = None

    def _remove_restored(self) -> None:
        """Remove the copy that was opened here: its content is safe, or discarded."""
        if self._restored is not None:
            autosave.discard_recovery(self._restored)
            with contextlib.suppress(OSError):
                self._restored.parent.rmdir()
        self._restored = None


def _edited(old: Session | None, new: Session) -> bool:
    """Whether the user's edits differ; a document that was just opened has none."""
    if old is None or old is new:
        return False
    names = [each.name for each in fields(EditableParts)]
    return any(getattr(old, name) is not getattr(new, name) for name in names)


@contextlib.contextmanager
def _left_behind() -> Iterator[list[Path]]:
    """Yield the folders of windows that no longer run, locked against other windows."""
    locks = {folder: lock for folder in autosave.window_folders() if (lock := _lock(folder)).tryLock(0)}
    try:
        yield list(locks)
    finally:
        for folder, lock in locks.items():
            if not any(folder.glob("*.json")):  # nothing to offer: what a model was that nobody edited
                shutil.rmtree(folder, ignore_errors=True)
            _release(lock, folder)


def _lock(folder: Path) -> QLockFile:
    """Return the lock of a window's folder; that of a dead process does not count."""
    lock = QLockFile(str(folder / "window.lock"))
    lock.setStaleLockTime(0)
    return lock


def _release(lock: QLockFile, folder: Path) -> None:
    """Unlock a window's folder, and remove it if it is empty."""
    lock.unlock()
    with contextlib.suppress(OSError):  # copies are left in it
        folder.rmdir()


def _question(entry: autosave.Recoverable) -> str:
    when = datetime.fromtimestamp(entry.written).strftime("%Y-%m-%d, %H:%M")
    session = f"of {entry.original}" if entry.original else "that was never saved"
    changed = " Another window or program has changed that file since: saving asks which to keep."
    more = changed if entry.is_of_another_version else ""
    return f"The workbench was not closed properly. There is a copy of the session {session}, written on {when}.{more}"
