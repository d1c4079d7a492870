"""Size or time against predicted loss: the front as points to click, the present plan as a star, measured plans."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent

from workbench.gui.plots.plot import LegendMark, Plot, faded, pen
from workbench.gui.shell.theme import Colours
from workbench.insight import quantities
from workbench.insight.fronts import Measured, Picture

DECADES = 9
"""Losses this many decades below the largest are drawn at the bottom."""

ABOVE_STAR = 5
"""How high measured plans are drawn: over the star, which may be one of them."""

MAX_POINTS = 1000
"""Points that can be clicked; the arrow keys reach every plan."""


def thinned(count: int) -> np.ndarray:
    """Return at most ``MAX_POINTS`` indices below ``count``, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, MAX_POINTS)).round().astype(np.int64))


class FrontPlot(Plot):
    """Click a point, or move with the arrow keys and press Enter: ``taken(index)``."""

    taken = Signal(int)
    pointed = Signal(int)

    def __init__(self, colours: Colours) -> None:
        super().__init__("Size or time of the plans against predicted loss", colours, left="loss", bottom="size in MB")
        self._picture: Picture | None = None
        self._cursor = -1
        self._points: pg.ScatterPlotItem | None = None
        self._star: pg.ScatterPlotItem | None = None
        self._top = 0.0
        self.item.getAxis("left").setLogMode(False, True)
        self.item.getAxis("left").setWidth(58)
        self.item.showGrid(x=True, y=True, alpha=0.12)
        self.item.addLegend(offset=(-8, 8), labelTextSize="8pt", sampleType=LegendMark)

    def show_picture(self, picture: Picture | None) -> None:
        """Show a front; None clears the plot."""
        before, self._picture = self._picture, picture
        same = before is not None and picture is not None and picture.same_but_present(before)
        if same and self._star is not None and picture is not None:
            self._place_star(picture)
            self._keep_star_in_view(picture)
            return
        self._cursor = -1
        self.draw()

    @property
    def picture(self) -> Picture | None:
        """What is drawn."""
        return self._picture

    def recolour(self, colours: Colours) -> None:
        """Take other colours."""
        super().recolour(colours)
        self.item.showGrid(x=True, y=True, alpha=0.12)

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        self._star = None
        self.item.legend.clear()
        self.item.legend.setLabelTextColor(self.colours.text)
        self.item.legend.setBrush(faded(self.colours.base, 210))
        picture = self._picture
        if picture is None or not picture.loss.size:
            return
        known = picture.loss[np.isfinite(picture.loss)]
        self._top = math.log10(max(float(known.max()) if known.size else 1.0, 1e-12))
        self.label("left", f"loss ({picture.unit})")
        what = "size" if picture.cost_unit == "MB" else "time of all layers"
        self.label("bottom", f"{what} in {picture.cost_unit}")
        self._draw_front(picture)
        self._draw_uniform(picture)
        self._draw_measured(picture)
        self._draw_present(picture)
        self.item.autoRange()
        self.item.disableAutoRange()  # so that a star that moves repaints only itself

    def _log(self, values: Any) -> Any:
        """Return exponents of ten within what is drawn: Qt crashes on coordinates that are not finite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            exponents = np.log10(np.maximum(values, 0))
        return np.nan_to_num(np.clip(exponents, self._top - DECADES, self._top + DECADES), nan=self._top + DECADES)

    def _draw_front(self, picture: Picture) -> None:
        colour, y = self.colours.quantized, self._log(picture.loss)
        self.item.addItem(pg.PlotCurveItem(picture.cost, y, pen=pen(colour)))
        shown = thinned(picture.loss.size)
        self._points = pg.ScatterPlotItem(
            picture.cost[shown], y[shown], data=shown, size=7, pen=pen(self.colours.base),
            brush=faded(colour, 255), hoverable=True, hoverSize=11, tip=self._tip,
        )  # fmt: skip
        self._points.sigClicked.connect(lambda _, points, *__: self.taken.emit(int(points[0].data())))
        self.item.addItem(self._points)
        self.item.legend.addItem(self._points, "best plans (click to take one)")
        if 0 <= self._cursor < picture.loss.size:
            self.item.addItem(
                pg.ScatterPlotItem(
                    [picture.cost[self._cursor]],
                    [y[self._cursor]],
                    size=15,
                    pen=pen(self.colours.text),
                    brush=None,
                )
            )

    def _draw_uniform(self, picture: Picture) -> None:
        if not picture.uniform:
            return
        x = [entry[1] for entry in picture.uniform]
        y = self._log(np.array([entry[2] for entry in picture.uniform]))
        colour = self.colours.baseline
        points = pg.ScatterPlotItem(
            x, y, symbol="s", size=7, pen=pen(colour), brush=None, hoverable=True,
            data=[entry[0] for entry in picture.uniform], tip=lambda x, y, data: f"{data} everywhere",
        )  # fmt: skip
        self.item.addItem(points)
        self.item.legend.addItem(points, "one scheme everywhere")

    def _draw_measured(self, picture: Picture) -> None:
        if not picture.measured:
            return
        colour = self.colours.predicted
        x = np.array([entry.cost for entry in picture.measured])
        y = self._log(np.array([entry.value for entry in picture.measured]))
        low = self._log(np.array([entry.low for entry in picture.measured]))
        high = self._log(np.array([entry.high for entry in picture.measured]))
        bars = pg.ErrorBarItem(x=x, y=y, top=high - y, bottom=y - low, beam=0, pen=pen(colour))
        self.item.addItem(bars)
        points = pg.ScatterPlotItem(
            x, y, symbol="d", size=11, pen=pen(self.colours.base), brush=faded(colour, 255), hoverable=True,
            data=list(picture.measured), tip=lambda x, y, data: _measured_tip(data, picture.unit),
        )  # fmt: skip
        for item in (bars, points):
            item.setZValue(ABOVE_STAR)
        self.item.addItem(points)
        self.item.legend.addItem(points, "measured, 95 % interval")

    def _draw_present(self, picture: Picture) -> None:
        brush = faded(self.colours.error, 255)
        self._star = pg.ScatterPlotItem(symbol="star", size=17, pen=pen(self.colours.base), brush=brush)
        self._place_star(picture)
        self.item.addItem(self._star)
        self.item.legend.addItem(self._star, "present plan")

    def _place_star(self, picture: Picture) -> None:
        assert self._star is not None
        size, loss = picture.present or (0.0, 0.0)
        shown = picture.present is not None
        self._star.setData([size] if shown else [], self._log(np.array([loss] if shown else [])))

    def _keep_star_in_view(self, picture: Picture) -> None:
        if picture.present is None:
            return
        spot = picture.present[0], float(self._log(picture.present[1]))
        if any(not low <= at <= high for at, (low, high) in zip(spot, self.item.viewRange(), strict=True)):
            self.item.autoRange()

    def _tip(self, x: float, y: float, data: Any) -> str:
        return self.describe(int(data))

    def describe(self, index: int) -> str:
        """Return a plan of the front in words."""
        picture = self._picture
        assert picture is not None
        cost, loss = (quantities.number(float(values[index])) for values in (picture.cost, picture.loss))
        bits = f"{picture.bits_per_weight[index]:.3f} bits per weight"
        return f"{bits}, {cost} {picture.cost_unit}, {loss} {picture.unit}"

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move along the front; Enter takes the plan."""
        count = 0 if self._picture is None else self._picture.loss.size
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is not None and count:
            self._cursor = min(max(self._cursor + step, 0), count - 1)
            self.draw()
            self.pointed.emit(self._cursor)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and 0 <= self._cursor < count:
            self.taken.emit(self._cursor)
        else:
            super().keyPressEvent(event)


def _measured_tip(entry: Measured, unit: str) -> str:
    low, high, predicted = (quantities.number(value) for value in (entry.low, entry.high, entry.predicted))
    return f"{entry.name}: measured {quantities.number(entry.value)} {unit} ({low} to {high}), predicted {predicted}"
