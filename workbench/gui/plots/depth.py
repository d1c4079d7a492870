"""Signal to noise along the depth of the model: a line for what was measured, one for what was predicted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from workbench.gui.plots.comparison import finite
from workbench.gui.plots.plot import Plot, faded, pen
from workbench.gui.shell.theme import Colours


class Depth(Plot):
    """``lines``: name and decibels (float64 ``[blocks]``), the measured one first."""

    def __init__(self, colours: Colours) -> None:
        super().__init__("Signal to noise along the depth", colours, left="signal to noise (dB)", bottom="block")
        self._blocks: Sequence[str] = ()
        self._lines: Sequence[tuple[str, np.ndarray]] = ()

    def show_lines(self, blocks: Sequence[str], lines: Sequence[tuple[str, np.ndarray]]) -> None:
        """Show another budget."""
        self._blocks, self._lines = tuple(blocks), tuple(lines)
        self.draw()

    def draw(self) -> None:
        """Redraw everything; blocks without noise have no point."""
        self.item.clear()
        if not self._blocks:
            return
        styles = ((self.colours.quantized, Qt.PenStyle.SolidLine), (self.colours.predicted, Qt.PenStyle.DashLine))
        for (_, values), (colour, style) in zip(self._lines, styles, strict=False):
            known = np.isfinite(values)
            x, y = np.flatnonzero(known).astype(float), finite(values[known])
            brush = faded(colour, 255)
            self.item.addItem(pg.PlotCurveItem(x, y, pen=pen(colour, style=style)))
            self.item.addItem(pg.ScatterPlotItem(x, y, size=7, pen=pen(self.colours.base), brush=brush))
        step = max(len(self._blocks) // 12, 1)
        ticks = [(n, name.rsplit(".", 1)[-1]) for n, name in enumerate(self._blocks) if n % step == 0]
        self.item.getAxis("bottom").setTicks([ticks])
        self.item.autoRange()
