"""A tensor's histogram with the range of every method, and a region to drag."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QFontMetricsF, QPainter, QResizeEvent
from PySide6.QtWidgets import QMenu

from workbench.gui.plots.plot import AXES, Plot, faded, menu_of, pen
from workbench.gui.shell.foreign import as_line
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.layer_statistics import LayerStatistics

BINS, LEAST_BINS, BINS_BY_ROOT = 512, 8, 2
"""The most bins that are drawn, of the statistics' 2048; few values are drawn in fewer, else they would be a comb."""

COMB_BINS, COMB_COUNT, COMB_SHARE = 64, 16, 0.01
"""A share of the bins that are empty between two of so many values is not chance: the values have steps of their own,
as pixels have, and more than ``COMB_BINS`` are drawn as half of them."""

TICK_PIXELS = 14.0
"""The least distance between ticks."""

GRID_PIXELS = 12
"""Height of the row below the axis in which a format's values stand."""

SPARSE, DENSE = 3, 70
"""Pixels between two values of a format that are seen apart, and the ink of values that are closer, of 255."""

MAX_VALUES = 600
"""Formats with more values than this are a solid line, so they are left out."""

LABEL_PIXELS, LABEL_MARGIN, LABEL_ROOM = 15, 5, 3.0
"""Pixels: the height of a label, above the first label, and between a line and its label."""

REASON_MARGIN = 12
"""Pixels beside the sentence in an empty plot."""

NEAR_LEFT = 0.35
"""A line in this part of the plot has its label on its right."""

