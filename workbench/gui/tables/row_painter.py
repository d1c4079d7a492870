"""Painting a whole row of the layer tree at once: what makes 10,000 rows scroll.

Qt asks a Python model seven questions for each cell and a Python delegate one more; a row that is painted by one
function asks none of them twice, and one that did not change is a picture already.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QItemSelectionRange,
    QModelIndex,
    QRect,
    QSignalBlocker,
    QSize,
    Qt,
    QTimer,
)
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent, QPen, QPixmap, QRegion, QStaticText
from PySide6.QtWidgets import QStyleOptionViewItem, QTreeView

from workbench.gui.shell.foreign import elided
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.copying import Index
from workbench.gui.tables.layer_columns import COLUMNS, HISTOGRAM, NAME
from workbench.gui.tables.layer_rows import ROOT, Row
from workbench.gui.tables.layers import LayersModel
from workbench.numerics.statistics.layer_statistics import LayerStatistics

MAX_PIXMAPS = MAX_TEXTS = 3000
MAX_ROWS = 150
"""Pictures of rows that are kept: some screens of them."""
HISTOGRAM_SECONDS = 0.002
"""What new histograms may take of one frame; those of further rows follow in the next one."""
ROW_SECONDS = 0.005
"""What rows whose cells changed may take of one frame; the others follow in the next ones."""
PADDING = 4
"""Pixels between a cell's text and its border."""
AT_END, IN_MIDDLE = Qt.TextElideMode.ElideRight, Qt.TextElideMode.ElideMiddle
"""Names of layers are told apart by their ends: ``mobilenet_v2.layer.13``, ``conv_3x3.convolution``."""


class RowSelection(QItemSelectionModel):
    """Selects whole rows; Qt's own joins the rows of each block with those of all before, which takes seconds."""

    def __init__(self, model: LayersModel, parent: QTreeView) -> None:
        super().__init__(model, parent)
        self._layers, self._numbers = model, dict[int, None]()
        self.selectionChanged.connect(self._numbers.clear)
        model.modelReset.connect(self._numbers.clear)

    @property
    def numbers(self) -> dict[int, None]:
        """The numbers of the selected rows, in their order; Qt looks through all ranges for each row that it paints."""
        if not self._numbers:
            ranges, rows = self.selection(), self._layers.rows
            for each in map(ranges.at, range(ranges.count())):
                parent = each.parent().internalId() if each.parent().isValid() else ROOT
                self._numbers.update(dict.fromkeys(rows.children(parent)[each.top() : each.bottom() + 1]))
        return self._numbers

    def select(self, what: QItemSelection | Index, command: QItemSelectionModel.SelectionFlag) -> None:
        """Select the rows of an index or of ranges."""
        rows = self.SelectionFlag.Rows
        if isinstance(what, QItemSelection) and command & rows:
            ranges = {(each.parent(), each.top(), each.bottom()): each for each in map(what.at, range(what.count()))}
            what, last = QItemSelection(), self.model().columnCount() - 1
            for parent, top, bottom in ranges:
                first, end = self.model().index(top, 0, parent), self.model().index(bottom, last, parent)
                what.append(QItemSelectionRange(first, end))
            command &= ~rows
            if ranges and command & self.SelectionFlag.Clear:  # Qt compares each new range with each old one
                with QSignalBlocker(self):
                    super().select(QItemSelection(), self.SelectionFlag.Clear)
        super().select(what, command)


