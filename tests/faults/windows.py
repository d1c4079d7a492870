"""Kills the window while a job runs: ``python -m tests.faults.windows FOLDER COUNT SEED`` prints JSON.

Each window is a process of its own, with the engine that it starts.  It opens a session, runs a job, edits the plan
several times a second and saves now and then, until SIGKILL comes at a random moment.  Then no process and no shared
memory of it is left, files are whole or absent, and the copies that the next window offers hold the edits.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

LATE = 1.0
"""Seconds before the kill from which on an edit may be lost, however busy the machine is."""

ENDING = 15.0
"""Seconds within which the engine notices that the window is gone, on a machine that is busy."""

DATA = "demo:digits-classifier"
SCHEMES = [f"int{bits}-{rest}" for bits in (3, 4, 5, 6, 8) for rest in ("g32", "g64", "channel", "g32-asym")]


def edit_of(session: Any) -> int:
    """Return the number of the edit that a session's plan holds: it is its name."""
    name = str(session.plan.name)
    return int(name) if name.isdigit() else -1


async def story(window: Any, folder: Path, attempt: int) -> None:
    """Open, run a job, edit and save until the end; every edit is noted with its moment once it is made."""
    from dataclasses import replace

    from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
    from workbench.steps.files.export import EXPORT, ExportOptions
    from workbench.steps.score import SCORE, ScoreOptions
    from workbench.steps.train import TRAIN, TrainOptions

    context, number = window.context, 0
    while context.workspace.state.session is None:
        await asyncio.sleep(0.02)
    await asyncio.sleep(5)  # nobody edits earlier
    noted = (folder / "edits").open("a", buffering=1)
    jobs = (
        CALIBRATE.request(None, CalibrateOptions(data=DATA)),
        SCORE.request(None, ScoreOptions(metric="measured-kl")),
        EXPORT.request(None, ExportOptions(kind="safetensors", out=str(folder / "out.safetensors"))),
        TRAIN.request(None, TrainOptions(kind="safetensors", out=str(folder / "out.safetensors"), steps=100_000)),
    )
    job = jobs[attempt % len(jobs)]
    while True:
        if all(view.status not in ("queued", "running") for view in context.jobs.views):
            context.runner.submit(replace(job, session=context.workspace.state.session))
        number += 1
        plan = replace(context.workspace.state.session.plan, name=str(number))
        plan = plan.assign([f"*{number % 7}*"], weights=SCHEMES[number % len(SCHEMES)], algorithm="rtn")
        context.workspace.edit(f"Edit {number}", lambda session, plan=plan: replace(session, plan=plan))
        noted.write(f"{number} {time.monotonic()}\n")
        if number % 25 == 0 and attempt % 2:
            await window.document.save()
        await asyncio.sleep(0.1)


def show(folder: Path, attempt: int) -> None:
    """Be the window."""
    import workbench.gui.window as module
    from workbench.gui import app

    until_closed = module.until_closed

    async def lived(window: Any) -> None:
        window.context.tasks.start(story(window, folder, attempt))
        await until_closed(window)

    module.until_closed = lived
    app.run(str(folder / "s.qwb"))


def members(group: int) -> list[str]:
    """Return the processes of a process group or session that live."""
    living = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == group and fields[0] != "Z":
                    living.append(f"{entry.name} {(entry / 'cmdline').read_bytes()[:100]!r}")
        except OSError:
            continue
    return living


def problems(folder: Path, process: int, killed: float, shared: set[str]) -> list[str]:
    """Return what a killed window left, lost or broke."""
    from workbench.errors import WorkbenchError
    from workbench.models.sources.stored import tensors_in_files
    from workbench.session.autosave import recoverable
    from workbench.session.journal import read_journal
    from workbench.session.session import Session

    end, troubles = time.monotonic() + ENDING, list[str]()
    while (left := members(process)) and time.monotonic() < end:
        time.sleep(0.05)
    troubles += [f"lives on: {line}" for line in left]
    troubles += [f"shared memory: {name}" for name in set(os.listdir("/dev/shm")) - shared]
    try:
        saved = edit_of(Session.load(folder / "s.qwb"))
    except WorkbenchError as error:
        return [*troubles, f"the session is lost: {error}"]
    if (folder / "out.safetensors").exists():
        try:
            tensors_in_files([folder / "out.safetensors"])
        except WorkbenchError as error:
            troubles.append(f"half an export: {error}")
    lines = [line.split() for line in (folder / "edits").read_text().splitlines()]
    due = max((int(number) for number, moment in lines if float(moment) < killed - LATE), default=-1)
    offered = [-1]
    for entry in recoverable():
        try:
            base = Session.load(entry.base)
            offered.append(edit_of(base if entry.edits is None else read_journal(entry.edits, base)))
        except WorkbenchError as error:
            troubles.append(f"a copy is half: {error}")
    if max(saved, *offered) < due:
        troubles.append(f"edit {due} of {len(lines)} was made in time; saved {saved}, offered {offered}")
    return troubles


def main() -> None:
    """Kill them, one after the other."""
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    from workbench.cli import main as command

    folder.mkdir(parents=True, exist_ok=True)
    whole, random = folder / "whole.qwb", np.random.default_rng(seed)
    assert command(["calibrate", DATA, "--data", DATA, "--samples", "16", "--out", str(whole), "--quiet"]) == 0
    troubles, ends, made = list[str](), Counter[str](), 0
    for attempt in range(count):
        place = folder / str(attempt)
        place.mkdir()
        (place / "s.qwb").write_bytes(whole.read_bytes())
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_CACHE_HOME"] = str(place)
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        shared = set(os.listdir("/dev/shm"))
        words = [sys.executable, "-m", "tests.faults.windows", str(place), str(attempt)]
        with (place / "errors").open("wb") as errors:
            process = subprocess.Popen(words, stdout=errors, stderr=errors, start_new_session=True)
        end = time.monotonic() + 120
        while not (place / "edits").exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(float(random.uniform(0, 12)))
        ended = process.poll()
        process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        process.wait()
        if ended is not None or not (place / "edits").exists():
            troubles.append(f"{attempt}: it ended by itself with {ended}: {(place / 'errors').read_text()[-500:]}")
            continue
        result = problems(place, process.pid, killed, shared)
        ends["whole" if not result else "not whole"] += 1
        made += len((place / "edits").read_text().splitlines())
        troubles += [f"{attempt}: {trouble}" for trouble in result]
        print(attempt, len((place / "edits").read_text().splitlines()), result, file=sys.stderr, flush=True)
    facts = {"signal": "SIGKILL", "seed": seed, "count": count, "edits": made, "ends": ends, "problems": troubles}
    print(json.dumps(facts))


if __name__ == "__main__":
    main() if len(sys.argv) > 3 else show(Path(sys.argv[1]), int(sys.argv[2]))
