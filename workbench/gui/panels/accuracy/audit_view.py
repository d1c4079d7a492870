"""Whether a plan's losses add up: predicted, measured one by one and measured together, and who interacts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from workbench.gui.panels.panel import PanelPart
from workbench.gui.shell.widgets import button, fill, fitted, label, row
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.measurement.units import loss_unit, short_unit
from workbench.sensitivity.audit import Audit, PlanAudit
from workbench.session.calibrated_ranges import identity
from workbench.session.workspace import State

WHAT_TO_DO = (
    "No audit yet: Audit measures the loss of each quantized layer alone, of all together, and of all but one. "
    "Score the predicted KL (F6) first to have the prediction beside it."
)


class Row(NamedTuple):
    """The losses of one layer: nats, or the unit of its model's loss."""

    layer: str
    predicted: float
    alone: float
    joined: float
    interaction: float


FIELDS = (
    Field("Layer", lambda row: row.layer),
    Number("Interaction", lambda row: row.interaction, unit=METRIC_UNIT, key=lambda row: abs(row.interaction),
           tip="Added last minus alone: above 0 where the layer's error makes the others' worse"),
    Number("Added last", lambda row: row.joined, unit=METRIC_UNIT,
           tip="What quantizing the layer adds when all others are quantized already"),
    Number("Alone", lambda row: row.alone, unit=METRIC_UNIT, tip="Loss measured with only this layer quantized"),
    Number("Predicted", lambda row: row.predicted, unit=METRIC_UNIT,
           tip="Predicted KL of the layer; a dash where it is not scored"),
)  # fmt: skip

FIGURES = (
    ("Predicted", "Sum of the layers' predicted losses; a dash where a layer is not scored"),
    ("Predicted together", "Predicted loss of the whole plan: the sum and what layers are predicted to cost "
     "each other"),
    ("One by one", "Sum of the losses measured with one layer quantized at a time"),
    ("Together", "Loss measured with the whole plan's weights quantized"),
    ("Calibrated correction", "Together over predicted together: what predictions near this plan are to be multiplied "
     "with; fitted to this measurement, so it does not test the prediction"),
)  # fmt: skip


class AuditView(PanelPart):
    """Three sums side by side with the correction, the finding in words, the layers by their interaction."""

    def _build(self) -> None:
        self.result: PlanAudit | None = None
        tip = "Measure whether the losses of the plan's layers add up (Ctrl+Shift+F8)"
        self.button = button("A&udit…", lambda: self.context.trigger("audit"), tip, name="Audit the plan")
        self.words = fitted(WHAT_TO_DO)
        self.sums = QWidget()
        self.figures = self._figures()
        self.table = RecordsView("Layers by their interaction", FIELDS)
        top = row(self.button, self.words, stretch=self.words)
        fill(self, top, self.sums, self.table, None, stretch=self.table)
        self._show_rows()

    def redraw(self, old: State, new: State) -> None:
        """Show the session's audit; say so where the plan is another one by now."""
        session = new.session
        result = None if session is None else session.audit
        if result is not self.result:
            self.result = result
            self._show_rows()
        if session is None or result is None:
            self.words.setText(WHAT_TO_DO)
        else:
            changed = identity(session, session.plan) != result.plan_hash
            self._say(result, loss_unit(session.model.output), changed=changed)

    def _say(self, result: PlanAudit, unit: str, *, changed: bool) -> None:
        sentence, left = quantities.marked_in(result.audit.sentence(unit)), (
            ("rounded inputs", result.rounded_inputs), ("rounded keys and values", result.cached),
        )  # fmt: skip
        notes = ["The plan has changed since"] if changed else []
        notes += [f"{result.plan_name}: {sentence}"]
        notes += [f"weights alone, not the {what} of {quantities.plural(n, 'layer')}" for what, n in left if n]
        notes += result.audit.notes
        short = f"{sentence.partition(':')[0]} ({quantities.plural(result.audit.samples, 'sample')})"
        whose = "The plan has changed since; " if changed else f"{result.plan_name}: "
        self.words.say("; ".join(notes), f"{whose}{short}", short)

    def _show_rows(self) -> None:
        audit, session = None if self.result is None else self.result.audit, self.state.session
        self.sums.setVisible(audit is not None)
        self.table.setVisible(audit is not None)
        unit = "" if session is None else short_unit(loss_unit(session.model.output))
        self.table.show_records(() if audit is None else rows_of(audit), unit)
        for figure, text in zip(self.figures, figures_of(audit, unit), strict=True):
            figure.setText(text)

    def _figures(self) -> tuple[QLabel, ...]:
        grid, figures = QGridLayout(self.sums), []
        grid.setContentsMargins(0, 2, 0, 2)
        for place, (title, tip) in enumerate(FIGURES):
            figures.append(label(quantities.NONE, "figure", name=title, tip=tip))
            grid.addWidget(label(title, "muted", tip=tip), 0, place)
            grid.addWidget(figures[-1], 1, place)
            grid.setColumnStretch(place, 1)
        return tuple(figures)


def rows_of(audit: Audit) -> tuple[Row, ...]:
    """Return every layer's losses, the largest interaction first, whatever its sign."""
    columns = (audit.predicted, audit.alone, audit.joined, audit.interaction)
    losses = dict(zip(audit.layers, np.stack(columns, axis=1).tolist(), strict=True))
    return tuple(Row(name, *losses[name]) for name in audit.most_interacting(len(audit.layers)))


def figures_of(audit: Audit | None, unit: str) -> tuple[str, ...]:
    """Return what stands under FIGURES, losses in ``unit``; a dash for what is not known."""
    if audit is None:
        return (quantities.NONE,) * len(FIGURES)
    sums = [quantities.NONE if math.isnan(loss) else f"{quantities.number(loss)} {unit}"
            for loss in (audit.predicted_sum, audit.predicted_whole, audit.alone_sum, audit.whole)]  # fmt: skip
    factor = audit.correction
    return *sums, quantities.NONE if math.isnan(factor) else f"× {quantities.number(factor)} (fitted)"
