"""Painting a whole row of the layer tree at once: what makes 10,000 rows scroll.

Qt asks a Python model seven questions for each cell and a Python delegate one more; a row that is painted by one
function asks none of them twice.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QStyleOptionViewItem, QTreeView

from workbench.gui.shell.theme import Colours
from workbench.gui.tables.layer_columns import COLUMNS, HISTOGRAM, NAME
from workbench.gui.tables.layer_rows import ROOT
from workbench.gui.tables.layers import LayersModel
from workbench.numerics.statistics.layer_statistics import LayerStatistics

Index = QModelIndex | QPersistentModelIndex
MAX_PIXMAPS = 3000
PADDING = 4
"""Pixels between a cell's text and its border."""

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class LayersView(QTreeView):
    """A tree view of a :class:`LayersModel` that paints its rows itself; everything else is Qt's."""

    def __init__(self, model: LayersModel, colours: Colours) -> None:
        super().__init__()
        self._layers = model
        self._sections: tuple[tuple[int, int, int], ...] = ()
        self._focused = QModelIndex()
        self._pixmaps: dict[tuple[int, int, int], tuple[LayerStatistics, QPixmap]] = {}
        self.setModel(model)
        self.recolour(colours)

    def recolour(self, colours: Colours) -> None:
        self._text, self._accent = QColor(colours.text), QPen(QColor(colours.accent))
        self._selection, self._grounds = QColor(colours.selection), (QColor(colours.base), QColor(colours.alternate))
        self._bars = QColor(colours.quantized)
        self._pixmaps.clear()
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Work out once where the columns stand, then paint the rows."""
        header = self.header()
        sections = ((column, header.sectionViewportPosition(column), header.sectionSize(column))
                    for column in range(len(COLUMNS)) if not header.isSectionHidden(column))  # fmt: skip
        right = self.viewport().width()
        self._sections = tuple((at, left, width) for at, left, width in sections if -width < left < right)
        self._focused = self.currentIndex() if self.hasFocus() else QModelIndex()
        super().paintEvent(event)

    def drawRow(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint the ground, the branch, the cells, and a frame around the cell that has the keyboard."""
        model, area = self._layers, option.rect
        top, height = area.y(), area.height()
        row = model.row_at(index)
        chosen = self.selectionModel().isRowSelected(index.row(), index.parent())
        alternate = bool(option.features & option.ViewItemFeature.Alternate)
        painter.fillRect(area, self._selection if chosen else self._grounds[alternate])
        for column, left, width in self._sections:
            if column == HISTOGRAM:
                statistics = None if row.layer is None else model.facts(row.layer).statistics
                if statistics is not None and statistics.count and width > 14:
                    painter.drawPixmap(left + 3, top + 2, self._picture(statistics, width - 6, height - 4))
                continue
            if column == NAME:
                indent = self.indentation() * (1 if row.parent == ROOT else 2)
                self.drawBranches(painter, QRect(left, top, indent, height), index)
                left, width = left + indent, width - indent
            text = model.text_of(row, column)
            if text:
                bold = column == NAME and row.is_group
                self._draw_text(painter, text, QRect(left + PADDING, top, width - 2 * PADDING, height),
                                model.colour_of(row, column) or self._text, COLUMNS[column].numeric, bold)  # fmt: skip
        if self._focused.isValid() and self._focused.internalId() == index.internalId():
            painter.setPen(self._accent)
            painter.drawRect(self.visualRect(self._focused).adjusted(0, 0, -1, -1))

    def _draw_text(self, painter: QPainter, text: str, area: QRect, colour: QColor, numeric: bool, bold: bool) -> None:
        painter.setPen(colour)
        painter.setFont(self._layers.bold if bold else self.font())
        if not numeric:
            text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, RIGHT if numeric else LEFT, text)

    def _picture(self, statistics: LayerStatistics, width: int, height: int) -> QPixmap:
        key = (id(statistics), width, height)
        if key not in self._pixmaps:
            if len(self._pixmaps) > MAX_PIXMAPS:
                self._pixmaps.clear()
            picture = small_histogram(statistics, QSize(width, height), self._bars, self.devicePixelRatioF())
            self._pixmaps[key] = statistics, picture  # the statistics stay alive with their id
        return self._pixmaps[key][1]


def small_histogram(statistics: LayerStatistics, size: QSize, colour: QColor, ratio: float) -> QPixmap:
    """Return a bar picture of the statistics' occupied bins, counts on a square-root scale."""
    width, height = max(round(size.width() * ratio), 1), max(round(size.height() * ratio), 1)
    bars = bar_heights(statistics.counts, max(width // max(round(2 * ratio), 1), 4), height)
    pixels = np.zeros((height, width), np.uint32)
    if bars.size:
        place = np.arange(width) * bars.size // width
        pixels[np.arange(height, 0, -1)[:, None] <= bars[place]] = colour.rgba()
    image = QImage(pixels.data, width, height, width * 4, QImage.Format.Format_ARGB32)
    pixmap = QPixmap.fromImage(image)
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def bar_heights(counts: np.ndarray, bars: int, height: int) -> np.ndarray:
    """Return int64 ``[at most bars]`` in ``0 .. height`` for the occupied part of ``counts`` ``[bins]``.

    Neighbouring bins are summed, the square root of the sums is drawn, and what is not empty is at least 1 high.
    """
    occupied = counts.nonzero()[0]
    if not occupied.size:
        return np.zeros(0, np.int64)
    inner = counts[occupied[0] : occupied[-1] + 1]
    step = -(-inner.size // bars)
    sums = np.add.reduceat(inner, np.arange(0, inner.size, step)) if step > 1 else inner
    heights: np.ndarray = np.minimum(np.ceil(np.sqrt(sums * (height**2 / sums.max()))), height).astype(np.int64)
    return heights
