"""One metric: the floating-point model and every evaluated plan side by side, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from workbench.gui.plots.plot import Plot, faded, pen
from workbench.gui.shell.theme import Colours


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One plan's value and 95 % interval; ``predicted`` is drawn beside it where there is one."""

    name: str
    value: float
    low: float
    high: float
    predicted: float | None = None


def finite(values: Sequence[float], instead: np.ndarray | float = 0.0) -> np.ndarray:
    """Return float64 ``values`` with ``instead`` where they are not finite: Qt cannot paint those, it crashes."""
    array = np.array(values, np.float64)
    return np.where(np.isfinite(array), array, instead)


class Comparison(Plot):
    """Bars with intervals over plans; the baseline is the first bar and a dashed line."""

    def __init__(self, name: str, colours: Colours) -> None:
        super().__init__(f"{name}: floating point and quantized", colours)
        self._title, self._unit = name, ""
        self._baseline = float("nan")
        self._bars: Sequence[Bar] = ()
        self.item.getViewBox().setMouseEnabled(x=False, y=True)

    def show_bars(self, title: str, unit: str, baseline: float, bars: Sequence[Bar]) -> None:
        """Show other values."""
        self._title, self._unit, self._baseline, self._bars = title, unit, baseline, tuple(bars)
        self.draw()

    def draw(self) -> None:
        """Redraw everything."""
        self.item.clear()
        self.item.setTitle(self._title, color=self.colours.text, size="9pt")
        self.label("left", self._unit)
        if not self._bars:
            return
        names = ["FP", *(bar.name for bar in self._bars)]
        values = finite([self._baseline, *(bar.value for bar in self._bars)])
        x = np.arange(1, values.size)
        low, high = (finite([getattr(bar, end) for bar in self._bars], values[1:]) for end in ("low", "high"))
        self.item.addItem(
            pg.ErrorBarItem(
                x=x, y=values[1:], top=np.maximum(high - values[1:], 0), bottom=np.maximum(values[1:] - low, 0),
                beam=0.18, pen=pen(self.colours.text),
            )
        )  # fmt: skip
        self.item.addItem(pg.InfiniteLine(values[0], 0, pen=pen(self.colours.baseline, style=Qt.PenStyle.DashLine)))
        start = self._fit(values, low, high)
        self._draw_values(values, bars=start == 0)
        self._draw_predictions(x)
        self.item.getAxis("bottom").setTicks([list(enumerate(names))])

    def _draw_values(self, values: np.ndarray, *, bars: bool) -> None:
        """Draw bars, or points where the axis does not begin at zero: a bar's length would mislead there."""
        colours = [self.colours.baseline] + [self.colours.quantized] * (values.size - 1)
        x = np.arange(values.size)
        if bars:
            brushes = [faded(colour, 150) for colour in colours]
            item = pg.BarGraphItem(x=x, height=values, width=0.6, brushes=brushes, pen=None)
            item.setZValue(-1)
        else:
            brushes = [faded(colour, 255) for colour in colours]
            item = pg.ScatterPlotItem(x, values, size=12, pen=pen(self.colours.base), brush=brushes)
        self.item.addItem(item)

    def _draw_predictions(self, x: np.ndarray) -> None:
        found = [
            (position, bar.predicted)
            for position, bar in zip(x, self._bars, strict=True)
            if bar.predicted is not None and np.isfinite(bar.predicted)
        ]
        if found:
            self.item.addItem(
                pg.ScatterPlotItem(
                    [entry[0] for entry in found], [entry[1] for entry in found], symbol="d", size=11,
                    pen=pen(self.colours.base), brush=faded(self.colours.predicted, 255), hoverable=True,
                    tip=lambda x, y, data: f"predicted {y:.4g}",
                )
            )  # fmt: skip

    def _fit(self, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
        """Begin at zero unless that would hide all differences; returns where the axis begins."""
        predicted = finite([bar.predicted for bar in self._bars if bar.predicted is not None])
        everything = np.concatenate([values, low, high, predicted])
        least, most = float(everything.min()), float(everything.max())
        spread = most - least or abs(most) * 0.1 or 1.0
        start = 0.0 if least >= 0 and most - least > 0.1 * most else least - 0.5 * spread
        self.item.setYRange(start, most + 0.12 * (most - start), padding=0)
        self.item.setXRange(-0.6, values.size - 0.4, padding=0)
        return start
