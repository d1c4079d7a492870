"""The forms of the plan, and plans in the runtime that they are for: bytes, losses, speed, memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtWidgets import QMenu, QToolButton

from workbench.deployment.proof.child import missing_package
from workbench.gui.panels.deploy.forms import DeployForms
from workbench.gui.panels.panel import Panel
from workbench.gui.shell import step_keys
from workbench.gui.shell.foreign import as_line, as_tip
from workbench.gui.shell.widgets import fitted, named, open_menu, row
from workbench.gui.shell.words import tr
from workbench.gui.tables.fields import METRIC_UNIT, Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.insight.deployments import Form
from workbench.measurement.units import runtime_unit
from workbench.session.calibrated_ranges import identity
from workbench.session.workspace import State
from workbench.steps.checks.runtime import AUTO, LLAMA_CPP, RUNTIME, TRANSFORMERS, RuntimeOptions, proofs, runtimes
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

WRITTEN = {
    LLAMA_CPP: "gguf", TRANSFORMERS: "compressed-tensors", "torchao": "torchao", "mlx": "mlx", "onnxruntime": "onnx",
    "openvino": "onnx",
}  # fmt: skip
"""The form in which each runtime gets the plan."""


MOST_ROWS = 4
"""Rows of the table below the cards; it is scrolled to the others."""


class DeployPanel(Panel):
    """*Export* writes a form.  *Run* runs the plan's file in a runtime and adds a row for it and the model as it is."""

    runtime, file = AUTO, ""
    """The one chosen last, and the exported file to run in it (empty: one of the moment)."""

    def _build(self) -> None:
        self.forms = DeployForms(self.context)
        self.forms.shown, self.forms.measure = self._offer, self._measure
        self.run, menu = named(QToolButton(), "Run in a Runtime"), QMenu(self)
        self.run.setText(tr("Run in a Runti&me"))
        open_menu(self.run, menu)
        menu.setToolTipsVisible(True)
        self.entries = {each.value: menu.addAction(each.label, partial(self.prove, each.value)) for each in runtimes()}
        self.summary = fitted()
        self.table = RecordsView("Plans in their runtime", FIELDS, lambda row: f"{row.plan} {row.runtime}")
        self.table.resizeColumnsToContents()
        self.column(
            self.forms,
            row(self.run, self.summary, stretch=self.summary),
            self.table,
            stretch=self.forms,
            focus=(self.forms,),
        )

    def redraw(self, old: State, new: State) -> None:
        """Show every proof, or say what is missing."""
        session = new.session if new.session is not None and not is_first_look(new.session) else None
        loading = "The network is still being loaded; its layers are shown already."
        self.say_empty("" if session else loading if new.session else "Open a model to deploy it.")
        if session is None:
            return
        self.forms.show_state(new)
        wants, rows = RUNTIME.wants(session, RuntimeOptions()), proofs(session)
        reason = step_keys.why_not(session, (*RUNTIME.requires, *wants))
        self.run.setEnabled(not reason)
        self.run.setToolTip(as_tip(tr("Not now: {}").format(tr(reason)) if reason else tr(RUNTIME.summary)))
        own = identity(session, session.plan) if rows else ""
        mine = next((each for each in reversed(rows) if each.plan == own), None)
        self.table.show_records(rows, rows[-1].unit if rows else runtime_unit(session.model.output))
        self.table.setFixedHeight(self.table.verticalHeader().defaultSectionSize() * (min(len(rows), MOST_ROWS) + 3))
        if reason:
            text = f"{reason[:1].upper()}{reason[1:]}"
        elif mine is None:
            text = "This plan has not run in its runtime yet"
        else:
            speed = quantities.number(mine.generation_speed or mine.prompt_speed)
            text = (
                f"Loss of this plan: {quantities.number(mine.runtime_loss)} {mine.unit} in the runtime, "
                f"{quantities.number(mine.plan_loss)} evaluated, over "
                f"{quantities.plural(mine.positions, 'position')} of {mine.data}; {speed} a second ({mine.runtime})"
            )
        self.summary.setText(text)

    def _offer(self) -> None:
        """Offer the runtimes that are installed and run the plan; the others say why not."""
        forms = {each.form.kind: each for each in self.forms.rows}
        for each in runtimes():
            form, missing = forms.get(WRITTEN[each.value]), missing_package(each.value)
            refused = "" if form is None or form.is_possible else form.verdict
            why, entry = "not installed" if missing else refused, self.entries[each.value]
            entry.setText(as_line(tr(each.label) + (f" – {tr(why)}" if why else "")))
            entry.setToolTip(as_tip(tr(missing or (form.reasons if form and refused else RUNTIME.summary))))
            entry.setEnabled(not why)
        kind = self.forms.chosen.form.kind if self.forms.chosen else ""
        self.forms.measure_button.setVisible(kind in WRITTEN.values())
        self.forms.measure_button.setEnabled(self.run.isEnabled() and any(self._measuring(kind)))

    def _measuring(self, kind: str) -> Iterator[str]:
        """Return the runtimes in which a form can be measured now."""
        return (name for name, entry in self.entries.items() if WRITTEN[name] == kind and entry.isEnabled())

    def _measure(self, form: Form, file: str) -> None:
        self.prove(next(self._measuring(form.kind)), file)

    def prove(self, runtime: str, file: str = "") -> None:
        """Ask how the current plan's file is run in a runtime, and run it there, in the engine's machine."""
        self.runtime, self.file = runtime, file
        self.context.trigger("runtime")
