"""Named plans: save the present one, return to another, and compare any two layer by layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLineEdit, QToolButton

from workbench.gui.context import edits
from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.widgets import button, fill, fitted, named, row, splitter, switch
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.plan_differences import PRESENT, Difference, PricedPlan, differences, priced
from workbench.insight.sums import shown_unit
from workbench.measurement.units import short_unit
from workbench.planning.latest import same_objects
from workbench.session.edits import is_branch, last_saved
from workbench.session.session import Session
from workbench.session.workspace import State

BESIDE = 900
"""Pixels of width from which on both tables have room beside each other."""

APART = 0.05
"""Share by which the sum of rows may differ from the difference of whole plans without a word."""

PLANS = (
    Field("Plan", lambda plan: plan.title, text=lambda plan: plan.name or tr(plan.title)),
    Number("Bits", lambda plan: plan.totals and plan.totals.bits_per_weight, unit="per weight",
           text=lambda plan: quantities.fixed(plan.totals.bits_per_weight, 3) if plan.totals else "⚠",
           tip="Bits per weight"),
    Number("Size", lambda plan: plan.totals and plan.totals.nbytes, quantities.data_size, unit="bytes"),
    Number("Loss", lambda plan: plan.totals and plan.totals.predicted, unit=METRIC_UNIT,
           tip="Of weights and, where they were scored, of rounded inputs; lower is better"),
    Number("Time", lambda plan: plan.microseconds, quantities.microseconds, unit="µs",
           tip="Median times of the layers' kernels one after another, at the smallest batch that was timed"),
)  # fmt: skip

DIFFERENCES = (
    Field("Layer", lambda row: row.layer, text=lambda row: ".".join(row.layer.split(".")[-3:])),
    Field("Scheme in the first", lambda row: row.schemes[0], tip="How the first plan stores the weights"),
    Field("Scheme in the second", lambda row: row.schemes[1], tip="How the second plan stores the weights"),
    Number("Δ size", lambda row: row.nbytes[1] - row.nbytes[0],
           lambda value: quantities.signed(value, quantities.data_size), unit="bytes",
           tip="Bytes of the second minus the first"),
    Number("Δ loss", lambda row: row.losses[1] - row.losses[0],
           lambda value: quantities.signed(value, quantities.loss), unit=METRIC_UNIT,
           tip="Loss of the second minus the first, for each layer as if it were the only one; above 0 is worse. "
               "Errors of several layers cost more or less together, so the rows need not add up to the plans' "
               "difference"),
)  # fmt: skip


def _basis(state: State) -> tuple[object, ...]:
    """Return what the priced plans depend on."""
    session = state.session
    if session is None:
        return ()
    return session.plan, session.plans, session.model, session.sensitivities, session.timings, state.metric


class PlanHistory(PanelPart):
    """The current plan and the named ones; two selected rows are compared below."""

    def _build(self) -> None:
        self.plans = RecordsView("Named plans", PLANS, lambda plan: plan.name)
        self.changes = RecordsView("Layers that two plans store differently", DIFFERENCES)
        self.figure = fitted(role="muted")
        hint = "Name for the current plan"
        self.name = named(QLineEdit(placeholderText=tr(hint)), hint)
        self.name.returnPressed.connect(self.keep)
        self.keep_button = button("&Save As", self.keep, "Save the current plan in this session under that name")
        self.take_button = button("&Use", self.restore, "Make the selected plan the current one")
        self.delete_button = button("&Delete", self.delete, "Remove the selected plan from the session")
        tip = "Frame the cells of both plans in the heatmap where they differ, and list the changes in the tree"
        self.mark = switch(QToolButton(), "&Mark", self._mark, tip)
        line = row(self.name, self.keep_button, self.take_button, self.delete_button, self.mark)
        self._parts = splitter(self.plans, self.changes, sizes=(200, 300))
        fill(self, line, self._parts, self.figure, stretch=self._parts)
        self.plans.selectionModel().selectionChanged.connect(lambda: self._compare())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the tables below each other where they would be cut beside each other."""
        super().resizeEvent(event)
        wide = event.size().width() >= BESIDE
        direction = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if self._parts.orientation() != direction:
            self._parts.setOrientation(direction)
            self._parts.setSizes([200, 300] if wide else [100, 140])

    def redraw(self, old: State, new: State) -> None:
        session = new.session
        if session is None or same_objects(_basis(old), _basis(new)):
            return
        plans = {PRESENT: session.plan} | {name: plan for name, plan in session.plans.items() if name != PRESENT}
        rows = tuple(priced(session, name, plan, new.metric) for name, plan in plans.items())
        self.plans.show_records(rows, short_unit(shown_unit(session, new.metric)))
        self._compare()

    def keep(self) -> None:
        """Save the current plan in the session under the name that was typed, or its own."""
        if self.state.session is None:
            return
        name = self.name.text().strip() or self.state.session.plan.name
        if is_branch(name):  # a later branch would take its place
            text = tr("the workbench itself gives the name {}").format(name)
            self.context.messages.say("Choose another name", text, "warning")
            return
        replaced = name in self.state.session.plans
        self.context.workspace.edit(f"Save the plan {name}", partial(_saved, name))
        words = "Replaced the saved plan {}; undo brings it back" if replaced else "Saved the current plan as {}"
        self.context.messages.say(tr(words).format(name))
        self.name.clear()

    def restore(self) -> None:
        """Make the selected plan the current one."""
        for plan in self._selected_named():
            edits.set_plan(self.context.workspace, f"Use the plan {plan.name}", plan.plan)

    def delete(self) -> None:
        """Forget the selected named plans."""
        names = sorted(plan.name for plan in self._selected_named())
        if names:
            self.context.workspace.edit(
                f"Delete {', '.join(names)}",
                lambda now: replace(now, plans={name: now.plans[name] for name in now.plans if name not in names}),
            )

    def _mark(self, on: bool) -> None:
        """Mark the differences; where no plan is selected, those from the one that was saved last."""
        name = last_saved(plan.name for plan in self.plans.records.records[1:])
        if on and not name and not self._selected_named():
            self.mark.setChecked(False)
            why = "save a plan first, then mark what later edits change"
            self.context.messages.say("Nothing to mark", why, "warning")
            return
        if on and not self._selected_named():
            rows = {self.plans.records.identity(row): row for row in range(len(self.plans.records.records))}
            self.plans.selectRow(rows[name])
        self._compare()

    def _selected_named(self) -> list[PricedPlan]:
        return [plan for plan in self.plans.selected() if plan.name != PRESENT]

    def _compare(self) -> None:
        """Compare the two selected plans; a single selected plan is compared with the present one."""
        state, pair = self.state, self.plans.selected()
        named = self._selected_named()
        self.take_button.setEnabled(len(named) == 1)  # of two that are compared, neither is meant
        self.delete_button.setEnabled(bool(named))
        if len(pair) == 1:
            pair = [self.plans.records.records[0], *pair]
        marked = self.mark.isChecked() and state.session is not None and len(pair) == 2
        self.context.workspace.show_contrast((pair[0].name, pair[1].name) if marked else ())
        if state.session is None or len(pair) != 2:
            self.changes.show_records(())
            self.figure.setText("Select a plan to compare it with the current one, or two to compare them")
            return
        first, second = pair
        rows = differences(state.session, first, second, state.metric)
        self.changes.show_records(rows, short_unit(shown_unit(state.session, state.metric)))
        verb = "differs" if len(rows) == 1 else "differ"
        text = f"{first.title} → {second.title}: {quantities.plural(len(rows), 'layer')} {verb}"
        if first.totals is not None and second.totals is not None:
            text += f", {quantities.signed(second.totals.nbytes - first.totals.nbytes, quantities.data_size)}"
            if first.totals.predicted is not None and second.totals.predicted is not None:
                loss = second.totals.predicted - first.totals.predicted
                shown = quantities.signed(loss, quantities.number)
                text += f", {shown} {short_unit(shown_unit(state.session, state.metric))}".rstrip() + _alone(rows, loss)
        self.figure.setText(text)


def _saved(name: str, session: Session) -> Session:
    """Return the session with the current plan under that name, as the last one of those that are saved."""
    others = {other: plan for other, plan in session.plans.items() if other != name}
    return replace(session, plans={**others, name: replace(session.plan, name=name)})


def _alone(rows: Sequence[Difference], loss: float) -> str:
    """Say what the rows add up to, where that is not what the whole plans differ by."""
    alone = math.fsum(row.losses[1] - row.losses[0] for row in rows)
    if math.isnan(alone) or abs(alone - loss) <= APART * max(abs(alone), abs(loss)):
        return ""
    return f"; the rows add up to {quantities.signed(alone, quantities.number)}, each layer as if it were the only one"
