"""What runtimes computed from an exported file, beside the evaluation."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workbench.console.command import Outcome
from workbench.console.report import Report, Table, percent
from workbench.deployment.proof.record import RuntimeProof
from workbench.session.results import StepResult

COLUMNS = (
    "runtime | plan_name=plan | file_bytes=file | plan_loss=evaluated | runtime_loss=in the runtime | "
    "difference=apart | rounding=of it rounding | agreement=same token | positions | prompt_speed=prompt/s | "
    "generation_speed=generated/s | peak_bytes=memory | tokens=tokenizer"
)


def ran(outcome: Outcome[Any, StepResult]) -> Report:
    """Return a line for each plan and runtime: losses and distances in their unit, tokens a second, memory."""
    proofs = outcome.result.rows(RuntimeProof)
    units = " and ".join(sorted({proof.unit for proof in proofs}))
    table = Table(
        key="rows", rows=[asdict(proof) for proof in proofs], columns=COLUMNS,
        above=f"losses to the floating-point model and distances from the evaluation in {units}",
    )  # fmt: skip
    lines = [
        f"{proof.plan_name} rounds inputs: after a change of 1e-7 in a layer, the evaluation's own likeliest token is "
        f"the same at {percent(proof.repeat_agreement)} of the positions"
        for proof in proofs if proof.repeat_agreement == proof.repeat_agreement
    ]  # fmt: skip
    return Report(facts=outcome.result.facts, parts=[table, *lines], notes=outcome.notes)
