"""The picture of a heatmap: layers x schemes as coloured cells that scroll under headings that stay in place."""

from __future__ import annotations

from collections.abc import Callable
from heapq import nlargest

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetrics,
    QImage,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QStaticText,
)
from PySide6.QtWidgets import QAbstractScrollArea

from workbench.gui.plots.cells import Cells, headings, levels, lookup
from workbench.gui.shell import settings
from workbench.gui.shell.foreign import elided
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight import quantities

TEXT_ROW, MARK_ROW = 14, 6
"""The least row heights in pixels at which texts and frames are painted."""
WIDEST = "9.9e-9"
"""A cell's text that is as wide as most; of smaller scores some are wider."""

MIN_COLUMN, MAX_COLUMN = 38, 96
LOCK_WIDTH = 12
MEASURED_NAMES = 50
"""So many of the names with most letters are measured: the widest is among them, and measuring thousands takes long."""
FADED, VEIL = 2, 200
"""The ink of cells that the target refuses, and how much of the ground lies over them, of 255."""
MOST_HEAD = 0.6
"""The part of the height that rotated headings take at most: rows need room too."""

SHORT = {"Microscaling": "MX", "Small floats": "FP", "Codebooks": "Code", "16- and 32-bit floats": "16/32 bit",
         "Integers": "Int", "GGUF blocks": "GGUF", "GGUF vectors": "IQ"}  # fmt: skip
