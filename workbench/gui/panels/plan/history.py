"""Named plans: keep the present one, take one back, and compare any two layer by layer."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QSplitter, QVBoxLayout, QWidget

from workbench.gui.context import edits
from workbench.gui.context.context import Context
from workbench.gui.tables.records import Field, RecordsView
from workbench.insight import quantities
from workbench.insight.latest import same_objects
from workbench.insight.plan_differences import PricedPlan, differences, priced
from workbench.session.workspace import State

PRESENT = "present plan"


PLANS = (
    Field(title="Plan", text=lambda one: one.name),
    Field(title="Bits", text=lambda one: f"{one.totals.bits_per_weight:.3f}" if one.totals else "⚠", numeric=True,
          key=lambda one: one.totals.bits_per_weight if one.totals else 0.0, tip="Bits per weight"),
    Field(title="Size", text=lambda one: quantities.data_size(one.totals.nbytes if one.totals else None), numeric=True,
          key=lambda one: one.totals.nbytes if one.totals else 0),
    Field(title="Loss", text=lambda one: quantities.number(one.totals.predicted if one.totals else None), numeric=True,
          key=lambda one: (one.totals.predicted or 0.0) if one.totals else 0.0,
          tip="Of weights and, where they were scored, of rounded inputs; lower is better"),
    Field(title="Time", text=lambda one: quantities.NONE if one.microseconds is None
          else quantities.microseconds(one.microseconds), numeric=True, key=lambda one: one.microseconds or 0.0,
          tip="Median times of the layers' kernels one after another, at the smallest batch that was timed"),
)  # fmt: skip

DIFFERENCES = (
    Field(title="Layer", text=lambda one: ".".join(one.layer.split(".")[-3:]), key=lambda one: one.layer),
    Field(title="First", text=lambda one: one.schemes[0]),
    Field(title="Second", text=lambda one: one.schemes[1]),
    Field(title="Δ size", text=lambda one: quantities.signed(one.nbytes[1] - one.nbytes[0], quantities.data_size),
          numeric=True, key=lambda one: one.nbytes[1] - one.nbytes[0], tip="Bytes of the second less the first"),
    Field(title="Δ loss", text=lambda one: quantities.signed(one.losses[1] - one.losses[0], quantities.number),
          numeric=True, key=lambda one: one.losses[1] - one.losses[0],
          tip="Loss of the second less the first; above 0 is worse"),
)  # fmt: skip


class PlanHistory(QWidget):
    """The present plan and the named ones; two selected rows are compared below."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context
        self._of: tuple[object, ...] = ()
        self.plans = RecordsView("Named plans", PLANS)
        self.changes = RecordsView("Layers that two plans store differently", DIFFERENCES)
        self.figure = QLabel()
        self.figure.setProperty("role", "muted")
        self.name = QLineEdit(placeholderText="Name for the present plan")
        self.name.setAccessibleName("Name for the present plan")
        self.name.returnPressed.connect(self.keep)
        self.keep_button = self._button("&Keep", "Keep the present plan under that name", self.keep)
        self.take_button = self._button("&Take", "Make the selected plan the present one", self.take_back)
        self.delete_button = self._button("&Delete", "Forget the selected plan", self.delete)
        line = QHBoxLayout()
        for widget in (self.name, self.keep_button, self.take_button, self.delete_button):
            line.addWidget(widget)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(self.plans)
        splitter.addWidget(self.changes)
        splitter.setSizes([200, 300])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(line)
        layout.addWidget(splitter, 1)
        layout.addWidget(self.figure)
        self.plans.selectionModel().selectionChanged.connect(lambda: self._compare())
        self.setFocusProxy(self.plans)

    def take(self, state: State) -> None:
        """Show the plans of the state."""
        session = state.session
        if session is None:
            return
        of = (session.plan, session.plans, session.model, session.sensitivities, session.timings, state.metric)
        if same_objects(of, self._of):
            return
        self._of = of
        named = ((PRESENT, session.plan), *session.plans.items())
        self.plans.show_records(tuple(priced(session, name, plan, state.metric) for name, plan in named))
        self._compare()

    def keep(self) -> None:
        """Keep the present plan under the name that was typed, or its own."""
        session = self._context.workspace.state.session
        if session is None:
            return
        name = self.name.text().strip() or session.plan.name
        kept = {**session.plans, name: replace(session.plan, name=name)}
        self._context.workspace.edit(f"Keep the plan {name}", lambda now: replace(now, plans=kept))
        self.name.clear()

    def take_back(self) -> None:
        """Make the selected plan the present one."""
        chosen = [one for one in self._chosen() if one.name != PRESENT]
        if chosen:
            edits.set_plan(self._context.workspace, f"Take the plan {chosen[0].name}", chosen[0].plan)

    def delete(self) -> None:
        """Forget the selected named plans."""
        names = {one.name for one in self._chosen()} - {PRESENT}
        session = self._context.workspace.state.session
        if names and session is not None:
            left = {name: plan for name, plan in session.plans.items() if name not in names}
            self._context.workspace.edit(f"Delete {', '.join(sorted(names))}", lambda now: replace(now, plans=left))

    def _button(self, text: str, tip: str, clicked: object) -> QPushButton:
        button = QPushButton(text)
        button.setToolTip(tip)
        button.clicked.connect(lambda: clicked())  # type: ignore[operator]
        return button

    def _chosen(self) -> list[PricedPlan]:
        rows = self.plans.selectionModel().selectedRows()
        return [self.plans.records.record(row.row()) for row in sorted(rows, key=lambda row: row.row())]

    def _compare(self) -> None:
        """Compare the two selected plans; one selected plan is compared with the present one."""
        state, chosen = self._context.workspace.state, self._chosen()
        named = [one for one in chosen if one.name != PRESENT]
        self.take_button.setEnabled(bool(named))
        self.delete_button.setEnabled(bool(named))
        if len(chosen) == 1 and self.plans.records.records:
            chosen = [self.plans.records.records[0], chosen[0]]
        if state.session is None or len(chosen) != 2:
            self.changes.show_records(())
            self.figure.setText("Select two plans to compare them")
            return
        found = differences(state.session, chosen[0], chosen[1], state.metric)
        self.changes.show_records(found)
        self.figure.setText(
            f"{chosen[0].name} → {chosen[1].name}: {quantities.plural(len(found), 'layer')} "
            f"{'differs' if len(found) == 1 else 'differ'}"
        )
