"""Layers x schemes as coloured cells: a scroll area that paints only what can be seen, with its headings in place."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetrics,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea

from workbench.gui.plots.cells import Cells, headings, levels, lookup
from workbench.gui.plots.heatmap_headings import HeadedRow, paint_heads, paint_names
from workbench.gui.shell.theme import Colours
from workbench.insight import quantities

MIN_ROW, MAX_ROW, TEXT_ROW = 3, 40, 14
"""Row heights in pixels: the zoom's limits, and the least at which texts are painted."""
MIN_COLUMN, MAX_COLUMN = 38, 96


class Heatmap(QAbstractScrollArea):
    """Hover tells, click chooses, arrows move, Enter chooses, Ctrl+wheel zooms.

    ``name_width``, ``column_width`` and ``head_height`` are pixels; column headings stand on their side where they are
    longer than a column is wide.
    """

    hovered = Signal(int, int)
    clicked = Signal(int, int)
    row_selected = Signal(int)
    painted = Signal(int, int)
    lock_wanted = Signal(int)

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self.setObjectName("heatmap")
        self.setAccessibleName("Sensitivity of every layer to every scheme")
        self.setAccessibleDescription("Arrow keys move the cell, Enter assigns its scheme, Control and wheel zoom")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.cells: Cells | None = None
        self.row_height = 20
        self.cursor_cell = (0, 0)
        self._hover = (-1, -1)
        self._pressed = False
        self._selected: frozenset[int] = frozenset()
        self._locked: frozenset[int] = frozenset()
        self._lut = lookup()
        self._image: QImage | None = None
        self._drawn: tuple[tuple[object, ...], QPixmap] | None = None
        self._names: tuple[str, ...] = ()
        self.name_width = self.head_height = 24
        self.column_width = MIN_COLUMN
        self._light_text: np.ndarray = np.zeros((0, 0), bool)
        self.recolour(colours)

    # ---------------------------------------------------------------- what is shown

    def show_cells(self, cells: Cells | None) -> None:
        """Show other cells; the scroll position stays."""
        self.cells = cells
        if cells is not None:
            self._names = headings(cells.rows)
            indices = levels(cells.score, cells.low, cells.high)
            pixels = self._lut[indices]
            pixels[np.isnan(cells.score)] = 0
            shade = pixels[..., :3] @ np.array([0.299, 0.587, 0.114])
            self._light_text = shade < 140
            buffer = np.ascontiguousarray(pixels)
            height, width = cells.score.shape
            image = QImage(buffer.tobytes(), width, height, width * 4, QImage.Format.Format_RGBA8888)
            self._image = image.copy()
            self.cursor_cell = (
                min(self.cursor_cell[0], max(height - 1, 0)),
                min(self.cursor_cell[1], max(width - 1, 0)),
            )
        self._layout()

    def show_chosen(self, cells: Cells) -> None:
        """Show another choice on the same scores."""
        self.cells = cells
        self.viewport().update()

    def show_selected(self, rows: frozenset[int]) -> None:
        """Mark the selected layers; scroll to the first if none of them can be seen."""
        if rows == self._selected:
            return
        self._selected = rows
        first, last = self._visible_rows()
        if rows and not any(first <= row < last for row in rows):
            self._scroll_to(min(rows))
        self.viewport().update()

    def show_locked(self, rows: frozenset[int]) -> None:
        """Mark the locked layers with a small lock before their names."""
        if rows != self._locked:
            self._locked = rows
            self.viewport().update()

    def recolour(self, colours: Colours) -> None:
        """Take other colours."""
        self._colours = colours
        self.viewport().update()

    # ---------------------------------------------------------------- geometry

    def _metrics(self) -> QFontMetrics:
        return QFontMetrics(self.font())

    def _measured_name_width(self) -> int:
        if self.cells is None or self.row_height < TEXT_ROW:
            return 24
        longest = max(self._names, key=len, default="")
        wanted = self._metrics().horizontalAdvance(longest) + 12
        return min(wanted, max(90, int(self.viewport().width() * 0.34)))

    def _measured_head_height(self) -> int:
        if self.cells is None:
            return 24
        longest = max((self._metrics().horizontalAdvance(name) for name in self.cells.columns), default=0)
        plain = longest + 16 if longest + 8 > self.column_width else self._metrics().height() + 8
        return plain + self._band_height

    @property
    def _band_height(self) -> int:
        """The height of the families' titles above the headings."""
        return self._metrics().height() + 4 if self.cells is not None and self.cells.groups else 0

    def _measured_column_width(self) -> int:
        if self.cells is None or not self.cells.columns:
            return MIN_COLUMN
        room = self.viewport().width() - self.name_width
        return int(min(max(room // len(self.cells.columns), MIN_COLUMN), MAX_COLUMN))

    def cell_rect(self, row: int, column: int) -> QRect:
        """Return where a cell is painted in the viewport."""
        x = self.name_width + column * self.column_width - self.horizontalScrollBar().value()
        y = self.head_height + row * self.row_height - self.verticalScrollBar().value()
        return QRect(x, y, self.column_width, self.row_height)

    def cell_at(self, point: QPoint) -> tuple[int, int]:
        """Return row and column under a point; column -1 for the heading of a row, row -1 for none."""
        if self.cells is None or point.y() < self.head_height:
            return -1, -1
        row = (point.y() - self.head_height + self.verticalScrollBar().value()) // self.row_height
        column = (point.x() - self.name_width + self.horizontalScrollBar().value()) // self.column_width
        if row >= len(self.cells.rows) or column >= len(self.cells.columns):
            return -1, -1
        return int(row), -1 if point.x() < self.name_width else int(column)

    def _visible_rows(self) -> tuple[int, int]:
        if self.cells is None:
            return 0, 0
        first = self.verticalScrollBar().value() // self.row_height
        shown = (self.viewport().height() - self.head_height) // self.row_height + 2
        return first, min(first + shown, len(self.cells.rows))

    def _visible_columns(self) -> range:
        assert self.cells is not None
        first = self.horizontalScrollBar().value() // self.column_width
        shown = (self.viewport().width() - self.name_width) // self.column_width + 2
        return range(first, min(first + shown, len(self.cells.columns)))

    def _layout(self) -> None:
        self.name_width = self._measured_name_width()
        self.column_width = self._measured_column_width()
        self.head_height = self._measured_head_height()
        rows = len(self.cells.rows) if self.cells else 0
        columns = len(self.cells.columns) if self.cells else 0
        height, width = self.viewport().height() - self.head_height, self.viewport().width() - self.name_width
        self.verticalScrollBar().setRange(0, max(0, rows * self.row_height - height))
        self.verticalScrollBar().setPageStep(max(height, 1))
        self.verticalScrollBar().setSingleStep(self.row_height)
        self.horizontalScrollBar().setRange(0, max(0, columns * self.column_width - width))
        self.horizontalScrollBar().setPageStep(max(width, 1))
        self.viewport().update()

    def _scroll_to(self, row: int) -> None:
        top, bar = row * self.row_height, self.verticalScrollBar()
        room = self.viewport().height() - self.head_height - self.row_height
        if top < bar.value() or top > bar.value() + room:
            wanted = top if top < bar.value() else top - room // 2
            bar.setValue(wanted // self.row_height * self.row_height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns to the width."""
        super().resizeEvent(event)
        self._layout()

    def sizeHint(self) -> QSize:
        """Return a comfortable size."""
        return QSize(520, 300)

    # ---------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint cells, then what lies over them, then the headings."""
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), QColor(self._colours.base))
            if self.cells is None or self._image is None or not self.cells.rows or not self.cells.columns:
                return
            first, last = self._visible_rows()
            painter.drawPixmap(0, 0, self._ground(first, last))
            painter.setClipRect(self.viewport().rect().adjusted(self.name_width, self.head_height, 0, 0))
            self._paint_marks(painter, first, last)

    def _ground(self, first: int, last: int) -> QPixmap:
        """Return cells, names and headings as a picture; it is kept until something else of them is to be seen."""
        assert self.cells is not None
        ratio = self.devicePixelRatioF()
        key = (self._image, self.horizontalScrollBar().value(), self.verticalScrollBar().value(), self.row_height,
               self.column_width, self.viewport().size(), ratio,
               self._selected, self._locked, self._colours)  # fmt: skip
        if self._drawn is None or self._drawn[0] != key:
            size = self.viewport().size() * ratio
            kept = self._drawn is not None and self._drawn[1].size() == size  # memory that the system gave already
            picture = self._drawn[1] if self._drawn is not None and kept else QPixmap(size)
            picture.setDevicePixelRatio(ratio)
            picture.fill(QColor(self._colours.base))
            with QPainter(picture) as painter:
                painter.setFont(self._cell_font())
                painter.save()
                painter.setClipRect(self.viewport().rect().adjusted(self.name_width, self.head_height, 0, 0))
                self._paint_cells(painter, first, last)
                painter.restore()
                painter.setFont(self.font())
                area = QRect(0, self.head_height, self.name_width, self.viewport().height())
                tall = self.row_height >= TEXT_ROW
                rows = [HeadedRow(text=self._names[row] if tall else "", top=self.cell_rect(row, 0).y(),
                                  height=self.row_height, selected=row in self._selected, locked=row in self._locked)
                        for row in range(first, last)]  # fmt: skip
                paint_names(painter, area, rows, self._colours)
                area = QRect(self.name_width, 0, self.viewport().width(), self.head_height)
                lefts = {column: self.cell_rect(0, column).x() for column in range(len(self.cells.columns))}
                paint_heads(painter, area, self.cells, lefts, self.column_width, self._band_height, self._colours)
            self._drawn = key, picture
        return self._drawn[1]

    def _cell_font(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(max(font.pointSizeF() - 1, 7.0))
        return font

    def _paint_cells(self, painter: QPainter, first: int, last: int) -> None:
        assert self.cells is not None and self._image is not None
        top, bottom = self.cell_rect(first, 0), self.cell_rect(last - 1, len(self.cells.columns) - 1)
        area = QRect(top.topLeft(), bottom.bottomRight())
        painter.fillRect(area, QColor(self._colours.raised))
        painter.fillRect(area, QBrush(QColor(self._colours.border), Qt.BrushStyle.BDiagPattern))
        painter.drawImage(QRectF(area), self._image, QRectF(0, first, len(self.cells.columns), last - first))
        if self.row_height < TEXT_ROW:
            return
        dark, light = QPen(QColor("#101418")), QPen(QColor("#ffffff"))
        narrow = painter.fontMetrics().horizontalAdvance("0.0000") + 4 > self.column_width
        for row in range(first, last):
            for column in self._visible_columns():
                value = self.cells.score[row, column]
                if not np.isnan(value):
                    painter.setPen(light if self._light_text[row, column] else dark)
                    painter.drawText(
                        self.cell_rect(row, column), Qt.AlignmentFlag.AlignCenter, quantities.cell(float(value), narrow)
                    )

    def _paint_marks(self, painter: QPainter, first: int, last: int) -> None:
        assert self.cells is not None
        painter.setBrush(Qt.BrushStyle.NoBrush)
        outer, inner = QPen(QColor("#ffffff"), 2), QPen(QColor("#d81b1b"), 2)
        for row in range(first, last):
            column = int(self.cells.chosen[row])
            if column >= 0 and self.row_height >= 6:
                rect = self.cell_rect(row, column)
                painter.setPen(outer)
                painter.drawRect(rect.adjusted(1, 1, -1, -1))
                painter.setPen(inner)
                painter.drawRect(rect.adjusted(2, 2, -2, -2))
            elif column >= 0:
                painter.fillRect(self.cell_rect(row, column).adjusted(8, 1, -8, 0), QColor("#d81b1b"))
        if self._hover[0] >= 0 and self._hover[1] >= 0:
            painter.setPen(QPen(QColor(self._colours.text), 1))
            painter.drawRect(self.cell_rect(*self._hover).adjusted(0, 0, -1, -1))
        if self.hasFocus() and self.row_height >= 6:
            painter.setPen(QPen(QColor(self._colours.text), 1, Qt.PenStyle.DashLine))
            painter.drawRect(self.cell_rect(*self.cursor_cell).adjusted(0, 0, -1, -1))

    # ---------------------------------------------------------------- mouse and keyboard

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell which cell is under the mouse."""
        cell = self.cell_at(event.position().toPoint())
        if cell == self._hover:
            return
        self._hover = cell
        self.hovered.emit(*cell)
        if event.buttons() & Qt.MouseButton.LeftButton and min(cell) >= 0 and self._pressed:
            self.cursor_cell = cell
            self.painted.emit(*cell)
        self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End painting."""
        self._pressed = False

    def leaveEvent(self, event: QEvent) -> None:
        """Forget the cell under the mouse."""
        self._hover = (-1, -1)
        self.hovered.emit(-1, -1)
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the cell, or select the row at its heading."""
        row, column = self.cell_at(event.position().toPoint())
        if row >= 0 and event.button() == Qt.MouseButton.RightButton:
            self.lock_wanted.emit(row)
        if row < 0 or event.button() != Qt.MouseButton.LeftButton:
            return
        if column < 0:
            self.row_selected.emit(row)
            return
        self.cursor_cell = self._hover = (row, column)
        self._pressed = True
        self.clicked.emit(row, column)
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move with the arrows, choose with Enter or Space."""
        if self.cells is None or not self.cells.rows:
            super().keyPressEvent(event)
            return
        page = max((self.viewport().height() - self.head_height) // self.row_height - 1, 1)
        steps = {
            Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0), Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_PageUp: (-page, 0), Qt.Key.Key_PageDown: (page, 0),
            Qt.Key.Key_Home: (-len(self.cells.rows), 0), Qt.Key.Key_End: (len(self.cells.rows), 0),
        }  # fmt: skip
        key = Qt.Key(event.key())
        if key in steps:
            down, right = steps[key]
            row = min(max(self.cursor_cell[0] + down, 0), len(self.cells.rows) - 1)
            column = min(max(self.cursor_cell[1] + right, 0), len(self.cells.columns) - 1)
            self.cursor_cell = (row, column)
            self._scroll_to(row)
            self.hovered.emit(row, column)
            self.viewport().update()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.clicked.emit(*self.cursor_cell)
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll; with Ctrl make the rows higher or lower."""
        if not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(event)
            return
        self.zoom(1.25 if event.angleDelta().y() > 0 else 0.8)
        event.accept()

    def zoom(self, factor: float) -> None:
        """Make the rows higher or lower, the middle one staying where it is."""
        middle = (self.verticalScrollBar().value() + self.viewport().height() / 2) / self.row_height
        new = round(self.row_height * factor)
        if new == self.row_height:
            new += 1 if factor > 1 else -1
        self.row_height = min(max(new, MIN_ROW), MAX_ROW)
        self._layout()
        self.verticalScrollBar().setValue(int(middle * self.row_height - self.viewport().height() / 2))
