"""Two scores of the same cells against each other, both on log scales at first: do they rank alike?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import Signal

from workbench.gui.plots.plot import AXES, Plot
from workbench.gui.shell.theme import Colours

MOST = 20_000
"""Points that are drawn, of more a random part: each takes time, and there is no room for them."""


class Agreement(Plot):
    """Points in a colour for each scheme, the diagonal, and evaluated plans as diamonds; a click emits
    ``chosen(index)``."""

    chosen = Signal(int)
    name, left, bottom = "Two metrics of the same cells against each other", "y", "x"
    left_width, grid, logarithmic = 58, True, AXES

    def __init__(self, colours: Colours) -> None:
        self._x = self._y = np.zeros(0)
        self._group = self._index = np.zeros(0, np.int64)
        self._tip: Callable[[int], str] = str
        self._plans = np.zeros((0, 2))
        super().__init__(colours)

    def show_points(
        self, x: np.ndarray, y: np.ndarray, group: np.ndarray, plans: tuple[tuple[float, float], ...] = (),
        tip: Callable[[int], str] = str,
    ) -> None:  # fmt: skip
        """Show float64 ``[n]`` pairs, without those that are not positive and finite; ``tip(index)`` describes one."""
        pairs, evaluated = np.column_stack([x, y]), np.array(plans, float).reshape(-1, 2)
        self._index, self._tip = np.flatnonzero(_positive(pairs)), tip
        if self._index.size > MOST:
            self._index = np.random.default_rng(0).choice(self._index, MOST, replace=False)
        self._x, self._y = pairs[self._index].T
        self._group = group[self._index]
        self._plans = evaluated[_positive(evaluated)]
        self.redraw()

    def colour_of(self, group: int) -> str:
        """Return the colour of a group's points."""
        return self.colours.series[group % len(self.colours.series)]

    def draw(self) -> None:
        if not self._x.size and not self._plans.size:
            return
        across, up = self.on_axis("bottom", self._x), self.on_axis("left", self._y)
        plans = self.on_axis("left", self._plans)  # both axes have the same scale
        values = np.concatenate([across, up, plans.ravel()])
        ends = [float(values.min()), float(values.max())]
        self.add_line(ends, ends, self.colours.muted, dashed=True)
        for number in np.unique(self._group):
            chosen = self._group == number
            points = self.add_points(
                across[chosen], up[chosen], self.colour_of(int(number)),
                size=5, alpha=150, pen=None, data=self._index[chosen], hoverable=True, hoverSize=9,
                tip=lambda x, y, data: self._tip(int(data)),
            )  # fmt: skip
            points.sigClicked.connect(lambda _, clicked, *__: self.chosen.emit(int(clicked[0].data())))
        if plans.size:
            x, y = plans.T
            self.add_points(x, y, self.colours.error, symbol="d", size=12)
        self.item.autoRange()


def _positive(pairs: np.ndarray) -> np.ndarray:
    """Return which pairs, ``[n, 2]``, have a place on log scales."""
    positive: np.ndarray = (np.isfinite(pairs) & (pairs > 0)).all(axis=1)
    return positive
