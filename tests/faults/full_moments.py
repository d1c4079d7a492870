"""Runs commands on a disk that becomes full at a random write: ``python -m tests.faults.full_moments SHIM FOLDER COUNT
SEED``, with the shim preloaded, prints a line of JSON.

Sessions, outputs and the cache with the pieces of unfinished steps lie on that disk.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

from tests.faults.kills import COMMANDS, Kills, finished, forked, load, problem

MOST = 24
"""Writes after which the disk is full, at most: a command makes 6 to 40."""


def attempt(kills: Kills, shim: ctypes.CDLL, command: str, writes: int) -> tuple[int | None, str]:
    """Run a command with room for some writes; returns its code and what is wrong."""
    kills.session.write_bytes(kills.whole)
    for file in kills.out.iterdir():
        file.unlink()
    errors = kills.folder.with_name("errors")  # on another disk
    shim.fault_after(writes)
    process = forked(kills.commands[command], errors)
    shim.fault_after(-1)
    code, troubles = finished(process, 120), list[str]()
    text = errors.read_text(errors="replace")
    lines = [line for line in text.strip().splitlines() if line.startswith("workbench")]
    if code not in (0, 1) or "Traceback" in text or (code == 1 and not (len(lines) == 1 and "full" in lines[0])):
        troubles.append(f"code {code}: {text[-600:]}")
    if broken := problem(kills.session, kills.out, (kills.whole,)):
        troubles.append(broken)
    left = [file.name for place in (kills.folder, kills.out) for file in place.iterdir() if file.name[0] == "."]
    troubles += [f"left over: {name}" for name in left]
    return code, "; ".join(troubles)


def main() -> None:
    """Fill the disk."""
    shim, folder, count, seed = ctypes.CDLL(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    warnings.simplefilter("ignore")
    os.environ["WORKBENCH_CACHE_FOLDER"] = str(folder / "cache")
    load()
    from workbench.measurement import partial_results

    partial_results.FIRST = partial_results.EVERY = 0.0  # pieces are saved all the time
    random, kills = np.random.default_rng(seed), Kills(number=signal.SIGKILL, folder=folder)
    kills.out.mkdir()
    kills.measure()
    ends, problems = {"whole": 0, "full": 0}, list[str]()
    for number in range(count):
        command, writes = list(COMMANDS)[number % len(COMMANDS)], int(random.integers(0, MOST))
        code, trouble = attempt(kills, shim, command, writes)
        ends["whole" if code == 0 else "full"] += 1
        problems += [f"{number} {command} after {writes} writes: {trouble}"] if trouble else []
        print(number, command, writes, code, trouble, file=sys.stderr, flush=True)
    print(json.dumps({"seed": seed, "count": count, "ends": ends, "problems": problems}))


if __name__ == "__main__":
    main()
