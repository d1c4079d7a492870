"""How far ranges still move while calibration data are added: the worst tensor, the 95th percentile, the median."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from workbench.gui.plots.plot import LegendMark, Plot, faded, pen
from workbench.gui.shell.theme import Colours
from workbench.measurement.data_quality import SETTLED, Saturation

LINES = (("worst", 100.0), ("95 % of tensors", 95.0), ("median", 50.0))
CEILING = 2.0
"""Moves of more than twice a range's width are drawn at this height."""


class SaturationPlot(Plot):
    """The x axis has a place for each doubling of the data; the dashed line is what counts as settled."""

    def __init__(self, colours: Colours) -> None:
        super().__init__(
            "How far ranges move as samples are added", colours, left="moved (%)", bottom="samples"
        )
        self._saturation: Saturation | None = None
        self.item.getAxis("left").setWidth(46)
        self.item.addLegend(offset=(-6, 4), labelTextSize="8pt", sampleType=LegendMark)

    def show_saturation(self, saturation: Saturation | None) -> None:
        """Show another answer; None clears the plot."""
        self._saturation = saturation
        self.draw()

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        self.item.legend.clear()
        self.item.legend.setLabelTextColor(self.colours.text)
        found = self._saturation
        if found is None or not found.moved.size:
            return
        x = np.arange(found.moved.shape[0], dtype=float)
        moved = np.minimum(np.nan_to_num(found.moved, nan=CEILING, posinf=CEILING), CEILING) * 100
        for number, (name, percentile) in enumerate(LINES):
            colour = self.colours.series[number]
            y = np.percentile(moved, percentile, axis=1)
            line = pg.PlotDataItem(
                x, y, pen=pen(colour), symbol="o", symbolSize=7, symbolBrush=faded(colour, 255),
                symbolPen=pen(self.colours.base),
            )  # fmt: skip
            self.item.addItem(line)
            self.item.legend.addItem(line, name)
        settled = pg.InfiniteLine(SETTLED * 100, 0, pen=pen(self.colours.baseline, style=Qt.PenStyle.DashLine))
        self.item.addItem(settled)
        steps = list(zip(found.samples[:-1], found.samples[1:], strict=True))
        self.item.getAxis("bottom").setTicks([[(n, f"{a:,} → {b:,}") for n, (a, b) in enumerate(steps)]])
        self.item.setXRange(-0.3, max(len(steps) - 1, 0) + 0.3, padding=0)
        self.item.setYRange(0, max(float(moved.max()) * 1.15, SETTLED * 200), padding=0)
