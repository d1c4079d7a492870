"""Takes the memory away from steps: ``python -m tests.faults.memory FOLDER`` prints a line of JSON.

Each run is a fork of this process, in which model and libraries are loaded, with so many bytes of data left
(RLIMIT_DATA): an allocation beyond is refused by the system.  A step ends with its result, in smaller pieces where it
says so, or with one named error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOMS = (0, 4, 16, 64, 256)
"""What is left, in megabytes."""

MODEL = "demo:language-model"
GOOD = ("whole", "in smaller pieces", "a named error")


def data_bytes() -> int:
    """Return the bytes of this process that RLIMIT_DATA counts."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmData")).split()[1])


def ended(work: Callable[[list[str]], object], room: int, errors: Path) -> tuple[str, str]:
    """Run ``work``, which is given a list for its notes, in a fork; returns how it ended, and in which words."""
    process = os.fork()
    if process:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if status:
            return f"exit {status}", ""
        kind, text = json.loads(errors.read_text())
        return kind, text
    code = 1
    try:
        from workbench.errors import WorkbenchError
        from workbench.memory import release

        notes = list[str]()
        release()
        bound = data_bytes() + room
        resource.setrlimit(resource.RLIMIT_DATA, (bound, resource.RLIM_INFINITY))
        answer = "whole", ""
        try:
            work(notes)
            words = [note for note in notes if "memory ran out" in note]
            answer = ("in smaller pieces", words[-1]) if words else answer
        except WorkbenchError as error:
            named = "memory" in str(error) and "\n" not in str(error)
            answer = "a named error" if named else "a wrong error", str(error)
        except BaseException as error:
            answer = "a traceback", "".join(traceback.format_exception(error, limit=-4))
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        errors.write_text(json.dumps(answer))
        code = 0
    finally:
        os._exit(code)


def steps(folder: Path) -> dict[str, Callable[[list[str]], Any]]:
    """Return the steps by name; model, session and everything that they import are loaded."""
    from workbench.models.sources import open_model
    from workbench.planning.plan import Plan
    from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
    from workbench.steps.evaluate import EVALUATE, EvaluateOptions
    from workbench.steps.files.export import EXPORT, ExportOptions
    from workbench.steps.files.first_session import start
    from workbench.steps.score import SCORE, ScoreOptions

    model = open_model(MODEL)
    session = start(model)
    few = CalibrateOptions(data=MODEL, samples=4, batch_size=2)
    session = CALIBRATE.join(session, few, CALIBRATE(session, few, model=model))
    plan = Plan().assign(["*layers.*"], weights="int4-g32", algorithm="gptq")
    session = replace(session, plan=plan)
    chosen = {
        "calibrate": (CALIBRATE, CalibrateOptions(data=MODEL, samples=16, batch_size=16)),
        "measured": (SCORE, ScoreOptions(metric="measured_kl", schemes=("int4-g32",))),
        "evaluate": (EVALUATE, EvaluateOptions(samples=16, batch_size=16)),
        "export": (EXPORT, ExportOptions(kind="safetensors", out=str(folder / "out.safetensors"))),
    }

    def run(name: str) -> Callable[[list[str]], Any]:
        step, options = chosen[name]
        return lambda notes: step(session, options, model=model, notes=notes)

    return {name: run(name) for name in chosen}


def main() -> None:
    """Try every step in every room."""
    folder = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    os.environ["WORKBENCH_SCRATCH_FOLDER"], os.environ["WORKBENCH_CACHE_FOLDER"] = str(folder / "scratch"), ""
    import torch

    torch.set_num_threads(1)
    ends, problems = dict[str, Counter[str]](), list[str]()
    for name, work in steps(folder).items():
        work([])  # loads what it needs
        counts = ends[name] = Counter()
        for room in ROOMS:
            kind, text = ended(work, room * 10**6, folder / "errors")
            counts[kind] += 1
            print(name, room, kind, text[-600:], file=sys.stderr, flush=True)
            if kind not in GOOD:
                problems.append(f"{name} with {room} MB: {kind}: {text[-600:]}")
    remaining = [str(file) for file in folder.rglob("*.part")]
    print(json.dumps({"count": len(ROOMS) * len(ends), "ends": ends, "problems": problems + remaining}))


if __name__ == "__main__":
    main()
