"""Two sessions side by side: the open one, and another that is only read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QCheckBox, QFileDialog

from workbench.gui.panels.panel import Panel
from workbench.gui.shell import dialogs
from workbench.gui.shell.widgets import button, fitted, row, switch, tabs
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.compare import SessionComparison, Side, compare_sessions
from workbench.measurement.evaluation import Metric
from workbench.measurement.metrics import metric_title
from workbench.measurement.units import short_unit
from workbench.planning.plan import KEEP
from workbench.session.workspace import State
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions

SESSIONS = "Sessions (*.qwb)"


MEASURED = "The session's plan as it was evaluated last; where it was not, the plan that was evaluated last"


def _scheme(side: Side | None) -> str:
    if side is None:
        return "no such layer"
    assignment = side.assignment
    inputs = f" · {assignment.inputs}" if assignment.inputs else ""
    return f"FP{inputs}" if assignment.weights == KEEP else f"{assignment.weights}{inputs} · {assignment.algorithm}"


def _precise(value: float) -> str:
    return quantities.number(value, 4)


def _interval(metric: Metric | None, show: Callable[[float], str]) -> str:
    return "" if metric is None else f"{show(metric.low)} to {show(metric.high)}"


def _change(row: Any) -> float:
    if row.first is None or row.second is None or None in (row.first.loss, row.second.loss):
        return float("nan")
    return float(row.second.loss - row.first.loss)


def _mark(tip: str) -> Field:
    return Field("≠", lambda row: row.differs, lambda differs: "≠" if differs else "", tip=tip,
                 key=lambda row: not row.differs)  # fmt: skip


FACTS = (
    _mark("The sessions differ here"),
    Field("Fact", lambda row: row.title, words=True),
    Field("This session", lambda row: row.first or quantities.NONE, words=True),
    Field("Other session", lambda row: row.second or quantities.NONE, words=True),
)
LAYERS = (
    _mark("The plans treat the layer differently"),
    Field("Layer", lambda row: row.name),
    Field("This session", lambda row: _scheme(row.first)),
    Field("Other session", lambda row: _scheme(row.second)),
    Number("Bits, this", lambda row: row.first and row.first.bits, partial(quantities.fixed, places=2),
           unit="per weight", tip="Bits per weight in this session"),
    Number("Bits, other", lambda row: row.second and row.second.bits, partial(quantities.fixed, places=2),
           unit="per weight", tip="Bits per weight in the other session"),
    Number("Loss, this", lambda row: row.first and row.first.loss, unit=METRIC_UNIT,
           tip="Loss by this session's scores; lower is better"),
    Number("Loss, other", lambda row: row.second and row.second.loss, unit=METRIC_UNIT,
           tip="Loss by the other session's scores; lower is better"),
    Number("Change", _change, unit=METRIC_UNIT, tip="The other session's loss minus this session's"),
)  # fmt: skip
METRICS = (
    _mark("The 95 % intervals do not overlap"),
    Field("Metric", lambda row: metric_title(row.metric), words=True),
    Field("Unit", lambda row: row.unit),
    Number("This session", lambda row: row.first and row.first.value, _precise, tip=MEASURED),
    Field("95 % interval", lambda row: _interval(row.first, repr), text=lambda row: _interval(row.first, _precise),
          words=True, tip="By bootstrap over samples"),
    Number("Other session", lambda row: row.second and row.second.value, _precise, tip=MEASURED),
    Field("95 % interval", lambda row: _interval(row.second, repr), text=lambda row: _interval(row.second, _precise),
          words=True, tip="By bootstrap over samples"),
    Field("Plan, this", lambda row: row.plans[0], tip="The plan that was evaluated in this session"),
    Field("Plan, other", lambda row: row.plans[1], tip="The plan that was evaluated in the other session"),
    Field("Data", lambda row: row.data),
)  # fmt: skip


class ComparePanel(Panel):
    """The other session stays until another one is chosen; it is never changed."""

    def _build(self) -> None:
        self._rows: dict[str, Sequence[Any]] = {}
        self._unit = ""
        tip = "Read a .qwb file to compare the open session with; neither is changed"
        self.open = button("&Open Another Session…", self.choose, tip)
        self.differing = switch(QCheckBox(), "Only &differences", lambda _: self._fill(), "")
        self.figure = fitted()
        self.tables = {
            "Layers": RecordsView("Layers of both sessions", LAYERS),
            "Facts": RecordsView("What the sessions were made from", FACTS),
            "Evaluations": RecordsView("What both sessions measured", METRICS),
        }
        self.tabs = tabs("Views of the comparison", self.tables.items())
        top = row(self.open, self.figure, self.differing, stretch=self.figure)
        self.column(top, self.tabs, None, stretch=self.tabs, focus=(self.open,))

    def redraw(self, old: State, new: State) -> None:
        """Compare again where plan, tables or evaluations changed."""
        session, before = new.session, old.session
        if session is None or new.compared is None:
            text = "Open another session to see both side by side: layers, losses and evaluations. Neither is changed."
            self.say_empty(text if session else "Open a session, then another one to compare it with.",
                           own=self.open if session else None)  # fmt: skip
            return
        self.say_empty("")
        same = (
            before is not None
            and old.compared is new.compared
            and all(
                getattr(before, name) is getattr(session, name)
                for name in ("model", "plan", "sensitivities", "evaluations", "calibration", "locked", "target")
            )
        )
        if not same:
            self._compare(new)

    def choose(self) -> None:
        """Ask for a session file, read it and show the comparison."""
        self.context.tasks.start(self._choose())

    async def _choose(self) -> None:
        mode = QFileDialog.FileMode.ExistingFile
        path = await dialogs.ask_path(self.window(), "Compare with a session", mode=mode, filters=SESSIONS)
        if path is not None:
            request = OPEN_SESSION.request(None, OpenSessionOptions(path=path))
            self.context.runner.ask(request, lambda other: self.context.workspace.compare_with(other, Path(path)))

    def _compare(self, state: State) -> None:
        session, other = state.session, state.compared
        if session is None or other is None:
            return
        comparison = compare_sessions(session, other)
        self._unit = comparison.unit
        self._rows = {
            "Layers": comparison.layers, "Facts": comparison.facts, "Evaluations": comparison.metrics,
        }  # fmt: skip
        weights = "the same weights" if comparison.same_model else "other weights"
        self.figure.setText(f"against {state.compared_path.name} ({weights}): {differing_layers(comparison)}")
        self._fill()

    def _fill(self) -> None:
        for title, table in self.tables.items():
            rows = self._rows.get(title, ())
            shown = [row for row in rows if row.differs or not self.differing.isChecked()]
            table.show_records(shown, short_unit(self._unit) or self._unit)


def differing_layers(comparison: SessionComparison) -> str:
    """Return how many layers differ, as words."""
    count = sum(pair.differs for pair in comparison.layers)
    verb = "differs" if count == 1 else "differ"
    return f"{quantities.plural(count, 'layer')} of {quantities.whole(len(comparison.layers))} {verb}"