"""The titles of families that have too few columns for their whole title."""

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class HeatmapPicture(QAbstractScrollArea):
    """Paints only the visible cells.

    ``name_width``, ``column_width`` and ``head_height`` are pixels; column headings are rotated where they are longer
    than a column is wide.
    """

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self.cells: Cells | None = None
        self.row_height = 20
        self.cursor_cell = (0, 0)
        self._hover = (-1, -1)
        self._selected: frozenset[int] = frozenset()
        self._locked: frozenset[int] = frozenset()
        self._contrast: tuple[np.ndarray, np.ndarray] | None = None
        self._refused: np.ndarray | None = None
        self._veils = 0  # how often other cells were refused
        self._image = QImage()
        self._cached: dict[str, tuple[tuple[object, ...], QPixmap]] = {}
        self._texts: dict[str, tuple[QStaticText, int]] = {}  # of cells; laying one out takes longer than painting it
        self._widest = WIDEST
        self._headed: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()
        self._light_text: np.ndarray = np.zeros((0, 0), bool)
        self.name_width = self.head_height = 24
        self.column_width, self._band_height = MIN_COLUMN, 0
        self.recolour(colours)

    # ---------------------------------------------------------------- what is shown

    def show_cells(self, cells: Cells | None) -> None:
        """Show other cells; the scroll position stays."""
        self.cells = cells
        if cells is not None:
            if cells.rows != self._headed:
                self._headed, self._names = cells.rows, headings(cells.rows)
            colours, places = lookup(settings.heat_colours()), levels(cells.score, cells.low, cells.high)
            unknown, sizes = np.isnan(cells.score), np.abs(cells.score)
            pixels = colours[places]
            pixels[unknown] = 0
            self._light_text = (colours[:, :3] @ np.array([0.299, 0.587, 0.114]) < 140)[places] | unknown
            smallest = float(sizes.min(initial=1.0, where=np.isfinite(sizes) & (sizes > 0)))
            self._widest = max(WIDEST, quantities.cell(smallest), key=len)
            height, width = cells.score.shape
            self._image = QImage(pixels.tobytes(), width, height, width * 4, QImage.Format.Format_RGBA8888).copy()
            row, column = self.cursor_cell
            self.cursor_cell = min(row, max(height - 1, 0)), min(column, max(width - 1, 0))
        self._layout()

    def show_chosen(self, cells: Cells) -> None:
        """Show another choice on the same scores."""
        self.cells = cells
        self.viewport().update()

    def show_selected(self, rows: frozenset[int]) -> None:
        """Mark the selected layers; scroll to the first if none of them is visible."""
        if rows == self._selected:
            return
        self._selected = rows
        if rows and rows.isdisjoint(self._visible_rows()):
            self._scroll_to(min(rows))
        self.viewport().update()

    def show_locked(self, rows: frozenset[int]) -> None:
        """Mark the locked layers with a small lock before their names."""
        if rows != self._locked:
            self._locked = rows
            self.viewport().update()

    def show_contrast(self, columns: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Frame the cells of two plans where they differ: int64 ``[rows]`` each, -1 where they do not."""
        if columns is not None or self._contrast is not None:
            self._contrast = columns
            self.viewport().update()

    def show_refused(self, refused: np.ndarray | None) -> None:
        """Fade the cells that the plan's target refuses, bool ``[rows, columns]``."""
        if refused is not self._refused:
            self._refused = refused
            self._veils += 1
            self.viewport().update()

    def recolour(self, colours: Colours) -> None:
        self._colours = colours
        self.show_cells(self.cells)
        self.viewport().update()

    # ---------------------------------------------------------------- geometry

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

    def _visible_rows(self) -> range:
        count = 0 if self.cells is None else len(self.cells.rows)
        first = self.verticalScrollBar().value() // self.row_height
        visible = (self.viewport().height() - self.head_height) // self.row_height + 2
        return range(first, min(first + visible, count))

    def _visible_columns(self) -> range:
        count = 0 if self.cells is None else len(self.cells.columns)
        first = self.horizontalScrollBar().value() // self.column_width
        visible = (self.viewport().width() - self.name_width) // self.column_width + 2
        return range(first, min(first + visible, count))

    def _layout(self) -> None:
        cells, metrics, size = self.cells, self.fontMetrics(), self.viewport().size()
        rows = columns = self._band_height = 0
        self.name_width = self.head_height = 24
        self.column_width = MIN_COLUMN
        if cells is not None:
            rows, columns = cells.score.shape
            if self.row_height >= TEXT_ROW:
                longest = max(map(metrics.horizontalAdvance, nlargest(MEASURED_NAMES, self._names, key=len)), default=0)
                self.name_width = min(longest + 12 + LOCK_WIDTH, max(90, int(size.width() * 0.34)))
            self.column_width = min(max((size.width() - self.name_width) // max(columns, 1), MIN_COLUMN), MAX_COLUMN)
            longest = max(map(metrics.horizontalAdvance, cells.columns), default=0)
            self._band_height = metrics.height() + 4 if cells.groups else 0
            upright = longest + 8 <= self.column_width
            most, wanted = int(size.height() * MOST_HEAD), metrics.height() + 8 if upright else longest + 16
            if self._band_height + wanted > most:  # whole names of schemes before those of their families
                self._band_height = 0
            self.head_height = self._band_height + min(wanted, max(most, metrics.height() + 8))
        height, width = size.height() - self.head_height, size.width() - self.name_width
        for bar, content, room in ((self.verticalScrollBar(), rows * self.row_height, height),
                                   (self.horizontalScrollBar(), columns * self.column_width, width)):  # fmt: skip
            bar.setRange(0, max(0, content - room))
            bar.setPageStep(max(room, 1))
        self.verticalScrollBar().setSingleStep(self.row_height)
        self.viewport().update()

    def _scroll_to(self, row: int) -> None:
        top, bar = row * self.row_height, self.verticalScrollBar()
        room = self.viewport().height() - self.head_height - self.row_height
        if top < bar.value() or top > bar.value() + room:
            target = top if top < bar.value() else top - room // 2
            bar.setValue(target // self.row_height * self.row_height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._layout()

    def sizeHint(self) -> QSize:
        return QSize(520, 300)

    # ---------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint cells and headings, then the marks over them."""
        with QPainter(self.viewport()) as painter:
            painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # names of layers are not text of a language
            painter.fillRect(self.viewport().rect(), QColor(self._colours.base))
            cells = self.cells
            if cells is None or not cells.rows or not cells.columns:
                return
            rows = self._visible_rows()
            view, colours = self.viewport().rect(), self._colours
            across, down = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
            where = across, self.column_width, self.name_width, self.head_height, colours, self.font()
            inside = view.adjusted(self.name_width, self.head_height, 0, 0)
            heads = QRect(self.name_width, 0, inside.width(), self.head_height)
            self._paint_kept(painter, "heads", heads, (cells.columns, cells.groups, *where), self._paint_all_heads)
            cells_key = self._image, self._veils, down, self.row_height, *where
            self._paint_kept(painter, "cells", inside, cells_key, self._paint_cells)
            painter.setClipRect(QRect(0, self.head_height, self.name_width, view.height()))
            self._paint_names(painter, rows)
            painter.setClipRect(inside)
            self._paint_marks(painter, cells, rows)

    def _paint_kept(
        self, painter: QPainter, part: str, area: QRect, key: tuple[object, ...],
        paint: Callable[[QPainter, Cells], None],
    ) -> None:  # fmt: skip
        """Paint a part of the view from a picture, which is painted again only when what it shows has changed."""
        ratio = self.devicePixelRatioF()
        key = (*key, area, ratio)
        cached = self._cached.get(part)
        if self.cells is not None and (cached is None or cached[0] != key):
            size = area.size() * ratio
            picture = cached[1] if cached is not None and cached[1].size() == size else QPixmap(size)
            picture.setDevicePixelRatio(ratio)
            picture.fill(QColor(self._colours.base))
            with QPainter(picture) as inner:
                inner.translate(-area.topLeft())
                inner.setFont(self.font())
                paint(inner, self.cells)
            cached = self._cached[part] = key, picture
        if cached is not None:
            painter.drawPixmap(area.topLeft(), cached[1])

    def _paint_all_heads(self, painter: QPainter, cells: Cells) -> None:
        self._paint_families(painter, cells)
        self._paint_heads(painter, cells)

    def _text(self, value: float, narrow: bool, metrics: QFontMetrics) -> tuple[QStaticText, int]:
        """Return a value's text, laid out, and its width in pixels."""
        text = quantities.cell(value, narrow)
        if text not in self._texts:
            laid_out = QStaticText(text)
            laid_out.setTextFormat(Qt.TextFormat.PlainText)
            self._texts[text] = laid_out, metrics.horizontalAdvance(text)
        return self._texts[text]

    def _paint_cells(self, painter: QPainter, cells: Cells) -> None:
        rows, columns = self._visible_rows(), self._visible_columns()
        last = self.cell_rect(rows.stop - 1, len(cells.columns) - 1)
        area = QRect(self.cell_rect(rows.start, 0).topLeft(), last.bottomRight())
        painter.fillRect(area, QColor(self._colours.raised))
        painter.fillRect(area, QBrush(QColor(self._colours.border), Qt.BrushStyle.BDiagPattern))
        painter.drawImage(QRectF(area), self._image, QRectF(0, rows.start, len(cells.columns), len(rows)))
        part = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
        refused = self._refused_part(cells, part)
        veil = QColor(self._colours.base)
        veil.setAlpha(VEIL)
        for row, column in np.argwhere(refused).tolist():
            painter.fillRect(self.cell_rect(rows.start + row, columns.start + column), veil)
        if self.row_height < TEXT_ROW:
            return
        painter.setFont(self._small_font())
        metrics = painter.fontMetrics()
        narrow = metrics.horizontalAdvance(self._widest) + 4 > self.column_width
        first = self.cell_rect(rows.start, columns.start)
        top = first.y() + (self.row_height - metrics.height()) // 2
        kinds = np.where(refused, FADED, self._light_text[part].astype(int)).tolist()
        scores = cells.score[part].tolist()
        for kind, colour in enumerate(("#101418", "#ffffff", self._colours.muted)):
            painter.setPen(QPen(QColor(colour)))
            for row, (values, inks) in enumerate(zip(scores, kinds, strict=True)):
                for column, value in enumerate(values):
                    if inks[column] == kind and value == value:
                        text, width = self._text(value, narrow, metrics)
                        left = first.x() + column * self.column_width + (self.column_width - width) // 2
                        painter.drawStaticText(left, top + row * self.row_height, text)

    def _refused_part(self, cells: Cells, part: tuple[slice, slice]) -> np.ndarray:
        """Return which of the visible cells are refused, bool."""
        fits = self._refused is not None and self._refused.shape == cells.score.shape
        visible: np.ndarray = self._refused[part] if fits and self._refused is not None else np.zeros_like(
            cells.score[part], bool
        )  # fmt: skip
        return visible

    def _small_font(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(max(font.pointSizeF() - 1, 7.0))
        return font

    def changeEvent(self, event: QEvent) -> None:
        """Lay texts out again in another font."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._texts.clear()
            self._layout()

    def _paint_names(self, painter: QPainter, rows: range) -> None:
        """Paint the rows' names, right-aligned and shortened on the left, and the selected rows' background."""
        for row in rows:
            rect = QRect(0, self.cell_rect(row, 0).y(), self.name_width, self.row_height)
            if row in self._selected:
                painter.fillRect(rect, QColor(self._colours.selection))
            if self.row_height < TEXT_ROW:
                continue
            room = rect.width() - 10
            if row in self._locked:
                _paint_lock(painter, rect.left() + 3, rect.center().y(), QColor(self._colours.muted))
                room -= LOCK_WIDTH
            painter.setPen(QColor(self._colours.text))
            text = elided(painter.fontMetrics(), self._names[row], room, Qt.TextElideMode.ElideMiddle)
            painter.drawText(rect.adjusted(4, 0, -6, 0), RIGHT, text)

    def _paint_heads(self, painter: QPainter, cells: Cells) -> None:
        """Paint the columns' names, rotated where they are wider than a column."""
        painter.setPen(QColor(self._colours.text))
        metrics = painter.fontMetrics()
        for column in self._visible_columns():
            name, left = cells.columns[column], self.cell_rect(0, column).x()
            rect = QRect(left, self._band_height, self.column_width, self.head_height - self._band_height)
            if metrics.horizontalAdvance(name) + 8 <= rect.width() and rect.height() < 40:
                painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, name)
                continue
            painter.save()
            painter.translate(rect.center().x() + metrics.ascent() / 2 - 1, rect.bottom() - 5)
            painter.rotate(-90)
            painter.drawText(0, 0, elided(metrics, name, rect.height() - 8))
            painter.restore()

    def _paint_families(self, painter: QPainter, cells: Cells) -> None:
        """Paint each family's title over its columns, and a line between two families."""
        metrics = painter.fontMetrics()
        for title, first, count in cells.spans():
            rect = QRect(self.cell_rect(0, first).x(), 0, count * self.column_width, self._band_height)
            whole = tr(title)
            fits = metrics.horizontalAdvance(whole) <= rect.width() - 8
            text = elided(metrics, whole if fits else SHORT.get(title, whole), rect.width() - 7)
            painter.setPen(QColor(self._colours.muted))
            if self._band_height:
                painter.drawText(rect.adjusted(5, 0, -3, 0), LEFT, text)
            if first:
                painter.fillRect(rect.x(), 0, 1, self.head_height, QColor(self._colours.border))

    def _paint_marks(self, painter: QPainter, cells: Cells, rows: range) -> None:
        """Paint frames around the chosen cells, the cell under the mouse and the cell with the keyboard."""
        outer, inner = QPen(QColor("#ffffff"), 1), QPen(QColor("#d81b1b"), 1)
        for row in rows:
            column = int(cells.chosen[row])
            if column < 0:
                continue
            rect = self.cell_rect(row, column)
            if self.row_height < MARK_ROW:
                painter.fillRect(rect.adjusted(8, 1, -8, 0), inner.color())
                continue
            for inset, frame in ((0, inner), (1, outer)):
                painter.setPen(frame)
                painter.drawRect(rect.adjusted(inset, inset, -inset - 1, -inset - 1))
        self._paint_contrast(painter, rows)
        if min(self._hover) >= 0:
            painter.setPen(QPen(QColor(self._colours.text), 1))
            painter.drawRect(self.cell_rect(*self._hover).adjusted(0, 0, -1, -1))
        if self.hasFocus() and self.row_height >= MARK_ROW:
            painter.setPen(QPen(QColor(self._colours.text), 1, Qt.PenStyle.DashLine))
            painter.drawRect(self.cell_rect(*self.cursor_cell).adjusted(0, 0, -1, -1))

    def _paint_contrast(self, painter: QPainter, rows: range) -> None:
        """Paint dashed frames around the cells of the first of two plans, solid ones around those of the second."""
        for columns, style in zip(self._contrast or (), (Qt.PenStyle.DashLine, Qt.PenStyle.SolidLine), strict=False):
            for row in rows:
                if row >= len(columns) or columns[row] < 0:
                    continue
                rect = self.cell_rect(row, int(columns[row])).adjusted(1, 1, -2, -2)
                for width, colour in ((3, "#ffffff"), (1, "#0b5fff")):
                    painter.setPen(QPen(QColor(colour), width, style if width == 1 else Qt.PenStyle.SolidLine))
                    painter.drawRect(rect)


def _paint_lock(painter: QPainter, left: int, middle: int, colour: QColor) -> None:
    """Paint a lock 9 pixels wide, its middle at the given height."""
    painter.setPen(QPen(colour, 1))
    painter.drawRoundedRect(left + 2, middle - 4, 4, 6, 2, 2)
    painter.fillRect(left, middle, 9, 5, colour)
