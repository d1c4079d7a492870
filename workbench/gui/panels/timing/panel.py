"""Kernel times of the plan's schemes beside floating point: by layer, by batch size, under the machine's roof."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from workbench.gui.context.context import Context
from workbench.gui.panels.panel import Panel
from workbench.gui.panels.timing.roofs import RoofView, SweepView
from workbench.gui.panels.timing.transition_matrix import TransitionMatrix
from workbench.gui.panels.timing.transitions import FIELDS as TRANSITIONS
from workbench.gui.plots.kernel_times import KernelTimes
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.estimates import chip_of
from workbench.insight.roofline import PlanTime, plan_time
from workbench.insight.transitions import transitions
from workbench.measurement.evaluation import Timing
from workbench.measurement.profiling import ncu_command
from workbench.planning.hardware import Device, PlanEstimate, plan_estimate
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.requirements import QUANTIZES
from workbench.steps.timing.sweep import SWEEP_BATCHES, SweepBatchesOptions

NO_CUDA = "No CUDA device is present: every time here is from the CPU, and says nothing about a GPU."


def _speedup(timing: Timing) -> float:
    return timing.baseline_median / timing.median if timing.median else float("nan")


FIELDS = (
    Field("Layer", lambda timing: timing.layer),
    Field("Shape", lambda timing: timing.shape, quantities.shape, key=lambda timing: timing.shape[0] * timing.shape[1],
          tip="Outputs × inputs of the layer's matrix"),
    Number("Batch", lambda timing: timing.batch, tip="Rows of inputs that one launch multiplies"),
    Field("Scheme", lambda timing: timing.scheme, tip="How the weights are stored"),
    Number("FP", lambda timing: timing.baseline_median, quantities.microseconds, unit="µs",
           tip="Median time of the floating-point kernel"),
    Number("Quantized", lambda timing: timing.median, quantities.microseconds, unit="µs",
           tip="Median time of the kernel that serves the scheme"),
    Number("Speed", _speedup, lambda ratio: f"{quantities.number(ratio)}×",
           tip="Floating-point time over quantized time; above 1 is faster"),
    Field("Kernel", lambda timing: timing.kernel, tip="The kernel that serves the scheme"),
    Field("FP kernel", lambda timing: timing.baseline_kernel, tip="The floating-point kernel beside it"),
    Number("Reads", lambda timing: timing.gigabytes_per_second, lambda rate: f"{quantities.number(rate)} GB/s",
           unit="GB/s", tip="Bytes that a launch must read over the median time; counted for CUDA kernels only"),
    Number("Operations", lambda timing: timing.teraoperations_per_second,
           lambda rate: f"{quantities.number(rate)} Tops", unit="Tops",
           tip="Multiplications and additions of the product over the median time, 1e12 per second"),
    Field("Occupancy", lambda timing: timing.occupancy,
          text=lambda timing: timing.occupancy or f"– ({timing.no_occupancy})",
          tip="How much of a multiprocessor each kernel can fill by its registers, shared memory and block, and what "
          "limits it"),
    Field("Device", lambda timing: timing.device, tip="The device that was timed, and its threads"),
    Field("Note", lambda timing: timing.note),
)  # fmt: skip


class TimingPanel(Panel):
    """A tab each for the kernels (with the device line), the batch sizes, the roofline and the precisions."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
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
        column.addLayout(self._top_line())
        column.addWidget(splitter, 1)
        self.matrix, self.moves = TransitionMatrix(), RecordsView("Precision transitions", TRANSITIONS)
        precision = QWidget()
        both = QVBoxLayout(precision)
        both.setContentsMargins(0, 4, 0, 0)
        both.addWidget(self.matrix)
        both.addWidget(self.moves, 1)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setAccessibleName("Views of the plan's cost")
        self.sweep = SweepView(colours, self.start_sweep)
        self.roof = RoofView(colours, self.start_sweep)
        for title, widget, tip in (
            ("Kernels", times, "Every timed kernel beside floating point"),
            ("Batch sizes", self.sweep, "How the times grow with the batch"),
            ("Roofline", self.roof, "How close the kernels come to what memory and arithmetic allow"),
            ("Precision", precision, "How many layers and bytes go from what to what"),
        ):
            self.tabs.setTabToolTip(self.tabs.addTab(widget, title), tip)
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
            moves = transitions(new.session.model, new.assignments)
            self.matrix.show_transitions(moves)
            self.moves.show_records(moves)
        if new.ceilings is not self.roof.measured:
            self.roof.show_measured(new.ceilings)
        other = old.session is None or old.session.timings is not new.session.timings
        if other:
            self._offer_batches(new.session.timings)
            self.sweep.show_timings(new.session.timings)
            self.roof.show_timings(new.session.timings)
            self._show_timings(new)
        elif old.assignments is not new.assignments or old.target != new.target:
            self._show_devices()

    def _show_timings(self, state: State) -> None:
        assert state.session is not None
        timings = tuple(one for one in state.session.timings if one.batch == self.batch.currentData())
        self._splitter.setVisible(bool(timings))
        self.table.show_records(timings)
        self.ncu.setVisible(any(one.on_cuda for one in timings))
        self.plot.show_timings(timings)
        devices = ", ".join(sorted({one.device for one in timings}))
        self._devices = f"Measured on {devices}. {_no_cuda(state, timings)}".strip() if timings else ""
        self._show_devices()

    def _show_devices(self) -> None:
        state, expected = self.state, expected_time(self.state, self.batch.currentData() or 1)
        if not self._devices:
            ask = "Time the plan's kernels (F9) to compare them with floating point."
            self.device.setText(" ".join(filter(None, (ask, expected, _no_cuda(state)))))
            return
        keys = ((self.colours.baseline, "floating point"), (self.colours.quantized, "quantized"))
        marks = " &nbsp; ".join(f'<span style="color:{colour}">■</span> {name}' for colour, name in keys)
        total = ""
        if state.session is not None:
            found = plan_time(
                state.session.model, state.assignments, state.session.timings, self.batch.currentData()
            )  # fmt: skip
            total = f"<b>{in_words(found)}</b> " if found else ""
        self.device.setText(f"{total}{expected} {marks} (median; line: 10 % to 90 %). {self._devices}")

    def _top_line(self) -> QHBoxLayout:
        self.batch = QComboBox()
        self.batch.setAccessibleName("Batch size that is shown")
        self.batch.setToolTip("Rows of inputs at which the kernels were timed")
        self.batch.activated.connect(lambda _: self._show_timings(self.state))
        line = QHBoxLayout()
        line.addWidget(self.device, 1)
        line.addWidget(self.batch, 0, Qt.AlignmentFlag.AlignTop)
        self.ncu = QPushButton("Copy ncu Command")
        self.ncu.setToolTip("Copies the commands that profile the selected CUDA kernels (all, if none is selected)")
        self.ncu.clicked.connect(self.copy_ncu)
        self.ncu.hide()
        line.addWidget(self.ncu, 0, Qt.AlignmentFlag.AlignTop)
        return line

    def copy_ncu(self) -> None:
        """Copy the command that profiles each selected kernel with Nsight Compute, and show it in the log."""
        timings = self.table.selected() or self.table.records.records
        found = dict.fromkeys(filter(None, map(ncu_command, timings)))
        if not found:
            self.context.messages.say("Copy ncu command: not now", "The selected kernels ran on the CPU", "warning")
            return
        QApplication.clipboard().setText("\n".join(found))
        self.context.messages.say("Copied: how to profile with Nsight Compute", "; ".join(found))

    def _offer_batches(self, timings: tuple[Timing, ...]) -> None:
        """Offer the batch sizes that were timed; the chosen one stays, the smallest is chosen first."""
        chosen = self.batch.currentData()
        self.batch.clear()
        for batch in sorted({one.batch for one in timings}):
            self.batch.addItem(f"batch {batch}", batch)
        self.batch.setCurrentIndex(max(self.batch.findData(chosen), 0) if timings else -1)
        self.batch.setVisible(self.batch.count() > 1)

    def start_sweep(self) -> None:
        """Time the plan's kernels at several batch sizes, with the machine's ceilings."""
        state = self.state
        if state.session is None:
            return
        reason = QUANTIZES.unmet(state.session)
        if reason is not None:
            self.context.messages.say("Sweep batch sizes: not now", reason[:1].upper() + reason[1:], "warning")
            return
        self.context.tasks.start(self._sweeping(state.session))

    async def _sweeping(self, session: Session) -> None:
        found = await self.context.runner.work(SWEEP_BATCHES.request(session, SweepBatchesOptions()))
        if found is not None:
            self.context.workspace.show_ceilings(found.ceilings)

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        for plot in (self.plot, self.sweep.plot, self.roof.plot):
            plot.recolour(colours)
        if self.state.session is not None:
            self._show_devices()


