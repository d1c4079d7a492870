"""Announces the end of long jobs to a user who works elsewhere."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QApplication, QWidget

from workbench.gui.context.context import Context
from workbench.insight import quantities

LONG_SECONDS = 10.0


class Notices:
    """Follows the jobs; ``announced`` are the ids of the announced ones."""

    def __init__(self, context: Context, window: QWidget, seconds: float = LONG_SECONDS) -> None:
        self._context, self._window, self.seconds = context, window, seconds
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
                self._context.messages.say(f"{view.title} ended", f"it took {quantities.duration(seconds)}")
