"""Histograms of many layers as small pictures in one widget: 200 plot items would take seconds, this takes a frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPolygonF,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from workbench.gui.plots.histogram import bins_as_lines
from workbench.gui.plots.plot import menu_of
from workbench.gui.shell.foreign import elided
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.numerics.statistics.layer_statistics import LayerStatistics

BINS = 128
GAP = 6
KEYS = "Wheel, + and −: zoom all; arrow keys: pan; 0 or double click: everything; click: that layer"
MAX_SHOWN = 60
LINES_FOR_AXIS = 4
"""A picture higher than this many lines of text has the ends of the axis below it."""

WIDEST = 260
"""The most pixels that one picture is wide."""

EMPTY = "These layers have no statistics; calibrate (F5), or select others"

CENTRED = Qt.AlignmentFlag.AlignVCenter
ZOOM_KEYS = {Qt.Key.Key_Plus: 0.8, Qt.Key.Key_Equal: 0.8, Qt.Key.Key_Minus: 1.25}
PAN_KEYS = {Qt.Key.Key_Left: -0.1, Qt.Key.Key_Right: 0.1}

Entry = tuple[str, LayerStatistics]


class Multiples(QWidget):
    """``entries`` in reading order on one shared x axis, logarithmic or square-root counts; a click emits
    ``chosen(layer)``.  The wheel, or + and -, zoom all of them; 0 or a double click shows everything again."""

    chosen = Signal(str)

    def __init__(self, name: str, colours: Colours) -> None:
        super().__init__()
        self.setAccessibleName(tr(name))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._entries: tuple[Entry, ...] = ()
        self._titles: dict[str, str] = {}
        self._colours = colours
        self.span = self._whole = (-1.0, 1.0)
        self.is_log = True
        self.on_log: Callable[[bool], object] = self.show_log  # what the menu calls
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip(tr(KEYS))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer everything that can be seen, the scale of counts, and a copy of the picture and of the bins."""
        menu_of(self, self.on_log).popup(event.globalPos())

    def data_lines(self) -> Iterator[str]:
        """Return the bins of every histogram."""
        return bins_as_lines(self._entries)

    def show_log(self, log: bool) -> None:
        """Show counts on a logarithmic or on a square-root scale."""
        self.is_log = log
        self.update()

    def zoom(self, factor: float, at: float = 0.5) -> None:
        """Make the shared axis ``factor`` times as wide, keeping the place ``at`` (0: left end, 1: right end)."""
        low, high = self.span
        width = (high - low) * factor
        if not (self._whole[1] - self._whole[0]) * 1e-4 < width:
            return
        pivot = low + at * (high - low)
        low = max(pivot - at * width, self._whole[0])
        self.span = low, min(low + width, self._whole[1])
        self.update()

    def pan(self, part: float) -> None:
        """Move along the shared axis by a part of the visible span, within the whole span."""
        low, high = self.span
        step = min(max(part * (high - low), self._whole[0] - low), self._whole[1] - high)
        self.span = low + step, high + step
        self.update()

    def show_all(self) -> None:
        self.span = self._whole
        self.update()

    def show_entries(self, entries: Sequence[Entry], titles: Sequence[str]) -> None:
        """Show other histograms, each under its title; the first sixty are drawn."""
        self._entries = tuple(entries[:MAX_SHOWN])
        self._titles = dict(zip((name for name, _ in entries), titles, strict=True))
        counted = [statistics for _, statistics in self._entries if statistics.count]
        ends = [edge for statistics in counted for edge in (statistics.minimum, statistics.maximum)]
        whole = (min(ends), max(ends)) if ends and min(ends) < max(ends) else (-1.0, 1.0)
        if whole != self._whole:
            self.span = self._whole = whole
        low, high = (quantities.number(end) for end in self.span)
        self.setAccessibleDescription(
            tr(f"{quantities.plural(len(self._entries), 'layer')} from {low} to {high}")
            + ": "
            + ", ".join(name for name, _ in self._entries)
        )
        self.update()

    def recolour(self, colours: Colours) -> None:
        self._colours = colours
        self.update()

    @property
    def columns(self) -> int:
        """How many pictures stand beside each other."""
        count = max(len(self._entries), 1)
        ratio = max(self.width(), 1) / max(self.height(), 1)
        square = math.ceil(math.sqrt(count * ratio / 2.2))
        return min(max(square, math.ceil(self.width() / WIDEST), 1), count)

    def rect_of(self, position: int) -> QRect:
        """Return where a picture is painted."""
        columns = self.columns
        rows = math.ceil(max(len(self._entries), 1) / columns)
        width, height = self.width() / columns, self.height() / rows
        row, column = divmod(position, columns)
        return QRectF(column * width, row * height, width, height).toRect().adjusted(GAP, GAP // 2, -GAP, -GAP // 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(self._colours.base))
            if not self._entries:
                painter.setPen(QColor(self._colours.muted))
                painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, tr(EMPTY))
            for position, (name, statistics) in enumerate(self._entries):
                self._paint(painter, self.rect_of(position), name, statistics)

    def _paint(self, painter: QPainter, rect: QRect, name: str, statistics: LayerStatistics) -> None:
        metrics = painter.fontMetrics()
        title = QRect(rect.x(), rect.y(), rect.width(), metrics.height())
        painter.setPen(QColor(self._colours.text))
        text = elided(metrics, self._titles.get(name, name), rect.width(), Qt.TextElideMode.ElideLeft)
        painter.drawText(title, Qt.AlignmentFlag.AlignLeft | CENTRED, text)
        area = rect.adjusted(0, metrics.height(), 0, 0)
        if rect.height() > LINES_FOR_AXIS * metrics.height():
            area.setBottom(area.bottom() - metrics.height())
            self._paint_axis(painter, area)
        painter.setPen(QColor(self._colours.border))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if area.height() < 6 or not statistics.count:
            return
        low, high = self.span
        shown = BINS * (self._whole[1] - self._whole[0]) / (high - low)
        edges, counts = statistics.display(min(round(shown), 2048))
        inside = np.flatnonzero((edges[1:] > low) & (edges[:-1] < high))
        if not inside.size:
            return
        edges, counts = edges[inside[0] : inside[-1] + 2], counts[inside[0] : inside[-1] + 1]
        heights = np.log1p(counts) if self.is_log else np.sqrt(counts)
        x = area.x() + np.clip((np.repeat(edges, 2)[1:-1] - low) / (high - low), 0, 1) * area.width()
        y = area.bottom() - np.repeat(heights / (heights.max() or 1), 2) * (area.height() - 3)
        corners = ((x[0], area.bottom()), *zip(x, y, strict=True), (x[-1], area.bottom()))
        outline = QPolygonF([QPointF(float(at), float(top)) for at, top in corners])
        fill = QColor(self._colours.quantized)
        fill.setAlpha(110)
        painter.setPen(QColor(self._colours.quantized))
        painter.setBrush(fill)
        painter.drawPolygon(outline)

    def _paint_axis(self, painter: QPainter, area: QRect) -> None:
        """Write the ends of the shared axis below a picture, and zero where it lies well between them."""
        low, high = self.span
        metrics = painter.fontMetrics()
        painter.setPen(QColor(self._colours.muted))
        line = QRect(area.x(), area.bottom() + 1, area.width(), metrics.height())
        ends = quantities.number(low), quantities.number(high)
        for text, side in zip(ends, (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight), strict=True):
            painter.drawText(line, side | CENTRED, text)
        widths = [metrics.horizontalAdvance(text) + 8 for text in ends]
        zero = round(-low / (high - low) * area.width())
        if widths[0] < zero < area.width() - widths[1]:
            middle = QRect(area.x() + zero - 10, line.y(), 20, line.height())
            painter.drawText(middle, Qt.AlignmentFlag.AlignCenter, "0")

    def _position_at(self, spot: QPoint) -> int | None:
        """Return which picture is at a point, None for the gaps between them."""
        return next((n for n in range(len(self._entries)) if self.rect_of(n).contains(spot)), None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom every picture about the place under the mouse."""
        position = self._position_at(event.position().toPoint())
        if position is not None:
            rect = self.rect_of(position)
            at = (event.position().x() - rect.x()) / max(rect.width(), 1)
            self.zoom(0.8 if event.angleDelta().y() > 0 else 1.25, at)
            event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in ZOOM_KEYS:
            self.zoom(ZOOM_KEYS[key])
        elif key in PAN_KEYS:
            self.pan(PAN_KEYS[key])
        elif key == Qt.Key.Key_0:
            self.show_all()
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_all()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        position = self._position_at(event.position().toPoint())
        if position is not None:
            self.chosen.emit(self._entries[position][0])
