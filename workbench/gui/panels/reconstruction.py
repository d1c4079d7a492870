"""How far each quantized weight of the plan lies from the floating-point weight: SQNR, largest error, zeros."""

from __future__ import annotations

from workbench.gui.panels.panel import Panel
from workbench.gui.shell import step_keys
from workbench.gui.shell.widgets import button, fitted, row
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.session.workspace import State
from workbench.steps.checks.reconstruction import RECONSTRUCTION, ReconstructionOptions, reconstructions

FIELDS = (
    Field("Layer", lambda row: row.layer),
    Field("Scheme", lambda row: row.scheme),
    Number("SQNR", lambda row: row.sqnr, unit="dB", tip="Size of the weight over its quantization error"),
    Number("Largest error", lambda row: row.largest, quantities.share, unit="share",
           tip="The largest error of any weight, as a share of the largest weight"),
    Number("Zeros", lambda row: row.zeros, quantities.share, unit="share", tip="Share of the weights that became 0"),
)  # fmt: skip


class ReconstructionPanel(Panel):
    """``Compare`` quantizes the model by the plan; the figures belong to that plan alone."""

    def _build(self) -> None:
        self.button = button("&Compare Weights", self.compare, RECONSTRUCTION.summary)
        self.summary = fitted()
        self.table = RecordsView("Quantized weights against the original", FIELDS, lambda row: row.layer)
        top = row(self.button, self.summary, stretch=self.summary)
        self.column(top, self.table, stretch=self.table, focus=(self.button,))

    def redraw(self, old: State, new: State) -> None:
        """Show the figures of the current plan, or say what is missing."""
        reason, step = step_keys.missing(new.session, RECONSTRUCTION.requires) if new.session else ("No model", "")
        if new.session is None or reason:
            self.say_empty(f"{reason}.", step)
            return
        rows = reconstructions(new.session)
        self.table.show_records(rows)
        if not rows:
            text = "Compare the weights of this plan with those of the model: how far each layer's lie apart."
            self.say_empty(text, RECONSTRUCTION.name, self.button)
            return
        self.say_empty("")
        worst = min(rows, key=lambda row: row.sqnr)
        self.summary.setText(f"Lowest SQNR: {quantities.number(worst.sqnr)} dB in {worst.layer}")

    def compare(self) -> None:
        """Quantize by the current plan in the engine and compare."""
        if self.state.session is not None:
            self.context.runner.submit(RECONSTRUCTION.request(self.state.session, ReconstructionOptions()))