def expected_time(state: State, batch: int) -> str:
    """Return what the data sheet of the plan's target lets expect; an empty string where it names no hardware."""
    chip = chip_of(state.target)
    if state.session is None or chip is None:
        return ""
    estimate = plan_estimate(state.session.model, state.assignments, chip, batch=batch)
    return estimate_in_words(estimate, chip.devices[0], batch)


def times_in_words(state: State) -> list[str]:
    """Return what the plan takes at the smallest batch that was timed, what to expect of its target, and the device."""
    session = state.session
    assert session is not None
    batch = min((timing.batch for timing in session.timings), default=1)
    time = plan_time(session.model, state.assignments, session.timings, batch)
    devices = ", ".join(sorted({timing.device for timing in session.timings}))
    sentences = (in_words(time) if time else "", expected_time(state, batch),
                 f"Measured on {devices}." if devices else "", _no_cuda(state, session.timings))  # fmt: skip
    return [sentence for sentence in sentences if sentence]


def in_words(found: PlanTime) -> str:
    """Return what a plan's timed layers take together, beside floating point."""
    ratio = found.baseline / found.microseconds if found.microseconds else float("nan")
    missing = f", {quantities.plural(found.missing, 'layer')} not timed" if found.missing else ""
    return (
        f"This plan at batch {found.batch}: {quantities.microseconds(found.microseconds)} against "
        f"{quantities.microseconds(found.baseline)} in floating point, {quantities.number(ratio)}× "
        f"({quantities.plural(found.layers, 'layer')} one after another{missing})."
    )


def estimate_in_words(found: PlanEstimate, device: Device, batch: int) -> str:
    """Return a plan's roofline on a device that is not here, told as an estimate."""
    refused = quantities.plural(len(found.refused), "layer")
    rest = f" ({refused} that it cannot run counted as stored)" if found.refused else ""
    return (
        f"Estimate for {device.name} at batch {batch}, by its data sheet and not measured: "
        f"{quantities.microseconds(found.microseconds)} against {quantities.microseconds(found.stored)} as stored, "
        f"{quantities.number(found.speedup)}×{rest}."
    )


def _no_cuda(state: State, timings: tuple[Timing, ...] = ()) -> str:
    """Return the sentence that says there is no CUDA device, or nothing."""
    devices = [one.device for one in timings] or ([state.session.environment.device] if state.session else [])
    return "" if any("cuda" in device.lower() or "nvidia" in device.lower() for device in devices) else NO_CUDA
