"""Opens mutated files in a process of its own: ``python -m tests.fuzz.mutated FORMATS FIRST COUNT [SEED] [warm]``.

Each try damages a whole file by its own generator (SEED, format, number), opens it, and expects what was opened or one
error of the workbench with one line, in five seconds and a gigabyte, and no file that was not there.  A line of JSON
tells of each failure and of each format's end, with the ten slowest tries ([number, seconds of processor time, seconds,
MB of memory at its peak]) and the peak of all; the number of the try is in the file ``now`` before it begins, so that
the caller knows what ended this process.

``warm`` saves the fork of each limited process (20 ms): its work and its answer run in this process.  A try that then
ends in anything but a clean opening or one line is repeated with forks, and that verdict counts; a try that ends this
process is for the caller to repeat.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from workbench import limited

SEED, SECONDS, MEMORY = 14, 5, 1 << 30
GOOD = ("clean", "refused")


class Hang(BaseException):
    """A try took too long."""


def _late(number: int, frame: FrameType | None) -> None:
    raise Hang


def _verdict(opened: Any, path: Path) -> tuple[str, str]:
    """Open a file; returns ``clean``, ``refused`` or what failed, and the details."""
    from workbench.errors import UNFORESEEN, WorkbenchError

    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # processor time: the machine may be busy
    signal.setitimer(signal.ITIMER_REAL, 20 * SECONDS)
    try:
        opened(path)
        return "clean", ""
    except WorkbenchError as error:
        text = str(error)
        if UNFORESEEN in text and error.__cause__ is not None:
            return type(error.__cause__).__name__, "".join(traceback.format_exception(error.__cause__, limit=-6))
        return ("refused", text) if text and "\n" not in text else ("lines", text)
    except Hang:
        return "hang", traceback.format_exc(limit=-6)
    except BaseException as error:
        return type(error).__name__, "".join(traceback.format_exception(error, limit=-6))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _in_place(work: limited.Work, result: int, limits: limited.Limits) -> int:
    """Do what the fork of a limited process would, here; where C or Rust hangs, this process ends."""
    limited.RESULT = result
    signal.setitimer(signal.ITIMER_VIRTUAL, min(limits.seconds, SECONDS))
    try:
        return limited._answer(work)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _tried(opened: Any, path: Path, warm: bool) -> tuple[str, str]:
    """Open a file, first without forks where ``warm``; returns the verdict."""
    forked = limited._forked
    if warm:
        limited._forked = _in_place
        try:
            outcome = _verdict(opened, path)
        finally:
            limited._forked = forked
        if outcome[0] in GOOD:
            return outcome
    return _verdict(opened, path)


def _peak(forget: bool = False) -> int:
    """Return the most memory in MB that this process had since the last try (``forget``: begin again)."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) >> 10


def _limit() -> None:
    with open("/proc/self/statm") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))


def run(name: str, first: int, count: int, seed: int, now: Path, warm: bool) -> None:
    """Try one format."""
    from tests.fuzz.formats import FORMATS
    from tests.fuzz.mutations import mutated

    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    kind, outcomes, tries = FORMATS[name], Counter[str](), list[tuple[int, float, float, int]]()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        file = kind.make(folder)
        whole, entries = file.read_bytes(), sorted(folder.rglob("*"))
        kind.open(file)
        _limit()  # beyond what the libraries' threads take
        for number in range(first, first + count):
            now.write_text(f"{name} {number}")
            random = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
            data = mutated(whole, random, kind.is_json, kind.whole)
            file.write_bytes(data)
            start, before, held = time.process_time(), time.monotonic(), _peak(forget=True)
            outcome, details = _tried(kind.open, file, warm)
            spent, took = time.process_time() - start, time.monotonic() - before
            tries.append((number, round(spent, 2), round(took, 2), _peak() - held))
            outcomes[outcome] += 1
            if sorted(folder.rglob("*")) != entries:
                outcome, details = "files", str(set(folder.rglob("*")) ^ set(entries))
            if outcome not in GOOD:
                print(json.dumps({"format": name, "try": number, "failure": outcome, "details": details}), flush=True)
    slowest = sorted(tries, key=lambda each: each[1:3], reverse=True)[:10]
    facts = {"format": name, "first": first, "count": count, "slowest": slowest, "MB": max(each[3] for each in tries)}
    print(json.dumps(facts | outcomes), flush=True)


def main() -> None:
    """Try the formats of the first argument, by commas, or all."""
    names, first, count, seed, warm = *sys.argv[1:], *("all", "0", "12", str(SEED), "")[len(sys.argv) - 1 :]
    from tests.fuzz.formats import FORMATS

    now = Path(os.environ.get("FUZZ_NOW", os.devnull))
    faulthandler.enable()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _late)
    signal.signal(signal.SIGPROF, _late)
    for name in FORMATS if names == "all" else names.split(","):
        run(name, int(first), int(count), int(seed), now, warm == "warm")


if __name__ == "__main__":
    main()
