"""Several plots zoomed and panned together, each in parts of its own width."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from workbench.gui.plots.histogram import Histogram


class LinkedZoom:
    """While ``wanted()``, what the user does to one plot's x axis happens to the others, relative to their spans."""

    def __init__(self, plots: tuple[Histogram, ...], wanted: Callable[[], bool]) -> None:
        self._plots = plots
        self._wanted = wanted
        for plot in plots:
            plot.item.getViewBox().sigRangeChangedManually.connect(partial(self._moved, plot))

    def _moved(self, source: Histogram, _: object = None) -> None:
        low, high = source.span
        if not self._wanted() or high <= low:
            return
        view = source.item.viewRange()[0]
        parts = [(end - low) / (high - low) for end in view]
        for plot in self._plots:
            start, stop = plot.span
            if plot is not source and stop > start:
                first, last = (start + part * (stop - start) for part in parts)
                plot.item.setXRange(first, last, padding=0)
