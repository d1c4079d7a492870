"""A pyqtgraph plot in our colours, with an accessible name.  It reads colours once, so ours are set by hand."""

from __future__ import annotations

import math
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen
from PySide6.QtWidgets import QApplication

from workbench.gui.shell.theme import Colours

AXIS_HEIGHT = 40
LABEL_OVERHANG = 6
"""pyqtgraph lets an axis' label stick out of the axis by so much; without room its descenders are cut."""
TEXT_MARGIN = 1.5
"""Pixels around a text, so that the grounds of texts in neighbouring rows do not cover them."""

AXES = ("left", "bottom")


def pen(colour: str, width: int = 1, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """Return a cosmetic pen, one pixel wide unless told otherwise (wide ones are slow on data)."""
    made = QPen(QColor(colour), width, style)
    made.setCosmetic(True)
    return made


def faded(colour: str, alpha: int) -> QColor:
    """Return the colour with an alpha of 0 to 255."""
    made = QColor(colour)
    made.setAlpha(alpha)
    return made


def log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return ticks between two exponents of ten: 1, 2 and 5 of each decade, only its beginning over many decades."""
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    decades = range(math.floor(low), math.ceil(high) + 1)
    found = [(decade + math.log10(step), step * 10.0**decade) for decade in decades for step in steps]
    return [(at, f"{value:,.12g}" if 1e-3 <= value < 1e6 else f"{value:.0e}") for at, value in found
            if low - 1e-9 <= at <= high + 1e-9]  # fmt: skip


class LegendMark(pg.graphicsItems.LegendItem.ItemSample):  # type: ignore[misc]
    """A mark of the legend that says where it may be drawn: in an SVG the text before it would cut it off else."""

    def paint(self, painter: QPainter, *args: Any) -> None:
        """Draw the mark within its own place."""
        painter.setClipRect(self.boundingRect())
        super().paint(painter, *args)


class Plot(pg.PlotWidget):  # type: ignore[misc]
    """``draw()`` of a subclass clears and fills the plot from what it was given last; a recolouring calls it again."""

    def __init__(self, name: str, colours: Colours, *, left: str = "", bottom: str = "") -> None:
        super().__init__()
        self.colours = colours
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAntialiasing(False)
        self.item = self.getPlotItem()
        self.item.hideButtons()
        self.item.layout.setContentsMargins(1, 1, 1, LABEL_OVERHANG)
        self.item.setMenuEnabled(True)
        self.scene().contextMenu.clear()  # pyqtgraph's export fails on filled curves as SVG; the menu File has ours
        self._labels = {"left": left, "bottom": bottom}
        if bottom:
            self.item.getAxis("bottom").setHeight(AXIS_HEIGHT)
        self._style_axes()

    def recolour(self, colours: Colours) -> None:
        """Take other colours and draw again."""
        self.colours = colours
        self._style_axes()
        self.draw()

    def draw(self) -> None:
        """Draw what was given last."""

    def label(self, axis: str, text: str) -> None:
        """Name an axis; the same name once more would only lay everything out again."""
        if text == self._labels[axis]:
            return
        self._labels[axis] = text
        self.item.setLabel(axis, text, color=self.colours.muted)

    def _style_axes(self) -> None:
        self.setBackground(self.colours.base)
        font = self.small_font()
        for name in AXES:
            axis = self.item.getAxis(name)
            axis.setPen(pen(self.colours.border))
            axis.setTextPen(pen(self.colours.muted))
            axis.setStyle(tickFont=font, tickLength=-4)
            axis.enableAutoSIPrefix(False)
            if self._labels[name]:
                self.item.setLabel(name, self._labels[name], color=self.colours.muted)

    @staticmethod
    def small_font() -> QFont:
        """Return the font of ticks and labels: a little smaller than the interface's."""
        font = QFont(QApplication.font())
        font.setPointSizeF(max(font.pointSizeF() - 1, 7))
        return font

    def text_item(self, content: str, colour: str, **how: Any) -> pg.TextItem:
        """Return a text item in the interface's font."""
        item = pg.TextItem(content, color=colour, **how)
        item.setFont(self.small_font())
        item.textItem.document().setDocumentMargin(TEXT_MARGIN)
        item.updateTextPos()
        return item
