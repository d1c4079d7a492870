"""Two sessions side by side: the open one, and another that is only read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QCheckBox, QFileDialog, QHBoxLayout, QPushButton, QTabWidget, QWidget

from workbench.gui.context.context import Context
from workbench.gui.panels.panel import Panel
from workbench.gui.shell import dialogs
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.records import Field, RecordsView
from workbench.insight import quantities
from workbench.insight.compare import Side, compare_sessions
from workbench.measurement.evaluation import Metric
from workbench.planning.plan import KEEP
from workbench.session.session import Session
from workbench.session.workspace import State
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions

SESSIONS = "Sessions (*.qwb)"


def _scheme(side: Side | None) -> str:
    if side is None:
        return "no such layer"
    given = side.assignment
    inputs = f" · {given.inputs}" if given.inputs else ""
    algorithm = "" if given.weights == KEEP else f" · {given.algorithm}"
    return f"{'FP' if given.weights == KEEP else given.weights}{inputs}{algorithm}"


def _bits(side: Side | None) -> str:
    return quantities.NONE if side is None else f"{side.bits:.2f}"


def _loss(side: Side | None) -> str:
    return quantities.NONE if side is None else quantities.number(side.loss)


def _interval(one: Metric | None) -> str:
    if one is None:
        return quantities.NONE
    value, low, high = (quantities.number(each, 4) for each in (one.value, one.low, one.high))
    return f"{value} ({low} to {high})"


def _change(row: Any) -> float:
    if row.first is None or row.second is None or None in (row.first.loss, row.second.loss):
        return float("nan")
    return float(row.second.loss - row.first.loss)


def _mark(tip: str) -> Field:
    return Field(title="≠", text=lambda row: "≠" if row.differs else "", key=lambda row: not row.differs, tip=tip)


FACTS = (
    _mark("The sessions differ in it"),
    Field(title="Fact", text=lambda row: row.title),
    Field(title="This session", text=lambda row: row.first or quantities.NONE),
    Field(title="Other session", text=lambda row: row.second or quantities.NONE),
)
LAYERS = (
    _mark("The sessions give the layer something else"),
    Field(title="Layer", text=lambda row: row.name),
    Field(title="This session", text=lambda row: _scheme(row.first)),
    Field(title="Other session", text=lambda row: _scheme(row.second)),
    Field(title="Bits", text=lambda row: _bits(row.first), numeric=True, tip="Bits per weight in this session",
          key=lambda row: row.first.bits if row.first else -1.0),
    Field(title="Other", text=lambda row: _bits(row.second), numeric=True, tip="Bits per weight in the other session",
          key=lambda row: row.second.bits if row.second else -1.0),
    Field(title="Loss", text=lambda row: _loss(row.first), numeric=True, tip="Loss by this session's table",
          key=lambda row: (row.first.loss or 0.0) if row.first else -1.0),
    Field(title="Other", text=lambda row: _loss(row.second), numeric=True, tip="Loss by the other session's table",
          key=lambda row: (row.second.loss or 0.0) if row.second else -1.0),
    Field(title="Change", text=lambda row: quantities.number(_change(row)), numeric=True,
          key=lambda row: (_change(row) == _change(row), _change(row)), tip="The other's loss less this one's"),
)  # fmt: skip
METRICS = (
    _mark("The 95 % intervals do not overlap"),
    Field(title="Metric", text=lambda row: row.metric.replace("_", " ")),
    Field(title="Unit", text=lambda row: row.unit),
    Field(title="This session", text=lambda row: _interval(row.first), tip="Newest value, 95 % interval"),
    Field(title="Other session", text=lambda row: _interval(row.second), tip="Newest value, 95 % interval"),
    Field(title="Data", text=lambda row: row.data),
)


class ComparePanel(Panel):
    """The other session stays until another one is chosen; it is never changed."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        self.other: Session | None = None
        self._other_path = Path()
        self._rows: dict[str, Sequence[Any]] = {}
        self.open = QPushButton("&Open Another Session…")
        self.open.setToolTip("Read a .qwb file to compare the open session with; neither is changed")
        self.open.clicked.connect(self.choose)
        self.differing = QCheckBox("Only &differences")
        self.differing.toggled.connect(lambda _: self._fill())
        self.figure = FittedLabel()
        self.figure.setProperty("role", "muted")
        self.tables = {
            "Layers": RecordsView("Layers of both sessions", LAYERS),
            "Facts": RecordsView("What the sessions were made from", FACTS),
            "Evaluations": RecordsView("What both sessions measured", METRICS),
        }
        self._room = QWidget()
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setAccessibleName("Views of the comparison")
        for title, table in self.tables.items():
            self.tabs.addTab(table, title)
        top = QHBoxLayout()
        top.addWidget(self.open)
        top.addWidget(self.figure, 1)
        top.addWidget(self.differing)
        layout = self.column()
        layout.addLayout(top)
        layout.addWidget(self.tabs, 1)
        layout.addWidget(self._room, 1)
        self.setFocusProxy(self.open)

    def redraw(self, old: State, new: State) -> None:
        """Compare again where plan, tables or evaluations changed."""
        session = new.session
        if session is None:
            self.say_empty("Open a session, then another one to compare it with.")
            return
        self.say_empty("")
        before = old.session
        same = before is not None and all(
            getattr(before, name) is getattr(session, name)
            for name in ("model", "plan", "sensitivities", "evaluations", "calibration", "locked")
        )
        if not same:
            self._compare()

    def borrow(self, live: Panel) -> None:
        """Compare with the live panel's other session."""
        if isinstance(live, ComparePanel):
            self.other, self._other_path = live.other, live._other_path
            self._compare()

    def choose(self) -> None:
        """Ask for a session file and read it."""
        self.context.tasks.start(self._choosing())

    async def _choosing(self) -> None:
        mode = QFileDialog.FileMode.ExistingFile
        path = await dialogs.ask_path(self.window(), "Compare with a session", mode=mode, filters=SESSIONS)
        if path is not None:
            await self.read(path)

    async def read(self, path: str) -> None:
        """Read the other session and show the comparison."""
        request = OPEN_SESSION.request(None, OpenSessionOptions(path=path))
        found = await self.context.runner.run(request, lambda: self._read_again(path))
        if found is not None:
            self.show_other(found, path)

    def show_other(self, session: Session, path: str) -> None:
        """Compare with a session that was read from ``path``."""
        self.other, self._other_path = session, Path(path)
        self._compare()

    def _read_again(self, path: str) -> None:
        self.context.tasks.start(self.read(path))

    def _compare(self) -> None:
        session = self.context.workspace.state.session
        self.differing.setVisible(self.other is not None)
        self.tabs.setVisible(self.other is not None)
        self._room.setVisible(self.other is None)
        if session is None or self.other is None:
            self.figure.setText("Nothing to compare with yet; neither session is changed by it")
            self._rows = {}
        else:
            found = compare_sessions(session, self.other)
            self._rows = {"Layers": found.layers, "Facts": found.facts, "Evaluations": found.metrics}
            count = sum(pair.differs for pair in found.layers)
            weights = "the same weights" if found.same_model else "other weights"
            self.figure.setText(
                f"against {self._other_path.name} ({weights}): {quantities.plural(count, 'layer')} of "
                f"{len(found.layers):,} {'differs' if count == 1 else 'differ'}"
            )
        self._fill()

    def _fill(self) -> None:
        for title, table in self.tables.items():
            rows = self._rows.get(title, ())
            table.show_records([row for row in rows if row.differs or not self.differing.isChecked()])

