"""Plans in the runtime that they are for: bytes, loss there and here, speed, memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from workbench.gui.panels.panel import Panel
from workbench.gui.shell.widgets import button, fitted, row
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.session.workspace import State
from workbench.steps.checks.runtime import LLAMA_CPP, RUNTIME, TRANSFORMERS, proofs

FIELDS = (
    Field("Plan", lambda row: row.plan_name),
    Field("Runtime", lambda row: row.runtime, tip="The program that ran the exported model"),
    Number("File", lambda row: row.file_bytes / 1e6, unit="MB", tip="The whole file, tokenizer and all"),
    Number("Tensors", lambda row: row.tensor_bytes / 1e6, unit="MB", tip="The tensors alone"),
    Number("Loss there", lambda row: row.runtime_loss, unit="nats",
           tip="Mean KL divergence of the runtime's answers from the floating-point model (encoders: 1 - cosine)"),
    Number("Loss here", lambda row: row.plan_loss, unit="nats", tip="The same of our evaluation, on the same tokens"),
    Number("Apart", lambda row: row.difference, unit="nats",
           tip="Of the runtime's answers from our evaluation: llama.cpp rounds the inputs of quantized matrices, "
               "ONNX Runtime computes as the plan says"),
    Number("Agreement", lambda row: row.agreement, quantities.share, unit="share",
           tip="Positions at which the likeliest token is that of our evaluation"),
    Number("Prompt", lambda row: row.prompt_speed, unit="tokens/s",
           tip="Speed of reading a prompt; of models that take no tokens: samples in a second"),
    Number("Generation", lambda row: row.generation_speed, unit="tokens/s", tip="Speed of generating"),
    Number("Memory", lambda row: row.peak_bytes / 1e6, unit="MB", tip="Peak memory of the runtime's process"),
    Field("Tokens", lambda row: row.tokens, tip="Whether the runtime splits a text into the same tokens"),
)  # fmt: skip


BUTTONS = {
    LLAMA_CPP: "Run in &llama.cpp", TRANSFORMERS: "Run in &transformers", "onnxruntime": "Run in &ONNX Runtime",
    "openvino": "Run in OpenVI&NO",
}  # fmt: skip


class DeployPanel(Panel):
    """*Run* writes the plan's file for a runtime, runs it there and adds a row, and one of the model as it is."""

    def _build(self) -> None:
        self.buttons = {
            name: button(title, partial(self.prove, name), RUNTIME.summary) for name, title in BUTTONS.items()
        }  # fmt: skip
        self.summary = fitted()
        self.table = RecordsView("Plans in their runtime", FIELDS, lambda row: f"{row.plan} {row.runtime}")
        self.column(
            row(*self.buttons.values(), self.summary, stretch=self.summary), self.table, stretch=self.table,
            focus=self.buttons[LLAMA_CPP],
        )

    def redraw(self, old: State, new: State) -> None:
        """Show every proof, or say what is missing."""
        reason = RUNTIME.why_not(new.session)
        if new.session is None or reason:
            self.say_empty(f"{(reason or '')[:1].upper()}{(reason or '')[1:]}.")
            return
        self.say_empty("")
        rows = proofs(new.session)
        self.table.show_records(rows)
        mine = next((each for each in reversed(rows) if each.plan == new.session.plan.hash), None)
        self.summary.setText(
            "This plan has not run in its runtime yet" if mine is None else
            f"This plan there: {quantities.number(mine.runtime_loss)} {mine.unit}, here "
            f"{quantities.number(mine.plan_loss)}; {quantities.number(mine.generation_speed or mine.prompt_speed)} "
            f"a second ({mine.runtime})"
        )  # fmt: skip

    def prove(self, runtime: str) -> None:
        """Run the current plan's file in a runtime, in the engine's machine."""
        if self.state.session is not None and RUNTIME.first is not None:
            options = replace(RUNTIME.first(self.state.session), runtime=runtime)
            self.context.runner.submit(RUNTIME.request(self.state.session, options))
