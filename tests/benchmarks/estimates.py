"""What steps are estimated to take, beside what they took; a table and one line of JSON.

    python tests/benchmarks/estimates.py MODEL DATA [--steps A,B] [--samples N] [--window N] [--layers N]

Every step is estimated by ``wb.estimate`` and run in a process of its own; a ratio is predicted over actual.  Seconds
are those of the processor, of one thread, so that other programs do not count.  The constants of the estimates were
chosen on SmolLM2-135M and MiniLM; they have not been checked on a third model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = ("calibrate", "sensitivity", "evaluate", "evaluate-gptq", "refine", "export")


def run(step: str, options: argparse.Namespace) -> dict[str, float]:
    """Estimate and run one step in this process."""
    from dataclasses import replace

    import workbench as wb
    from workbench import preflight
    from workbench.models.layer import LayerKind
    from workbench.steps import REGISTRY
    from workbench.steps.step import Context

    preflight.CLOCK = time.process_time
    session_file = Path(options.work) / "session.qwb"
    model = wb.open(options.model)
    session = wb.Session.load(session_file) if session_file.exists() else wb.start(model)
    name = step.partition("-")[0]
    chosen: dict[str, Any] = {}
    if name in ("calibrate", "evaluate"):
        chosen = {"data": options.data, "samples": options.samples, "window": options.window}
    if name == "refine":
        chosen = {"samples": 4, "tolerance": 0.05}
    if name in ("evaluate", "export"):
        algorithm = step.partition("-")[2] or "rtn-clip"
        layers = [each for each in session.model.stored if each.kind is LayerKind.LINEAR and "head" not in each.name]
        session = replace(session, plan=wb.Plan.uniform(layers[: options.layers], "int4-g32-asym", algorithm=algorithm))
    if name == "export":
        chosen = {"kind": "safetensors", "out": str(Path(options.work) / "out.safetensors")}
    record = REGISTRY.get(name)
    start = time.process_time()
    expected = wb.estimate(name, session, model=model, **chosen)
    trial = time.process_time() - start
    made = record.options(**chosen)
    bare = replace(record, costs=None)
    with preflight.measured() as spent:
        result = bare.within(Context(document=session, opened=model), made)
    if record.join is not None and name != "evaluate":
        record.join(session, made, result).save(session_file)
    if expected is None:
        return {"actual": spent.seconds, "memory": float(spent.peak), "trial": trial}
    return {
        "predicted": expected.seconds, "actual": spent.seconds, "trial": trial,
        "predicted_memory": float(expected.memory), "memory": float(spent.peak),
    }  # fmt: skip


def main() -> None:
    """Read the command line, run the steps, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--samples", type=int)
    parser.add_argument("--window", type=int)
    parser.add_argument("--layers", type=int, help="how many layers the plan of evaluate and export quantizes")
    parser.add_argument("--work", default="")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(options.child, options)))
        return
    os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
    os.environ["WORKBENCH_CACHE_FOLDER"] = ""
    with tempfile.TemporaryDirectory() as made:
        Path(options.work or made).mkdir(parents=True, exist_ok=True)
        arguments = [*sys.argv[1:], "--work", options.work or made]
        print(f"{'step':14} {'predicted s':>11} {'actual s':>9} {'ratio':>6} {'trial s':>8} {'GB':>6} actual ratio")
        rows = []
        for step in options.steps.split(","):
            ended = subprocess.run(
                [sys.executable, __file__, *arguments, "--child", step], stdout=subprocess.PIPE, text=True, check=False
            )  # fmt: skip
            lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
            row = json.loads(lines[-1]) if lines and not ended.returncode else {}
            rows.append({"step": step, **row})
            print(_line(step, row), flush=True)
        print(json.dumps({"model": options.model, "rows": rows}))


def _line(step: str, row: dict[str, float]) -> str:
    if "predicted" not in row:
        return f"{step:14} {'short' if row else 'failed':>11} {row.get('actual', float('nan')):9.2f}"
    return (
        f"{step:14} {row['predicted']:11.2f} {row['actual']:9.2f} {row['predicted'] / row['actual']:6.2f} "
        f"{row['trial']:8.2f} {row['predicted_memory'] / 1e9:6.2f} {row['memory'] / 1e9:7.2f} "
        f"{row['predicted_memory'] / row['memory']:5.2f}"
    )


if __name__ == "__main__":
    main()
