"""Plots of kernel times: every kernel, time over batch size, and the roofline of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtGui import QResizeEvent

from workbench.gui.plots.plot import AXES, Plot, pen
from workbench.gui.shell.theme import Colours
from workbench.insight import quantities
from workbench.insight.roofline import Point
from workbench.measurement.evaluation import Ceilings, Timing

BAR = 0.36
"""Height of a bar; rows are 1 apart."""
MARGIN = 0.3
"""Decades of a logarithmic axis below the shortest time."""
ROW = 17
"""Pixels of a row."""


class KernelTimes(Plot):
    """Pairs of bars of median microseconds, floating point above quantized, with lines from the 10 % to the 90 %
    quantile of the repeats."""

    name, bottom, left_width = "Kernel times, floating point and quantized", "µs", 170
    switchable = ("bottom",)
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
        rows, times = np.arange(len(self._timings)), self._times()
        ends = np.nan_to_num(self.on_axis("bottom", times))  # what took no time has no place on a logarithmic axis
        start = float(ends.min()) - MARGIN if self.is_log else 0.0
        for (low, median, high), side, colour in zip(
            ends, (-BAR / 2, BAR / 2), (self.colours.baseline, self.colours.quantized), strict=True
        ):
            self.add_bars(colour, x0=start, y=rows + side, width=median - start, height=BAR)
            sides = {"left": median - low, "right": high - median, "pen": pen(self.colours.text)}
            self.item.addItem(pg.ErrorBarItem(x=median, y=rows + side, **sides))
        names = [(row, f"{_short(timing.layer)} · {timing.scheme}") for row, timing in enumerate(self._timings)]
        self.item.getAxis("left").setTicks([names])
        self.item.setXRange(start, float(ends.max()) + 0.05 * (float(ends.max()) - start), padding=0)
        self._fit()

    def _times(self) -> np.ndarray:
        """Return the 10 %, 50 % and 90 % quantiles in microseconds, float64 ``[2, 3, timings]``, quantized last."""
        both = [[each.baseline_samples for each in self._timings], [each.samples for each in self._timings]]
        quantiles = [[np.percentile(repeats, (10, 50, 90)) for repeats in kind] for kind in both]
        return np.array(quantiles).transpose(0, 2, 1)

    def data(self) -> Iterator[tuple[str, float, float]]:
        """Yield layer, scheme and which of both kernels, the median in microseconds, and the row."""
        medians = self._times()[:, 1] if self._timings else np.zeros((2, 0))
        for row, timing in enumerate(self._timings):
            for kind, median in zip(("floating point", timing.scheme), medians[:, row], strict=True):
                yield f"{timing.layer} · {kind}", median, row

    def show_all(self) -> None:
        self.redraw()

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
    left_width, grid, legend, logarithmic, switchable = 52, True, (8, 6), ("left",), ("left",)
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
            x = np.log2(batches)
            y, low, high = self.on_axis("left", np.array([line.median, line.low, line.high])[:, known])
            ticks.update(zip(x.tolist(), map(str, batches), strict=True))
            self.add_line(x, y, colour)
            self.add_points(x, y, colour, name=line.name)
            self.add_intervals(x, y, low, high, colour)
        self.item.getAxis("bottom").setTicks([sorted(ticks.items())])
        self.item.autoRange()


class RooflinePlot(Plot):
    """Operations a second over operations a byte; the roof is solid if it was measured and dashed if estimated."""

    name, left, bottom = "Roofline of the timed kernels", "GOP/s", "operations a byte"
    left_width, grid, legend, logarithmic, switchable = 52, True, (-8, -8), AXES, AXES
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
    return f"{data.text}\n{speed} GOP/s at {intensity} operations a byte"
