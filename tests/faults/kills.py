"""Kills commands at random moments: ``python -m tests.faults.kills FOLDER COUNT SEED SIGNAL`` prints a line of JSON.

Each command runs in a fork of this process, which has imported what it needs, so that the moments fall into its work.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

LATEST = 2.0
"""Seconds within which a command ends after SIGINT or SIGTERM (on a machine that has nothing else to do)."""

DATA = "demo:digits-classifier"
COMMANDS = {
    "calibrate": ["calibrate", DATA, "--data", DATA, "--samples", "16", "--out", "S"],
    "sensitivity": ["sensitivity", "S", "--metric", "weight-error"],
    "search": ["plan", "S", "--metric", "weight-error", "--bits-per-weight", "5"],
    "export": ["export", "S", "--to", "safetensors", "--out", "O/out.safetensors"],
    "repair": ["repair", "S", "--out", "O/repaired.qwb"],
}  # fmt: skip


def load() -> None:
    """Import what commands need, so that random moments fall into their work."""
    import torch

    torch.set_num_threads(1)
    import workbench.cli  # noqa: F401
    from workbench.engine.engine_process import LOADED_WHEN_IDLE

    for module in (*LOADED_WHEN_IDLE, "workbench.steps", "workbench.measurement.gradients"):
        importlib.import_module(module)


def forked(words: list[str], errors: Path) -> int:
    """Start a command as its program would; returns the process."""
    process = os.fork()
    if process:
        return process
    os.setpgid(0, 0)
    with errors.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
        os.dup2(stream.fileno(), 1)
    sys.argv = ["workbench", *words, "--quiet"]
    from workbench.program import start

    start()
    os._exit(0)


def hears(process: int) -> bool:
    """Wait until the program's first line has run, after which it answers SIGTERM; False where it ended before."""
    caught, status = 1 << signal.SIGTERM - 1, Path(f"/proc/{process}/status")
    while "(zombie)" not in (text := status.read_text()):
        if int(text.partition("SigCgt:")[2].split()[0], 16) & caught:
            return True
        time.sleep(0.0005)
    return False


