"""The ends that several methods found for a range, as dashed lines with the methods' names beside the upper ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from workbench.gui.plots.plot import faded, pen
from workbench.gui.shell.theme import Colours

LABEL_PIXELS = 15
"""Height of a label; the labels stand above the curve."""

LABEL_MARGIN = 5
"""Pixels above the first of them: the text's own margin."""

NEAR_LEFT = 0.35
"""A line in this part of the plot has its label on its right."""

ABOVE_LINES = 20
"""How high the marks lie, so that no line goes through a text."""

TEXT_ROOM = 3.0
"""Pixels between a line and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One range: its ends on the x axis, its name and its colour."""

    low: float
    high: float
    name: str
    colour: str


class RangeMarks(pg.GraphicsObject):  # type: ignore[misc]
    """Paints all marks of a plot at once: items for every line and text took 4 ms of a frame to make."""

    def __init__(self, box: pg.ViewBox, font: QFont) -> None:
        super().__init__()
        self.marks: tuple[Mark, ...] = ()
        self._box, self._font = box, font
        self._ground = ""
        self.setParentItem(box)
        self.setZValue(ABOVE_LINES)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        box.sigRangeChanged.connect(self._moved)

    def show_marks(self, marks: Sequence[Mark], colours: Colours) -> None:
        """Show other marks, over a ground in the plot's colour."""
        self.prepareGeometryChange()
        self.marks, self._ground = tuple(marks), colours.base
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the whole plot."""
        return QRectF(self._box.rect())

    def shape(self) -> QPainterPath:
        """Return nothing: the mouse passes through."""
        return QPainterPath()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint the lines, then the names over them."""
        area = self.boundingRect()
        painter.setClipRect(area)
        for mark in self.marks:
            painter.setPen(pen(mark.colour, style=Qt.PenStyle.DashLine))
            for value in {mark.low, mark.high}:
                x = self._x(value)
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        painter.setFont(self._font)
        metrics, (left, right) = QFontMetricsF(self._font), self._box.viewRange()[0]
        for row, mark in enumerate(self.marks):
            width = metrics.horizontalAdvance(mark.name) + 2 * TEXT_ROOM
            inside = mark.high > left + NEAR_LEFT * (right - left)
            x = self._x(mark.high) - (width if inside else 0.0)
            rect = QRectF(x, area.top() + LABEL_MARGIN + LABEL_PIXELS * row, width, LABEL_PIXELS)
            painter.fillRect(rect, faded(self._ground, 215))
            painter.setPen(pen(mark.colour))
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, mark.name)

    def _x(self, value: float) -> float:
        return float(self._box.mapFromView(QPointF(value, 0.0)).x())

    def _moved(self, *_: object) -> None:
        self.update()
