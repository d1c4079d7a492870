"""Kernel times of the plan's schemes beside floating point: by layer, by batch size, under the machine's roof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from workbench.gui.panels.panel import Panel
from workbench.gui.panels.timing.roofs import RoofView, SweepView
from workbench.gui.panels.timing.transition_matrix import FIELDS as TRANSITIONS
from workbench.gui.panels.timing.transition_matrix import TransitionMatrix
from workbench.gui.plots.timing import KernelTimes
from workbench.gui.shell.copying import put
from workbench.gui.shell.isolated_layout import IsolatedPages
from workbench.gui.shell.step_keys import BUTTONS
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.widgets import button, column, combo, label, offer, page, row, splitter, tabs
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.plan_parts import transitions
from workbench.insight.roofline import PlanTime, chip_of, plan_time
from workbench.measurement.evaluation import Timing
from workbench.planning.hardware import Device, PlanEstimate, plan_estimate
from workbench.planning.plan import Assignment
from workbench.readable import readable
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.requirements import QUANTIZES
from workbench.steps.timing.sweep import SWEEP_BATCHES, SweepBatchesOptions

TIME_FIRST = "Time the plan's kernels (F9) to compare them with floating point."
NO_CUDA = "No CUDA device is present: every time here is from the CPU, and says nothing about a GPU."


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
    Number("Speed", lambda timing: timing.baseline_median / timing.median if timing.median else float("nan"),
           lambda ratio: f"{quantities.number(ratio)}×",
           tip="Floating-point time over quantized time; above 1 is faster"),
    Field("Kernel", lambda timing: timing.kernel, tip="The kernel that serves the scheme"),
    Field("FP kernel", lambda timing: timing.baseline_kernel, tip="The floating-point kernel beside it"),
    Number("Reads", lambda timing: timing.gigabytes_per_second, lambda rate: f"{quantities.number(rate)} GB/s",
           unit="GB/s", tip="Bytes that a launch must read over the median time; counted for CUDA kernels only"),
    Number("Operations", lambda timing: timing.teraoperations_per_second,
           lambda rate: f"{quantities.number(rate)} Tops", unit="Tops",
           tip="Multiplications and additions of the product over the median time, 1e12 per second"),
    Field("Occupancy", lambda timing: timing.occupancy, words=True,
          text=lambda timing: timing.occupancy or f"– ({timing.no_occupancy})",
          tip="How much of a multiprocessor each kernel can fill by its registers, shared memory and block, and what "
          "limits it"),
    Field("Device", lambda timing: timing.device, tip="The device that was timed, and its threads"),
    Field("Note", lambda timing: timing.note, words=True),
)  # fmt: skip


class TimingPanel(Panel):
    """A tab each for the kernels (with the device line), the batch sizes, the roofline and the precisions."""

    def _build(self) -> None:
        self._devices = ""
        self.plot, self.table = KernelTimes(self.colours), RecordsView("Kernel times", FIELDS)
        self.matrix, self.moves = TransitionMatrix(), RecordsView("Precision transitions", TRANSITIONS)
        self.sweep, self.roof = SweepView(self.colours, self.start_sweep), RoofView(self.colours, self.start_sweep)
        self.tabs = tabs("Views of the plan's cost", (
            ("Kernels", self._kernels_page(), "Every timed kernel beside floating point"),
            ("Batch sizes", self.sweep, "How the times grow with the batch"),
            ("Roofline", self.roof, "How close the kernels come to what memory and arithmetic allow"),
            ("Precision", page(self.matrix, self.moves, stretch=self.moves),
             "How many layers and bytes go from what to what"),
        ))  # fmt: skip
        self.column(self.tabs, focus=(self.table, self.sweep.kernel, self.roof.roof, self.moves))

    def _kernels_page(self) -> QWidget:
        self.device = label(role="muted", wrap=True, rich=True)
        self.batch = combo(
            "Batch size that is shown", (), lambda: self._show_timings(self.state),
            "Rows of inputs at which the kernels were timed",
        )  # fmt: skip
        tip = "Copies the commands that profile the selected CUDA kernels (all, if none is selected)"
        self.ncu = button("Copy ncu Command", self.copy_ncu, tip)
        self.ncu.hide()
        self._splitter = splitter(self.plot, self.table, sizes=(400, 400))
        for place in (0, 1):
            self._splitter.setStretchFactor(place, 1)
        top = row(self.device, column(self.batch, None), column(self.ncu, None), stretch=self.device)
        action, title = BUTTONS["time-kernels"]
        self.untimed = label(role="empty", wrap=True)
        self.untimed.setAlignment(Qt.AlignmentFlag.AlignCenter)
        start = button(title, lambda: self.context.trigger(action))
        self._kernels = IsolatedPages()
        self._kernels.show_pages(
            page(top, self._splitter, stretch=self._splitter), page(None, self.untimed, row(None, start, None), None)
        )
        return self._kernels

    def redraw(self, old: State, new: State) -> None:
        if new.session is None:
            self.say_empty(f"{TIME_FIRST}\n\n{_no_cuda(new)}", "time-kernels")
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
        elif old.assignments is not new.assignments:
            self._show_timings(new)
        elif old.target != new.target:
            self._show_devices()

    def _show_timings(self, state: State) -> None:
        assert state.session is not None
        batch = self.batch.currentData()
        timings = of_plan(state.session, state.assignments, batch)
        others = sum(timing.batch == batch for timing in state.session.timings) - len(timings)
        self._splitter.setVisible(bool(timings))
        self._kernels.turn_to(0 if timings or self.batch.count() > 1 else 1)
        self.table.show_records(timings)
        self.ncu.setVisible(any(timing.on_cuda for timing in timings))
        self.plot.show_timings(timings)
        self._devices = f"{tr(_measured_on(timings))} {tr(_no_cuda(state, timings))}".strip() if timings else ""
        if others and timings:
            words = f"{quantities.plural(others, 'timing')} of schemes that the plan does not have left out."
            self._devices += f" {tr(words)}"
        self._show_devices()

    def _show_devices(self) -> None:
        state, batch = self.state, self.batch.currentData()
        expected = expected_time(state, batch or 1)
        if not self._devices or state.session is None:
            sentences = [tr(each) for each in (TIME_FIRST, expected, _no_cuda(state)) if each]
            self.device.setText(" ".join(sentences))
            self.untimed.setText("\n\n".join(sentences))
            return
        keys = ((self.colours.baseline, "floating point"), (self.colours.quantized, "quantized"))
        marks = " &nbsp; ".join(f'<span style="color:{colour}">■</span> {tr(name)}' for colour, name in keys)
        time = plan_time(state.session.model, state.assignments, state.session.timings, batch)
        total = f"<b>{tr(in_words(time))}</b> " if time else ""
        devices, how = escape(readable(self._devices)), tr("median; line: 10 % to 90 %")
        self.device.setText(f"{total}{tr(expected)} {marks} ({how}). {devices}")

    def copy_ncu(self) -> None:
        """Copy the command that profiles each selected kernel with Nsight Compute, and show it in the log."""
        timings = self.table.selected() or self.table.records.records
        commands = dict.fromkeys(filter(None, (timing.ncu_command for timing in timings)))
        if not commands:
            self.context.messages.say("Copy ncu command: not now", "The selected kernels ran on the CPU", "warning")
            return
        put("\n".join(commands))
        self.context.messages.say("Copied: how to profile with Nsight Compute", "; ".join(commands))

    def _offer_batches(self, timings: tuple[Timing, ...]) -> None:
        """Offer the batch sizes that were timed; the chosen one stays, the smallest is chosen first."""
        offer(self.batch, [(f"batch {batch}", batch) for batch in sorted({timing.batch for timing in timings})])
        self.batch.setVisible(self.batch.count() > 1)

    def start_sweep(self) -> None:
        """Time the plan's kernels at several batch sizes, with the machine's ceilings."""
        session = self.state.session
        reason = None if session is None else QUANTIZES.unmet(session)
        if reason is not None:
            self.context.messages.say("Sweep batch sizes: not now", reason[:1].upper() + reason[1:], "warning")
        elif session is not None:
            self.context.tasks.start(self._sweep(session))

    async def _sweep(self, session: Session) -> None:
        sweep = await self.context.runner.work(SWEEP_BATCHES.request(session, SweepBatchesOptions()))
        if sweep is not None:
            self.context.workspace.show_ceilings(sweep.ceilings)

    def _recolour_parts(self, colours: Colours) -> None:
        super()._recolour_parts(colours)
        if self.state.session is not None:
            self._show_devices()


def of_plan(session: Session, assignments: Mapping[str, Assignment], batch: int | None) -> tuple[Timing, ...]:
    """Return the timings at a batch size whose scheme the plan gives a layer of their shape."""
    if not session.timings:
        return ()
    used = {(layer.matrix, assignments[layer.name].weights) for layer in session.model.layers if assignments}
    shapes = {shape for shape, _ in used}
    return tuple(
        timing
        for timing in session.timings
        if timing.batch == batch and ((timing.shape, timing.scheme) in used or timing.shape not in shapes)
    )


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
    sentences = (in_words(time) if time else "", expected_time(state, batch),
                 _measured_on(session.timings), _no_cuda(state, session.timings))  # fmt: skip
    return [sentence for sentence in sentences if sentence]


def in_words(time: PlanTime) -> str:
    """Return what a plan's timed layers take together, beside floating point."""
    ratio = time.baseline / time.microseconds if time.microseconds else float("nan")
    missing = f", {quantities.plural(time.missing, 'layer')} not timed" if time.missing else ""
    return (
        f"{'What was timed of this' if time.missing else 'This'} plan at batch {time.batch}: "
        f"{quantities.microseconds(time.microseconds)} against "
        f"{quantities.microseconds(time.baseline)} in floating point, {quantities.number(ratio)}× "
        f"({quantities.plural(time.layers, 'layer')} one after another{missing})."
    )


def estimate_in_words(estimate: PlanEstimate, device: Device, batch: int) -> str:
    """Return a plan's roofline on a device that is not here, marked as an estimate."""
    refused = quantities.plural(len(estimate.refused), "layer")
    others = f" ({refused} that it cannot run counted as stored)" if estimate.refused else ""
    return (
        f"Estimate for {device.name} at batch {batch}, by its data sheet and not measured: "
        f"{quantities.microseconds(estimate.microseconds)} against "
        f"{quantities.microseconds(estimate.stored)} as stored, {quantities.number(estimate.speedup)}×{others}."
    )


def _measured_on(timings: Sequence[Timing]) -> str:
    devices = ", ".join(sorted({timing.device for timing in timings}))
    return f"Measured on {devices}." if devices else ""


def _no_cuda(state: State, timings: Sequence[Timing] = ()) -> str:
    """Return the sentence that says there is no CUDA device, or nothing."""
    devices = [timing.device for timing in timings] or ([state.session.environment.device] if state.session else [])
    return "" if any("cuda" in device.lower() or "nvidia" in device.lower() for device in devices) else NO_CUDA
