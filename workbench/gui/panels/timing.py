"""Kernel times of the plan's schemes beside floating point, and on what they were measured."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QSplitter, QTabWidget, QVBoxLayout, QWidget

from workbench.gui import quantities, transitions
from workbench.gui.desk import Desk
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.kernel_times import KernelTimes
from workbench.gui.tables.records import Field, RecordsView
from workbench.gui.theme import Colours
from workbench.models.evaluation import Timing
from workbench.runtime.workspace import State

NO_CUDA = "No CUDA device is present: every time here is from the CPU, and says nothing about a GPU."


def _speedup(timing: Timing) -> float:
    return timing.baseline_median / timing.median if timing.median else float("nan")


FIELDS = (
    Field(title="Layer", text=lambda one: one.layer),
    Field(title="Shape", text=lambda one: quantities.shape(one.shape), key=lambda one: one.shape[0] * one.shape[1]),
    Field(title="Batch", text=lambda one: f"{one.batch:,}", numeric=True, key=lambda one: one.batch),
    Field(title="Scheme", text=lambda one: one.scheme),
    Field(title="FP", text=lambda one: quantities.microseconds(one.baseline_median), numeric=True,
          key=lambda one: one.baseline_median, tip="Median of the floating-point kernel"),
    Field(title="Quantized", text=lambda one: quantities.microseconds(one.median), numeric=True,
          key=lambda one: one.median, tip="Median of the kernel that serves the scheme"),
    Field(title="Speed", text=lambda one: f"{quantities.number(_speedup(one))}×", numeric=True, key=_speedup,
          tip="Floating-point time over quantized time; above 1 is faster"),
    Field(title="Kernel", text=lambda one: one.kernel),
    Field(title="FP kernel", text=lambda one: one.baseline_kernel),
    Field(title="Ran on", text=lambda one: one.device),
    Field(title="Note", text=lambda one: one.note),
)  # fmt: skip


class TimingPanel(Panel):
    """The device line, the plot, the table."""

    def __init__(self, desk: Desk, colours: Colours) -> None:
        super().__init__(desk, colours)
        self.device = QLabel()
        self._devices = ""
        self.device.setProperty("role", "muted")
        self.device.setWordWrap(True)
        self.plot = KernelTimes(colours)
        self.table = RecordsView("Kernel times", FIELDS)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(self.plot)
        splitter.addWidget(self.table)
        splitter.setStretchFactor(0, 1)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([400, 400])
        times = QWidget()
        column = QVBoxLayout(times)
        column.setContentsMargins(0, 4, 0, 0)
        column.addWidget(self.device)
        column.addWidget(splitter, 1)
        self.moves = RecordsView("Precision transitions", transitions.FIELDS)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setAccessibleName("Views of the plan's cost")
        self.tabs.addTab(times, "Kernels")
        self.tabs.addTab(self.moves, "Precision")
        self.tabs.setTabToolTip(1, "How many layers and bytes go from what to what")
        self.column().addWidget(self.tabs)
        self._splitter = splitter
        self.setFocusProxy(self.table)

    def redraw(self, old: State, new: State) -> None:
        """Show the timings."""
        if new.session is None:
            self.say_empty("Time the plan's kernels (F9) to compare them with floating point.\n\n" + _no_cuda(new))
            return
        self.say_empty("")
        if old.session is None or old.assignments is not new.assignments:
            self.moves.show_records(transitions.transitions(new.session.model, new.assignments))
        if old.session is None or old.session.timings is not new.session.timings:
            self._show_timings(new)

    def _show_timings(self, state: State) -> None:
        assert state.session is not None
        timings = state.session.timings
        self._splitter.setVisible(bool(timings))
        self.table.show_records(timings)
        self.plot.show_timings(timings)
        if not timings:
            self._devices = ""
            self.device.setText(
                "Time the plan's kernels (F9) to compare them with floating point. " + _no_cuda(state)
            )
            return
        devices = ", ".join(sorted({one.device for one in timings}))
        self._devices = f"Measured on {devices}. {_no_cuda(state, timings)}".strip()
        self._show_devices()

    def _show_devices(self) -> None:
        keys = ((self.colours.baseline, "floating point"), (self.colours.quantized, "quantized"))
        marks = " &nbsp; ".join(f'<span style="color:{colour}">■</span> {name}' for colour, name in keys)
        self.device.setText(f"{marks} (median; line: 10 % to 90 %). {self._devices}")

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        self.plot.recolour(colours)
        if self._devices:
            self._show_devices()


def _no_cuda(state: State, timings: tuple[Timing, ...] = ()) -> str:
    """Return the sentence that says there is no CUDA device, or nothing."""
    devices = [one.device for one in timings] or ([state.session.environment.device] if state.session else [])
    return "" if any("cuda" in device.lower() or "nvidia" in device.lower() for device in devices) else NO_CUDA
