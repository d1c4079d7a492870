"""The Timing panel's views of what bounds the kernels: times over batch sizes, and the roofline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtWidgets import QWidget

from workbench.gui.plots.timing import BatchSweep, Line, RooflinePlot
from workbench.gui.shell.foreign import as_line
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.widgets import button, combo, fill, fitted, offer, row
from workbench.gui.shell.words import tr
from workbench.insight.quantities import short
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
        self.kernel = combo(
            "Kernel whose times are shown", (), self._show,
            "One shape under one scheme, or the sum of all that were timed at every batch size", letters=30,
        )  # fmt: skip
        tip = "Time the plan's kernels at several batch sizes, and the machine's own ceilings"
        self.button = button("S&weep Batch Sizes", sweep, tip)
        self.words, self.plot = fitted(), BatchSweep(colours)
        fill(self, row(self.kernel, self.button, self.words, stretch=self.words), self.plot, stretch=self.plot)

    def show_timings(self, timings: Sequence[Timing]) -> None:
        """Offer the kernels; the chosen one stays."""
        self._timings = tuple(timings)
        kernels = dict.fromkeys(map(_kernel, sorted(timings, key=lambda timing: (timing.shape, timing.scheme))))
        offer(self.kernel, [(name, name) for name in (ALL, *kernels)])
        self._show()

    def _show(self) -> None:
        chosen = self.kernel.currentData()
        timings = [timing for timing in self._timings if chosen in (ALL, _kernel(timing))]
        self.words.setText(FEW if len({timing.batch for timing in timings}) == 1 else "")
        self.plot.show_lines(sweep_lines(timings))


def _kernel(timing: Timing) -> str:
    """Return the shape and scheme of a kernel, as it is chosen."""
    return f"{timing.shape[0]} × {timing.shape[1]} · {timing.scheme}"


class RoofView(QWidget):
    """The roofline and whose ceilings are drawn: this machine's, once measured, or a data sheet's."""

    def __init__(self, colours: Colours, sweep: Callable[[], None]) -> None:
        super().__init__()
        self._timings: tuple[Timing, ...] = ()
        self._roofs: list[Ceilings | None] = []
        self.measured: Ceilings | None = None
        self.roof = combo(
            "Whose ceilings are drawn", (), self._show,
            "Ceilings of FP32 arithmetic and memory: measured on this machine, or from a data sheet",
        )  # fmt: skip
        tip = "Measure memory and arithmetic in the same run as the kernels at several batch sizes"
        self.button = button("Measure &Ceilings", sweep, tip)
        self.words, self.plot = fitted(), RooflinePlot(colours)
        fill(self, row(self.roof, self.button, self.words, stretch=self.words), self.plot, stretch=self.plot)

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
        self.roof.addItems([as_line(_title(roof)) for roof in self._roofs])
        self._show()

    def _show(self) -> None:
        roof = self._roofs[max(self.roof.currentIndex(), 0)] if self._roofs else None
        self.words.say(*((UNMEASURED,) if roof is None else (f"{roof.how}. {CACHED}", roof.how)))
        self.plot.show_points(points(self._timings), roof)


def _title(ceilings: Ceilings | None) -> str:
    if ceilings is None:
        return tr("this machine, not measured yet")
    return ceilings.device if ceilings.measured else f"{ceilings.device} ({tr('estimate')})"


def estimates() -> list[Ceilings]:
    """Return the FP32 ceilings of every chip whose data sheet is bundled, marked as estimates."""
    return [
        Ceilings(
            device=chip.name, bandwidth=chip.bandwidth, peak=chip.peaks[PEAK] * 1e3, measured=False,
            how=f"estimate: {short(chip.bandwidth)} GB/s and {short(chip.peaks[PEAK])} TFLOP/s by the data sheet",
        )
        for profile in profiles().values() for chip in profile.devices if PEAK in chip.peaks
    ]  # fmt: skip


def sweep_lines(timings: Sequence[Timing]) -> list[Line]:
    """Return floating point and quantized times over batch sizes, summed over the distinct shapes and schemes.

    Only batch sizes at which every one of them was timed are kept, so that the sums can be compared.
    """
    by_batch: dict[int, dict[object, Timing]] = {}
    for timing in timings:
        by_batch.setdefault(timing.batch, {})[timing.shape, timing.scheme] = timing
    kernels = set().union(*by_batch.values())
    batches = tuple(sorted(batch for batch, timed in by_batch.items() if timed.keys() == kernels))
    if not batches:
        return []
    lines = []
    for name, quantized in (("floating point", False), ("quantized", True)):
        timed = [[_quantiles(timing, quantized) for timing in by_batch[batch].values()] for batch in batches]
        low, median, high = np.sum(timed, axis=1).T
        lines.append(Line(name=name, batches=batches, median=median, low=low, high=high))
    return lines


def _quantiles(timing: Timing, quantized: bool) -> np.ndarray:
    samples = timing.samples if quantized else timing.baseline_samples
    return np.asarray(np.percentile(samples, [10, 50, 90]))
