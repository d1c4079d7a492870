"""The clipboard, and copies that are too long for a frame."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QWidget

from workbench.gui.shell.words import tr
from workbench.readable import readable

SLICE = 0.008
"""Seconds of a frame that working out lines takes."""


def put(text: str) -> None:
    """Put a text on the clipboard; a terminal into which somebody pastes it would obey what names have in them."""
    QApplication.clipboard().setText(readable(text, lines=True))


class Lines(QObject):
    """Lines that are worked out between frames, from now on, and given to ``done`` when there are all."""

    def __init__(
        self, widget: QObject, lines: Callable[[], Iterator[str]], done: Callable[[list[str]], object]
    ) -> None:
        super().__init__(widget)
        self._lines, self._done = lines, done
        self._next = QTimer(self, interval=1)
        self._next.timeout.connect(self._go_on)
        self._left, self._made = lines(), list[str]()
        self._go_on()

    def begin_again(self) -> None:
        """Begin with the first line again, once what changes has changed."""
        if self._next.isActive():
            self._left, self._made = self._lines(), []

    def _go_on(self) -> None:
        self._next.stop()  # a line that raises is the last: a part of a table is no copy of it
        until = time.perf_counter() + SLICE
        for line in self._left:
            self._made.append(line)
            if time.perf_counter() > until:
                self._next.start()
                return
        self.deleteLater()
        self._done(self._made)


def copy_lines(widget: QObject, lines: Callable[[], Iterator[str]], done: Callable[[], object] = int) -> Lines:
    """Copy lines that are worked out between frames, then call ``done``."""

    def copy(made: list[str]) -> None:
        put("\n".join(made))
        done()

    return Lines(widget, lines, copy)


def offer_copy(widget: QWidget, text: str, copy: Callable[[], object]) -> None:
    """Let Ctrl+C and a menu's entry ``text`` copy what a widget shows."""
    action = QAction(tr(text), widget)
    action.setShortcut(QKeySequence.StandardKey.Copy)
    action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    action.triggered.connect(lambda _: copy())
    widget.addAction(action)
    widget.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
