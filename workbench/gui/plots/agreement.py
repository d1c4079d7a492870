"""Two scores of the same cells against each other, both on log scales: do they rank alike?"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal

from workbench.gui.plots.plot import AXES, Plot, faded, log_ticks, pen
from workbench.gui.shell.theme import Colours

MOST_TOLD = 20_000
"""Points up to which each has a tip: looking for the one under the mouse takes time."""


class Agreement(Plot):
    """Points in one colour for each scheme's group, the diagonal, and evaluated plans as diamonds.

    The tip of a point says what it is; a click tells ``chosen(index)``.
    """

    chosen = Signal(int)

    def __init__(self, colours: Colours) -> None:
        super().__init__("Two metrics of the same cells against each other", colours, left="y", bottom="x")
        self._x = self._y = np.zeros(0)
        self._group = self._index = np.zeros(0, np.int64)
        self._tell: Callable[[int], str] = str
        self._plans: tuple[tuple[float, float], ...] = ()
        for axis in AXES:
            self.item.getAxis(axis).setLogMode(axis == "bottom", axis == "left")
        self.item.getViewBox().sigRangeChanged.connect(self._mark_axes)
        self.item.getAxis("left").setWidth(58)
        self.item.showGrid(x=True, y=True, alpha=0.12)

    def show_points(
        self, x: np.ndarray, y: np.ndarray, group: np.ndarray, plans: tuple[tuple[float, float], ...] = (),
        tell: Callable[[int], str] = str,
    ) -> None:  # fmt: skip
        """Show float64 ``[n]`` pairs; those that are not positive and finite have no place on a log scale.

        ``tell(index)`` says what a pair is: the tip of its point.
        """
        known = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
        self._index, self._tell = np.flatnonzero(known), tell
        self._x, self._y, self._group = np.log10(x[known]), np.log10(y[known]), group[known]
        self._plans = tuple(pair for pair in plans if all(math.isfinite(value) and value > 0 for value in pair))
        self.draw()

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        for axis in AXES:
            self.item.getAxis(axis).setLogMode(axis == "bottom", axis == "left")
        if not self._x.size and not self._plans:
            return
        plans = np.log10(np.array(self._plans)).reshape(-1, 2)
        every = np.concatenate([self._x, self._y, plans.ravel()])
        ends = [float(every.min()), float(every.max())]
        self.item.addItem(pg.PlotCurveItem(ends, ends, pen=pen(self.colours.muted, style=Qt.PenStyle.DashLine)))
        for number in np.unique(self._group):
            chosen = self._group == number
            brush = faded(self.colours.series[int(number) % len(self.colours.series)], 150)
            points = pg.ScatterPlotItem(
                self._x[chosen], self._y[chosen], size=5, pen=None, brush=brush, data=self._index[chosen],
                hoverable=self._x.size <= MOST_TOLD, hoverSize=9,
                tip=lambda x, y, data: self._tell(int(data)),
            )  # fmt: skip
            points.sigClicked.connect(lambda _, found, *__: self.chosen.emit(int(found[0].data())))
            self.item.addItem(points)
        if plans.size:
            points = pg.ScatterPlotItem(
                plans[:, 0], plans[:, 1], symbol="d", size=12, pen=pen(self.colours.base),
                brush=faded(self.colours.error, 255),
            )  # fmt: skip
            self.item.addItem(points)
        self.item.autoRange()
        self._mark_axes()

    def _mark_axes(self, *_seen: object) -> None:
        """Write powers of ten, or their halves and fifths, at whatever part is seen: pyqtgraph's own run together."""
        for axis, ends in zip(("bottom", "left"), self.item.viewRange(), strict=True):
            self.item.getAxis(axis).setTicks([log_ticks(*ends)])
