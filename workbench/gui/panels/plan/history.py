"""Named plans: keep the present one, take one back, and compare any two layer by layer."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QSplitter, QVBoxLayout

from workbench.gui.context import edits
from workbench.gui.context.context import Context
from workbench.gui.panels.panel import PanelPart
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.latest import same_objects
from workbench.insight.plan_differences import PricedPlan, differences, priced
from workbench.insight.sums import shown_unit
from workbench.measurement.units import short_unit
from workbench.session.workspace import State

PRESENT = "present plan"


PLANS = (
    Field("Plan", lambda plan: plan.name),
    Number("Bits", lambda plan: plan.totals and plan.totals.bits_per_weight, unit="per weight",
           text=lambda plan: f"{plan.totals.bits_per_weight:.3f}" if plan.totals else "⚠", tip="Bits per weight"),
    Number("Size", lambda plan: plan.totals and plan.totals.nbytes, quantities.data_size, unit="bytes"),
    Number("Loss", lambda plan: plan.totals and plan.totals.predicted, quantities.number, unit=METRIC_UNIT,
           tip="Of weights and, where they were scored, of rounded inputs; lower is better"),
    Number("Time", lambda plan: plan.microseconds, quantities.microseconds, unit="µs",
           tip="Median times of the layers' kernels one after another, at the smallest batch that was timed"),
)  # fmt: skip

DIFFERENCES = (
    Field("Layer", lambda row: row.layer, text=lambda row: ".".join(row.layer.split(".")[-3:])),
    Field("First", lambda row: row.schemes[0]),
    Field("Second", lambda row: row.schemes[1]),
    Number("Δ size", lambda row: row.nbytes[1] - row.nbytes[0],
           lambda value: quantities.signed(value, quantities.data_size), unit="bytes",
           tip="Bytes of the second minus the first"),
    Number("Δ loss", lambda row: row.losses[1] - row.losses[0],
           lambda value: quantities.signed(value, quantities.number), unit=METRIC_UNIT,
           tip="Loss of the second minus the first; above 0 is worse"),
)  # fmt: skip


def _basis(state: State) -> tuple[object, ...]:
    """Return what the priced plans depend on."""
    session = state.session
    if session is None:
        return ()
    return session.plan, session.plans, session.model, session.sensitivities, session.timings, state.metric


class PlanHistory(PanelPart):
    """The present plan and the named ones; two selected rows are compared below."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.plans = RecordsView("Named plans", PLANS, lambda plan: plan.name)
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

    def redraw(self, old: State, new: State) -> None:
        """Show the plans of the session."""
        session = new.session
        if session is None:
            return
        if same_objects(_basis(old), _basis(new)):
            return
        named = ((PRESENT, session.plan), *session.plans.items())
        plans = tuple(priced(session, name, plan, new.metric) for name, plan in named)
        self.plans.show_records(plans, short_unit(shown_unit(session, new.metric)))
        self._compare()

    def keep(self) -> None:
        """Keep the present plan under the name that was typed, or its own."""
        session = self.state.session
        if session is None:
            return
        name = self.name.text().strip() or session.plan.name
        self.context.workspace.edit(
            f"Keep the plan {name}",
            lambda now: replace(now, plans={**now.plans, name: replace(now.plan, name=name)}),
        )
        self.name.clear()

    def take_back(self) -> None:
        """Make the selected plan the present one."""
        chosen = [one for one in self._chosen() if one.name != PRESENT]
        if chosen:
            edits.set_plan(self.context.workspace, f"Take the plan {chosen[0].name}", chosen[0].plan)

    def delete(self) -> None:
        """Forget the selected named plans."""
        names = {one.name for one in self._chosen()} - {PRESENT}
        if names:
            self.context.workspace.edit(
                f"Delete {', '.join(sorted(names))}",
                lambda now: replace(now, plans={name: now.plans[name] for name in now.plans if name not in names}),
            )

    def _button(self, text: str, tip: str, clicked: object) -> QPushButton:
        button = QPushButton(text)
        button.setToolTip(tip)
        button.clicked.connect(lambda: clicked())  # type: ignore[operator]
        return button

    def _chosen(self) -> list[PricedPlan]:
        return self.plans.selected()

    def _compare(self) -> None:
        """Compare the two selected plans; one selected plan is compared with the present one."""
        state, chosen = self.state, self._chosen()
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
        self.changes.show_records(found, short_unit(shown_unit(state.session, state.metric)))
        self.figure.setText(
            f"{chosen[0].name} → {chosen[1].name}: {quantities.plural(len(found), 'layer')} "
            f"{'differs' if len(found) == 1 else 'differ'}"
        )
