"""Are the calibration data enough: how far ranges still move, and how much of the evaluation data are covered."""

from __future__ import annotations

import numpy as np

from workbench.gui.plots.plot import Plot, faded
from workbench.insight.quantities import whole
from workbench.measurement.data_quality import SETTLED, CalibrationQuality, Saturation

LINES = (("worst", 100.0), ("95 % of tensors", 95.0), ("median", 50.0))
"""The lines of the saturation: names and percentiles over tensors."""
CEILING = 2.0
"""Moves of more than twice a range's width are drawn at this height."""

BAR = 0.38
MAX_CLASSES = 40


class SaturationPlot(Plot):
    """The x axis has a place for each doubling of the data; the dashed line is what counts as settled."""

    name, left, bottom = "How far ranges move as samples are added", "moved (%)", "samples"
    left_width, legend = 46, (-6, 4)
    _saturation: Saturation | None = None

    def show_saturation(self, saturation: Saturation | None) -> None:
        self._saturation = saturation
        self.redraw()

    def draw(self) -> None:
        saturation = self._saturation
        if saturation is None or not saturation.moved.size:
            return
        moved = np.minimum(np.nan_to_num(saturation.moved, nan=CEILING, posinf=CEILING), CEILING) * 100
        x = np.arange(moved.shape[0], dtype=float)
        for (name, percentile), colour in zip(LINES, self.colours.series, strict=False):
            y = np.percentile(moved, percentile, axis=1)
            self.add_line(x, y, colour)
            self.add_points(x, y, colour, name=name)
        self.add_level(SETTLED * 100, self.colours.baseline)
        steps = list(zip(saturation.samples[:-1], saturation.samples[1:], strict=True))
        self.item.getAxis("bottom").setTicks([[(n, f"{whole(a)} → {whole(b)}") for n, (a, b) in enumerate(steps)]])
        self.item.setXRange(-0.3, max(len(steps) - 1, 0) + 0.3, padding=0)
        self.item.setYRange(0, max(float(moved.max()) * 1.15, SETTLED * 200), padding=0)


class CoveragePlot(Plot):
    """Share of the evaluation's tokens among the ``x`` commonest of the calibration, or the samples of each class."""

    name, left, bottom = "How much of the evaluation data is covered", "%", "tokens"
    left_width = 46
    _quality: CalibrationQuality | None = None

    def show_quality(self, quality: CalibrationQuality | None) -> None:
        self._quality = quality
        self.redraw()

    def draw(self) -> None:
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
        colour = self.colours.quantized
        self.add_line(np.arange(share.size, dtype=float), share, colour, fillLevel=0, brush=faded(colour, 60))
        self.add_level(100, self.colours.baseline)
        self.item.setXRange(0, max(share.size - 1, 1), padding=0.02)
        self.item.setYRange(0, 105, padding=0)

    def _draw_classes(self, quality: CalibrationQuality) -> None:
        mine, other = quality.calibration.classes, quality.evaluation.classes
        labels = sorted({*mine, *other})[:MAX_CLASSES]
        self.label("left", "samples (%)")
        self.label("bottom", "class (left bar: calibration, right: evaluation)")
        top = 0.0
        for side, classes, colour in ((-0.5, mine, self.colours.quantized), (0.5, other, self.colours.baseline)):
            total = max(sum(classes.values()), 1)
            height = np.array([classes.get(label, 0) * 100 / total for label in labels])
            top = max(top, float(height.max(initial=0.0)))
            self.add_bars(colour, x=np.arange(len(labels)) + side * BAR, height=height, width=BAR)
        step = max(len(labels) // 12, 1)
        self.item.getAxis("bottom").setTicks([[(place, str(labels[place])) for place in range(0, len(labels), step)]])
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
