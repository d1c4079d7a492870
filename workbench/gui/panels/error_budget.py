"""Where error enters and grows: signal to noise at every block's output, and which layers send the noise."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QHBoxLayout, QPushButton

from workbench.gui.context.context import Context
from workbench.gui.panels.panel import Panel
from workbench.gui.plots.depth import Depth
from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.theme import Colours
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.sensitivity.error_budget import BudgetPair
from workbench.session.workspace import State
from workbench.steps.checks.error_budget import ERROR_BUDGET, ErrorBudgetOptions

FIELDS = (
    Field("Layer", lambda row: row[0]),
    Number("Part", lambda row: row[1], quantities.share, unit="share",
           tip="Share of the noise at the last block's output that comes from the layer, as predicted"),
)  # fmt: skip


class ErrorBudgetPanel(Panel):
    """``Measure`` runs both models on a few samples; the answer belongs to the plan that it names."""

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__(context, colours)
        self.button = QPushButton("&Measure")
        self.button.setToolTip("Run the floating-point and the quantized model on a few calibration samples")
        self.button.clicked.connect(self.measure)
        self.figure = FittedLabel()
        self.figure.setProperty("role", "muted")
        self.plot = Depth(colours)
        self.table = RecordsView("Layers that send the most noise to the output", FIELDS)
        self.table.setMaximumWidth(300)
        top, middle = QHBoxLayout(), QHBoxLayout()
        top.addWidget(self.button)
        top.addWidget(self.figure, 1)
        middle.addWidget(self.plot, 1)
        middle.addWidget(self.table)
        layout = self.column()
        layout.addLayout(top)
        layout.addLayout(middle, 1)
        self.pair: BudgetPair | None = None
        self._fingerprint = ""
        self.setFocusProxy(self.button)

    def redraw(self, old: State, new: State) -> None:
        """Say what is missing; forget the budget of another model."""
        session = new.session
        if session is None or session.calibration is None or session.model.cannot_run:
            self.say_empty("Calibrate (F5), give layers a scheme, then measure where error enters and grows.")
            self.pair = None
            return
        self.say_empty("")
        if session.error_budget is not self.pair or session.model.fingerprint != self._fingerprint:
            self._fingerprint = session.model.fingerprint
            self.show_pair(session.error_budget)

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        super().recolour(colours)
        self.plot.recolour(colours)

    def measure(self) -> None:
        """Measure the present plan's budget in the engine."""
        self.context.tasks.start(self._measuring())

    async def _measuring(self) -> None:
        session = self.state.session
        if session is None:
            return
        await self.context.runner.work(ERROR_BUDGET.request(session, ErrorBudgetOptions()))

    def show_pair(self, pair: BudgetPair | None) -> None:
        """Show a budget, or that there is none yet."""
        self.pair = pair
        self.table.setVisible(pair is not None and pair.predicted is not None)
        if pair is None:
            self.figure.setText("Not measured yet; score the weight error (F6) first to have the prediction beside it")
            self.plot.show_lines((), ())
            self.table.show_records(())
            return
        if pair.predicted is not None:
            self.table.show_records(pair.predicted.worst(pair.predicted.blocks[-1], 12))
        self.plot.show_lines(pair.measured.blocks, budget_lines(pair))
        last = float(pair.measured.decibels[-1])
        found = f"{pair.plan_name}: {quantities.number(last)} dB at the output; line: measured"
        if pair.predicted is None:
            self.figure.say(f"{found}; score the weight error (F6) and measure again to see which layers it comes from",
                            found)  # fmt: skip
        else:
            self.figure.say(f"{found}, dashes: predicted")


def budget_lines(pair: BudgetPair) -> list[tuple[str, np.ndarray]]:
    """Return the lines of a budget: name and decibels, float64 ``[blocks]``."""
    lines = [("measured", pair.measured.decibels)]
    return lines if pair.predicted is None else [*lines, ("predicted", pair.predicted.decibels)]
