"""Signal to noise along the depth of the model, measured (solid) and predicted (dashed)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.gui.plots.plot import Plot


class Depth(Plot):
    """``lines``: name and decibels (float64 ``[blocks]``), the measured one first."""

    name, left, bottom = "Signal to noise along the depth", "signal to noise (dB)", "block"
    _blocks: Sequence[str] = ()
    _lines: Sequence[tuple[str, np.ndarray]] = ()

    def show_lines(self, blocks: Sequence[str], lines: Sequence[tuple[str, np.ndarray]]) -> None:
        self._blocks, self._lines = tuple(blocks), tuple(lines)
        self.redraw()

    def draw(self) -> None:
        """Draw everything; blocks without noise have no point."""
        if not self._blocks:
            return
        styles = ((self.colours.quantized, False), (self.colours.predicted, True))
        for (_, values), (colour, dashed) in zip(self._lines, styles, strict=False):
            x = np.flatnonzero(np.isfinite(values)).astype(float)
            y = values[np.isfinite(values)]
            self.add_line(x, y, colour, dashed=dashed)
            self.add_points(x, y, colour)
        step = max(len(self._blocks) // 12, 1)
        ticks = [(n, name.rsplit(".", 1)[-1]) for n, name in enumerate(self._blocks) if n % step == 0]
        self.item.getAxis("bottom").setTicks([ticks])
        self.item.autoRange()
