"""The logarithmic colour scale beside the heatmap."""

from __future__ import annotations

import math

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from workbench.gui.plots.cells import lookup
from workbench.gui.shell import settings
from workbench.gui.shell.foreign import isolated
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight import quantities

BAR = 14


class ColourBar(QWidget):
    """The colours from ``low`` (bottom) to ``high`` (top) with a mark for each decade."""

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(tr("Colour scale"))
        self._low, self._high, self._unit = 1e-6, 1.0, ""
        self.recolour(colours)

    def show_scale(self, low: float, high: float, unit: str) -> None:
        self._low, self._high, self._unit = low, high, unit
        self.setAccessibleDescription(tr(f"from {quantities.number(low)} to {quantities.number(high)} {unit}"))
        self.update()

    def recolour(self, colours: Colours) -> None:
        self._colours = colours
        ramp = lookup(settings.heat_colours())[::-1].tobytes()
        self._ramp = QImage(ramp, 1, 256, 4, QImage.Format.Format_RGBA8888).copy()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(BAR + 52, 120)

    def marks(self) -> list[float]:
        """Return the values that are marked: the ends and the decades well between them."""
        decades = range(math.ceil(math.log10(self._low)), math.floor(math.log10(self._high)) + 1)
        span = math.log10(self._high / self._low)
        gap = span * 22 / max(self.height() - 44, 22)
        low, high = math.log10(self._low) + gap, math.log10(self._high) - gap
        inner = [10.0**power for power in decades if low < power < high]
        thin = max(1, math.ceil(len(inner) * gap / max(span, 1e-9)))
        return [self._low, *inner[::thin], self._high]

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            font = QFont(self.font())
            font.setPointSizeF(max(font.pointSizeF() - 1, 7.0))
            painter.setFont(font)
            metrics = QFontMetrics(font)
            top, bottom = metrics.height() + 8, self.height() - 8
            painter.setPen(QColor(self._colours.muted))
            unit = isolated(tr(self._unit))
            painter.drawText(QRect(0, 0, self.width(), top - 4), Qt.AlignmentFlag.AlignCenter, unit)
            ramp = QRect(4, top, BAR, max(bottom - top, 1))
            painter.drawImage(ramp, self._ramp)
            painter.setPen(QColor(self._colours.border))
            painter.drawRect(ramp.adjusted(0, 0, -1, -1))
            painter.setPen(QColor(self._colours.text))
            low, *decades, high = self.marks()
            for value in (low, *decades, high):
                share = math.log(value / self._low) / math.log(self._high / self._low)
                y = round(bottom - share * (bottom - top))
                painter.drawLine(ramp.right() + 1, y, ramp.right() + 4, y)
                text = quantities.cell(value, narrow=value in decades)
                painter.drawText(ramp.right() + 7, y + metrics.ascent() // 2 - 1, text)
