"""The clipboard, and copies that are too long for a frame."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QWidget

from workbench.gui.shell.words import tr

SLICE = 0.008
"""Seconds of a frame that copying takes."""


def put(text: str) -> None:
    """Put a text on the clipboard."""
    QApplication.clipboard().setText(text)


class Copying(QObject):
    """Copies lines that are worked out between frames, from the first again at every :meth:`start`."""

    def __init__(self, widget: QObject, lines: Callable[[], Iterator[str]], done: Callable[[], object] = int) -> None:
        super().__init__(widget)
        self._lines, self._done, self._is_done = lines, done, False
        self._next = QTimer(self, interval=1)
        self._next.timeout.connect(self._go_on)

    def start(self) -> None:
        """Begin, or begin again."""
        self._left, self._made = self._lines(), list[str]()
        if not self._is_done:
            self._go_on()

    def _go_on(self) -> None:
        until = time.perf_counter() + SLICE
        for line in self._left:
            self._made.append(line)
            if time.perf_counter() > until:
                self._next.start()
                return
        put("\n".join(self._made))
        self._next.stop()
        self._is_done = True
        self.deleteLater()
        self._done()


def offer_copy(widget: QWidget, text: str, copy: Callable[[], object]) -> None:
    """Let Ctrl+C and a menu's entry ``text`` copy what a widget shows."""
    action = QAction(tr(text), widget)
    action.setShortcut(QKeySequence.StandardKey.Copy)
    action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    action.triggered.connect(lambda _: copy())
    widget.addAction(action)
    widget.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
