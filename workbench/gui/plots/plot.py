"""What all plots have in common: colours of the theme, an accessible name, axes, legend, and the usual items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QApplication, QMenu

from workbench.gui.shell.copying import copy_lines
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight import quantities

AXIS_HEIGHT = 40
LABEL_OVERHANG = 6
"""Pixels by which the label of a pyqtgraph axis sticks out of it; without this margin its descenders are cut."""

LEGEND_HEIGHT = 190
"""Pixels of height from which there is room for a legend beside the data."""

NARROW, MOST_TICKS = 0.7, 6
"""Decades below which a logarithmic axis has equal steps, and how many those are at most."""

AXES = ("left", "bottom")


def pen(colour: str | QColor, width: int = 1, *, dashed: bool = False) -> QPen:
    """Return a cosmetic pen, by default one pixel wide: wider ones are slow on data."""
    result = QPen(QColor(colour), width, Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine)
    result.setCosmetic(True)
    return result


def faded(colour: str, alpha: int) -> QColor:
    """Return the colour with an alpha of 0 to 255."""
    result = QColor(colour)
    result.setAlpha(alpha)
    return result


def finite(values: Any, default: Any = 0.0) -> np.ndarray:
    """Return float64 ``values`` with ``default`` where they are not finite: Qt crashes on such coordinates."""
    array = np.asarray(values, np.float64)
    return np.where(np.isfinite(array), array, default)


def log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return ticks between two exponents of ten: 1, 2 and 5 of each decade, over many decades only the 1.

    Less than a decade has round numbers at equal steps.
    """
    if high - low < NARROW:
        first, last = 10.0**low, 10.0**high
        step = _round_up((last - first or first) / MOST_TICKS)
        values = [number * step for number in range(math.ceil(first / step), math.floor(last / step) + 1)]
    else:
        steps = (1, 2, 5) if high - low < 2.5 else (1,)
        values = [step * 10.0**decade for decade in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    ticks = [
        (math.log10(value), f"{value:,.12g}" if 1e-3 <= value < 1e5 else _with_exponent(value)) for value in values
    ]
    return [(at, quantities.typeset(text)) for at, text in ticks if low - 1e-9 <= at <= high + 1e-9]


def _round_up(value: float) -> float:
    """Return the next 1, 2 or 5 of a decade that is not below a positive ``value``."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(step * decade for step in (1, 2, 5, 10) if step * decade >= value * (1 - 1e-9))


def _points(item: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates that an item of a plot shows, float64 each; none of lines across it and of texts."""
    if isinstance(item, pg.PlotCurveItem | pg.ScatterPlotItem | pg.PlotDataItem):
        x, y = item.getData()
    elif isinstance(item, pg.BarGraphItem):
        upright = item.opts.get("x") is not None
        across, up = ("x", "height") if upright else ("width", "y")
        x, y = np.broadcast_arrays(np.asarray(item.opts.get(across), object), np.asarray(item.opts.get(up), object))
    else:
        x = y = None
    empty = np.zeros(0)
    return (empty, empty) if x is None or y is None or None in (*np.ravel(x)[:1], *np.ravel(y)[:1]) else (
        np.ravel(x).astype(float), np.ravel(y).astype(float)
    )  # fmt: skip


def _outline(item: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what an item of a plot covers: x, y, weight of points; part of a line may be hidden, no single point."""
    x, y = _points(item)
    if len(x) > 1 and isinstance(item, pg.PlotCurveItem):
        places = np.linspace(0, len(x) - 1, max(200, len(x)))
        x, y = (np.interp(places, np.arange(len(x)), each) for each in (x, y[: len(x)]))
        return x, y, np.full(len(x), 1 / len(x))
    return x, y, np.ones(len(x))


def menu_of(plot: Any, show_log: Callable[[bool], object] | None) -> QMenu:
    """Return the menu of a plot, which shows all, is logarithmic by ``show_log`` if it can be, and has data to copy."""
    menu = QMenu(plot)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.addAction(tr("Show &All"), plot.show_all)
    if show_log is not None:
        log = menu.addAction(tr("&Logarithmic"))
        log.setCheckable(True)
        log.setChecked(plot.is_log)
        log.toggled.connect(show_log)
    menu.addAction(tr("&Copy the Picture"), lambda: QApplication.clipboard().setPixmap(plot.grab()))
    menu.addAction(tr("Copy the &Numbers"), lambda: copy_lines(plot, plot.data_lines))
    return menu


class LegendMark(pg.graphicsItems.LegendItem.ItemSample):  # type: ignore[misc]
    """A mark of the legend that clips to its own place: in an SVG the text before it would cut it off otherwise."""

    def paint(self, painter: QPainter, *args: Any) -> None:
        painter.setClipRect(self.boundingRect())
        super().paint(painter, *args)


SMALL = 2e-3
"""An axis that ends below has exponents at all its numbers; else some would have one and others would not."""


def _ticks(axis: Any, values: Any, scale: float, spacing: float) -> list[str]:
    """Return an axis' numbers in the style of all others, with the user's decimal mark: below ``SMALL`` all as 5e-5."""
    texts = pg.AxisItem.tickStrings(axis, values, scale, spacing)
    if not axis.logMode and max(map(abs, axis.range)) * scale < SMALL:
        texts = [_with_exponent(float(text)) for text in texts]
    texts = [f"{float(text):,.0f}" if text.lstrip("-").isdigit() else text for text in texts]
    return [quantities.typeset(text) for text in texts]


def _with_exponent(value: float) -> str:
    mantissa, _, exponent = f"{value:.4e}".partition("e")
    return f"{float(mantissa):g}e{exponent}" if value else "0"


class Box(pg.ViewBox):  # type: ignore[misc]
    """The plane of a plot without pyqtgraph's menu of pixel modes and exports: a hundred widgets for each plot."""

    open_menu: Callable[[Any], None]

    def mouseClickEvent(self, event: Any) -> None:
        if event.button() == Qt.MouseButton.RightButton:
            event.accept()
            self.open_menu(event)


class Plot(pg.PlotWidget):  # type: ignore[misc]
    """A subclass describes its axes in class attributes, stores its data, and draws them in ``draw()``.

    :meth:`redraw` clears the plot first.  pyqtgraph reads colours once, so :meth:`recolour` sets them again.
    """

    name = left = bottom = ""
    """The accessible name, and the labels of the axes."""
    left_width = 0
    """Pixels of the left axis; 0: what its ticks need."""
    legend: tuple[int, int] | None = None
    """Offset of the legend in pixels, negative from the right and the bottom, where it covers no data there; None: no
    legend."""
    grid = False
    logarithmic: tuple[str, ...] = ()
    """Axes whose values are exponents of ten while ``is_log``, which the menu switches."""
    is_log = True

    def __init__(self, colours: Colours, name: str = "", *, bottom: str = "") -> None:
        super().__init__(viewBox=Box(enableMenu=False), enableMenu=False)
        self.colours = colours
        self.setAccessibleName(tr(name or self.name))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAntialiasing(False)
        self.item = self.getPlotItem()
        self.item.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # numbers grow to the right in every language
        self.item.hideButtons()
        self.item.layout.setContentsMargins(1, 1, 1, LABEL_OVERHANG)
        self.item.getViewBox().open_menu = self._open_menu
        for axis in AXES:
            self.item.getAxis(axis).enableAutoSIPrefix(False)  # with a label, this call itself scales the axis
            self.item.getAxis(axis).tickStrings = partial(_ticks, self.item.getAxis(axis))
        self._labels = {"left": tr(self.left), "bottom": tr(bottom or self.bottom)}
        if self._labels["bottom"]:
            self.item.getAxis("bottom").setHeight(AXIS_HEIGHT)
        if self.left_width:
            self.item.getAxis("left").setWidth(self.left_width)
        if self.legend is not None:
            legend = self.item.addLegend(offset=self.legend, labelTextSize="8pt", sampleType=LegendMark)
            add = legend.addItem
            legend.addItem = lambda item, name: add(item, tr(name))
        if self.logarithmic:
            self.item.getViewBox().sigRangeChanged.connect(self._mark_decades)
        self._style()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the legend out where it would cover the data, and of labels what there is no room for."""
        super().resizeEvent(event)
        if self.closed or not hasattr(self, "_labels"):  # the base class is resized before there are any, too
            return
        self._write_label("left")
        if self.legend is not None:
            self.item.legend.setVisible(self.height() >= LEGEND_HEIGHT)
            self._place_legend()

    def recolour(self, colours: Colours) -> None:
        self.colours = colours
        self._style()
        self.redraw()

    def redraw(self) -> None:
        """Clear the plot and draw the data."""
        self.item.clear()
        if self.legend is not None:
            self.item.legend.clear()
            self.item.legend.setLabelTextColor(self.colours.text)
            self.item.legend.setBrush(faded(self.colours.base, 210))
        self.draw()
        self.item.getViewBox().prepareForPaint()  # while it paints, pyqtgraph would mark all as changed and paint again
        self._place_legend()

    def draw(self) -> None:
        """Add the items of the data to the empty plot."""

    def label(self, axis: str, text: str) -> None:
        """Label an axis; the same label again would only repeat the layout."""
        text = tr(text)
        if text != self._labels[axis]:
            self._labels[axis] = text
            self._write_label(axis)

    def show_all(self) -> None:
        """Show all data after zooming and panning."""
        self.item.autoRange()

    def show_log(self, log: bool) -> None:
        """Make the axes that can be logarithmic so, or linear."""
        self.is_log = log
        for axis in self.logarithmic:
            self.item.getAxis(axis).setTicks(None)
        self.redraw()

    def on_axis(self, axis: str, values: Any) -> np.ndarray:
        """Return where values stand on an axis, float64 of their shape: NaN where a logarithmic one has no place."""
        array = np.asarray(values, np.float64)
        exponents = self.is_log and axis in self.logarithmic
        return np.log10(array, out=np.full_like(array, np.nan), where=array > 0) if exponents else array

    def context_menu(self) -> QMenu:
        """Return what a right click offers."""
        return menu_of(self, self.show_log if self.logarithmic else None)

    def data_lines(self) -> Iterator[str]:
        """Yield what is drawn as lines with tabs: a heading, then the points of every curve in the axes' own units."""
        left, bottom = (self._labels[axis] or name for axis, name in zip(AXES, ("y", "x"), strict=True))
        yield "\t".join(("curve", bottom, left))
        yield from ("\t".join((name, repr(float(x)), repr(float(y)))) for name, x, y in self.data())

    def data(self) -> Iterator[tuple[str, float, float]]:
        """Yield the name of its curve and the coordinates of each point that is drawn, in the axes' own units."""
        for number, item in enumerate(self.item.items, 1):
            name = (item.name() if hasattr(item, "name") else None) or str(number)
            for x, y in zip(*_points(item), strict=False):
                yield name, self._exact("bottom", x), self._exact("left", y)

    def _exact(self, axis: str, value: float) -> float:
        return float(10.0**value if self.is_log and axis in self.logarithmic else value)

    def _open_menu(self, event: Any) -> None:
        self.context_menu().popup(event.screenPos().toPoint())

    # ---------------------------------------------------------------- items

    def add_line(self, x: Any, y: Any, colour: str, *, dashed: bool = False, **options: Any) -> None:
        """Draw a line; ``options`` are those of pyqtgraph's PlotCurveItem."""
        self.item.addItem(pg.PlotCurveItem(x, y, pen=pen(colour, dashed=dashed), **options))

    def add_level(self, y: float, colour: str) -> None:
        """Draw a dashed horizontal line across the plot."""
        self.item.addItem(pg.InfiniteLine(y, 0, pen=pen(colour, dashed=True)))

    def add_points(
        self, x: Any, y: Any, colour: str, *, size: int = 7, alpha: int = 255, **options: Any
    ) -> pg.ScatterPlotItem:
        """Draw points; ``options`` are those of pyqtgraph's ScatterPlotItem."""
        options = {"pen": pen(self.colours.base), "brush": faded(colour, alpha), **options}
        item = pg.ScatterPlotItem(x, y, size=size, **options)
        self.item.addItem(item)
        return item

    def add_intervals(self, x: Any, y: Any, low: Any, high: Any, colour: str, *, beam: float = 0.0) -> pg.ErrorBarItem:
        """Draw vertical lines from ``low`` to ``high``."""
        top, bottom = np.maximum(high - y, 0), np.maximum(y - low, 0)
        item = pg.ErrorBarItem(x=x, y=y, top=top, bottom=bottom, beam=beam, pen=pen(colour))
        self.item.addItem(item)
        return item

    def add_bars(self, colour: str, **options: Any) -> None:
        """Draw bars; ``options`` are those of pyqtgraph's BarGraphItem."""
        self.item.addItem(pg.BarGraphItem(brush=faded(colour, 170), pen=None, **options))

    def add_region(self, low: float, high: float, colour: str, alpha: int, **options: Any) -> pg.LinearRegionItem:
        """Add a region of the x axis to drag; ``options`` are those of pyqtgraph's LinearRegionItem."""
        region = pg.LinearRegionItem(
            (low, high), brush=faded(colour, alpha), hoverBrush=faded(colour, alpha + 18), pen=pen(colour),
            hoverPen=pen(colour, 2), **options,
        )  # fmt: skip
        self.item.addItem(region, ignoreBounds=True)
        return region

    @staticmethod
    def small_font() -> QFont:
        """Return the font of ticks and labels: a little smaller than the interface's."""
        font = QFont(QApplication.font())
        font.setPointSizeF(max(font.pointSizeF() - 1, 7))
        return font

    # ---------------------------------------------------------------- inside

    def _style(self) -> None:
        self.setBackground(self.colours.base)
        font = self.small_font()
        for name in AXES:
            axis = self.item.getAxis(name)
            axis.setPen(pen(self.colours.border))
            axis.setTextPen(pen(self.colours.muted))
            axis.setStyle(tickFont=font, tickLength=-4)
            if self._labels[name]:
                self._write_label(name, renewed=True)
        if self.grid:
            self.item.showGrid(x=True, y=True, alpha=0.12)

    def _write_label(self, name: str, *, renewed: bool = False) -> None:
        """Write an axis' label; at the left what fits: all, or without what stands in brackets, or nothing."""
        text, axis = self._labels[name], self.item.getAxis(name)
        if name == "left":
            room = self.height() - self.item.getAxis("bottom").height() - LABEL_OVERHANG - 2
            metrics = QFontMetricsF(axis.label.font())
            fitting = (each for each in (text, text.partition(" (")[0]) if metrics.horizontalAdvance(each) <= room)
            text = next(fitting, "")
        if renewed or text != axis.labelText:
            self.item.setLabel(name, text, color=self.colours.muted)
            axis.resizeEvent()  # pyqtgraph leaves the text where one of another length had its middle

    def _place_legend(self) -> None:
        """Put the legend into the corner where it covers least of the data, its own one where several are free."""
        if self.legend is None or not self.item.legend.items:
            return
        legend, box = self.item.legend, self.item.getViewBox()
        legend.updateSize()
        (left, right), (low, high) = box.viewRange()
        x, y, weight = map(np.concatenate, zip(*map(_outline, self.item.items), strict=True))
        across = (x - left) / (right - left or 1) * box.width()  # pixels from the left and from the top
        down = (high - y) / (high - low or 1) * box.height()
        width, height = legend.width(), legend.height()

        def covered(offset: tuple[int, int]) -> float:
            start, top = (at if at > 0 else end + at - size for at, end, size in zip(
                offset, (box.width(), box.height()), (width, height), strict=True))  # fmt: skip
            inside = (across > start) & (across < start + width) & (down > top) & (down < top + height)
            return float(weight[inside].sum())

        h, v = self.legend
        legend.setOffset(min(((h, v), (-h, v), (h, -v), (-h, -v)), key=covered))

    def _mark_decades(self, *_: object) -> None:
        """Write powers of ten, or their halves and fifths, in the visible range: pyqtgraph's own overlap."""
        for axis, ends in zip(("bottom", "left"), self.item.viewRange(), strict=True):
            if self.is_log and axis in self.logarithmic:
                self.item.getAxis(axis).setTicks([log_ticks(*ends)])
