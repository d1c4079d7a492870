"""Kills steps where pieces are saved, and repeats them: ``python -m tests.faults.resumed FOLDER COUNT SEED``.

Prints a line of JSON.  Every piece is saved at once; a step is killed (SIGKILL) when a random number of them is there
and some milliseconds have passed.  What the repeated command writes has the bits of a run that nobody killed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from tests.faults.kills import DATA, finished, forked, load

COMMANDS = {
    "calibrate": ["calibrate", DATA, "--data", DATA, "--samples", "48", "--batch-size", "4", "--out", "O/c.qwb"],
    "predicted": ["sensitivity", "S", "--metric", "predicted-kl", "--out", "O/p.qwb"],
    "measured": ["sensitivity", "S", "--metric", "measured-kl", "--schemes", "int8,int4-g32", "--out", "O/m.qwb"],
    "GPTQ": ["apply", DATA, "--plan", "P", "--session", "S", "--to", "safetensors", "--out", "O/g.safetensors"],
    "train": ["train", "S", "--plan", "P", "--steps", "60", "--to", "safetensors", "--out", "O/t.safetensors"],
}  # fmt: skip


def bits(file: Path) -> bytes:
    """Return what a file holds: a session's results without its notes and what the step took, which name the moment."""
    if file.suffix != ".qwb":
        return file.read_bytes()
    from dataclasses import replace

    from workbench.session.session import Session

    session = Session.load(file)
    again = file.with_name("bits.qwb")
    results = {name: result for name, result in session.results.items() if name != "resources"}
    replace(session, notes=(), results=results).save(again)
    content = again.read_bytes()
    again.unlink()
    return content


def went_on(file: Path) -> bool:
    """Tell whether a session's notes say that its step went on from an interrupted run."""
    from workbench.session.session import Session

    notes = Session.load(file).notes if file.suffix == ".qwb" and file.exists() else ()
    return any("an interrupted run was found" in note for note in notes)


def main() -> None:
    """Kill them, each in its turn."""
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    os.environ["WORKBENCH_CACHE_FOLDER"] = str(folder / "cache")
    load()
    from workbench.measurement import partial_results
    from workbench.planning.plan import Plan

    partial_results.FIRST = partial_results.EVERY = 0.0
    partial_results.SHARE = 0
    random, out, errors = np.random.default_rng(seed), folder / "out", folder / "errors"
    out.mkdir()
    session, plan, pieces = folder / "s.qwb", folder / "p.json", folder / "cache" / "outputs-unfinished"
    Plan().assign(["*"], weights="int4-g32", algorithm="gptq").save(plan)
    first = ["calibrate", DATA, "--data", DATA, "--samples", "32", "--out", str(session)]
    assert finished(forked(first, errors), 300) == 0, errors.read_text()
    names = {"S": str(session), "P": str(plan)}
    problems, ends = list[str](), Counter[str]()
    for attempt in range(count):
        command = list(COMMANDS)[attempt % len(COMMANDS)]
        words = [names.get(word, word.replace("O/", f"{out}/")) for word in COMMANDS[command]]
        file = Path(words[-1])
        if attempt < len(COMMANDS):
            assert finished(forked(words, errors), 300) == 0, errors.read_text()
            (folder / f"whole-{command}").write_bytes(bits(file))
        file.unlink(missing_ok=True)
        process, expected = forked(words, errors), int(random.integers(1, 5))
        end = time.monotonic() + 120
        trained = out / "t.safetensors.training"
        while len([*pieces.rglob("*.safetensors"), *out.glob(trained.name)]) < (expected if command == "GPTQ" else 1):
            if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) or time.monotonic() > end:
                break
            time.sleep(0.001)
        time.sleep(float(random.uniform(0, 0.2)))
        os.kill(process, signal.SIGKILL)
        finished(process, 60)
        goes_on = trained.exists()
        code = finished(forked(words, errors), 300)
        ends["went on" if goes_on or went_on(file) else "began again, or does not say"] += 1
        if code != 0 or bits(file) != (folder / f"whole-{command}").read_bytes():
            problems.append(f"{attempt} {command}: code {code}, other bits: {errors.read_text()[-300:]}")
        left = [str(each) for each in (*pieces.rglob("*.safetensors"), *out.glob("*.training"))]
        if left:
            problems.append(f"{attempt} {command}: left over {left}")
            shutil.rmtree(pieces)
    print(json.dumps({"signal": "SIGKILL", "seed": seed, "count": count, "ends": ends, "problems": problems}))


if __name__ == "__main__":
    main()
