"""What GPTQ and learned rounding cost and leave, beside llm-compressor and AutoRound: a table and one line of JSON.

    python tests/benchmarks/peer_costs.py MODEL [--llm-compressor PYTHON] [--auto-round PYTHON] [--iterations N]
        [--rows gptq,learned]

MODEL is a language model's folder, such as SmolLM2-135M's; each PYTHON is an interpreter of an environment with that
tool, whose row is left out without it.  All rows quantize the same layers (the linear ones but the head) to INT4 in
groups of 64 with zero points, on the same windows of Python's own documentation, each in a process of its own.  A pass
is a bare forward pass over these windows in that process, in CPU seconds; ours need a calibrated session, whose passes
stand beside.  Memory is the peak of resident memory, KL the mean over the positions of held-out windows.  Learning
takes the same number of steps of 8 windows in both tools: AutoRound for one block after the other, ours for the whole
model.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from size import GB, Case, Clock, Figures, bare_pass, folder, opened, peak, plan_of

if TYPE_CHECKING:
    from workbench.models.data.datasets import Dataset

SCRIPTS = Path(__file__).parent / "size_peers"
SCHEME, BATCH = "int4-g64-asym", 8
PEERS = {"gptq": ("llm-compressor", "gptq_llm_compressor.py"), "learned": ("auto-round", "learned_auto_round.py")}


def ours(case: Case, what: str, iterations: int) -> Figures:
    """Calibrate, quantize by GPTQ or learned rounding, and measure."""
    import workbench as wb
    from workbench.measurement.evaluate import evaluate
    from workbench.models.data.reading import Reading
    from workbench.quantization.learning.learn import learn_rounding
    from workbench.quantization.learning.loop import LearnOptions
    from workbench.steps import session_data

    model, data = opened(case)
    bare, clock = bare_pass(model, data), Clock()
    session = wb.calibrate(model, case.text, samples=case.windows, window=case.tokens)
    figures = {"calibration": clock.lap()[0] / bare}
    plan = plan_of(session, SCHEME, what)
    if what == "gptq":
        view = wb.quantize(model, plan, session=session).bind(model)
    else:
        options = LearnOptions(steps=iterations, batch_size=BATCH)
        schemes = {rule.pattern: SCHEME for rule in plan.rules}
        moments = session_data.curvature_for(model, session, {what})  # as the product learns
        rounded = learn_rounding(model, schemes, data, curvature=moments, options=options)
        view = model.with_weights({name: each.values for name, each in rounded.items()})
    figures |= {"passes": clock.lap()[0] / bare, "peak": peak()}
    held_out = session_data.for_evaluation(
        model, session, case.text, samples=case.windows, seed=0, reading=Reading(window=case.tokens)
    )
    write(case, data, "calibration")
    write(case, held_out, "evaluation")
    return {**figures, "kl": evaluate(model, view, held_out)["kl"].value}


def write(case: Case, data: Dataset, name: str) -> None:
    """Write the windows for the peers, int64 ``[windows, tokens]``."""
    np.save(case.work / f"{name}.npy", np.concatenate([batch["input_ids"].numpy() for batch in data.batches(BATCH)]))


def peer(case: Case, script: str, python: str, iterations: int) -> Figures:
    """Return what a peer's script measures; empty where it fails, whose error stands on stderr."""
    command = [python, str(SCRIPTS / script), "--model", case.model, "--iterations", str(iterations)]
    files = [f"--{name}={case.work / name}.npy" for name in ("calibration", "evaluation")]
    return figures_of([*command, *files])


def figures_of(command: Sequence[str]) -> Figures:
    """Run a command; return the JSON in its last line."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines and not ended.returncode else {}


def main() -> None:
    """Read the command line, run the rows, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--llm-compressor", default="", metavar="PYTHON")
    parser.add_argument("--auto-round", default="", metavar="PYTHON")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--windows", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rows", default=",".join(PEERS), help="gptq, learned or both")
    parser.add_argument("--work", default="")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with folder(options.work) as work:
        os.environ["WORKBENCH_CACHE_FOLDER"] = str(work / "cache")
        case = Case(model=options.model, encoder="", windows=options.windows, tokens=options.tokens, work=work)
        if options.child:
            print(json.dumps(ours(case, options.child, options.iterations)))
            return
        own = [sys.executable, __file__, case.model, "--iterations", str(options.iterations), "--work", str(work)]
        own += ["--windows", str(case.windows), "--tokens", str(case.tokens), "--child"]
        rows = {}
        for what in options.rows.split(","):
            tool, script = PEERS[what]
            rows[f"{what}, ours"] = figures_of([*own, what])
            python = getattr(options, tool.replace("-", "_"))
            if python:
                rows[f"{what}, {tool}"] = peer(case, script, python, options.iterations)
    print(f"{'INT4 in groups of 64':26} {'passes':>8} {'calibration':>12} {'memory':>9} {'KL':>8}")
    for name, row in rows.items():
        passes, calibration = row.get("passes", math.nan), row.get("calibration", 0.0)
        memory, kl = row.get("peak", math.nan) / GB, row.get("kl", math.nan)
        print(f"{name:26} {passes:8.2f} {calibration:12.2f} {memory:6.2f} GB {kl:8.4f}")
    sizes = {"windows": options.windows, "tokens": options.tokens, "iterations": options.iterations}
    print(json.dumps({**sizes, "rows": rows}))


if __name__ == "__main__":
    main()
