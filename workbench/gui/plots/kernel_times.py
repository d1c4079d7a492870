"""Kernel times as pairs of bars: floating point above, quantized below, every repeat's spread as a line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtGui import QResizeEvent

from workbench.gui.plots.plot import Plot, faded, pen
from workbench.gui.shell.theme import Colours
from workbench.measurement.evaluation import Timing

HALF = 0.36

ROW = 17
"""Pixels of a row."""


class KernelTimes(Plot):
    """Medians in microseconds, shorter is better."""

    def __init__(self, colours: Colours) -> None:
        super().__init__("Kernel times, floating point and quantized", colours, bottom="µs")
        self._timings: Sequence[Timing] = ()
        self.item.getAxis("left").setWidth(170)
        self.item.getViewBox().setMouseEnabled(x=False, y=True)
        self.item.getViewBox().invertY(True)

    def show_timings(self, timings: Sequence[Timing]) -> None:
        """Show other timings."""
        self._timings = tuple(timings)
        self.draw()

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        if not self._timings:
            return
        rows = np.arange(len(self._timings))
        for offset, colour, held in (
            (-HALF / 2, self.colours.baseline, [timing.baseline_samples for timing in self._timings]),
            (HALF / 2, self.colours.quantized, [timing.samples for timing in self._timings]),
        ):
            medians = np.array([float(np.median(samples)) for samples in held])
            bars = pg.BarGraphItem(
                x0=0, y=rows + offset, width=medians, height=HALF, brush=faded(colour, 170), pen=None
            )
            self.item.addItem(bars)
            low = np.array([float(np.percentile(samples, 10)) for samples in held])
            high = np.array([float(np.percentile(samples, 90)) for samples in held])
            self.item.addItem(
                pg.ErrorBarItem(
                    x=medians, y=rows + offset, left=medians - low, right=high - medians, pen=pen(self.colours.text)
                )
            )
        names = [(row, f"{_tail(timing.layer)} · {timing.scheme}") for row, timing in enumerate(self._timings)]
        self.item.getAxis("left").setTicks([names])
        most = max(float(np.percentile(timing.samples, 90)) for timing in self._timings)
        most = max(most, max(float(np.percentile(timing.baseline_samples, 90)) for timing in self._timings))
        self.item.setXRange(0, most * 1.05, padding=0)
        self._fit()

    def _fit(self) -> None:
        """Show as many rows as can be told apart; the others are reached by dragging."""
        fits = max(int(self.item.getViewBox().height() / ROW), 4)
        self.item.setYRange(-0.6, min(len(self._timings), fits) - 0.4, padding=0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show other many rows at this height."""
        super().resizeEvent(event)
        if getattr(self, "_timings", ()):
            self._fit()


def _tail(name: str, limit: int = 16) -> str:
    """Return a name that fits: the whole, or the number of its block and its last part."""
    *before, last = name.split(".")
    number = next((part for part in reversed(before) if part.isdigit()), "")
    short = name if len(name) <= limit else f"{number}.{last}" if number else last
    return short if len(short) <= limit else f"…{short[-limit + 1 :]}"
