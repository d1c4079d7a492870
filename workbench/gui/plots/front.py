"""Size or time against predicted loss: the front as points to click, the current plan as a star, measured plans."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent

from workbench.gui.plots.plot import Plot, pen
from workbench.insight import quantities
from workbench.insight.fronts import Measured, Picture

DECADES = 5
"""Losses this many decades below the largest are drawn at the bottom."""

ABOVE_STAR = 5
"""How high measured plans are drawn: over the star, which may be one of them."""

BEST, PRESENT, MEASURED = "best plans", "current plan", "measured, 95 % interval"

MAX_POINTS = 1000
"""Points that can be clicked; the arrow keys reach every plan."""


def thinned(count: int) -> np.ndarray:
    """Return at most ``MAX_POINTS`` indices below ``count``, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, MAX_POINTS)).round().astype(np.int64))


class FrontPlot(Plot):
    """A click on a point, or Enter after the arrow keys, emits ``taken(index)``; the arrow keys ``pointed(index)``."""

    taken = Signal(int)
    pointed = Signal(int)
    name, left, bottom = "Size or time of the plans against predicted loss", "loss", "size in MB"
    left_width, grid, legend, logarithmic = 58, True, (-8, 8), ("left",)
    picture: Picture | None = None
    _cursor = -1
    _points: pg.ScatterPlotItem | None = None
    _star: pg.ScatterPlotItem | None = None
    _top = 0.0

    def show_picture(self, picture: Picture | None) -> None:
        """Show a front; None clears the plot."""
        before, self.picture = self.picture, picture
        if picture and before and self._star is not None and picture.same_but_present(before):
            self._place_star(picture)
            self._keep_star_in_view(picture)
            return
        self._cursor = -1
        self.redraw()

    def draw(self) -> None:
        self._star = None
        picture = self.picture
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
        name = f"{PRESENT}, weights only" if picture.weights_only else PRESENT
        self._star = self.add_points([], [], self.colours.error, size=17, symbol="star", name=name)
        self._place_star(picture)
        self.item.autoRange()
        self.item.disableAutoRange()  # so that a star that moves repaints only itself

    def _up(self, losses: Any) -> Any:
        """Return where losses stand, within what is drawn: Qt crashes on coordinates that are not finite."""
        top = self._top + DECADES
        if not self.is_log:
            return np.nan_to_num(losses, nan=10.0**top, posinf=10.0**top)
        with np.errstate(divide="ignore", invalid="ignore"):
            exponents = np.log10(np.maximum(losses, 0))
        return np.nan_to_num(np.clip(exponents, self._top - DECADES, top), nan=top)

    def _draw_front(self, picture: Picture) -> None:
        colour, y = self.colours.quantized, self._up(picture.loss)
        self.add_line(picture.cost, y, colour)
        shown = thinned(picture.loss.size)
        self._points = self.add_points(
            picture.cost[shown], y[shown], colour, data=shown, hoverable=True, hoverSize=11,
            tip=lambda x, y, data: self.describe(int(data)), name=BEST,
        )  # fmt: skip
        self._points.sigClicked.connect(lambda _, points, *__: self.taken.emit(int(points[0].data())))
        if 0 <= self._cursor < picture.loss.size:
            x = picture.cost[self._cursor]
            self.add_points([x], [y[self._cursor]], colour, size=15, pen=pen(self.colours.text), brush=None)

    def _draw_uniform(self, picture: Picture) -> None:
        if picture.uniform:
            names, x, losses = zip(*picture.uniform, strict=True)
            colour = self.colours.baseline
            self.add_points(
                x, self._up(np.array(losses)), colour, symbol="s", pen=pen(colour), brush=None, hoverable=True,
                data=list(names), tip=lambda x, y, data: f"{data} everywhere{picture.apart}",
                name="one scheme everywhere" + picture.apart,
            )  # fmt: skip

    def _draw_measured(self, picture: Picture) -> None:
        if not picture.measured:
            return
        x = np.array([entry.cost for entry in picture.measured])
        y, low, high = self._up(np.array([(entry.value, entry.low, entry.high) for entry in picture.measured]).T)
        colour = self.colours.predicted
        bars = self.add_intervals(x, y, low, high, colour)
        points = self.add_points(
            x, y, colour, symbol="d", size=11, hoverable=True, data=list(picture.measured),
            tip=lambda x, y, data: _measured_tip(data, picture.unit), name=MEASURED,
        )  # fmt: skip
        for item in (bars, points):
            item.setZValue(ABOVE_STAR)

    def _place_star(self, picture: Picture) -> None:
        assert self._star is not None
        size, loss = np.array([picture.present] if picture.present else []).reshape(-1, 2).T
        self._star.setData(size, self._up(loss))

    def _keep_star_in_view(self, picture: Picture) -> None:
        if picture.present is None:
            return
        spot = picture.present[0], float(self._up(picture.present[1]))
        if any(not low <= at <= high for at, (low, high) in zip(spot, self.item.viewRange(), strict=True)):
            self.item.autoRange()

    def data(self) -> Iterator[tuple[str, float, float]]:
        """Yield every plan as it is, even one that is drawn at the bottom or left out among a thousand others."""
        if (picture := self.picture) is not None:
            yield from ((BEST, *plan) for plan in zip(picture.cost, picture.loss, strict=True))
            yield from picture.uniform
            yield from ((f"{entry.name}: {MEASURED}", entry.cost, entry.value) for entry in picture.measured)
            yield from ((PRESENT, *picture.present),) if picture.present else ()

    def describe(self, index: int) -> str:
        """Return a plan of the front in words."""
        picture = self.picture
        assert picture is not None
        cost, loss = (quantities.number(float(values[index])) for values in (picture.cost, picture.loss))
        bits = f"{quantities.fixed(picture.bits_per_weight[index], 3)} bits per weight"
        return f"{bits}, {cost} {picture.cost_unit}, {loss} {picture.unit}"

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move along the front; Enter chooses the plan."""
        count = 0 if self.picture is None else self.picture.loss.size
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is not None and count:
            self._cursor = min(max(self._cursor + step, 0), count - 1)
            self.redraw()
            self.pointed.emit(self._cursor)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and 0 <= self._cursor < count:
            self.taken.emit(self._cursor)
        else:
            super().keyPressEvent(event)


def _measured_tip(entry: Measured, unit: str) -> str:
    low, high, predicted = (quantities.number(value) for value in (entry.low, entry.high, entry.predicted))
    return f"{entry.name}: measured {quantities.number(entry.value)} {unit} ({low} to {high}), predicted {predicted}"
