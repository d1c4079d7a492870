"""A tensor's histogram with the ranges that every method found, and a region to drag."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent

from workbench.gui.plots.plot import Plot, faded, pen
from workbench.gui.plots.range_marks import LABEL_MARGIN, LABEL_PIXELS, Mark, RangeMarks
from workbench.gui.shell.theme import Colours
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.layer_statistics import LayerStatistics

BINS = 512
"""Bins that are drawn; the statistics hold 2048."""

TICK_PIXELS = 14.0
"""Powers of ten stand so far apart at least."""

GRID_PIXELS = 12
"""Height of the row below the axis in which a format's values stand."""

MAX_VALUES = 600
"""Formats with more values than this are a solid line, so they are not drawn."""

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
        self._grids: Mapping[str, np.ndarray] = {}
        self._others: Sequence[tuple[str, LayerStatistics]] = ()
        self._pinned: list[pg.TextItem] = []  # labels that stay where they are when the axis is zoomed
        self.region: pg.LinearRegionItem | None = None
        self.span = (0.0, 0.0)  # the ends of the x axis when everything is shown
        self.item.getAxis("left").setWidth(46)
        self.item.getViewBox().setMouseEnabled(x=True, y=False)
        self.marks = RangeMarks(self.item.getViewBox(), self.small_font())

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

    def show_grids(self, grids: Mapping[str, np.ndarray]) -> None:
        """Show the representable values (float64 ``[levels]``) of every format in a row of its own below the axis."""
        if {name: values.tobytes() for name, values in grids.items()} != {
            name: values.tobytes() for name, values in self._grids.items()
        }:
            self._grids = grids
            self.draw()

    def show_others(self, others: Sequence[tuple[str, LayerStatistics]]) -> None:
        """Lay other layers' histograms over the first one, as shares of their own count."""
        if [id(one) for _, one in others] != [id(one) for _, one in self._others]:
            self._others = tuple(others)
            self.draw()

    def show_log(self, log: bool) -> None:
        """Show counts on a logarithmic or on a linear scale."""
        self._log = log
        self.draw()

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        for label in self._pinned:
            label.setParentItem(None)
            self.scene().removeItem(label)
        self._pinned = []
        self.region = None
        self.label("left", "count (log)" if self._log else "count")
        if self._statistics is None or not self._statistics.count:
            for axis in ("left", "bottom"):
                self.item.getAxis(axis).setTicks([])
            self.marks.show_marks((), self.colours)
            return
        self.item.getAxis("bottom").setTicks(None)
        edges, heights = self._bars(self._statistics, self._statistics.count)
        top = float(heights.max()) or 1.0
        self.item.addItem(
            pg.PlotCurveItem(
                edges, heights, stepMode="center", fillLevel=0,
                pen=pen(self.colours.quantized), brush=faded(self.colours.quantized, 90),
            )
        )  # fmt: skip
        low, high = self._span(float(edges[0]), float(edges[-1]))
        for number, (name, other) in enumerate(self._others):
            edges, heights = self._bars(other, self._statistics.count)
            colour = self._colour(number + 1)
            self.item.addItem(pg.PlotCurveItem(edges, heights, stepMode="center", pen=pen(colour), name=name))
            top = max(top, float(heights.max()))
            low, high = min(low, float(edges[0])), max(high, float(edges[-1]))
        self._draw_region(top)
        grids = {name: values for name, values in self._grids.items() if 0 < values.size <= MAX_VALUES}
        below = self._rows_below(grids)
        rows = max(len(grids), below + len(self._others) or len(self._ranges))
        ceiling = top * 1.05 / max(1 - (LABEL_MARGIN + LABEL_PIXELS * rows) / self._height(), 0.4)
        self._draw_others(below)
        self._draw_ranges()
        decades = range(0, int(top) + 1, math.ceil(TICK_PIXELS * ceiling / self._height()))
        ticks = [(power, f"1e{power}" if power > 3 else f"{10**power}") for power in decades]
        self.item.getAxis("left").setTicks([ticks] if self._log else None)
        self.span = low, high
        self.item.setXRange(low, high, padding=0)
        self.item.setYRange(self._draw_grids(grids, ceiling), ceiling, padding=0)

    def _bars(self, statistics: LayerStatistics, scale: int) -> tuple[np.ndarray, np.ndarray]:
        """Return edges and heights, counts as if ``scale`` values had been seen."""
        edges, counts = statistics.display(BINS)
        shown = counts * (scale / max(statistics.count, 1))
        heights: np.ndarray = np.log10(shown + 1.0) if self._log else shown
        return edges, heights

    def _draw_grids(self, grids: Mapping[str, np.ndarray], ceiling: float) -> float:
        """Draw every format's values below the axis and its name at the top left; returns where the y axis begins."""
        row = ceiling * GRID_PIXELS / max(self._height() - GRID_PIXELS * len(grids), 60.0)
        for number, (name, values) in enumerate(grids.items()):
            bottom, colour = -row * (number + 1), self._colour(number + 1)
            x = np.repeat(values, 2)
            y = np.tile([bottom + 0.1 * row, bottom + 0.85 * row], values.size)
            self.item.addItem(pg.PlotCurveItem(x, y, connect="pairs", pen=pen(colour)), ignoreBounds=True)
            self._pin(name, colour, number, right=False)
        return -row * len(grids)

    def _rows_below(self, grids: Mapping[str, np.ndarray]) -> int:
        """Return how many rows the names at the right begin below those of the formats: none if both fit into a row."""
        names = ([name for name, _ in self._others], list(grids))
        width = QFontMetrics(self.small_font()).horizontalAdvance
        wanted = sum(max(map(width, some), default=0) + 2 * LABEL_MARGIN for some in names)
        return len(grids) if all(names) and wanted > self.item.getViewBox().width() else 0

    def _draw_others(self, below: int) -> None:
        """Write the names of what lies over the first histogram at the top right, from the row ``below`` on."""
        for number, (name, _) in enumerate(self._others):
            self._pin(name, self._colour(number + 1), below + number, right=True)

    def _colour(self, number: int) -> str:
        return self.colours.series[number % len(self.colours.series)]

    def _pin(self, text: str, colour: str, row: int, *, right: bool) -> None:
        """Write a label at a place of the plot, whatever part of the axis is shown."""
        label = self.text_item(text, colour, anchor=(1 if right else 0, 0.5), fill=faded(self.colours.base, 215))
        label.setParentItem(self.item.getViewBox())
        label.setPos(self.item.getViewBox().width() - 2 if right else 2, LABEL_MARGIN + LABEL_PIXELS * (row + 0.5))
        self._pinned.append(label)

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

    def _draw_ranges(self) -> None:
        """Draw what every method found; not while others lie over it."""
        methods = () if self._others else sorted(self._ranges)
        marks = [
            Mark(low=self._ranges[method].low, high=self._ranges[method].high,
                 name=METHOD_LABELS.get(method, method), colour=self._colour(number + 2))
            for number, method in enumerate(methods)
        ]  # fmt: skip
        self.marks.show_marks(marks, self.colours)
