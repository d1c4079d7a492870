"""Where error enters and grows: signal to noise at every block's output, and which layers send the noise."""

from __future__ import annotations

import numpy as np

from workbench.gui.panels.panel import Panel
from workbench.gui.plots.depth import Depth
from workbench.gui.shell.widgets import button, fitted, row
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.sensitivity.error_budget import BudgetPair, ErrorBudget
from workbench.session.calibrated_ranges import identity
from workbench.session.workspace import State
from workbench.steps.checks.error_budget import ERROR_BUDGET, ErrorBudgetOptions

FIELDS = (
    Field("Layer", lambda row: row[0]),
    Number("Part", lambda row: row[1], quantities.share, unit="share",
           tip="Share of the noise at the last block's output that comes from the layer, as predicted"),
)  # fmt: skip


class ErrorBudgetPanel(Panel):
    """``Measure`` runs both models on a few samples; the answer belongs to the plan that it names."""

    def _build(self) -> None:
        tip = "Run the floating-point and the quantized model on a few calibration samples"
        self.button = button("&Measure", self.measure, tip)
        self.figure = fitted()
        self.plot = Depth(self.colours)
        self.table = RecordsView("Layers that send the most noise to the output", FIELDS)
        self.table.setMaximumWidth(300)
        middle = row(self.plot, self.table, stretch=self.plot)
        top = row(self.button, self.figure, stretch=self.figure)
        self.column(top, middle, None, stretch=middle, focus=(self.button,))
        self.pair: BudgetPair | None = None
        self._fingerprint = ""

    def redraw(self, old: State, new: State) -> None:
        """Describe what is missing; forget the budget of another model."""
        session = new.session
        if session is None or session.calibration is None or session.model.cannot_run:
            self.say_empty(
                "Calibrate (F5), give layers a scheme, then measure where error enters and grows.", "calibrate"
            )
            self.pair = None
            return
        empty = "" if session.error_budget else (
            "Measure how much of the signal is left behind every block. With the weight error scored first (F6), the "
            "prediction stands beside it."
        )  # fmt: skip
        self.say_empty(empty, ERROR_BUDGET.name, self.button if empty else None)
        if session.error_budget is not self.pair or session.model.fingerprint != self._fingerprint:
            self._fingerprint = session.model.fingerprint
            self._show(session.error_budget)
        if self.pair is not None:
            self._say(self.pair, changed=self.pair.plan_hash != identity(session, session.plan))

    def measure(self) -> None:
        """Measure the current plan's budget in the engine."""
        if self.state.session is not None:
            self.context.runner.submit(ERROR_BUDGET.request(self.state.session, ErrorBudgetOptions()))

    def _show(self, pair: BudgetPair | None) -> None:
        """Show a budget, or that there is none yet."""
        self.pair = pair
        predicted = None if pair is None else pair.predicted
        self.plot.setVisible(pair is not None)
        self.table.setVisible(predicted is not None)
        self.table.show_records(() if predicted is None else noisiest(predicted))
        if pair is None:
            self.plot.show_lines((), ())
            return
        self.plot.show_lines(pair.measured.blocks, budget_lines(pair))

    def _say(self, pair: BudgetPair, *, changed: bool) -> None:
        words = f"{'The plan has changed since; ' if changed else ''}{budget_in_words(pair)}; line: measured"
        if pair.predicted is None:
            self.figure.say(f"{words}; score the weight error (F6) and measure again to see which layers it comes from",
                            words)  # fmt: skip
        else:
            self.figure.say(f"{words}, dashes: predicted")


def budget_in_words(pair: BudgetPair) -> str:
    """Return whose budget it is, and the signal to noise of the output."""
    return f"{pair.plan_name}: {quantities.number(float(pair.measured.decibels[-1]))} dB at the output"


def noisiest(budget: ErrorBudget) -> tuple[tuple[str, float], ...]:
    """Return the layers that send the most noise to the output, and their shares."""
    return budget.worst(budget.blocks[-1], 12)


def budget_lines(pair: BudgetPair) -> list[tuple[str, np.ndarray]]:
    """Return the lines of a budget: name and decibels, float64 ``[blocks]``."""
    lines = [("measured", pair.measured.decibels)]
    return lines if pair.predicted is None else [*lines, ("predicted", pair.predicted.decibels)]
