"""Plots of kernel times: every kernel, time over batch size, and the roofline of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtGui import QResizeEvent

from workbench.gui.plots.plot import AXES, Plot, pen
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight import quantities
from workbench.insight.roofline import Point
from workbench.measurement.evaluation import Ceilings, Timing

BAR = 0.36
"""Height of a bar; rows are 1 apart."""
ROW = 17
"""Pixels of a row."""
LONGEST_LINE = 1.5
"""How much longer than the longest bar the axis gets for the lines."""


class KernelTimes(Plot):
    """Pairs of bars of median microseconds, floating point above quantized, with lines from the 10 % to the 90 %
    quantile of the repeats; one that is far longer than any bar leaves the plot, so that bars can be told apart."""

    name, bottom, left_width = "Kernel times, floating point and quantized", "µs", 170
    _timings: Sequence[Timing] = ()

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.item.getViewBox().setMouseEnabled(x=False, y=True)
        self.item.getViewBox().invertY(True)

    def show_timings(self, timings: Sequence[Timing]) -> None:
        self._timings = tuple(timings)
        self.redraw()

    def draw(self) -> None:
        if not self._timings:
            return
        rows = np.arange(len(self._timings))
        longest = 0.0
        for y, colour, samples in (
            (rows - BAR / 2, self.colours.baseline, [timing.baseline_samples for timing in self._timings]),
            (rows + BAR / 2, self.colours.quantized, [timing.samples for timing in self._timings]),
        ):
            low, median, high = np.array([np.percentile(repeats, (10, 50, 90)) for repeats in samples]).T
            self.add_bars(colour, x0=0, y=y, width=median, height=BAR)
            spread = pg.ErrorBarItem(x=median, y=y, left=median - low, right=high - median, pen=pen(self.colours.text))
            self.item.addItem(spread)
            longest = max(longest, min(float(high.max()), LONGEST_LINE * float(median.max())))
        names = [(row, f"{_short(timing.layer)} · {timing.scheme}") for row, timing in enumerate(self._timings)]
        self.item.getAxis("left").setTicks([names])
        self.item.setXRange(0, longest * 1.05, padding=0)
        self._fit()

    def _fit(self) -> None:
        """Show as many rows as are legible; dragging reaches the others."""
        legible = max(int(self.item.getViewBox().height() / ROW), 1)
        self.item.setYRange(-0.6, min(len(self._timings), legible) - 0.4, padding=0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._timings:
            self._fit()


def _short(name: str, limit: int = 16) -> str:
    """Return the name, or the number of its block and its last part where the name is longer than ``limit``."""
    *before, last = name.split(".")
    number = next((part for part in reversed(before) if part.isdigit()), "")
    short = name if len(name) <= limit else f"{number}.{last}" if number else last
    return short if len(short) <= limit else f"…{short[-limit + 1 :]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """``batches`` rising, microseconds and their 10 % and 90 % quantiles of each (float64 ``[batches]``)."""

    name: str
    batches: tuple[int, ...]
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray


class BatchSweep(Plot):
    """Time over batch size, both axes logarithmic at first: floating point, then quantized."""

    name, left, bottom = "Time over batch size", "µs", "batch size (rows of inputs)"
    left_width, grid, legend, logarithmic = 52, True, (8, 6), ("left",)
    _lines: Sequence[Line] = ()

    def show_lines(self, lines: Sequence[Line]) -> None:
        self._lines = tuple(lines)
        self.redraw()

    def draw(self) -> None:
        """Draw everything except times that are not positive."""
        ticks: dict[float, str] = {}
        for line, colour in zip(self._lines, (self.colours.baseline, self.colours.quantized), strict=False):
            known = np.isfinite(line.median) & (line.low > 0) & np.isfinite(line.high)
            if not known.any():
                continue
            batches = np.array(line.batches)[known]
            x, times = np.log2(batches), np.array([line.median, line.low, line.high])[:, known]
            y, low, high = self.on_axis("left", times)
            ticks.update(zip(x.tolist(), map(str, batches), strict=True))
            if len(x) > 1:
                self.add_line(x, y, colour)
            self.add_points(x, y, colour, name=line.name)
            self.add_intervals(x, y, low, high, colour)
        self.item.getAxis("bottom").setTicks([sorted(ticks.items())])
        self.item.autoRange()


class RooflinePlot(Plot):
    """Operations a second over operations a byte; the roof is solid if it was measured and dashed if estimated."""

    name, left, bottom = "Roofline of the timed kernels", "GOP/s", "operations a byte"
    left_width, grid, legend, logarithmic = 52, True, (8, 6), AXES
    _points: Sequence[Point] = ()
    _ceilings: Ceilings | None = None

    def show_points(self, points: Sequence[Point], ceilings: Ceilings | None) -> None:
        """Show other kernels, or another roof."""
        self._points, self._ceilings = tuple(points), ceilings
        self.redraw()

    def draw(self) -> None:
        points = [point for point in self._points if point.intensity > 0 and point.speed > 0]
        if not points:
            return
        kinds = ((False, self.colours.baseline, "floating point"), (True, self.colours.quantized, "quantized"))
        for quantized, colour, name in kinds:
            if shown := [point for point in points if point.quantized is quantized]:
                x = self.on_axis("bottom", [point.intensity for point in shown])
                y = self.on_axis("left", [point.speed for point in shown])
                self.add_points(x, y, colour, size=8, alpha=220, hoverable=True, data=shown, tip=_tip, name=name)
        if self._ceilings is not None and self._ceilings.bandwidth > 0 and self._ceilings.peak > 0:
            self._draw_roof(self._ceilings, [point.intensity for point in points])
        self.item.autoRange()

    def _draw_roof(self, roof: Ceilings, intensities: list[float]) -> None:
        ridge = roof.peak / roof.bandwidth
        x = np.array([min(*intensities, ridge) / 2, ridge, max(*intensities, ridge) * 3])
        y = np.minimum(x * roof.bandwidth, roof.peak)
        name = "measured ceilings" if roof.measured else "estimate from the data sheet"
        x, y = self.on_axis("bottom", x), self.on_axis("left", y)
        self.add_line(x, y, self.colours.predicted, dashed=not roof.measured, name=name)


def _tip(x: float, y: float, data: Point) -> str:
    speed, intensity = quantities.number(data.speed), quantities.number(data.intensity)
    return f"{data.text}\n{tr(f'{speed} GOP/s at {intensity} operations a byte')}"
