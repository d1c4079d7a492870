"""Every channel's least and greatest value as a bar, outliers marked, and a region to brush channels with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Signal

from workbench.gui.channels import Channel, pooled
from workbench.gui.plots.plot import Plot, faded, pen
from workbench.gui.theme import Colours
from workbench.numerics.statistics import LayerStatistics

MAX_BARS = 1200


class ChannelBars(Plot):
    """``brushed(first, last)`` tells the channels in the region, both ends included."""

    brushed = Signal(int, int)

    def __init__(self, colours: Colours) -> None:
        super().__init__("Least and greatest value of every channel", colours, left="value", bottom="channel")
        self._statistics: LayerStatistics | None = None
        self._outliers: Sequence[Channel] = ()
        self.region: pg.LinearRegionItem | None = None
        self.is_brushed = False  # whether a person moved the region
        self.item.getAxis("left").setWidth(58)

    def show_channels(self, statistics: LayerStatistics | None, outliers: Sequence[Channel]) -> None:
        """Show another tensor's channels."""
        self._statistics, self._outliers = statistics, outliers
        self.draw()

    def draw(self) -> None:
        """Draw everything anew."""
        self.item.clear()
        self.region, self.is_brushed = None, False
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

    def brush(self, first: int, last: int) -> None:
        """Put the region around the channels from ``first`` to ``last``."""
        if self.region is not None:
            self.region.setRegion((first - 0.5, last + 0.5))

    def _add_region(self, count: int) -> None:
        colour = self.colours.accent
        self.region = pg.LinearRegionItem(
            (-0.5, min(count, max(count // 10, 1)) - 0.5), bounds=(-0.5, count - 0.5), brush=faded(colour, 22),
            hoverBrush=faded(colour, 40), pen=pen(colour), hoverPen=pen(colour, 2),
        )  # fmt: skip
        self.region.sigRegionChanged.connect(self._moved)
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

    def _moved(self) -> None:
        self.is_brushed = True
        self.brushed.emit(*self.chosen)
