"""Unsaved work is copied aside every few seconds, and offered again after a crash."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLockFile, QTimer

from workbench.errors import WorkbenchError
from workbench.gui import dialogs
from workbench.runtime import requests
from workbench.runtime.first_look import is_first_look
from workbench.runtime.recovery import KeepRecovery
from workbench.runtime.workspace import State
from workbench.storage.autosave import (
    Recoverable,
    discard_recovery,
    recoverable,
    recovery_folder,
    write_recovery,
)
from workbench.storage.session import Session

if TYPE_CHECKING:
    from workbench.gui.window import Window

SECONDS = 20.0
"""How often unsaved work is copied aside, where it changed and no job runs."""


class Recovery:
    """Follows the document: copies it while it is dirty, removes the copy once it is saved or given up.

    Only the first of several windows offers what an earlier one left, because the copies of a window that still runs
    look the same.
    """

    def __init__(self, window: Window, seconds: float = SECONDS) -> None:
        self._window, self._desk = window, window.desk
        self._kept: Session | None = None
        self._safe: Session | None = None
        self._path: Path | None = None
        self._written = False
        self._told = False
        self._lock: QLockFile | None = None
        self._timer = QTimer(window)
        self._timer.setInterval(round(seconds * 1000))
        self._timer.timeout.connect(self._tick)
        self._timer.start()
        self._unsubscribe = self._desk.workspace.subscribe(self._changed)

    @property
    def is_first(self) -> bool:
        """Whether no other window is open that could own the copies."""
        if self._lock is None:
            folder = recovery_folder()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = QLockFile(str(folder / "window.lock"))
            self._lock.setStaleLockTime(0)
        return self._lock.isLocked() or self._lock.tryLock(0)

    async def offer(self) -> None:
        """Ask about every copy that an earlier window left behind; the first that is taken is opened."""
        try:
            found = recoverable() if self.is_first else ()
        except OSError:
            return
        for entry in found:
            answer = await dialogs.ask(
                self._window, f"Recover unsaved work on {entry.model}?", _told(entry),
                (("recover", "&Recover"), ("discard", "&Discard"), ("later", "&Later")), "recover",
            )  # fmt: skip
            if answer == "discard":
                discard_recovery(entry.original)
            elif answer == "recover" and await self.take(entry):
                return

    async def take(self, entry: Recoverable) -> bool:
        """Open a copy as the unsaved state of the file that it belongs to; returns whether that was possible."""
        request = requests.OpenSession(path=str(entry.file))
        def again() -> None:
            self._desk.start(self.take(entry))

        session = await self._desk.run(request, again)
        if session is None:
            return False
        self._desk.workspace.open(session, entry.original)
        self._desk.workspace.update(lambda opened: replace(opened))
        self._path, self._written = entry.original, True
        self._desk.say(f"Recovered {session.model.name}", "save it to keep it")
        return True

    async def keep(self) -> None:
        """Copy the document aside now, if anything in it is newer than its file and than the copy."""
        state = self._desk.workspace.state
        session = state.session
        if session is None or not state.dirty or session is self._kept or (state.path is None and not self.is_first):
            return
        self._kept, self._path, self._written = session, state.path, True
        request = KeepRecovery(session=session, path=None if state.path is None else str(state.path))
        try:
            await self._desk.jobs.submit(request).result()
            self._safe = session
        except WorkbenchError as error:
            if not self._told:
                self._desk.say("No recovery copy could be kept", str(error), "warning")
            self._told = True
        if not self._desk.workspace.state.dirty:
            self._discard()

    def keep_now(self) -> str:
        """Copy the document aside in this process, where there is no event loop any more; returns what to say of it."""
        state = self._desk.workspace.state
        session = state.session
        if session is None or not state.dirty or is_first_look(session) or (state.path is None and not self.is_first):
            return ""
        if session is not self._safe:
            try:
                write_recovery(session, state.path)
            except WorkbenchError as error:
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

    def _tick(self) -> None:
        if not any(view.status in ("running", "queued") for view in self._desk.jobs.views):
            self._desk.start(self.keep())

    def _changed(self, old: State, new: State) -> None:
        """Remove the copy when its document was saved, closed or replaced: each asks the person first."""
        gone = new.session is None or (old.session is not None and old.session.model is not new.session.model)
        if self._written and old.dirty and (not new.dirty or gone):
            self._discard()

    def _discard(self) -> None:
        if self._written:
            discard_recovery(self._path)
            self._written, self._kept, self._safe = False, None, None


def _told(entry: Recoverable) -> str:
    when = datetime.fromtimestamp(entry.written).strftime("%d %B %Y, %H:%M")
    of = f"of {entry.original}" if entry.original else "that was never saved"
    return f"The workbench ended without closing. There is a copy of the session {of}, written on {when}."
