"""What is drawn bit by bit: each act in a turn of the event loop of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from PySide6.QtCore import QObject, QTimer


class Turns(QObject):
    """Calls what is due one by one; what one act changed is on the screen before the next one begins."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._due: dict[Hashable, Callable[[], object]] = {}
        self._next = QTimer(self, singleShot=True, interval=1)
        self._next.timeout.connect(self._act)

    def add(self, key: Hashable, act: Callable[[], object]) -> None:
        """Call ``act()`` in a later turn, instead of what is due under the same key."""
        self._due[key] = act
        self._next.start()

    def add_missing(self, key: Hashable, act: Callable[[], object]) -> None:
        """Call ``act()`` in a later turn, unless something is due under the same key."""
        if key not in self._due:
            self.add(key, act)

    def _act(self) -> None:
        if self._due:
            self._due.pop(next(iter(self._due)))()
        if self._due:
            self._next.start()
