"""Every channel's least and greatest value as a bar, outliers marked, and a region to brush channels with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent

from workbench.gui.plots.plot import Plot, faded, pen
from workbench.gui.shell.theme import Colours
from workbench.insight.channels import Channel, pooled
from workbench.numerics.statistics.layer_statistics import LayerStatistics

MAX_BARS = 1200

NEAR = 6
"""Pixels from the region within which the mouse takes hold of it."""

BRUSH_TIP = (
    "Drag to select channels; drag the region or its ends to move it. Arrow keys move it, with Shift its end"
)


class ChannelBars(Plot):
    """``brushed(first, last)`` tells the channels in the region, both ends included; ``settled()`` that the user has
    drawn or moved it and let go.

    Drag the region or its ends, or beside it to draw another; the arrow keys move it, with Shift its end.
    """

    brushed = Signal(int, int)
    settled = Signal()

    def __init__(self, colours: Colours) -> None:
        super().__init__("Least and greatest value of every channel", colours, left="value", bottom="channel")
        self._statistics: LayerStatistics | None = None
        self._outliers: Sequence[Channel] = ()
        self.region: pg.LinearRegionItem | None = None
        self._from: float | None = None  # where a region that is being drawn begins
        self.setToolTip(BRUSH_TIP)
        self.item.getAxis("left").setWidth(58)

    def show_channels(self, statistics: LayerStatistics | None, outliers: Sequence[Channel]) -> None:
        """Show another tensor's channels."""
        self._statistics, self._outliers = statistics, outliers
        self.draw()

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        self.region = None
        statistics = self._statistics
        if statistics is None or not statistics.count:
            return
        seen = np.isfinite(statistics.channel_minimum) & np.isfinite(statistics.channel_maximum)
        low = np.where(seen, statistics.channel_minimum, 0)
        high = np.where(seen, statistics.channel_maximum, 0)
        starts, low, high = pooled(low, high, MAX_BARS)
        x, y = np.repeat(starts, 2), np.column_stack([low, high]).ravel()
        self.item.addItem(pg.PlotCurveItem(x, y, connect="pairs", pen=pen(self.colours.quantized)))
        if self._outliers:
            at = [one.number for one in self._outliers]
            top = [one.high if one.high >= -one.low else one.low for one in self._outliers]
            brush = faded(self.colours.error, 255)
            self.item.addItem(pg.ScatterPlotItem(at, top, size=7, pen=pen(self.colours.base), brush=brush))
        count = statistics.channels
        self._add_region(count)
        self.item.setXRange(-0.5, count - 0.5, padding=0.01)
        self.item.setYRange(float(low.min()), float(high.max()), padding=0.06)

    def point_to(self, first: int, last: int) -> None:
        """Put the region around the channels from ``first`` to ``last``, as nobody's drawing."""
        if self.region is not None:
            with QSignalBlocker(self.region):
                self.region.setRegion((first - 0.5, last + 0.5))
            self.brushed.emit(*self.chosen)

    def _add_region(self, count: int) -> None:
        colour = self.colours.accent
        self.region = pg.LinearRegionItem(
            (-0.5, min(count, max(count // 10, 1)) - 0.5), bounds=(-0.5, count - 0.5), brush=faded(colour, 22),
            hoverBrush=faded(colour, 40), pen=pen(colour), hoverPen=pen(colour, 2),
        )  # fmt: skip
        self.region.sigRegionChanged.connect(lambda: self.brushed.emit(*self.chosen))
        self.region.sigRegionChangeFinished.connect(self._settle)
        self.item.addItem(self.region, ignoreBounds=True)
        self.brushed.emit(*self.chosen)

    @property
    def chosen(self) -> tuple[int, int]:
        """The first and the last channel in the region."""
        if self.region is None or self._statistics is None:
            return 0, 0
        low, high = self.region.getRegion()
        last = self._statistics.channels - 1
        first = min(max(int(np.ceil(low)), 0), last)
        return first, min(max(int(np.floor(high)), first), last)

    def _settle(self) -> None:
        if self._from is None:
            self.settled.emit()

    # ---------------------------------------------------------------- drawing a region

    def _channel_at(self, event: QMouseEvent) -> float:
        """Return the place on the axis under the mouse."""
        return float(self.item.getViewBox().mapSceneToView(self.mapToScene(event.position().toPoint())).x())

    def _is_beside(self, event: QMouseEvent) -> bool:
        """Tell whether the mouse is in the plot and not at the region."""
        scene = self.mapToScene(event.position().toPoint())
        view = self.item.getViewBox()
        if self.region is None or not view.sceneBoundingRect().contains(scene):
            return False
        low, high = self.region.getRegion()
        near = NEAR * view.viewPixelSize()[0]
        return not low - near <= self._channel_at(event) <= high + near

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to draw a region beside the one that is there."""
        if event.button() == Qt.MouseButton.LeftButton and self._is_beside(event):
            self._from = self._channel_at(event)
            event.accept()
            self.setFocus(Qt.FocusReason.MouseFocusReason)
            return
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Draw the region as far as the mouse."""
        if self._from is not None and event.buttons() & Qt.MouseButton.LeftButton and self.region is not None:
            low, high = sorted((self._from, self._channel_at(event)))
            self.region.setRegion((round(low) - 0.5, round(high) + 0.5))
            return
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End drawing."""
        if self._from is None:
            super().mouseReleaseEvent(event)
            return
        self._from = None
        self.settled.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the region by one channel, or its end."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None or self.region is None or self._statistics is None:
            super().keyPressEvent(event)
            return
        (first, last), extends = self.chosen, bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if not first <= last + step < self._statistics.channels or (not extends and first + step < 0):
            return
        self.region.setRegion(((first if extends else first + step) - 0.5, last + step + 0.5))
