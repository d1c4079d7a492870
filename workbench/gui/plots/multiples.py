"""Histograms of many layers as small pictures in one widget: 200 plot items would take seconds, this takes a frame."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from workbench.gui import quantities
from workbench.gui.plots.cells import headings
from workbench.gui.theme import Colours
from workbench.numerics.statistics import LayerStatistics

BINS = 128
GAP = 6
MAX_SHOWN = 60
WIDEST = 260
"""Pixels that one picture takes at most."""

Entry = tuple[str, LayerStatistics]


class Multiples(QWidget):
    """``entries`` in reading order on one shared x axis, square-root counts; a click tells ``chosen(layer)``."""

    chosen = Signal(str)

    def __init__(self, name: str, colours: Colours) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._entries: tuple[Entry, ...] = ()
        self._shown: dict[str, str] = {}
        self._colours = colours
        self._span = (-1.0, 1.0)

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """Show other histograms; the first sixty are drawn."""
        self._entries = tuple(entries[:MAX_SHOWN])
        names = tuple(name for name, _ in self._entries)
        self._shown = dict(zip(names, headings(names), strict=True))
        ends = [edge for _, one in self._entries for edge in (one.minimum, one.maximum) if one.count]
        self._span = (min(ends), max(ends)) if ends and min(ends) < max(ends) else (-1.0, 1.0)
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
            for position, (name, statistics) in enumerate(self._entries):
                self._paint(painter, self.rect_of(position), name, statistics)

    def _paint(self, painter: QPainter, rect: QRect, name: str, statistics: LayerStatistics) -> None:
        metrics = painter.fontMetrics()
        title = QRect(rect.x(), rect.y(), rect.width(), metrics.height())
        painter.setPen(QColor(self._colours.text))
        elided = metrics.elidedText(self._shown.get(name, name), Qt.TextElideMode.ElideLeft, rect.width())
        painter.drawText(title, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, elided)
        area = rect.adjusted(0, metrics.height(), 0, 0)
        painter.setPen(QColor(self._colours.border))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if area.height() < 6 or not statistics.count:
            return
        edges, counts = statistics.display(BINS)
        low, high = self._span
        x = area.x() + (np.repeat(edges, 2)[1:-1] - low) / (high - low) * area.width()
        y = area.bottom() - np.repeat(np.sqrt(counts / counts.max()), 2) * (area.height() - 3)
        outline = QPolygonF()
        for at, top in ((x[0], area.bottom()), *zip(x, y, strict=True), (x[-1], area.bottom())):
            outline.append(QRectF(float(at), float(top), 0, 0).topLeft())
        fill = QColor(self._colours.quantized)
        fill.setAlpha(110)
        painter.setPen(QColor(self._colours.quantized))
        painter.setBrush(fill)
        painter.drawPolygon(outline)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the layer under the mouse."""
        for position, (name, _) in enumerate(self._entries):
            if self.rect_of(position).contains(event.position().toPoint()):
                self.chosen.emit(name)
                return
