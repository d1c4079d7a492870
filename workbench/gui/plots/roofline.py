"""Kernels under the roof of the machine: operations a second over operations a byte, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from workbench.gui.plots.plot import LegendMark, Plot, faded, log_ticks, pen
from workbench.gui.shell.theme import Colours
from workbench.insight import quantities
from workbench.insight.roofline import Point
from workbench.measurement.evaluation import Ceilings


class RooflinePlot(Plot):
    """Points below the roof; the roof is solid where it was measured and dashed where it is an estimate."""

    def __init__(self, colours: Colours) -> None:
        super().__init__("Roofline of the timed kernels", colours, left="GOP/s", bottom="operations a byte")
        self._points: Sequence[Point] = ()
        self._ceilings: Ceilings | None = None
        self.item.getAxis("left").setWidth(52)
        self.item.showGrid(x=True, y=True, alpha=0.12)
        self.item.addLegend(offset=(-8, -8), labelTextSize="8pt", sampleType=LegendMark)

    def show_points(self, points: Sequence[Point], ceilings: Ceilings | None) -> None:
        """Show other kernels, or another roof."""
        self._points, self._ceilings = tuple(points), ceilings
        self.draw()

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        self.item.legend.clear()
        self.item.legend.setLabelTextColor(self.colours.text)
        self.item.legend.setBrush(faded(self.colours.base, 210))
        shown = [one for one in self._points if one.intensity > 0 and one.speed > 0]
        if not shown:
            return
        for quantized, colour, name in (
            (False, self.colours.baseline, "floating point"), (True, self.colours.quantized, "quantized"),
        ):  # fmt: skip
            self._draw_points([one for one in shown if one.quantized is quantized], colour, name)
        if self._ceilings is not None:
            self._draw_roof(self._ceilings, [one.intensity for one in shown])
        self.item.autoRange()
        for name, ends in zip(("bottom", "left"), self.item.viewRange(), strict=True):
            self.item.getAxis(name).setTicks([log_ticks(*ends)])

    def _draw_points(self, shown: list[Point], colour: str, name: str) -> None:
        if not shown:
            return
        drawn = pg.ScatterPlotItem(
            np.log10([one.intensity for one in shown]), np.log10([one.speed for one in shown]), size=8,
            pen=pen(self.colours.base), brush=faded(colour, 220), hoverable=True, data=shown, tip=_tip,
        )  # fmt: skip
        self.item.addItem(drawn)
        self.item.legend.addItem(drawn, name)

    def _draw_roof(self, roof: Ceilings, intensities: list[float]) -> None:
        if not (roof.bandwidth > 0 and roof.peak > 0):
            return
        ridge = roof.peak / roof.bandwidth
        x = np.array([min(*intensities, ridge) / 2, ridge, max(*intensities, ridge) * 3])
        y = np.minimum(x * roof.bandwidth, roof.peak)
        style = Qt.PenStyle.SolidLine if roof.measured else Qt.PenStyle.DashLine
        line = pg.PlotCurveItem(np.log10(x), np.log10(y), pen=pen(self.colours.predicted, style=style))
        self.item.addItem(line)
        self.item.legend.addItem(line, "measured ceilings" if roof.measured else "estimate from the data sheet")


def _tip(x: float, y: float, data: Any) -> str:
    speed, intensity = quantities.number(data.speed), quantities.number(data.intensity)
    return f"{data.text}\n{speed} GOP/s at {intensity} operations a byte"
