"""Runtimes x plans: bytes, loss there and here, speed, memory, with the floating-point model in each runtime.

``python -m tests.benchmarks.runtimes MODEL DATA [SCHEME[+INPUTS] ...]``: a model, evaluation data, number formats.
Every installed runtime runs every plan that it can hold; the reasons of the others are printed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace

import workbench as wb
from workbench.deployment.proof.record import RuntimeProof
from workbench.errors import WorkbenchError
from workbench.models.model import Model
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan
from workbench.session.session import Session
from workbench.steps.checks.runtime import RUNTIME, RuntimeOptions, runtimes
from workbench.steps.step import Context

SAMPLES = 4
SCHEMES = ("int8-channel", "int4-g32-asym", "q8_0", "q4_0", "q4_k", "int8-channel+int8-token")
HEADS = ("runtime", "plan", "MB", "there", "here", "apart", "prompt/s", "gen./s", "RAM MB")


def main(place: str, data: str, *schemes: str) -> None:
    """Print a table and one line of JSON."""
    model = wb.open(place)
    session = wb.calibrate(model, data, samples=SAMPLES)
    rows: dict[tuple[str, str], RuntimeProof] = {}
    print("{:46} {:26} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7}".format(*HEADS))
    for scheme in schemes or SCHEMES:
        planned = replace(session, plan=_plan(model, scheme))
        for runtime in runtimes():
            for proof in _proofs(planned, model, runtime.value, data):
                if rows.setdefault((proof.runtime, proof.plan), proof) is proof:
                    print(_line(proof), flush=True)
    print(json.dumps([asdict(proof) for proof in rows.values()]))


def _plan(model: Model, scheme: str) -> Plan:
    weights, _, inputs = scheme.partition("+")
    names = [layer.name for layer in quantizable(model.summary.layers) if layer.matrix[1] % 32 == 0]
    return Plan(name=scheme).assign(names, weights=weights, inputs=inputs or None)


def _proofs(session: Session, model: Model, runtime: str, data: str) -> tuple[RuntimeProof, ...]:
    """Return the proofs of the plan and of the floating-point model; none, with the reason printed, where it cannot."""
    options = RuntimeOptions(runtime=runtime, data=data, samples=SAMPLES)
    try:
        return RUNTIME.run(Context(document=session, opened=model), options).rows(RuntimeProof)
    except WorkbenchError as error:
        print(f"{runtime:46} {session.plan.name:26} {str(error)[:120]}")
        return ()


def _line(proof: RuntimeProof) -> str:
    losses = f"{proof.runtime_loss:9.2e} {proof.plan_loss:9.2e} {proof.difference:9.2e}"
    speeds = f"{proof.prompt_speed:9.1f} {proof.generation_speed:8.1f}"
    named = f"{proof.runtime:46} {proof.plan_name:26} {proof.file_bytes / 1e6:8.2f}"
    return f"{named} {losses} {speeds} {proof.peak_bytes / 1e6:7.0f}"


if __name__ == "__main__":
    main(*sys.argv[1:])
