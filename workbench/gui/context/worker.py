"""Answers that take longer than a frame at thousands of layers: worked out in a thread, while the window goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from workbench.errors import WorkbenchError

FEW = 2_000
"""Layers up to which an answer is worked out at once."""

Work = Callable[[], Any]


class Worker(QObject):
    """Shows one answer, or the WorkbenchError in its place; of several questions asked meanwhile the last is answered.

    What is asked reads nothing but frozen snapshots.
    """

    _done = Signal(object, object)

    def __init__(self, parent: QObject, show: Callable[[Any], None]) -> None:
        super().__init__(parent)
        self._show = show
        self._asked: Work | None = None
        self._running: Work | None = None
        self._done.connect(self._answer, Qt.ConnectionType.QueuedConnection)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is still to be shown."""
        return self._asked is not None

    def ask(self, work: Work, layers: int) -> None:
        """Work out an answer about so many layers and show it; earlier questions are forgotten."""
        if layers <= FEW:
            self._asked = None
            self._show(_outcome(work))
            return
        self._asked = work
        if self._running is None:
            self._start(work)

    def forget(self) -> None:
        """Show no answer to what was asked so far."""
        self._asked = None

    def _start(self, work: Work) -> None:
        self._running = work
        threading.Thread(target=self._work, args=(work,), name="workbench-worker", daemon=True).start()

    def _work(self, work: Work) -> None:
        try:
            outcome = _outcome(work)
        except Exception as error:  # raised where the window reports it
            outcome = error
        with suppress(RuntimeError):  # the window is gone
            self._done.emit(work, outcome)

    def _answer(self, work: Work, outcome: Any) -> None:
        self._running = None
        if self._asked is work:
            self._asked = None
            if isinstance(outcome, Exception) and not isinstance(outcome, WorkbenchError):
                raise outcome
            self._show(outcome)
        elif self._asked is not None:
            self._start(self._asked)


def _outcome(work: Work) -> Any:
    try:
        return work()
    except WorkbenchError as error:
        return error
