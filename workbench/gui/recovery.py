"""Copies unsaved work every few seconds, and offers it after a crash."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from PySide6.QtCore import QLockFile, QTimer
from PySide6.QtWidgets import QWidget

from workbench.errors import WorkbenchError
from workbench.gui.context.context import Context
from workbench.gui.shell import dialogs
from workbench.session.autosave import (
    Recoverable,
    discard_recovery,
    recoverable,
    recovery_folder,
    recovery_path,
    window_folders,
    write_recovery,
)
from workbench.session.edits import EditableParts
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.files.first_look import is_first_look
from workbench.steps.files.keep_recovery import KEEP_RECOVERY, KeepRecoveryOptions
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions

SECONDS = 20.0
"""How often unsaved work is copied, if it changed."""

JOURNAL_MS = 300
"""How soon after an edit the edits are written."""

READY_MS = 2500
"""How soon after a document is there what writes it is started: the first edit shall not wait for that."""


class Recovery:
    """Copies the document while it has unsaved changes, and removes the copy once it is saved or discarded.

    Each window has a folder of its own for copies; a lock in it tells other windows that the window is open.  The
    whole session is copied now and then, the edits soon after each edit.  ``start`` prepares what writes them.
    """

    def __init__(
        self, context: Context, parent: QWidget, start: Callable[[], Coroutine[Any, Any, None]] | None = None,
        seconds: float = SECONDS,
    ) -> None:  # fmt: skip
        self._context, self._parent, self._start = context, parent, start
        self._copied: Session | None = None
        self._busy = {False: False, True: False}  # whether a copy (of the edits: True) is being written
        self._discarded = 0  # how often: what was being written by then is removed once it is there
        self._folder = recovery_folder() / secrets.token_hex(6)
        self._lock: QLockFile | None = None  # of the folder, once there is something in it
        self._file: Path | None = None  # the copy of the document
        self._restored: Path | None = None  # another window's copy that is open here, until this window has its own
        self._warned = False
        self._timer = QTimer(parent, interval=round(seconds * 1000))
        self._timer.timeout.connect(lambda: self._context.tasks.start(self.copy()))
        self._timer.start()
        self._soon = QTimer(parent, singleShot=True, interval=JOURNAL_MS)
        self._soon.timeout.connect(self._journal)
        self._ready = QTimer(parent, singleShot=True, interval=READY_MS)
        self._ready.timeout.connect(self._make_ready)
        self._unsubscribe: Callable[[], None] | None = context.workspace.subscribe(self._changed)

    async def offer(self) -> None:
        """Ask about every copy that a crashed window left behind; open the first that the user recovers."""
        with _left_behind() as folders:
            await self._offer(recoverable(folders))

    async def _offer(self, entries: tuple[Recoverable, ...]) -> None:
        for entry in entries:
            answer = await dialogs.ask(
                self._parent, f"Recover unsaved work on {entry.model}?", _question(entry),
                (("recover", "&Recover"), ("discard", "&Discard"), ("later", "&Later")), "recover",
            )  # fmt: skip
            if answer == "discard":
                discard_recovery(entry.file)
            elif answer == "recover" and await self.restore(entry):
                return

    async def restore(self, entry: Recoverable) -> bool:
        """Open a copy as the unsaved state of the file that it belongs to; returns whether it could be opened."""
        base = entry.file
        if base == entry.edits and entry.original is not None and entry.original.exists():
            base = entry.original
        session = await self._read(base, entry)
        edits = await self._read(entry.edits, entry) if entry.edits not in (None, base) else None
        if session is None or (edits is not None and edits.model.fingerprint != session.model.fingerprint):
            session = edits
        elif edits is not None:
            session = EditableParts.of(edits).into(session)
        if session is None:
            return False
        self._context.workspace.open(session, entry.original, unsaved=True)
        self._restored = entry.file
        await self.copy()
        self._context.messages.say(f"Recovered {session.model.name}", "save it to keep it")
        return True

    async def _read(self, file: Path | None, entry: Recoverable) -> Session | None:
        request = OPEN_SESSION.request(None, OpenSessionOptions(path=str(file)))
        return await self._context.runner.run(request, lambda: self._context.tasks.start(self.restore(entry)))

    async def copy(self) -> None:
        """Copy the document now, if it is newer than its file and than the copy; a failure is tried again later."""
        session = self._context.workspace.state.session
        if session is not self._copied and await self._write(edits=False):
            self._copied = session
            self._remove_restored()

    def _journal(self) -> None:
        """Write the edits; those that come while others are being written follow."""
        if self._busy[True]:
            self._soon.start()
        else:
            self._context.tasks.start(self._write(edits=True))

    async def _write(self, *, edits: bool) -> bool:
        """Write the unsaved document, or its edits; returns whether that is done, and nobody has discarded it since."""
        state = self._context.workspace.state
        if state.session is None or not state.dirty or is_first_look(state.session) or self._busy[edits]:
            return False
        discarded, path, self._busy[edits] = self._discarded, None if state.path is None else str(state.path), True
        try:
            self._file = file = recovery_path(state.path, self._make_folder())
            options = KeepRecoveryOptions(path=path, folder=str(self._folder), edits=edits)
            request = KEEP_RECOVERY.request(state.session, options).reduced()
            await self._context.jobs.submit(request).result()
        except (WorkbenchError, OSError) as error:
            if not self._warned:
                self._context.messages.say("The recovery copy could not be written", str(error), "warning")
            self._warned = True
            return False
        finally:
            self._busy[edits] = False
        self._warned = False
        if discarded != self._discarded:
            discard_recovery(file)
        return discarded == self._discarded

    def copy_now(self) -> str:
        """Copy the document in this process, without an event loop; returns what to tell the user."""
        state = self._context.workspace.state
        session = state.session
        if session is None or not state.dirty or is_first_look(session):
            return ""
        if session is not self._copied:
            try:
                write_recovery(session, state.path, self._make_folder())
            except (WorkbenchError, OSError) as error:
                return f"; unsaved work on {session.model.name} is lost: {error}"
        return f"; unsaved work on {session.model.name} was kept; the workbench offers it at the next start"

    def stop(self) -> None:
        """Write no more copies."""
        self._timer.stop()
        self._soon.stop()
        self._ready.stop()
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._unsubscribe = None

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
        gone = new.session is None or (old.session is not None and old.session.model is not new.session.model)
        if old.dirty and (not new.dirty or gone):
            self._discard()
        if new.session is not None and new.dirty and not self._soon.isActive() and _edited(old.session, new.session):
            self._soon.start()
        if new.dirty:
            self._make_ready()
        elif new.session is not None and self._start is not None and not self._ready.isActive():
            self._ready.start()

    def _make_ready(self) -> None:
        """Start what writes the document, once."""
        if self._start is not None:
            self._context.tasks.start(self._start())
            self._start = None

    def _discard(self) -> None:
        """Remove the copies of what the user has decided about."""
        self._discarded += 1
        if self._file is not None:
            discard_recovery(self._file)
        self._remove_restored()
        self._file = self._copied = None

    def _remove_restored(self) -> None:
        """Remove the copy that was opened here: its content is safe, or discarded."""
        if self._restored is not None:
            discard_recovery(self._restored)
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
    locks = {folder: lock for folder in window_folders() if (lock := _lock(folder)).tryLock(0)}
    try:
        yield list(locks)
    finally:
        for folder, lock in locks.items():
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


def _question(entry: Recoverable) -> str:
    when = datetime.fromtimestamp(entry.written).strftime("%d %B %Y, %H:%M")
    session = f"of {entry.original}" if entry.original else "that was never saved"
    return f"The workbench was not closed properly. There is a copy of the session {session}, written on {when}."
