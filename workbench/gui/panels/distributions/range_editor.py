"""Edits the range of a layer's weights, inputs or outputs: method, exact ends, what it clips and costs."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractSpinBox

from workbench.errors import WorkbenchError
from workbench.gui.context import edits
from workbench.gui.panels.panel import PanelPart
from workbench.gui.plots.histogram import METHOD_LABELS
from workbench.gui.shell.number_field import NumberField
from workbench.gui.shell.widgets import combo, fill, fitted, label, named, offer, row
from workbench.insight import quantities
from workbench.insight.layer_facts import why_unseen
from workbench.measurement.units import loss_unit, short_unit
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.range_error import RangeQuality, histogram_error, histogram_loss, range_in_force
from workbench.numerics.ranges import Range
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.planning.plan import KEEP
from workbench.session.calibrated_ranges import range_by, ranges_at
from workbench.session.session import TAPS, Session
from workbench.session.workspace import State

DEFAULT_SCHEME = "int8-tensor"
"""The scheme that a range is judged by while the plan keeps the tensor in floating point."""

LOOKS = {
    "weight": "a scheme scales the weights by group",
    "output": "a plan stores weights and inputs",
    "input": "the plan scales this input for every token",
    "": "the plan leaves this input in floating point",
}
"""What a range means that no plan uses: of weights, outputs, inputs scaled as they come, and (empty) other inputs."""

LIMIT = 1e30
"""The largest magnitude of an end of a range."""

FIGURES = (
    "Share of the {tap}s outside the range; root mean square of the rounding error, in the tensor's own unit; ratio of "
    "signal to quantization noise in decibels, higher is better"
)
"""What the figures of a range mean."""

RANGES_OF = {"weight": "Weight range", "input": "Input range", "output": "Output range"}


class RangeEditor(PanelPart):
    """A line that edits the active range of ``(layer, tap)``; every edit is one undoable step."""

    tap_chosen = Signal(str)

    def _build(self) -> None:
        self.layer, self.tap = "", "input"
        self._shown: tuple[float, float] | None = None  # exact, where the fields show five digits
        self._numbers: tuple[float | None, float | None] = (None, None)  # of the fields, as they were filled
        self.taps = combo(
            "Tensor whose range is shown", [(RANGES_OF[tap], tap) for tap in TAPS],
            lambda: self.show_tap(self.taps.currentData()),
            "Whose range the numbers are: dragging a line in a plot chooses it too",
        )  # fmt: skip
        self.taps.setCurrentIndex(self.taps.findData(self.tap))
        self.method = combo("Range method", (), self._method_chosen, "Which calibrated range is in force")
        self.method.setMinimumWidth(104)
        self.low, self.high = self._bound("Lowest value that is represented"), self._bound("Highest value")
        self.figures = fitted(role="", name="Quality of the range")
        line = row(self.taps, self.method, self.low, label("to"), self.high, self.figures, stretch=self.figures)
        fill(self, line, top=0)

    def _bound(self, name: str) -> NumberField:
        tip = f"{name}; drag the lines in the plot, or type a number and press Enter"
        field = named(NumberField(-LIMIT, LIMIT, 0.0, step=0.1), name, tip)
        field.setFixedWidth(84)  # five digits; its own hint is as wide as the largest number
        field.setAlignment(Qt.AlignmentFlag.AlignRight)
        field.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        field.editingFinished.connect(self._typed)
        field.problem_changed.connect(lambda _: self._show_quality())
        return field

    def redraw(self, old: State, new: State) -> None:
        self.layer = new.selection[0] if new.selection else ""
        self._show()

    def show_tap(self, tap: str) -> None:
        """Show the range of another tensor of the layer."""
        if tap != self.tap:
            self.tap = tap
            self.taps.setCurrentIndex(self.taps.findData(tap))
            self._show()
            self.tap_chosen.emit(tap)

    def follow(self, tap: str, low: float, high: float) -> None:
        """Show the numbers of a range that is being dragged."""
        self.show_tap(tap)
        self._show_numbers(min(low, 0.0), max(high, 0.0))

    def set_dragged(self, tap: str, low: float, high: float) -> None:
        """Make the range that was dragged the active one."""
        self.show_tap(tap)
        self._set(min(low, 0.0), max(high, 0.0))

    def _show(self) -> None:
        session = self.state.session
        if session is None or not self.layer:
            return
        active = range_of(session, self.layer, self.tap)
        methods = sorted(ranges_at(session.ranges, self.layer, self.tap))
        if active is not None and active.method not in methods:
            methods.append(active.method)
        offer(self.method, [(METHOD_LABELS.get(method, method), method) for method in methods])
        for widget in (self.method, self.low, self.high):
            widget.setEnabled(active is not None)
        if active is not None:
            self.method.setCurrentIndex(self.method.findData(active.method))
            self._show_numbers(active.low, active.high)
            return
        self._shown = None
        self.low.clear()
        self.high.clear()
        self.figures.setText(why_unseen(session, self.layer, self.tap))

    def _show_numbers(self, low: float, high: float) -> None:
        self._shown = low, high
        for field, value in ((self.low, low), (self.high, high)):
            field.restore()
            field.setValue(float(f"{value:.5g}"))
        self._numbers = self.low.number, self.high.number
        self._show_quality()

    def _show_quality(self) -> None:
        """Describe what the range clips and costs, or what is wrong with a number."""
        problem = self.low.problem or self.high.problem
        quality = self._quality(*self._shown) if self._shown is not None else None
        if problem or quality is None or self._shown is None:
            self.figures.setText(f"Not taken: {problem}" if problem else "")
            return
        note = self._note()
        mark, why = ("not used by the plan · ", f" ({note})") if note else ("", "")
        words = (
            f"{mark}clips {quantities.share(quality.clipped)} · RMS error "
            f"{quantities.number(quality.mean_squared_error**0.5)} · "
            f"SQNR {quantities.number(quality.sqnr_db)} dB{self._loss(*self._shown)}"
        )
        scheme = f"as {self._scheme()}{self._mirrored(*self._shown)}"
        self.figures.say(f"{words} {scheme}{why}", f"{words} {scheme}", f"{words} as {self._scheme()}", words)
        self.figures.setToolTip(f"{FIGURES.format(tap=self.tap)}{self._how_weighed()}{why}")

    def _note(self) -> str:
        """State that the plan does not use the range; empty where it does."""
        if self.tap != "input":
            return LOOKS[self.tap]
        assignment = self.state.assignments.get(self.layer)
        if assignment is None or not assignment.inputs:
            return LOOKS[""]
        return "" if takes_range(parse_scheme(assignment.inputs)) else LOOKS["input"]

    def _loss(self, low: float, high: float) -> str:
        """Return the predicted loss of rounding the layer's input so, as words; empty where it is not known."""
        statistics = self._statistics()
        if self.tap != "input" or statistics is None or not statistics.costs.size:
            return ""
        loss = histogram_loss(statistics, statistics.costs, parse_scheme(self._scheme()), low, high)
        return f" · loss {quantities.number(loss)} {self._unit(short=True)}"

    def _how_weighed(self) -> str:
        session, statistics = self.state.session, self._statistics()
        if self.tap != "input" or statistics is None or not statistics.costs.size:
            return ""
        samples = session.calibration.samples if session and session.calibration else 0
        return (
            f"; predicted loss of rounding this input alone, {self._unit()} per token or sample, lower is better: the "
            "squared error at every value, weighed with the gradients there in "
            f"{quantities.plural(samples, 'sample')}"
        )

    def _unit(self, short: bool = False) -> str:
        session = self.state.session
        unit = "" if session is None else loss_unit(session.model.output)
        return short_unit(unit) if short else unit

    def _mirrored(self, low: float, high: float) -> str:
        """Describe what a symmetric scheme makes of the range, where that is another one."""
        inner, outer = range_in_force(parse_scheme(self._scheme()), low, high)
        same = (f"{low:.4g}", f"{high:.4g}") == (f"{inner:.4g}", f"{outer:.4g}")
        return "" if same else f", symmetric: ±{quantities.number(outer)}"

    def _scheme(self) -> str:
        assignment = self.state.assignments.get(self.layer)
        if self.tap == "weight":
            return assignment.weights if assignment and assignment.weights != KEEP else DEFAULT_SCHEME
        planned = assignment.inputs if assignment and self.tap == "input" else ""
        return (planned or DEFAULT_SCHEME).replace("-token", "-tensor")

    def _statistics(self) -> LayerStatistics | None:
        session = self.state.session
        return statistics_of(session, self.layer, self.tap) if session else None

    def _quality(self, low: float, high: float) -> RangeQuality | None:
        statistics = self._statistics()
        if statistics is None:
            return None
        try:
            return histogram_error(statistics, parse_scheme(self._scheme()), low, high)
        except WorkbenchError:
            return None

    def _typed(self) -> None:
        if self._shown is None or self.low.problem or self.high.problem:
            return
        numbers = self.low.number, self.high.number
        if numbers == self._numbers:
            return
        low, high = (
            exact if number is None or number == before else number
            for number, before, exact in zip(numbers, self._numbers, self._shown, strict=True)
        )
        if not low <= 0.0 <= high or low == high:
            self._show()
            self.figures.setText("Not taken: the range must hold zero and not be empty")
            return
        self._set(low, high)

    def _method_chosen(self) -> None:
        session = self.state.session
        chosen = session.ranges.get((self.layer, self.tap, self.method.currentData())) if session else None
        if chosen is not None:
            edits.set_range(self.context.workspace, self.layer, self.tap, chosen)

    def _set(self, low: float, high: float) -> None:
        quality = self._quality(low, high)
        new = Range(low=low, high=high, method="manual", clipped=quality.clipped if quality else 0.0)
        edits.set_range(self.context.workspace, self.layer, self.tap, new)


def statistics_of(session: Session, layer: str, tap: str) -> LayerStatistics | None:
    """Return what was seen of a tensor; a tied weight's statistics are its owner's."""
    statistics = session.statistics.get((layer, tap))
    if statistics is None and tap == "weight" and layer in session.model.by_name:
        statistics = session.statistics.get((session.model.by_name[layer].tied_to or layer, tap))
    return statistics


def range_of(session: Session, layer: str, tap: str) -> Range | None:
    """Return the range in force; where no plan needs one, all that was seen, which clips nothing."""
    active = session.active_ranges.get((layer, tap))
    if tap == "input" and (active is None or active.method != "manual"):
        active = range_by(session.ranges, layer, tap, session.plan.of(layer).range_method) or active
    statistics = statistics_of(session, layer, tap)
    if active is not None or tap == "input" or statistics is None or not statistics.count:
        return active
    low, high = min(statistics.minimum, 0.0), max(statistics.maximum, 0.0)
    return Range(low=low, high=high, method="min-max", clipped=0.0) if low < high else None