def finished(process: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(process, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def problem(session: Path, out: Path, wholes: tuple[bytes, ...]) -> str:
    """Return what is lost or broken, empty where nothing is."""
    from workbench.errors import WorkbenchError
    from workbench.session.session import Session

    if session.read_bytes() not in wholes:
        try:
            Session.load(session)
        except WorkbenchError as error:
            return f"the session is lost: {error}"
    for file in out.iterdir():
        if file.name.startswith("."):
            continue
        try:
            _read(file)
        except Exception as error:
            return f"{file.name} is half: {error}"
    return ""


def _read(file: Path) -> object:
    """Read a file to its end; raises what its reader does where it is half."""
    import onnx

    from workbench.models.sources.stored import tensors_in_files
    from workbench.planning.plan import Plan
    from workbench.session.session import Session

    if file.suffix == ".html" and not file.read_text().rstrip().endswith("</html>"):
        raise ValueError("it has no end")
    reads: dict[str, Callable[[Path], object]] = {
        ".qwb": Session.load, ".json": Plan.load, ".py": lambda file: compile(file.read_text(), file.name, "exec"),
        ".html": Path.read_text, ".onnx": onnx.load, ".data": Path.read_bytes,
    }  # fmt: skip
    return reads.get(file.suffix, lambda file: tensors_in_files([file]))(file)


def left_over(group: int) -> bool:
    """Tell whether a process of the command lives on, a second later; one that has ended is nobody's to wait for."""
    end = time.monotonic() + 1
    while living := [process for process in psutil.process_iter() if _is_of(process, group)]:
        if time.monotonic() > end:
            return bool(living)
        time.sleep(0.02)
    return False


def _is_of(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


@dataclass(slots=True, kw_only=True)
class Kills:
    """Commands that are killed: their lengths in seconds, what went wrong, how they ended."""

    number: signal.Signals
    folder: Path
    whole: bytes = b""
    commands: dict[str, list[str]] = field(default_factory=dict)
    lengths: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)

    @property
    def session(self) -> Path:
        return self.folder / "s.qwb"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def errors(self) -> Path:
        return self.folder / "errors"

    def measure(self) -> None:
        """Run every command here, which imports and compiles what forks then have, and note how long each takes."""
        from workbench.cli import main as run

        for command, words in COMMANDS.items():
            words = [word.replace("O/", f"{self.out}/") if word != "S" else str(self.session) for word in words]
            self.commands[command] = words
            with contextlib.redirect_stdout(sys.stderr):
                assert run([*words, "--quiet"]) == 0, words
            self._empty()
            start = time.monotonic()
            code = finished(forked(words, self.errors), 300)
            assert code == 0, (words, code, self.errors.read_text())
            self.lengths[command] = time.monotonic() - start
            self._empty()
        self.whole = self.session.read_bytes()

    def _empty(self) -> None:
        shutil.rmtree(self.out)
        self.out.mkdir()

    def kill(self, attempt: int, moment: float) -> None:
        """Kill a command at a moment, in parts of its length, and look at what it left."""
        command = list(COMMANDS)[attempt % len(COMMANDS)]
        self.session.write_bytes(self.whole)
        (self.out / "repaired.qwb").unlink(missing_ok=True)
        process = forked(self.commands[command], self.errors)
        hears(process)  # until then it is a copy of this process
        time.sleep(moment * self.lengths[command])
        os.kill(process, self.number)
        at = time.monotonic()
        code = finished(process, 60)
        took, text = time.monotonic() - at, self.errors.read_text(errors="replace")
        self.codes[str(code)] += 1
        troubles = self._troubles(code, took, text)
        if broken := problem(self.session, self.out, (self.whole,)):
            troubles.append(broken)
        if left_over(process):
            troubles.append("a process lives on")
            os.killpg(process, signal.SIGKILL)
        self.problems += [f"{attempt} {command}: {trouble}" for trouble in troubles]
        print(attempt, command, code, f"{took:.2f} s", troubles, file=sys.stderr, flush=True)

    def _troubles(self, code: int | None, took: float, text: str) -> list[str]:
        lines, troubles = text.strip().splitlines(), list[str]()
        clean = code == 128 + self.number and len(lines) == 1 and lines[0].endswith("cancelled")
        if not (code == 0 or (code == -9 if self.number == signal.SIGKILL else clean)) or "Traceback" in text:
            troubles.append(f"code {code}: {text[-600:]}")
        if self.number != signal.SIGKILL and took > LATEST * 3:
            troubles.append(f"it took {took:.1f} s to end")
        return troubles

    def clean(self) -> None:
        """Write beside what the killed left once more: that removes it."""
        for words in self.commands.values():
            for file in self.out.iterdir():
                if not file.name.startswith("."):
                    file.unlink()
            self.session.write_bytes(self.whole)
            code = finished(forked(words, self.errors), 1200)
            if code != 0:
                self.problems.append(f"{words[0]} ended with {code} afterwards: {self.errors.read_text()[-600:]}")
        left = sorted(file.name for place in (self.folder, self.out) for file in place.iterdir() if file.name[0] == ".")
        if left:
            self.problems.append(f"left over: {left}")


def main() -> None:
    """Kill them."""
    folder, count, seed, name = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    warnings.simplefilter("ignore")
    load()
    random, kills = np.random.default_rng(seed), Kills(number=signal.Signals[name], folder=folder)
    kills.out.mkdir()
    kills.measure()
    for attempt in range(count):
        kills.kill(attempt, float(random.uniform(0.02, 1.05)))
    kills.clean()
    facts = {"signal": name, "seed": seed, "count": count, "codes": kills.codes, "problems": kills.problems}
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
