"""A tensor's histogram with the ranges that every method found, and a region to drag."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent

from workbench.gui.plots.plot import Plot, faded, pen
from workbench.gui.theme import Colours
from workbench.numerics.ranges import Range
from workbench.numerics.statistics import LayerStatistics

BINS = 512
"""Bins that are drawn; the statistics hold 2048."""

LABEL_PIXELS = 13
"""Height of a method's label; the labels stand above the curve."""

METHOD_LABELS = {"min-max": "min–max", "percentile": "percentile", "entropy": "entropy", "mse": "MSE"}


class Histogram(Plot):
    """``region_moved(low, high)`` while the region is dragged, ``region_set(low, high)`` when it is let go."""

    region_moved = Signal(float, float)
    region_set = Signal(float, float)

    def __init__(self, name: str, colours: Colours, *, bottom: str) -> None:
        super().__init__(name, colours, left="count", bottom=bottom)
        self._statistics: LayerStatistics | None = None
        self._ranges: Mapping[str, Range] = {}
        self._active: Range | None = None
        self._movable = False
        self._log = True
        self.region: pg.LinearRegionItem | None = None
        self.item.getAxis("left").setWidth(46)
        self.item.getViewBox().setMouseEnabled(x=True, y=False)

    def show_statistics(
        self,
        statistics: LayerStatistics | None,
        ranges: Mapping[str, Range] | None = None,
        active: Range | None = None,
        *,
        movable: bool = False,
    ) -> None:
        """Show a histogram, the calibrated ranges by method and the active one."""
        self._statistics, self._ranges = statistics, ranges or {}
        self._active, self._movable = active, movable
        self.draw()

    def show_log(self, log: bool) -> None:
        """Show counts on a logarithmic or on a linear scale."""
        self._log = log
        self.draw()

    def move_region(self, low: float, high: float) -> None:
        """Put the region somewhere without telling anybody."""
        if self.region is not None:
            self.region.blockSignals(True)
            self.region.setRegion((low, high))
            self.region.blockSignals(False)

    def draw(self) -> None:
        """Draw everything anew."""
        self.item.clear()
        self.region = None
        self.label("left", "count (log)" if self._log else "count")
        if self._statistics is None or not self._statistics.count:
            for axis in ("left", "bottom"):
                self.item.getAxis(axis).setTicks([])
            return
        self.item.getAxis("bottom").setTicks(None)
        edges, counts = self._statistics.display(BINS)
        heights = np.log10(counts + 1.0) if self._log else counts.astype(float)
        top = float(heights.max()) or 1.0
        self.item.addItem(
            pg.PlotCurveItem(
                edges, heights, stepMode="center", fillLevel=0,
                pen=pen(self.colours.quantized), brush=faded(self.colours.quantized, 90),
            )
        )  # fmt: skip
        self._draw_region(top)
        low, high = self._span(float(edges[0]), float(edges[-1]))
        ceiling = top * 1.05 / max(1 - LABEL_PIXELS * len(self._ranges) / self._height(), 0.4)
        self._draw_ranges(ceiling, high)
        ticks = [(power, f"1e{power}" if power > 3 else f"{10**power}") for power in range(int(top) + 1)]
        self.item.getAxis("left").setTicks([ticks] if self._log else None)
        self.item.setXRange(low, high, padding=0)
        self.item.setYRange(0, ceiling, padding=0)

    def _height(self) -> float:
        return max(float(self.item.getViewBox().height()), 60.0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the labels where they belong at this height."""
        super().resizeEvent(event)
        if getattr(self, "_statistics", None) is not None:
            self.draw()

    def _span(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of the x axis: the histogram and the active range, and a margin."""
        if self._active is not None and self._movable:
            low, high = min(low, self._active.low), max(high, self._active.high)
        margin = (high - low or 1.0) * 0.04
        return low - margin, high + margin

    def _draw_region(self, top: float) -> None:
        if self._active is None or not self._movable:
            return
        colour = self.colours.predicted
        self.region = pg.LinearRegionItem(
            (self._active.low, self._active.high), brush=faded(colour, 28), hoverBrush=faded(colour, 45),
            pen=pen(colour), hoverPen=pen(colour, 2), swapMode="block",
        )  # fmt: skip
        for line in self.region.lines:
            line.setCursor(Qt.CursorShape.SizeHorCursor)
        self.region.sigRegionChanged.connect(lambda region: self.region_moved.emit(*region.getRegion()))
        self.region.sigRegionChangeFinished.connect(lambda region: self.region_set.emit(*region.getRegion()))
        self.item.addItem(self.region, ignoreBounds=True)

    def _draw_ranges(self, ceiling: float, right: float) -> None:
        for number, (method, found) in enumerate(sorted(self._ranges.items())):
            colour = self.colours.series[(number + 2) % len(self.colours.series)]
            for value in {found.low, found.high}:
                line = pg.InfiniteLine(value, 90, pen=pen(colour, style=Qt.PenStyle.DashLine))
                self.item.addItem(line, ignoreBounds=True)
            label = self.text_item(METHOD_LABELS.get(method, method), colour, anchor=(1, 1))
            label.setPos(right, ceiling * (1 - LABEL_PIXELS * (number + 1) / self._height()))
            self.item.addItem(label, ignoreBounds=True)
