"""The log of messages, errors as the user reads them, and what announces the end of long jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtWidgets import QApplication, QWidget

from workbench.errors import WorkbenchError
from workbench.insight import quantities
from workbench.version import crash_details

MAX_MESSAGES = 200
LONG_SECONDS = 10.0
"""Who waits for longer works elsewhere meanwhile."""
CANCELLED = "Cancelled: "
SAME_END = 5.0
"""Within so many seconds, two lines that a job is done are about one end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One line of the log: ``level`` is ``info``, ``warning`` or ``error``; ``when`` in seconds since 1970."""

    level: str
    title: str
    text: str
    when: float


class MessageLog:
    """The last messages, newest last.

    The window sets ``on_message(message)`` and ``show_error(title, text, details)``, which opens a dialog.
    """

    def __init__(self) -> None:
        self.entries: list[Message] = []
        self._kept = ""
        self.on_message: Callable[[Message], None] = lambda message: None
        self.show_error: Callable[[str, str, str], object] = lambda title, text, details: None

    def say(self, title: str, text: str = "", level: str = "info") -> None:
        """Add a line to the log and show it in the status bar."""
        message = Message(level=level, title=title, text=text, when=time.time())
        self.entries = [*self.entries[-MAX_MESSAGES + 1 :], message]
        self.on_message(message)

    def done(self, title: str, text: str = "") -> None:
        """Say that a job has ended; of two lines about one end, that with a text stays."""
        last = self.entries[-1] if self.entries else None
        if last and last.title == f"Done: {title}" and time.time() - last.when < SAME_END:
            if not text:
                return
            self.entries = self.entries[:-1]
        self.say(f"Done: {title}", text)

    def cancelled(self, title: str, kept: str) -> None:
        """Say that a job was cancelled, and what of its results is kept."""
        self._kept = kept
        self.say(f"{CANCELLED}{title}", kept)

    def after_cancel(self, text: str) -> bool:
        """Add to the last line what became of the engine; False if that line is not about a job that was cancelled."""
        last = self.entries[-1] if self.entries else None
        if last is None or not last.title.startswith(CANCELLED):
            return False
        self.entries = self.entries[:-1]
        self.say(last.title, "; ".join(filter(None, (self._kept, text))))
        return True

    def report(self, title: str, error: BaseException, *, dialog: bool = True) -> None:
        """Log an error and, with ``dialog``, show it; a fault of the workbench itself comes with its traceback."""
        text = without_title(str(error) or type(error).__name__, title)
        self.say(title, text, "error")
        if dialog:
            expected = isinstance(error, WorkbenchError) and not getattr(error, "__notes__", None)
            self.show_error(title, text, "" if expected else crash_details(error))


def without_title(error: str, title: str) -> str:
    """Return an error's text without the job's title in front of it, which stands beside it."""
    return error.removeprefix(title).lstrip(" :") if title and error != title else error


class Notices:
    """Announces the end of long jobs; ``announced`` are the ids of the announced ones."""

    def __init__(self, messages: MessageLog, window: QWidget, seconds: float = LONG_SECONDS) -> None:
        self._messages, self._window, self.seconds = messages, window, seconds
        self.announced: set[int] = set()

    def look(self, views: tuple[Any, ...]) -> None:
        """Announce each long job once when it ends: in the task bar, and in the message line if it succeeded."""
        for view in views:
            if view.status not in ("done", "failed") or view.started is None or view.id in self.announced:
                continue
            seconds = view.finished - view.started
            if seconds < self.seconds:
                continue
            self.announced.add(view.id)
            QApplication.alert(self._window)
            if view.status == "done":
                self._messages.done(view.title, f"it took {quantities.duration(seconds)}")
