"""Unsaved work is copied aside every few seconds, and offered again after a crash."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

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
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps import requests
from workbench.steps.files.first_look import is_first_look
from workbench.steps.files.keep_recovery import KEEP_RECOVERY, KeepRecoveryOptions

SECONDS = 20.0
"""How often unsaved work is copied aside, where it changed and no job runs."""


class Recovery:
    """Follows the document: copies it while it is dirty, removes the copy once it is saved or given up.

    The copies lie in a folder that is this window's; a lock in it tells other windows that it is open.
    """

    def __init__(self, context: Context, parent: QWidget, seconds: float = SECONDS) -> None:
        self._context, self._parent = context, parent
        self._kept: Session | None = None
        self._safe: Session | None = None
        self._folder = recovery_folder() / secrets.token_hex(6)
        self._lock: QLockFile | None = None  # of the folder, once there is something in it
        self._file: Path | None = None  # the copy of the document
        self._taken: Path | None = None  # another window's copy that was opened here, until there is an own one
        self._told = False
        self._timer = QTimer(parent)
        self._timer.setInterval(round(seconds * 1000))
        self._timer.timeout.connect(self._tick)
        self._timer.start()
        self._unsubscribe = self._context.workspace.subscribe(self._changed)

    async def offer(self) -> None:
        """Ask about every copy that a window which is gone left behind; the first that is taken is opened."""
        with _left_behind() as folders:
            await self._offer(recoverable(folders))

    async def _offer(self, found: tuple[Recoverable, ...]) -> None:
        for entry in found:
            answer = await dialogs.ask(
                self._parent, f"Recover unsaved work on {entry.model}?", _told(entry),
                (("recover", "&Recover"), ("discard", "&Discard"), ("later", "&Later")), "recover",
            )  # fmt: skip
            if answer == "discard":
                discard_recovery(entry.file)
            elif answer == "recover" and await self.take(entry):
                return

    async def take(self, entry: Recoverable) -> bool:
        """Open a copy as the unsaved state of the file that it belongs to; returns whether that was possible."""
        request = requests.OpenSession(path=str(entry.file))
        def again() -> None:
            self._context.tasks.start(self.take(entry))

        session = await self._context.runner.run(request, again)
        if session is None:
            return False
        self._context.workspace.open(session, entry.original)
        self._context.workspace.update(lambda opened: replace(opened))
        self._taken = entry.file
        await self.keep()
        self._context.messages.say(f"Recovered {session.model.name}", "save it to keep it")
        return True

    async def keep(self) -> None:
        """Copy the document aside now, if anything in it is newer than its file and than the copy."""
        state = self._context.workspace.state
        session = state.session
        if session is None or not state.dirty or session is self._kept:
            return
        self._kept = session
        path = None if state.path is None else str(state.path)
        try:
            self._file = recovery_path(state.path, self._own_folder())
            options = KeepRecoveryOptions(path=path, folder=str(self._folder))
            await self._context.jobs.submit(KEEP_RECOVERY.request(session, options)).result()
            self._safe = session
            self._let_go()
        except (WorkbenchError, OSError) as error:
            if not self._told:
                self._context.messages.say("No recovery copy could be kept", str(error), "warning")
            self._told = True
        if not self._context.workspace.state.dirty:
            self._discard()

    def keep_now(self) -> str:
        """Copy the document aside in this process, where there is no event loop any more; returns what to say of it."""
        state = self._context.workspace.state
        session = state.session
        if session is None or not state.dirty or is_first_look(session):
            return ""
        if session is not self._safe:
            try:
                write_recovery(session, state.path, self._own_folder())
            except (WorkbenchError, OSError) as error:
                return f"; unsaved work on {session.model.name} is lost: {error}"
        return f"; unsaved work on {session.model.name} was kept and is offered when the workbench is started again"

    def end(self, *, wilful: bool) -> None:
        """Stop; a wilful end removes the copy, because the person has decided about the work."""
        self._timer.stop()
        self._unsubscribe()
        if wilful:
            self._discard()
        if self._lock is not None:
            self._lock.unlock()
            with contextlib.suppress(OSError):  # copies are left in it
                self._folder.rmdir()

    def _own_folder(self) -> Path:
        """Return this window's folder, made and locked; raises OSError."""
        if self._lock is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = _lock(self._folder)
            self._lock.tryLock(0)
        return self._folder

    def _tick(self) -> None:
        if not any(view.status in ("running", "queued") for view in self._context.jobs.views):
            self._context.tasks.start(self.keep())

    def _changed(self, old: State, new: State) -> None:
        """Remove the copy when its document was saved, closed or replaced: each asks the person first."""
        gone = new.session is None or (old.session is not None and old.session.model is not new.session.model)
        if old.dirty and (not new.dirty or gone):
            self._discard()

    def _discard(self) -> None:
        """Remove the copies of what the person has decided about."""
        if self._file is not None:
            discard_recovery(self._file)
        self._let_go()
        self._file = self._kept = self._safe = None

    def _let_go(self) -> None:
        """Remove the copy that was opened here: what was in it is safe, or given up."""
        if self._taken is not None:
            discard_recovery(self._taken)
            with contextlib.suppress(OSError):
                self._taken.parent.rmdir()
        self._taken = None


@contextlib.contextmanager
def _left_behind() -> Iterator[list[Path]]:
    """Give the folders of windows that are gone; no other window is given them meanwhile."""
    locks = {folder: lock for folder in window_folders() if (lock := _lock(folder)).tryLock(0)}
    try:
        yield list(locks)
    finally:
        for folder, lock in locks.items():
            lock.unlock()
            with contextlib.suppress(OSError):  # copies are left in it
                folder.rmdir()


def _lock(folder: Path) -> QLockFile:
    """Return the lock of a window's folder; one whose process is gone counts for nothing."""
    lock = QLockFile(str(folder / "window.lock"))
    lock.setStaleLockTime(0)
    return lock


def _told(entry: Recoverable) -> str:
    when = datetime.fromtimestamp(entry.written).strftime("%d %B %Y, %H:%M")
    of = f"of {entry.original}" if entry.original else "that was never saved"
    return f"The workbench ended without closing. There is a copy of the session {of}, written on {when}."
