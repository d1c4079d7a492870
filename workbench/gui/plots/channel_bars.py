"""Every channel's least and greatest value as a bar, outliers marked, and a region to brush channels with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent

from workbench.gui.plots.plot import Plot
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight.channels import Channel, pooled
from workbench.numerics.statistics.layer_statistics import LayerStatistics

MAX_BARS = 1200

NEAR = 6
"""Pixels from the region within which the mouse drags it."""

BRUSH_TIP = "Drag to select channels; drag the region or its ends to move it. Arrow keys move it, with Shift its end"


class ChannelBars(Plot):
    """``brushed(first, last)`` gives the channels in the region, both ends included; ``settled()`` follows when the
    user has drawn or moved the region.

    Drag the region or its ends, or beside it to draw another; the arrow keys move it, with Shift its end.
    """

    brushed = Signal(int, int)
    settled = Signal()
    name, left, bottom, left_width = "Least and greatest value of every channel", "value", "channel", 58
    _statistics: LayerStatistics | None = None
    _outliers: Sequence[Channel] = ()
    region: pg.LinearRegionItem | None = None
    _from: float | None = None
    """Where a region that the user draws begins."""

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.setToolTip(tr(BRUSH_TIP))

    def show_channels(self, statistics: LayerStatistics | None, outliers: Sequence[Channel]) -> None:
        self._statistics, self._outliers = statistics, outliers
        self.redraw()

    def draw(self) -> None:
        self.region = None
        statistics = self._statistics
        if statistics is None or not statistics.count:
            return
        known = np.isfinite(statistics.channel_minimum) & np.isfinite(statistics.channel_maximum)
        low = np.where(known, statistics.channel_minimum, 0)
        high = np.where(known, statistics.channel_maximum, 0)
        starts, low, high = pooled(low, high, MAX_BARS)
        bars = np.column_stack([low, high]).ravel()
        self.add_line(np.repeat(starts, 2), bars, self.colours.quantized, connect="pairs")
        if self._outliers:
            numbers = [channel.number for channel in self._outliers]
            extremes = [max(channel.high, channel.low, key=abs) for channel in self._outliers]
            self.add_points(numbers, extremes, self.colours.error)
        count = statistics.channels
        self._add_region(count)
        self.item.setXRange(-0.5, count - 0.5, padding=0.01)
        self.item.setYRange(float(low.min()), float(high.max()), padding=0.06)

    def point_to(self, first: int, last: int) -> None:
        """Put the region around the channels from ``first`` to ``last``; this does not count as drawing."""
        if self.region is not None:
            with QSignalBlocker(self.region):
                self.region.setRegion((first - 0.5, last + 0.5))
            self.brushed.emit(*self.chosen)

    def _add_region(self, count: int) -> None:
        last = min(count, max(count // 10, 1)) - 0.5
        self.region = self.add_region(-0.5, last, self.colours.accent, 22, bounds=(-0.5, count - 0.5))
        self.region.sigRegionChanged.connect(lambda: self.brushed.emit(*self.chosen))
        self.region.sigRegionChangeFinished.connect(self._settle)
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
        """Whether the mouse is in the plot and not at the region."""
        scene = self.mapToScene(event.position().toPoint())
        view = self.item.getViewBox()
        if self.region is None or not view.sceneBoundingRect().contains(scene):
            return False
        low, high = self.region.getRegion()
        near = NEAR * view.viewPixelSize()[0]
        return not low - near <= self._channel_at(event) <= high + near

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to draw a region beside the present one."""
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