class LayersView(QTreeView):
    """A tree view of a :class:`LayersModel` that paints its rows itself; everything else is Qt's."""

    def __init__(self, model: LayersModel, colours: Colours) -> None:
        super().__init__()
        self._layers = model
        self._sections: tuple[tuple[int, int, int], ...] = ()
        self._focused = QModelIndex()
        self._pixmaps: dict[tuple[str, int, int], tuple[LayerStatistics, QPixmap]] = {}
        self._rows: dict[int, tuple[tuple[object, ...], QPixmap]] = {}
        self._outdated: set[int] = set()  # rows whose picture shows cells that have changed since
        self._texts: dict[tuple[str, bool, bool, int], tuple[QStaticText, int, int]] = {}
        self._geometry: tuple[object, ...] = ()
        self._spent, self._is_late, self._until = 0.0, False, 0.0
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self.viewport().update)
        model.cells_changed.connect(self._forget)
        self.setModel(model)
        self.chosen = RowSelection(model, self)
        self.setSelectionModel(self.chosen)
        self.recolour(colours)

    def recolour(self, colours: Colours) -> None:
        self._text, self._accent = QColor(colours.text), QPen(QColor(colours.accent))
        self._selection, self._grounds = QColor(colours.selection), (QColor(colours.base), QColor(colours.alternate))
        self._bars = QColor(colours.quantized)
        self._pixmaps.clear()
        self._rows.clear()
        self.viewport().update()

    def _forget(self, rows: Iterable[int] | None) -> None:
        """Paint rows again, or all of them: their cells changed."""
        self._outdated.update(self._rows if rows is None else rows)
        if rows is None:  # statistics hold the memory of all that came with them: none of another model stays
            known = self._layers.weights_of
            self._pixmaps = {key: made for key, made in self._pixmaps.items() if known(key[0]) is made[0]}
        self.viewport().update()

    def visualRegionForSelection(self, selection: QItemSelection) -> QRegion:
        """Return all that is seen: Qt would look up every range of a selection, thousands of blocks, to paint less."""
        return QRegion(self.viewport().rect())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Work out once where the columns stand, then paint the rows."""
        header = self.header()
        sections = ((column, header.sectionViewportPosition(column), header.sectionSize(column))
                    for column in range(len(COLUMNS)) if not header.isSectionHidden(column))  # fmt: skip
        right = self.viewport().width()
        self._sections = tuple((at, left, width) for at, left, width in sections if -width < left < right)
        self._focused = self.currentIndex() if self.hasFocus() else QModelIndex()
        geometry = self._sections, right, self.font(), self.devicePixelRatioF()
        if geometry != self._geometry:
            self._geometry = geometry
            self._rows.clear()
            self._outdated.clear()
            self._texts.clear()
        self._spent, self._is_late, self._until = 0.0, False, time.perf_counter() + ROW_SECONDS
        super().paintEvent(event)
        if self._is_late:
            self._later.start()

    def drawRow(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint a row's picture, its histogram, and a frame around the cell that has the keyboard."""
        area, number = option.rect, index.internalId()
        top, height = area.y(), area.height()
        row = self._layers.row_at(index)
        chosen = number in self.chosen.numbers
        alternate = bool(option.features & option.ViewItemFeature.Alternate)
        key = row, chosen, alternate, area.width(), height, row.is_group and self.isExpanded(index)
        cached = self._rows.get(number)
        if cached is not None and cached[0] == key and number in self._outdated and time.perf_counter() > self._until:
            self._is_late = True
        elif cached is None or cached[0] != key or number in self._outdated:
            self._outdated.discard(number)
            while len(self._rows) >= MAX_ROWS:
                del self._rows[next(iter(self._rows))]
            ground = self._selection if chosen else self._grounds[alternate]
            cached = self._rows[number] = key, self._row_picture(row, index, area.size(), ground)
        painter.drawPixmap(area.topLeft(), cached[1])
        self._draw_histogram(painter, row, top, height)
        if self._focused.isValid() and self._focused.internalId() == number:
            painter.setPen(self._accent)
            painter.drawRect(self.visualRect(self._focused).adjusted(0, 0, -1, -1))

    def _row_picture(self, row: Row, index: Index, size: QSize, ground: QColor) -> QPixmap:
        ratio = self.devicePixelRatioF()
        picture = QPixmap(size * ratio)
        picture.setDevicePixelRatio(ratio)
        with QPainter(picture) as inner:
            inner.fillRect(0, 0, size.width(), size.height(), ground)
            self._draw_cells(inner, row, index, size.height())
        return picture

    def _draw_histogram(self, painter: QPainter, row: Row, top: int, height: int) -> None:
        """Draw a layer's small histogram, unless new ones have taken their share of this frame."""
        place = next(((left, width) for column, left, width in self._sections if column == HISTOGRAM), None)
        if row.layer is None or place is None or place[1] <= 14:
            return
        statistics = self._layers.facts(row.layer).statistics
        if statistics is None or not statistics.count:
            return
        picture = self._picture(row.layer.name, statistics, place[1] - 6, height - 4)
        if picture is None:
            self._is_late = True
        else:
            painter.drawPixmap(place[0] + 3, top + 2, picture)

    def _draw_cells(self, painter: QPainter, row: Row, index: Index, height: int) -> None:
        """Paint the branch and the texts of a row whose top is 0."""
        model, top = self._layers, 0
        for column, left, width in self._sections:
            if column == HISTOGRAM:
                continue
            if column == NAME:
                indent = self.indentation() * (1 if row.parent == ROOT else 2)
                if row.is_group:
                    branch = left + width - indent if self.isRightToLeft() else left
                    self.drawBranches(painter, QRect(branch, top, indent, height), index)
                left, width = left if self.isRightToLeft() else left + indent, width - indent
            text = model.text_of(row, column)
            if text:
                painter.setFont(model.bold if column == NAME and row.is_group else self.font())
                self._draw_text(painter, text, QRect(left + PADDING, top, width - 2 * PADDING, height),
                                model.colour_of(row, column) or self._text, column)  # fmt: skip

    def _draw_text(self, painter: QPainter, text: str, area: QRect, colour: QColor, column: int) -> None:
        numeric, is_name = COLUMNS[column].numeric, column == NAME
        painter.setPen(colour)
        key = text, painter.font().bold(), is_name, 0 if numeric else area.width()
        laid_out = self._texts.get(key)
        if laid_out is None:
            metrics = painter.fontMetrics()
            shown = text if numeric else elided(metrics, text, area.width(), IN_MIDDLE if is_name else AT_END)
            static = QStaticText(shown)
            static.setTextFormat(Qt.TextFormat.PlainText)
            if len(self._texts) >= MAX_TEXTS:
                self._texts.clear()
            laid_out = self._texts[key] = static, metrics.horizontalAdvance(shown), metrics.height()
        static, width, height = laid_out
        left = area.left() + area.width() - width if numeric or self.isRightToLeft() else area.left()
        painter.drawStaticText(left, area.top() + (area.height() - height) // 2, static)

    def _picture(self, name: str, statistics: LayerStatistics, width: int, height: int) -> QPixmap | None:
        """Return a layer's small histogram; None where there is no time left to make it."""
        key = name, width, height
        made = self._pixmaps.get(key)
        if made is None or made[0] is not statistics:
            if self._spent > HISTOGRAM_SECONDS:
                return None
            began = time.perf_counter()
            if len(self._pixmaps) > MAX_PIXMAPS:
                self._pixmaps.clear()
            picture = small_histogram(statistics, QSize(width, height), self._bars, self.devicePixelRatioF())
            made = self._pixmaps[key] = statistics, picture
            self._spent += time.perf_counter() - began
        return made[1]


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
