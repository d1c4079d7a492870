"""Histograms of many layers as small pictures in one widget: 200 plot items would take seconds, this takes a frame."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from workbench.gui.shell.theme import Colours
from workbench.insight import quantities
from workbench.numerics.statistics.layer_statistics import LayerStatistics

BINS = 128
GAP = 6
MAX_SHOWN = 60
LINES_FOR_AXIS = 4
"""A picture higher than so many lines of text has the ends of the axis below it."""

WIDEST = 260
"""Pixels that one picture takes at most."""

NOTHING = "Nothing was observed of such layers; calibrate (F5), or select others"

Entry = tuple[str, LayerStatistics]


class Multiples(QWidget):
    """``entries`` in reading order on one shared x axis, logarithmic or square-root counts; a click tells
    ``chosen(layer)``.  The wheel, or + and -, zoom all of them; 0 or a double click shows everything again."""

    chosen = Signal(str)

    def __init__(self, name: str, colours: Colours) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._entries: tuple[Entry, ...] = ()
        self._shown: dict[str, str] = {}
        self._colours = colours
        self._span = self._whole = (-1.0, 1.0)
        self._log = True
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip("Wheel, + and −: zoom all; arrow keys: pan; 0 or double click: everything; click: that layer")

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the x axis that all share."""
        return self._span

    def show_log(self, log: bool) -> None:
        """Show counts on a logarithmic or on a square-root scale."""
        self._log = log
        self.update()

    def zoom(self, factor: float, at: float = 0.5) -> None:
        """Make the shared axis ``factor`` times as wide, keeping the place ``at`` (0: left end, 1: right end)."""
        low, high = self._span
        width = (high - low) * factor
        if not (self._whole[1] - self._whole[0]) * 1e-4 < width:
            return
        pivot = low + at * (high - low)
        low = max(pivot - at * width, self._whole[0])
        self._span = low, min(low + width, self._whole[1])
        self.update()

    def pan(self, part: float) -> None:
        """Move along the shared axis by a part of what is shown, within everything that there is."""
        low, high = self._span
        step = min(max(part * (high - low), self._whole[0] - low), self._whole[1] - high)
        self._span = low + step, high + step
        self.update()

    def show_all(self) -> None:
        """Show everything again."""
        self._span = self._whole
        self.update()

    def show_entries(self, entries: Sequence[Entry], titles: Sequence[str]) -> None:
        """Show other histograms, each under its title; the first sixty are drawn."""
        self._entries = tuple(entries[:MAX_SHOWN])
        self._shown = dict(zip((name for name, _ in entries), titles, strict=True))
        ends = [edge for _, one in self._entries for edge in (one.minimum, one.maximum) if one.count]
        whole = (min(ends), max(ends)) if ends and min(ends) < max(ends) else (-1.0, 1.0)
        if whole != self._whole:
            self._span = self._whole = whole
        low, high = (quantities.number(end) for end in self._span)
        self.setAccessibleDescription(
            f"{quantities.plural(len(self._entries), 'layer')} from {low} to {high}: "
            + ", ".join(name for name, _ in self._entries)
        )
        self.update()

    def recolour(self, colours: Colours) -> None:
        """Take other colours."""
        self._colours = colours
        self.update()

    @property
    def columns(self) -> int:
        """How many pictures stand beside each other."""
        count = max(len(self._entries), 1)
        ratio = max(self.width(), 1) / max(self.height(), 1)
        wanted = math.ceil(math.sqrt(count * ratio / 2.2))
        return min(max(wanted, math.ceil(self.width() / WIDEST), 1), count)

    def rect_of(self, position: int) -> QRect:
        """Return where a picture is painted."""
        columns = self.columns
        rows = math.ceil(max(len(self._entries), 1) / columns)
        width, height = self.width() / columns, self.height() / rows
        row, column = divmod(position, columns)
        return QRectF(column * width, row * height, width, height).toRect().adjusted(GAP, GAP // 2, -GAP, -GAP // 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint every picture with its name."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(self._colours.base))
            if not self._entries:
                painter.setPen(QColor(self._colours.muted))
                painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, NOTHING)
            for position, (name, statistics) in enumerate(self._entries):
                self._paint(painter, self.rect_of(position), name, statistics)

    def _paint(self, painter: QPainter, rect: QRect, name: str, statistics: LayerStatistics) -> None:
        metrics = painter.fontMetrics()
        title = QRect(rect.x(), rect.y(), rect.width(), metrics.height())
        painter.setPen(QColor(self._colours.text))
        elided = metrics.elidedText(self._shown.get(name, name), Qt.TextElideMode.ElideLeft, rect.width())
        painter.drawText(title, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, elided)
        area = rect.adjusted(0, metrics.height(), 0, 0)
        if rect.height() > LINES_FOR_AXIS * metrics.height():
            area.setBottom(area.bottom() - metrics.height())
            self._paint_axis(painter, area)
        painter.setPen(QColor(self._colours.border))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if area.height() < 6 or not statistics.count:
            return
        low, high = self._span
        shown = BINS * (self._whole[1] - self._whole[0]) / (high - low)
        edges, counts = statistics.display(min(round(shown), 2048))
        inside = np.flatnonzero((edges[1:] > low) & (edges[:-1] < high))
        if not inside.size:
            return
        edges, counts = edges[inside[0] : inside[-1] + 2], counts[inside[0] : inside[-1] + 1]
        heights = np.log1p(counts) if self._log else np.sqrt(counts)
        x = area.x() + np.clip((np.repeat(edges, 2)[1:-1] - low) / (high - low), 0, 1) * area.width()
        y = area.bottom() - np.repeat(heights / (heights.max() or 1), 2) * (area.height() - 3)
        outline = QPolygonF()
        for at, top in ((x[0], area.bottom()), *zip(x, y, strict=True), (x[-1], area.bottom())):
            outline.append(QRectF(float(at), float(top), 0, 0).topLeft())
        fill = QColor(self._colours.quantized)
        fill.setAlpha(110)
        painter.setPen(QColor(self._colours.quantized))
        painter.setBrush(fill)
        painter.drawPolygon(outline)

    def _paint_axis(self, painter: QPainter, area: QRect) -> None:
        """Write the ends of the shared axis below a picture, and zero where it lies well between them."""
        low, high = self._span
        metrics = painter.fontMetrics()
        painter.setPen(QColor(self._colours.muted))
        line = QRect(area.x(), area.bottom() + 1, area.width(), metrics.height())
        ends = quantities.number(low), quantities.number(high)
        for text, side in zip(ends, (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight), strict=True):
            painter.drawText(line, side | Qt.AlignmentFlag.AlignVCenter, text)
        widths = [metrics.horizontalAdvance(text) + 8 for text in ends]
        zero = round(-low / (high - low) * area.width())
        if widths[0] < zero < area.width() - widths[1]:
            painter.drawText(
                QRect(area.x() + zero - 10, line.y(), 20, line.height()), Qt.AlignmentFlag.AlignCenter, "0"
            )

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom every picture about the place under the mouse."""
        spot = event.position()
        for position in range(len(self._entries)):
            rect = self.rect_of(position)
            if rect.contains(spot.toPoint()):
                self.zoom(0.8 if event.angleDelta().y() > 0 else 1.25, (spot.x() - rect.x()) / max(rect.width(), 1))
                event.accept()
                return

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom and pan every picture."""
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self.zoom(1.25 if key == Qt.Key.Key_Minus else 0.8)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.pan(-0.1 if key == Qt.Key.Key_Left else 0.1)
        elif key == Qt.Key.Key_0:
            self.show_all()
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show everything again."""
        self.show_all()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the layer under the mouse."""
        for position, (name, _) in enumerate(self._entries):
            if self.rect_of(position).contains(event.position().toPoint()):
                self.chosen.emit(name)
                return