METHOD_LABELS = {"min-max": "min–max", "mse": "MSE", "moving-average": "moving average", "manual": "set by hand"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A label in a ``row`` from the top: beside the last of its dashed lines (``ends`` on the x axis), or without
    lines at the left or right edge of the plot."""

    text: str
    colour: str
    row: int
    ends: tuple[float, ...] = ()
    right: bool = False


def bins_as_lines(histograms: Iterable[tuple[str, LayerStatistics]]) -> Iterator[str]:
    """Yield the bins of histograms as they were counted: tensor, ends and count, as lines with tabs."""
    yield "\t".join(("tensor", "from", "to", "count"))
    for name, statistics in histograms:
        edges, counts = statistics.trimmed()
        for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True):
            yield f"{name}\t{low!r}\t{high!r}\t{count}"


class Histogram(Plot):
    """``region_moved(low, high)`` while the user drags the region, ``region_set(low, high)`` when they release it."""

    region_moved = Signal(float, float)
    region_set = Signal(float, float)
    left, left_width = "count", 52
    _statistics: LayerStatistics | None = None
    _ranges: Mapping[str, Range] = {}
    _grids: Mapping[str, np.ndarray] = {}
    _others: Sequence[tuple[str, LayerStatistics]] = ()
    _name = reason = ""
    _active: Range | None = None
    _movable = False
    region: pg.LinearRegionItem | None = None
    span = (0.0, 0.0)
    """The ends of the x axis when everything is visible."""

    def __init__(self, name: str, colours: Colours, *, bottom: str) -> None:
        super().__init__(colours, name, bottom=bottom)
        self._marks: list[Mark] = []
        self.on_log: Callable[[bool], object] = self.show_log  # what the menu calls
        self.on_resized: Callable[[], None] = self.redraw  # for all that it draws depends on the height
        self.item.getAxis("left").tickStrings = lambda values, scale, spacing: [
            quantities.tick(value * scale) for value in values
        ]
        self.item.getViewBox().setMouseEnabled(x=True, y=False)
        self.item.getViewBox().sigRangeChanged.connect(lambda *_: self.viewport().update())

    def show_statistics(
        self, statistics: LayerStatistics | None, ranges: Mapping[str, Range] | None = None,
        active: Range | None = None, *, movable: bool = False, grids: Mapping[str, np.ndarray] | None = None,
        reason: str = "",
    ) -> None:  # fmt: skip
        """Show a histogram, the calibrated ranges by method and the active one; ``grids`` as in :meth:`show_grids`.

        ``reason`` stands in an empty plot.
        """
        self._statistics, self._ranges, self.reason = statistics, ranges or {}, reason
        self._active, self._movable = active, movable
        self._grids = self._grids if grids is None else grids
        self.redraw()

    def show_grids(self, grids: Mapping[str, np.ndarray]) -> None:
        """Show the representable values (float64 ``[levels]``) of every format in a row of its own below the axis."""
        same = grids.keys() == self._grids.keys() and all(
            np.array_equal(values, self._grids[name]) for name, values in grids.items()
        )
        if not same:
            self._grids = grids
            self.redraw()

    def show_others(self, others: Sequence[tuple[str, LayerStatistics]], name: str = "") -> None:
        """Draw other histograms over the first one, which is called ``name`` then, as shares of their own count."""
        before, old_name = self._others, self._name
        self._others, self._name = tuple(others), name
        differ = list(map(id, dict(others).values())) != list(map(id, dict(before).values()))
        if differ or (others and name != old_name):
            self.redraw()

    def show_log(self, log: bool) -> None:
        """Show counts on a logarithmic or on a linear scale."""
        self.is_log = log
        self.redraw()

    def data_lines(self) -> Iterator[str]:
        """Return the bins as they were counted: tensor, ends and count, as lines with tabs."""
        shown = [] if self._statistics is None else [(self._name or self.accessibleName(), self._statistics)]
        return bins_as_lines((*shown, *self._others))

    def draw(self) -> None:
        self._marks = []
        self.region = None
        self.viewport().update()
        self.label("left", "count (log)" if self.is_log else "count")
        if self._statistics is None or not self._statistics.count:
            for axis in AXES:
                self.item.getAxis(axis).setTicks([])
            return
        self.item.getAxis("bottom").setTicks(None)
        self._draw_counts(self._statistics)

    def _draw_counts(self, statistics: LayerStatistics) -> None:
        colour = self.colours.quantized
        edges, heights = self._bars(statistics, statistics.count)
        self.add_line(edges, heights, colour, stepMode="center", fillLevel=0, brush=faded(colour, 90))
        top = float(heights.max()) or 1.0
        low, high = self._span(float(edges[0]), float(edges[-1]))
        for number, (_, other) in enumerate(self._others):
            edges, heights = self._bars(other, statistics.count)
            self.add_line(edges, heights, self._colour(number + 1), stepMode="center")
            top = max(top, float(heights.max()))
            low, high = min(low, float(edges[0])), max(high, float(edges[-1]))
        self._draw_region()
        grids = {name: values for name, values in self._grids.items() if 0 < values.size <= MAX_VALUES}
        below = self._rows_below(grids)
        rows = max(len(grids), below + len(self._legend) or len(self._ranges))
        ceiling = top * 1.05 / max(1 - (LABEL_MARGIN + LABEL_PIXELS * rows) / self._height(), 0.4)
        for number, name in enumerate(self._legend):
            shade = self._colour(number) if number else colour
            self._marks.append(Mark(text=name, colour=shade, row=below + number, right=True))
        for number, (method, limits) in enumerate(() if self._others else sorted(self._ranges.items())):
            text, colour = METHOD_LABELS.get(method, method), self._colour(number + 2)
            self._marks.append(Mark(text=text, colour=colour, row=number, ends=(limits.low, limits.high)))
        self.item.getAxis("left").setTicks([count_ticks(top, ceiling / self._height())] if self.is_log else None)
        self.span = low, high
        self.item.setXRange(low, high, padding=0)
        self.item.setYRange(self._draw_grids(grids, ceiling), ceiling, padding=0)

    def _bars(self, statistics: LayerStatistics, scale: int) -> tuple[np.ndarray, np.ndarray]:
        """Return edges and heights, counts scaled to ``scale`` values."""
        bins = int(min(BINS, LEAST_BINS + BINS_BY_ROOT * math.sqrt(statistics.count)))
        edges, counts = statistics.display(bins)
        while _is_comb(counts) and bins > COMB_BINS:
            bins //= 2
            edges, counts = statistics.display(bins)
        shown = counts * (scale / max(statistics.count, 1))
        heights: np.ndarray = np.log10(shown + 1.0) if self.is_log else shown
        return edges, heights

    def _draw_grids(self, grids: Mapping[str, np.ndarray], ceiling: float) -> float:
        """Draw every format's values below the axis and its name at the top left; returns where the y axis begins."""
        row = ceiling * GRID_PIXELS / max(self._height() - GRID_PIXELS * len(grids), 60.0)
        for number, (name, values) in enumerate(grids.items()):
            bottom, colour = -row * (number + 1), self._colour(number + 1)
            x = np.repeat(values, 2)
            y = np.tile([bottom + 0.1 * row, bottom + 0.85 * row], values.size)
            dense = values.size * SPARSE > self.item.getViewBox().width()  # would be a bar that outshines the data
            shade = pen(faded(colour, DENSE) if dense else colour)
            self.item.addItem(pg.PlotCurveItem(x, y, connect="pairs", pen=shade), ignoreBounds=True)
            self._marks.append(Mark(text=name, colour=colour, row=number))
        return -row * len(grids)

    @property
    def _legend(self) -> list[str]:
        """The names of all curves, where there are several."""
        return [self._name, *(name for name, _ in self._others)] if self._others else []

    def show_all(self) -> None:
        self.redraw()

    def context_menu(self) -> QMenu:
        """Return what a right click offers; where a range is drawn, a closer look at it as well."""
        menu = menu_of(self, self.on_log)
        if self.region is not None:
            low, high = self.region.getRegion()
            menu.addAction(tr("&Zoom to the Range"), lambda: self.item.setXRange(low, high, padding=0.05))
        return menu

    def _rows_below(self, grids: Mapping[str, np.ndarray]) -> int:
        """Return how many rows lower the names at the right start: none if those of the formats fit beside them."""
        names = (self._legend, list(grids))
        width = QFontMetrics(self.small_font()).horizontalAdvance
        needed = sum(max(map(width, some), default=0) + 2 * LABEL_MARGIN for some in names)
        return len(grids) if all(names) and needed > self.item.getViewBox().width() else 0

    def _colour(self, number: int) -> str:
        return self.colours.series[number % len(self.colours.series)]

    def drawForeground(self, painter: QPainter, rect: QRectF) -> None:
        """Paint the marks: items for every line and text took 4 ms of a frame to make."""
        super().drawForeground(painter, rect)
        box = self.item.getViewBox()
        area, (low, high) = box.sceneBoundingRect(), box.viewRange()[0]
        painter.save()
        painter.setClipRect(area)
        painter.setFont(self.small_font())
        for mark in self._marks:
            painter.setPen(pen(mark.colour, dashed=True))
            for x in {self._scene_x(end) for end in mark.ends}:
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        metrics = QFontMetricsF(painter.font())
        for mark in self._marks:
            text = as_line(tr(mark.text))
            width = metrics.horizontalAdvance(text) + 2 * LABEL_ROOM
            x = area.right() - width if mark.right else area.left()
            if mark.ends:
                inside = mark.ends[-1] > low + NEAR_LEFT * (high - low)
                x = self._scene_x(mark.ends[-1]) - (width if inside else 0.0)
            label = QRectF(x, area.top() + LABEL_MARGIN + LABEL_PIXELS * mark.row, width, LABEL_PIXELS)
            painter.fillRect(label, faded(self.colours.base, 215))
            painter.setPen(pen(mark.colour))
            painter.drawText(label, Qt.AlignmentFlag.AlignCenter, text)
        if self._statistics is None or not self._statistics.count:
            painter.setPen(pen(self.colours.muted))
            margins, text = area.adjusted(REASON_MARGIN, 0, -REASON_MARGIN, 0), as_line(tr(self.reason))
            fits = metrics.boundingRect(margins, Qt.TextFlag.TextWordWrap, text).height() <= margins.height()
            side = Qt.AlignmentFlag.AlignVCenter if fits else Qt.AlignmentFlag.AlignTop
            painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # a full stop stands at the text's end
            painter.drawText(margins, Qt.AlignmentFlag.AlignHCenter | side | Qt.TextFlag.TextWordWrap, text)
        painter.restore()

    def _scene_x(self, value: float) -> float:
        return float(self.item.getViewBox().mapViewToScene(QPointF(value, 0.0)).x())

    def _height(self) -> float:
        return max(float(self.item.getViewBox().height()), 60.0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._statistics is not None:
            self.on_resized()

    def _span(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of the x axis: the histogram and the active range, and a margin."""
        if self._active is not None and self._movable:
            low, high = min(low, self._active.low), max(high, self._active.high)
        margin = (high - low or 1.0) * 0.04
        return low - margin, high + margin

    def _draw_region(self) -> None:
        if self._active is None or not self._movable:
            return
        self.region = self.add_region(self._active.low, self._active.high, self.colours.predicted, 28, swapMode="block")
        for line in self.region.lines:
            line.setCursor(Qt.CursorShape.SizeHorCursor)
        self.region.sigRegionChanged.connect(lambda region: self.region_moved.emit(*region.getRegion()))
        self.region.sigRegionChangeFinished.connect(lambda region: self.region_set.emit(*region.getRegion()))


def _is_comb(counts: np.ndarray) -> bool:
    """Return whether empty bins (int64 ``[bins]``) stand between full ones, again and again."""
    full = counts >= COMB_COUNT
    return int((full[:-2] & (counts[1:-1] == 0) & full[2:]).sum()) > COMB_SHARE * counts.size


def count_ticks(top: float, per_pixel: float) -> list[tuple[float, str]]:
    """Return ticks of counts up to ``top``, where a count of c stands at log10(c + 1), so far apart as their texts ask.

    A count of 0 is the axis itself; where there are few decades, 2 and 5 of each are marked as well.
    """
    apart = TICK_PIXELS * per_pixel
    steps = (1, 2, 5) if apart < math.log10(1.5) else (1,)
    counts = (step * 10**power for power in range(0, math.ceil(top), math.ceil(apart)) for step in steps)
    places = [(math.log10(count + 1.0), count) for count in counts]
    return [(0.0, "0"), *((place, quantities.tick(count)) for place, count in places if apart <= place <= top)]


class LinkedZoom:
    """While ``active()``, zooming or panning one plot's x axis moves the others as well, relative to their spans."""

    def __init__(self, plots: tuple[Histogram, ...], active: Callable[[], bool]) -> None:
        self._plots, self._active = plots, active
        for plot in plots:
            plot.item.getViewBox().sigRangeChangedManually.connect(partial(self._moved, plot))

    def _moved(self, source: Histogram, _: object = None) -> None:
        low, high = source.span
        if not self._active() or high <= low:
            return
        parts = [(end - low) / (high - low) for end in source.item.viewRange()[0]]
        for plot in self._plots:
            start, stop = plot.span
            if plot is not source and stop > start:
                plot.item.setXRange(*(start + part * (stop - start) for part in parts), padding=0)
