"""How much of the evaluation data the calibration data cover: a curve over tokens, or bars over classes."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from workbench.gui.plots.plot import Plot, faded, pen
from workbench.gui.shell.theme import Colours
from workbench.measurement.data_quality import CalibrationQuality

WIDTH = 0.38
MAX_CLASSES = 40


class CoveragePlot(Plot):
    """Share of the evaluation's tokens among the ``x`` commonest of the calibration, or the samples of each class."""

    def __init__(self, colours: Colours) -> None:
        super().__init__("How much of the evaluation data is covered", colours, left="%", bottom="tokens")
        self._quality: CalibrationQuality | None = None
        self.item.getAxis("left").setWidth(46)

    def show_quality(self, quality: CalibrationQuality | None) -> None:
        """Show another answer; None clears the plot."""
        self._quality = quality
        self.draw()

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        if self._quality is None:
            return
        if self._quality.calibration.tokens.size:
            self._draw_tokens(self._quality)
        elif self._quality.calibration.classes:
            self._draw_classes(self._quality)

    def _draw_tokens(self, quality: CalibrationQuality) -> None:
        share = covered(quality.calibration.tokens, quality.evaluation.tokens) * 100
        self.label("left", "covered (%)")
        self.label("bottom", "commonest ids of the calibration data; covered: share of the evaluation's tokens")
        self.item.getAxis("bottom").setTicks(None)
        x = np.arange(share.size, dtype=float)
        colour = self.colours.quantized
        self.item.addItem(pg.PlotCurveItem(x, share, pen=pen(colour), fillLevel=0, brush=faded(colour, 60)))
        self.item.addItem(pg.InfiniteLine(100, 0, pen=pen(self.colours.baseline, style=Qt.PenStyle.DashLine)))
        self.item.setXRange(0, max(share.size - 1, 1), padding=0.02)
        self.item.setYRange(0, 105, padding=0)

    def _draw_classes(self, quality: CalibrationQuality) -> None:
        held, wanted = quality.calibration, quality.evaluation
        labels = sorted({*held.classes, *wanted.classes})[:MAX_CLASSES]
        self.label("left", "samples (%)")
        self.label("bottom", "class (left bar: calibration, right: evaluation)")
        x = np.arange(len(labels), dtype=float)
        top = 0.0
        for one, offset, colour in ((held, -0.5, self.colours.quantized), (wanted, 0.5, self.colours.baseline)):
            total = max(sum(one.classes.values()), 1)
            height = np.array([one.classes.get(label, 0) * 100 / total for label in labels])
            top = max(top, float(height.max(initial=0.0)))
            self.item.addItem(
                pg.BarGraphItem(x=x + offset * WIDTH, height=height, width=WIDTH, brush=faded(colour, 170), pen=None)
            )
        step = max(len(labels) // 12, 1)
        ticks = [(place, str(label)) for place, label in enumerate(labels) if place % step == 0]
        self.item.getAxis("bottom").setTicks([ticks])
        self.item.setXRange(-0.7, len(labels) - 0.3, padding=0)
        self.item.setYRange(0, top * 1.1 or 1.0, padding=0)


def covered(calibration: np.ndarray, evaluation: np.ndarray) -> np.ndarray:
    """Return the share of ``evaluation`` tokens (counts by id) within the 0, 1, 2, ... commonest of ``calibration``.

    float64 ``[ids seen + 1]``, rising from 0; ids that calibration never saw are in none of them.
    """
    size = max(calibration.size, evaluation.size)
    mine, other = (np.pad(each, (0, size - each.size)) for each in (calibration, evaluation))
    order = np.argsort(-mine, kind="stable")[: np.count_nonzero(mine)]
    total = max(int(other.sum()), 1)
    share: np.ndarray = np.concatenate([[0], np.cumsum(other[order])]) / total
    return share
