"""The Timing panel's views of what bounds the kernels: times over batch sizes, and the roofline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from workbench.gui.plots.batch_sweep import BatchSweep, Line
from workbench.gui.plots.roofline import RooflinePlot
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.theme import Colours
from workbench.insight.roofline import points
from workbench.measurement.evaluation import Ceilings, Timing
from workbench.planning.hardware import profiles

PEAK = "fp32"
ALL = "all timed kernels together"
CACHED = "Kernels whose weights stay in a cache may lie above the memory's line"
UNMEASURED = "Measure Ceilings draws how fast this machine's memory and arithmetic let a kernel be"
FEW = "Timed at one batch size only; Sweep Batch Sizes times the kernels at several"


class SweepView(QWidget):
    """A kernel to choose, the sweep of its times, and the button that measures."""

    def __init__(self, colours: Colours, sweep: Callable[[], None]) -> None:
        super().__init__()
        self._timings: tuple[Timing, ...] = ()
        self.kernel = QComboBox()
        self.kernel.setAccessibleName("Kernel whose times are shown")
        self.kernel.setToolTip("One shape under one scheme, or the sum of all that were timed at every batch size")
        self.kernel.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.kernel.setMinimumContentsLength(30)
        self.kernel.activated.connect(lambda _: self._show())
        self.button = QPushButton("S&weep Batch Sizes")
        self.button.setToolTip("Time the plan's kernels at several batch sizes, and the machine's own ceilings")
        self.button.clicked.connect(sweep)
        self.words = FittedLabel()
        self.words.setProperty("role", "muted")
        self.plot = BatchSweep(colours)
        top = QHBoxLayout()
        top.addWidget(self.kernel)
        top.addWidget(self.button)
        top.addWidget(self.words, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.addLayout(top)
        column.addWidget(self.plot, 1)

    def show_timings(self, timings: Sequence[Timing]) -> None:
        """Offer the kernels; the chosen one stays."""
        self._timings = tuple(timings)
        chosen = self.kernel.currentText()
        self.kernel.clear()
        self.kernel.addItem(ALL, None)
        for shape, scheme in sorted({(one.shape, one.scheme) for one in timings}):
            self.kernel.addItem(f"{shape[0]} × {shape[1]} · {scheme}", (shape, scheme))
        self.kernel.setCurrentIndex(max(self.kernel.findText(chosen), 0))
        self._show()

    def _show(self) -> None:
        key = self.kernel.currentData()
        wanted = [one for one in self._timings if key is None or (one.shape, one.scheme) == tuple(key)]
        self.words.setText(FEW if len({one.batch for one in wanted}) == 1 else "")
        self.plot.show_lines(sweep_lines(wanted))


class RoofView(QWidget):
    """The roofline and whose ceilings are drawn: this machine's, once measured, or a data sheet's."""

    def __init__(self, colours: Colours, sweep: Callable[[], None]) -> None:
        super().__init__()
        self._timings: tuple[Timing, ...] = ()
        self.measured: Ceilings | None = None
        self.roof = QComboBox()
        self.roof.setAccessibleName("Whose ceilings are drawn")
        self.roof.setToolTip("Ceilings of FP32 arithmetic and memory: measured on this machine, or from a data sheet")
        self.roof.activated.connect(lambda _: self._show())
        self.button = QPushButton("Measure &Ceilings")
        self.button.setToolTip("Measure memory and arithmetic in the same run as the kernels at several batch sizes")
        self.button.clicked.connect(sweep)
        self.words = FittedLabel()
        self.words.setProperty("role", "muted")
        self.plot = RooflinePlot(colours)
        top = QHBoxLayout()
        for widget in (self.roof, self.button):
            top.addWidget(widget)
        top.addWidget(self.words, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.addLayout(top)
        column.addWidget(self.plot, 1)
        self._roofs: list[Ceilings | None] = []

    def show_timings(self, timings: Sequence[Timing]) -> None:
        """Draw other kernels."""
        self._timings = tuple(timings)
        if not self._roofs:
            self.show_measured(None)
        self._show()

    def show_measured(self, ceilings: Ceilings | None) -> None:
        """Offer this machine's ceilings first, as soon as they are measured; then those of the data sheets."""
        self.measured = ceilings
        self._roofs = [ceilings, *estimates()]
        self.roof.clear()
        for one in self._roofs:
            label = "this machine, not measured yet" if one is None else one.device
            self.roof.addItem(label if one is None or one.measured else f"{label} (estimate)")
        self._show()

    def _show(self) -> None:
        roof = self._roofs[max(self.roof.currentIndex(), 0)] if self._roofs else None
        if roof is None:
            self.words.say(UNMEASURED)
        else:
            self.words.say(f"{roof.how}. {CACHED}", roof.how)
        self.plot.show_points(points(self._timings), roof)


def estimates() -> list[Ceilings]:
    """Return the FP32 ceilings of every chip whose data sheet is bundled, marked as estimates."""
    return [
        Ceilings(
            device=chip.name, bandwidth=chip.bandwidth, peak=chip.peaks[PEAK] * 1e3, measured=False,
            how=f"estimate: {chip.bandwidth:g} GB/s and {chip.peaks[PEAK]:g} TFLOP/s by the data sheet",
        )
        for profile in profiles().values() for chip in profile.devices if PEAK in chip.peaks
    ]  # fmt: skip


def sweep_lines(timings: Sequence[Timing]) -> list[Line]:
    """Return floating point and quantized times over batch sizes, summed over the distinct shapes and schemes.

    Only batch sizes at which every one of them was timed are kept, so that the sums can be compared.
    """
    held: dict[int, dict[object, Timing]] = {}
    for one in timings:
        held.setdefault(one.batch, {})[one.shape, one.scheme] = one
    keys = {key for found in held.values() for key in found}
    batches = tuple(sorted(batch for batch, found in held.items() if found.keys() == keys))
    if not batches:
        return []
    lines = []
    for name, quantized in (("floating point", False), ("quantized", True)):
        rows = [
            np.sum([_quantiles(held[batch][key], quantized) for key in keys], axis=0) for batch in batches
        ]
        low, median, high = np.array(rows).T
        lines.append(Line(name=name, batches=batches, median=median, low=low, high=high))
    return lines


def _quantiles(one: Timing, quantized: bool) -> np.ndarray:
    found: np.ndarray = np.percentile(one.samples if quantized else one.baseline_samples, [10, 50, 90])
    return found
