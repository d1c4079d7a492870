"""All rows of a heatmap at once in a narrow strip: where the worst cells are, what is visible; a click goes there."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from workbench.gui.plots.cells import Cells, levels, lookup
from workbench.gui.plots.heatmap_picture import HeatmapPicture
from workbench.gui.shell import settings
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr

WIDTH = 26
MANY_ROWS, MANY_SCREENS = 50, 3
"""It is shown where there are more rows, and they need more screens."""


def worst_rows(cells: Cells, height: int) -> np.ndarray:
    """Return scores ``[at most height, columns]``: each line has the largest finite ones of the rows it stands for."""
    count = len(cells.rows)
    lines = min(max(height, 1), count)
    starts = np.arange(lines) * count // max(lines, 1)
    known = np.where(np.isfinite(cells.score), cells.score, -np.inf)
    worst: np.ndarray = np.maximum.reduceat(known, starts, axis=0) if lines else known
    return np.where(np.isneginf(worst), np.nan, worst)


class Minimap(QWidget):
    """Scrolls ``heatmap`` to where it is clicked or dragged."""

    def __init__(self, heatmap: HeatmapPicture, colours: Colours) -> None:
        super().__init__()
        self._heatmap = heatmap
        self._cells: Cells | None = None
        self._image = QImage()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(tr("All layers"))
        self.setToolTip(tr("All layers, each line the worst of those that it stands for; click or drag to go there"))
        bar = heatmap.verticalScrollBar()
        bar.valueChanged.connect(self.update)
        bar.rangeChanged.connect(self._look)
        self.recolour(colours)
        self.hide()

    def recolour(self, colours: Colours) -> None:
        self._colours, self._cells = colours, None
        self._look()

    def sizeHint(self) -> QSize:
        return QSize(WIDTH, 120)

    def _look(self) -> None:
        """Appear where there is much to scroll; draw the picture of other scores."""
        bar, cells = self._heatmap.verticalScrollBar(), self._heatmap.cells
        many = cells is not None and len(cells.rows) > MANY_ROWS
        self.setVisible(many and bar.maximum() > (MANY_SCREENS - 1) * bar.pageStep())
        self.update()

    def _picture(self, cells: Cells) -> QImage:
        before = self._cells
        lines = min(max(self.height(), 1), len(cells.rows))
        if before is None or before.score is not cells.score or self._image.height() != lines:
            scores = worst_rows(cells, self.height())
            pixels = lookup(settings.heat_colours())[levels(scores, cells.low, cells.high)]
            pixels[np.isnan(scores)] = 0
            lines, columns = scores.shape
            self._image = QImage(pixels.tobytes(), columns, lines, columns * 4, QImage.Format.Format_RGBA8888).copy()
            self._cells = cells
        return self._image

    def visible_part(self) -> QRect:
        """Return where the rows that can be seen stand in the strip."""
        bar = self._heatmap.verticalScrollBar()
        whole = bar.maximum() + bar.pageStep()
        top, height = (self.height() * part // max(whole, 1) for part in (bar.value(), bar.pageStep()))
        return QRect(0, top, self.width() - 1, max(height, 4))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the picture and a frame around what is visible."""
        cells = self._heatmap.cells
        if cells is None or not cells.rows:
            return
        with QPainter(self) as painter:
            painter.drawImage(self.rect(), self._picture(cells))
            for inset, colour in ((0, self._colours.text), (1, self._colours.base)):
                painter.setPen(QPen(QColor(colour)))
                painter.drawRect(self.visible_part().adjusted(inset, inset, -inset, -inset))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go there."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._go(event.position().y())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Go along."""
        self.mousePressEvent(event)

    def _go(self, y: float) -> None:
        bar = self._heatmap.verticalScrollBar()
        whole = bar.maximum() + bar.pageStep()
        bar.setValue(round(y / max(self.height(), 1) * whole - bar.pageStep() / 2))
