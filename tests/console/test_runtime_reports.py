"""What a runtime computed, in readable columns; the JSON object has the whole rows."""

from __future__ import annotations

import argparse
import io
from typing import Any

from workbench.console.command import Outcome
from workbench.console.reports.runtimes import ran
from workbench.console.terminal import print_report
from workbench.deployment.proof.record import RuntimeProof
from workbench.session.results import StepResult


def _proof(**values: Any) -> RuntimeProof:
    given = {
        "runtime": "llama.cpp", "plan": "sha256:00", "plan_name": "four bits", "file_bytes": 2_241_536,
        "tensor_bytes": 2_212_864, "plan_loss": 0.125, "runtime_loss": 0.126, "difference": 0.0003, "agreement": 0.9375,
        "unit": "nats", "positions": 16, "prompt_speed": 1309.4, "generation_speed": 0.0,
        "peak_bytes": 452_812_800, "tokens": "equal", "data": "text.txt", "rounding": 0.0004,
    }  # fmt: skip
    return RuntimeProof(**{**given, **values})


def _report(*proofs: RuntimeProof) -> tuple[str, dict[str, Any]]:
    result = StepResult.of(RuntimeProof, proofs)
    nothing: Any = None
    report = ran(Outcome(
        before=nothing, session=nothing, options=nothing, result=result, notes=(), flags=argparse.Namespace()
    ))  # fmt: skip
    stream = io.StringIO()
    print_report(report, as_json=False, stream=stream)
    return stream.getvalue(), report.as_json()


def test_figures_have_units_and_what_was_not_measured_is_a_dash() -> None:
    text, stored = _report(_proof())
    (line,) = (line for line in text.splitlines() if line.startswith("llama.cpp"))
    words = line.split()
    assert words[3:] == [
        "2.24",
        "MB",
        "0.125",
        "0.126",
        "0.0003",
        "0.0004",
        "93.8%",
        "16",
        "1309",
        "-",
        "453",
        "MB",
        "equal",
    ]
    assert "in nats" in text and "sha256" not in text and "rounds inputs" not in text
    assert stored["rows"][0]["tensor_bytes"] == 2_212_864 and stored["rows"][0]["generation_speed"] == 0.0


def test_a_plan_that_rounds_inputs_says_how_well_it_agrees_with_itself() -> None:
    text, _ = _report(_proof(repeat=1e-5, repeat_agreement=0.995), _proof(runtime="openvino", unit="1 - cosine"))
    assert text.count("four bits rounds inputs") == 1 and "99.5%" in text and "in 1 - cosine and nats" in text
