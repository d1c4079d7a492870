"""A word to the person who looks elsewhere: a long job has ended."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QApplication, QWidget

from workbench.gui.context.context import Context
from workbench.insight import quantities

LONG_SECONDS = 10.0


class Notices:
    """Follows the jobs; ``told`` are the ids that were spoken of."""

    def __init__(self, context: Context, window: QWidget, seconds: float = LONG_SECONDS) -> None:
        self._context, self._window, self.seconds = context, window, seconds
        self.told: set[int] = set()

    def look(self, views: tuple[Any, ...]) -> None:
        """Tell once of every long job that is over: in the task bar, and in the message line where it was done."""
        for view in views:
            if view.status not in ("done", "failed") or view.started is None or view.id in self.told:
                continue
            took = view.finished - view.started
            if took < self.seconds:
                continue
            self.told.add(view.id)
            QApplication.alert(self._window)
            if view.status == "done":
                self._context.messages.say(f"{view.title} ended", f"it took {quantities.duration(took)}")
