"""Whether a plan's losses add up: predicted, measured one by one and measured together, and who interacts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from workbench.gui.context.context import Context
from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.measurement.units import loss_unit, short_unit
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.session.workspace import State

WHAT_TO_DO = (
    "No audit yet: Audit measures the loss of each quantized layer alone, of all together, and of all but one. "
    "Score the predicted KL (F6) first to have the prediction beside it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The losses of one layer in nats."""

    layer: str
    predicted: float
    alone: float
    joined: float
    interaction: float


FIELDS = (
    Field("Layer", lambda row: row.layer),
    Number("Interaction", lambda row: row.interaction, unit="nats", key=lambda row: abs(row.interaction),
           tip="Added last minus alone: above 0 where the layer's error makes the others' worse"),
    Number("Added last", lambda row: row.joined, unit="nats",
           tip="What quantizing the layer adds when all others are quantized already"),
    Number("Alone", lambda row: row.alone, unit="nats", tip="Loss measured with only this layer quantized"),
    Number("Predicted", lambda row: row.predicted, unit="nats",
           tip="Predicted KL of the layer; a dash where it is not scored"),
)  # fmt: skip

FIGURES = (
    ("Predicted", "Sum of the layers' predicted losses, in nats; a dash where a layer is not scored"),
    ("Predicted together", "Predicted loss of the whole plan, in nats: the sum and what layers are predicted to cost "
     "each other"),
    ("One by one", "Sum of the losses measured with one layer quantized at a time, in nats"),
    ("Together", "Loss measured with the whole plan's weights quantized, in nats"),
    ("Calibrated correction", "Together over predicted together: what predictions near this plan are to be multiplied "
     "with; fitted to this measurement, so it is no test of the prediction"),
)  # fmt: skip


class AuditView(PanelPart):
    """Three sums side by side with the correction, the finding in words, the layers by their interaction."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.told: PlanAudit | None = None
        self.button = QPushButton("A&udit…")
        self.button.setAccessibleName("Audit the plan")
        self.button.setToolTip("Measure whether the losses of the plan's layers add up (Ctrl+Shift+F8)")
        self.button.clicked.connect(lambda: context.trigger("audit"))
        self.words = FittedLabel(WHAT_TO_DO)
        self.words.setProperty("role", "muted")
        self.sums = QWidget()
        self.figures = self._figures()
        self.table = RecordsView("Layers by their interaction", FIELDS)
        self._room = QWidget()
        top = QHBoxLayout()
        top.addWidget(self.button)
        top.addWidget(self.words, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.addLayout(top)
        column.addWidget(self.sums)
        column.addWidget(self.table, 1)
        column.addWidget(self._room, 1)
        self._show_rows()

    def redraw(self, old: State, new: State) -> None:
        """Show the session's audit; say so where the plan is another one by now."""
        session = new.session
        told = None if session is None else session.audit
        if told is not self.told:
            self.told = told
            self._show_rows()
        if session is None or told is None:
            self.words.setText(WHAT_TO_DO)
        else:
            self._say(told, changed=session.plan.hash != told.plan_hash)

    def _say(self, told: PlanAudit, *, changed: bool) -> None:
        left = (
            ("rounded inputs", told.rounded_inputs), ("rounded keys and values", told.cached),
        )  # fmt: skip
        notes = [f"{told.plan_name}: {told.audit.sentence()}"]
        notes += [f"weights alone, not the {what} of {quantities.plural(n, 'layer')}" for what, n in left if n]
        notes += told.audit.notes
        if changed:
            notes.insert(0, "The plan has changed since")
        verdict = told.audit.sentence().partition(":")[0]
        short = f"{verdict} ({quantities.plural(told.audit.samples, 'sample')})"
        whose = "The plan has changed since; " if changed else f"{told.plan_name}: "
        self.words.say("; ".join(notes), f"{whose}{short}", short)

    def _show_rows(self) -> None:
        found = None if self.told is None else self.told.audit
        for widget in (self.sums, self.table):
            widget.setVisible(found is not None)
        self._room.setVisible(found is None)
        self.table.show_records(() if found is None else rows_of(found))
        for label, text in zip(self.figures, figures_of(found, self._unit()), strict=True):
            label.setText(text)

    def _unit(self) -> str:
        session = self.state.session
        return "" if session is None else short_unit(loss_unit(session.model.output))

    def _figures(self) -> tuple[QLabel, ...]:
        grid = QGridLayout(self.sums)
        grid.setContentsMargins(0, 2, 0, 2)
        found = []
        for place, (title, tip) in enumerate(FIGURES):
            head, value = QLabel(title), QLabel(quantities.NONE)
            head.setProperty("role", "muted")
            value.setProperty("role", "figure")
            value.setAccessibleName(title)
            for label in (head, value):
                label.setToolTip(tip)
            grid.addWidget(head, 0, place)
            grid.addWidget(value, 1, place)
            grid.setColumnStretch(place, 1)
            found.append(value)
        return tuple(found)


def rows_of(audit: Audit) -> tuple[Row, ...]:
    """Return every layer's losses, the largest interaction first, whatever its sign."""
    place = {name: index for index, name in enumerate(audit.layers)}
    return tuple(
        Row(
            layer=name, predicted=float(audit.predicted[place[name]]), alone=float(audit.alone[place[name]]),
            joined=float(audit.joined[place[name]]), interaction=float(audit.interaction[place[name]]),
        )
        for name in audit.most_interacting(len(audit.layers))
    )  # fmt: skip


def figures_of(found: Audit | None, unit: str) -> tuple[str, ...]:
    """Return what stands under FIGURES, losses in ``unit``; a dash for what is not known."""
    if found is None:
        return (quantities.NONE,) * len(FIGURES)
    sums = [quantities.NONE if math.isnan(one) else f"{quantities.number(one)} {unit}"
            for one in (found.predicted_sum, found.predicted_whole, found.alone_sum, found.whole)]  # fmt: skip
    fitted = quantities.NONE if math.isnan(found.correction) else f"× {quantities.number(found.correction)} (fitted)"
    return *sums, fitted
