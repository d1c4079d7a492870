"""Time over batch size, quantized beside floating point, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg

from workbench.gui.plots.plot import LegendMark, Plot, faded, log_ticks, pen
from workbench.gui.shell.theme import Colours


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """``batches`` rising, microseconds and their 10 % and 90 % quantiles of each (float64 ``[batches]``)."""

    name: str
    batches: tuple[int, ...]
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray


class BatchSweep(Plot):
    """Floating point first, then quantized."""

    def __init__(self, colours: Colours) -> None:
        super().__init__("Time over batch size", colours, left="µs", bottom="batch size (rows of inputs)")
        self._lines: Sequence[Line] = ()
        self.item.getAxis("left").setWidth(52)
        self.item.showGrid(x=True, y=True, alpha=0.12)
        self.item.addLegend(offset=(8, 6), labelTextSize="8pt", sampleType=LegendMark)

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show other times."""
        self._lines = tuple(lines)
        self.draw()

    def draw(self) -> None:
        """Redraw everything; times that are not positive are left out."""
        self.item.clear()
        self.item.legend.clear()
        self.item.legend.setLabelTextColor(self.colours.text)
        ticks: dict[float, str] = {}
        for line, colour in zip(self._lines, (self.colours.baseline, self.colours.quantized), strict=False):
            known = np.isfinite(line.median) & (line.low > 0) & np.isfinite(line.high)
            if not known.any():
                continue
            x = np.log2(np.array(line.batches, float)[known])
            y, low, high = (np.log10(values[known]) for values in (line.median, line.low, line.high))
            ticks.update(zip(x.tolist(), map(str, np.array(line.batches)[known]), strict=True))
            drawn = pg.PlotDataItem(
                x, y, pen=pen(colour), symbol="o", symbolSize=7, symbolBrush=faded(colour, 255),
                symbolPen=pen(self.colours.base),
            )  # fmt: skip
            self.item.addItem(drawn)
            self.item.addItem(pg.ErrorBarItem(x=x, y=y, top=high - y, bottom=y - low, beam=0, pen=pen(colour)))
            self.item.legend.addItem(drawn, line.name)
        self.item.getAxis("bottom").setTicks([sorted(ticks.items())])
        self.item.autoRange()
        self.item.getAxis("left").setTicks([log_ticks(*self.item.viewRange()[1])])
