"""The forms of the plan, and plans in the runtime that they are for: bytes, losses, speed, memory."""

from __future__ import annotations

from workbench.gui.panels.deploy.forms import DeployForms
from workbench.gui.panels.panel import Panel
from workbench.gui.shell.widgets import fitted
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.measurement.units import runtime_unit
from workbench.session.calibrated_ranges import identity
from workbench.session.workspace import State
from workbench.steps.checks.runtime import proofs
from workbench.steps.files.first_session import is_first_look

FIELDS = (
    Field("Plan", lambda row: row.plan_name),
    Field("Runtime", lambda row: row.runtime, tip="The program that ran the exported model"),
    Number("File", lambda row: row.file_bytes / 1e6, unit="MB", tip="The whole file, tokenizer and all"),
    Number("Runtime loss", lambda row: row.runtime_loss, unit=METRIC_UNIT,
           tip="Mean KL divergence of the runtime's answers from the floating-point model (encoders: 1 - cosine)"),
    Number("Evaluated loss", lambda row: row.plan_loss, unit=METRIC_UNIT,
           tip="The same of our evaluation, on the same tokens"),
    Number("Generation", lambda row: row.generation_speed, unit="tokens/s", tip="Speed of generating"),
    Number("Prompt", lambda row: row.prompt_speed, unit="tokens/s",
           tip="Speed of reading a prompt; of models that take no tokens: samples in a second"),
    Number("Memory", lambda row: row.peak_bytes / 1e6, unit="MB", tip="Peak memory of the runtime's process"),
    Number("Difference", lambda row: row.difference, unit=METRIC_UNIT,
           tip="Of the runtime's answers from our evaluation: llama.cpp rounds the inputs of quantized matrices, "
               "ONNX Runtime computes as the plan says"),
    Number("Due to rounding", lambda row: row.rounding, unit=METRIC_UNIT,
           tip="How far our own evaluation moves when inputs are rounded as there: what explains the distance"),
    Number("Agreement", lambda row: row.agreement, quantities.share, unit="share",
           tip="Positions at which the likeliest token is that of our evaluation"),
    Number("Repeatability", lambda row: row.repeat_agreement, quantities.share, unit="share",
           tip="The same of our own evaluation after a change of 1e-7 in what layers round, as another order of sums "
               "makes it: where inputs are rounded, no two programs agree better"),
    Number("Largest layer error", lambda row: row.apart_by_layer,
           tip="The most by which a layer differs that is fed the evaluation's inputs, relative to its largest number: "
               "the rounding of sums, where the file computes what was evaluated"),
    Number("Tensors", lambda row: row.tensor_bytes / 1e6, unit="MB", tip="The tensors alone"),
    Number("Positions", lambda row: row.positions, tip="Over how many tokens the losses are means"),
    Field("Data", lambda row: row.data, tip="What the losses were measured on: the first samples of it"),
    Field("Where codes differ", lambda row: row.layers, tip="The layer from which on rounded inputs differ"),
    Field("Tokens", lambda row: row.tokens, tip="Whether the runtime splits a text into the same tokens"),
)  # fmt: skip

MOST_ROWS = 4
"""Rows of the table below the cards; it is scrolled to the others."""


class DeployPanel(Panel):
    """The forms of the plan as cards; below, what plans did in their runtimes, and the model as it is."""

    def _build(self) -> None:
        self.forms = DeployForms(self.context)
        self.summary = fitted()
        self.table = RecordsView("Plans in their runtime", FIELDS, lambda row: f"{row.plan} {row.runtime}")
        self.table.resizeColumnsToContents()
        self.column(self.forms, self.summary, self.table, stretch=self.forms, focus=(self.forms,))

    def redraw(self, old: State, new: State) -> None:
        """Show every proof, or say what is missing."""
        session = new.session if new.session is not None and not is_first_look(new.session) else None
        loading = "The network is still being loaded; its layers are shown already."
        self.say_empty("" if session else loading if new.session else "Open a model to deploy it.")
        if session is None:
            return
        self.forms.show_state(new)
        rows = proofs(session)
        own = identity(session, session.plan) if rows else ""
        self.table.show_records(rows, rows[-1].unit if rows else runtime_unit(session.model.output))
        self.table.setFixedHeight(self.table.verticalHeader().defaultSectionSize() * (min(len(rows), MOST_ROWS) + 3))
        ran = any(each.plan == own for each in rows)
        self.summary.setText("Plans in their runtime" if ran else "This plan has not run in its runtime yet")
