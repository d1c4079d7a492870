"""A heatmap that the user works on with mouse and keyboard."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QMouseEvent, QWheelEvent

from workbench.gui.plots.heatmap_picture import HeatmapPicture
from workbench.gui.shell.copying import put
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.readable import readable

MIN_ROW, MAX_ROW = 3, 40
"""Row heights in pixels between which the zoom ranges."""


class Heatmap(HeatmapPicture):
    """``hovered``, ``clicked`` and ``painted`` (a click that is dragged on) give row and column.

    A click at a heading selects its row, with Ctrl one more or less, with Shift all up to it.  Enter clicks the cell
    that the arrow keys moved to, a right click requests a lock, Ctrl+wheel zooms, Ctrl+C copies the cell as a number.
    """

    hovered = Signal(int, int)
    clicked = Signal(int, int)
    rows_selected = Signal(object)
    painted = Signal(int, int)
    lock_requested = Signal(int)

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.setObjectName("heatmap")
        self.setAccessibleName(tr("Sensitivity of every layer to every scheme"))
        self.setAccessibleDescription(tr("Arrow keys move the cell, Enter assigns its scheme, Control and wheel zoom"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self._pressed = False
        self._anchor = 0  # the row from which Shift extends the selection

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position().toPoint())
        if cell == self._hover:
            return
        self._hover = cell
        self.hovered.emit(*cell)
        if event.buttons() & Qt.MouseButton.LeftButton and min(cell) >= 0 and self._pressed:
            before, self.cursor_cell = self.cursor_cell, cell
            for row, column in _between(before, cell):
                self.painted.emit(row, column)
        self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._pressed = False

    def leaveEvent(self, event: QEvent) -> None:
        self._hover = (-1, -1)
        self.hovered.emit(-1, -1)
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the cell, or select the row at its heading."""
        row, column = self.cell_at(event.position().toPoint())
        if row >= 0 and event.button() == Qt.MouseButton.RightButton:
            self.lock_requested.emit(row)
        if row < 0 or event.button() != Qt.MouseButton.LeftButton:
            return
        if column < 0:
            self._select_rows(row, event.modifiers())
            return
        self.cursor_cell = self._hover = (row, column)
        self._pressed = True
        self.clicked.emit(row, column)
        self.viewport().update()

    def _select_rows(self, row: int, modifiers: Qt.KeyboardModifier) -> None:
        rows = frozenset((row,))
        if modifiers & Qt.KeyboardModifier.ShiftModifier:
            rows = frozenset(range(min(self._anchor, row), max(self._anchor, row) + 1))
        else:
            self._anchor = row
        if modifiers & Qt.KeyboardModifier.ControlModifier:
            rows = self._selected ^ rows if rows < self._selected else self._selected | rows
        self.rows_selected.emit(sorted(rows))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move with the arrows, choose with Enter or Space."""
        if self.cells is None or not self.cells.rows:
            super().keyPressEvent(event)
            return
        rows, columns = self.cells.score.shape
        page = max((self.viewport().height() - self.head_height) // self.row_height - 1, 1)
        steps = {
            Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0), Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_PageUp: (-page, 0), Qt.Key.Key_PageDown: (page, 0),
            Qt.Key.Key_Home: (-rows, 0), Qt.Key.Key_End: (rows, 0),
        }  # fmt: skip
        if event.matches(QKeySequence.StandardKey.Copy):
            row, column = self.cursor_cell
            name = readable(self.cells.rows[row])  # it is one cell
            put(f"{name}\t{self.cells.columns[column]}\t{self.cells.score[row, column]:.6g}")
            return
        key = Qt.Key(event.key())
        if key in steps:
            row, column = (at + step for at, step in zip(self.cursor_cell, steps[key], strict=True))
            self.cursor_cell = min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)
            self._scroll_to(self.cursor_cell[0])
            self.hovered.emit(*self.cursor_cell)
            self.viewport().update()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.clicked.emit(*self.cursor_cell)
        else:
            super().keyPressEvent(event)

    def data_lines(self) -> Iterator[str]:
        """Yield the whole table as lines with tabs: exact scores, empty where there is none."""
        if self.cells is None:
            return
        yield "\t".join(("layer", *self.cells.columns))
        for name, scores in zip(self.cells.rows, self.cells.score, strict=True):
            yield "\t".join((name, *("" if score != score else repr(score) for score in scores.tolist())))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll; with Ctrl make the rows higher or lower."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.25 if event.angleDelta().y() > 0 else 0.8)
            event.accept()
        else:
            super().wheelEvent(event)

    def zoom(self, factor: float) -> None:
        """Make the rows higher or lower around the middle of the view."""
        bar, half = self.verticalScrollBar(), self.viewport().height() / 2
        middle = (bar.value() + half) / self.row_height
        height = round(self.row_height * factor)
        if height == self.row_height:
            height += 1 if factor > 1 else -1
        self.row_height = min(max(height, MIN_ROW), MAX_ROW)
        self._layout()
        bar.setValue(int(middle * self.row_height - half))


def _between(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the cells after ``start`` on the straight way to ``end``, one for each row: a fast mouse skips some."""
    steps = max(abs(end[0] - start[0]), 1)
    rows, columns = (np.linspace(*ends, steps + 1)[1:].round() for ends in zip(start, end, strict=True))
    return list(zip(rows.astype(int).tolist(), columns.astype(int).tolist(), strict=True))
