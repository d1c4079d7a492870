"""One metric: the floating-point model and every evaluated plan side by side, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg

from workbench.gui.plots.plot import Plot, faded, finite, pen
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr
from workbench.insight.quantities import short


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One plan's value and 95 % interval; ``predicted`` is drawn beside it where there is one."""

    name: str
    value: float
    low: float
    high: float
    predicted: float | None = None


class Comparison(Plot):
    """Bars with intervals over plans; the baseline is the first bar and a dashed line."""

    _unit, _baseline = "", float("nan")
    _bars: Sequence[Bar] = ()

    def __init__(self, title: str, colours: Colours) -> None:
        super().__init__(colours, f"{title}: floating point and quantized")
        self._title = title
        self.item.getViewBox().setMouseEnabled(x=False, y=True)

    def show_bars(self, title: str, unit: str, baseline: float, bars: Sequence[Bar]) -> None:
        self._title, self._unit, self._baseline, self._bars = title, unit, baseline, tuple(bars)
        self.redraw()

    def draw(self) -> None:
        self.item.setTitle(tr(self._title), color=self.colours.text, size="9pt")
        self.label("left", self._unit)
        if not self._bars:
            return
        values = finite([self._baseline, *(bar.value for bar in self._bars)])
        x = np.arange(1, values.size)
        low, high = (finite([getattr(bar, end) for bar in self._bars], values[1:]) for end in ("low", "high"))
        predicted = np.array([np.nan if bar.predicted is None else bar.predicted for bar in self._bars])
        known = np.isfinite(predicted)
        self.add_intervals(x, values[1:], low, high, self.colours.text, beam=0.18)
        self.add_level(values[0], self.colours.baseline)
        start = self._fit(values.size, np.concatenate([values, low, high, predicted[known]]))
        self._draw_values(values, bars=start == 0)
        if known.any():
            self.add_points(x[known], predicted[known], self.colours.predicted, size=11, symbol="d", hoverable=True,
                            tip=lambda x, y, data: tr(f"predicted {short(y, 4)}"))  # fmt: skip
        names = ["FP", *(bar.name for bar in self._bars)]
        self.item.getAxis("bottom").setTicks([list(enumerate(names))])

    def _draw_values(self, values: np.ndarray, *, bars: bool) -> None:
        """Draw bars, or points where the axis does not begin at zero: a bar's length would mislead there."""
        colours = [self.colours.baseline] + [self.colours.quantized] * (values.size - 1)
        brushes, x = [faded(colour, 150 if bars else 255) for colour in colours], np.arange(values.size)
        if bars:
            item = pg.BarGraphItem(x=x, height=values, width=0.6, brushes=brushes, pen=None)
            item.setZValue(-1)
        else:
            item = pg.ScatterPlotItem(x, values, size=12, pen=pen(self.colours.base), brush=brushes)
        self.item.addItem(item)

    def _fit(self, bars: int, values: np.ndarray) -> float:
        """Begin at zero unless that would hide all differences; returns where the axis begins."""
        least, most = float(values.min()), float(values.max())
        spread = most - least or abs(most) * 0.1 or 1.0
        start = 0.0 if least >= 0 and (most - least > 0.1 * most or not most) else least - 0.5 * spread
        self.item.setYRange(start, most + 0.12 * (most - start or spread), padding=0)
        self.item.setXRange(-0.6, bars - 0.4, padding=0)
        return start
