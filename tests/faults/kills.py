"""Kills commands at random moments: ``python -m tests.faults.kills FOLDER COUNT SEED SIGNAL`` prints a line of JSON.

Each command runs in a fork of this process, which has imported what it needs, so that the moments fall into its work.
"""

from __future__ import annotations

import importlib
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


def forked(words: list[str], told: Path) -> int:
    """Start a command as its program would; returns the process."""
    process = os.fork()
    if process:
        return process
    os.setpgid(0, 0)
    with told.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
        os.dup2(stream.fileno(), 1)
    sys.argv = ["workbench", *words, "--quiet"]
    from workbench.__main__ import start

    start()
    os._exit(0)


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
    from workbench.models.sources.stored import tensors_in_files
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
            Session.load(file) if file.suffix == ".qwb" else tensors_in_files([file])
        except WorkbenchError as error:
            return f"{file.name} is half: {error}"
    return ""


def left_over(group: int) -> bool:
    """Tell whether a process of the command lives on."""
    time.sleep(0.02)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """Kill them."""
    folder, count, seed, name = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    import workbench.cli  # noqa: F401
    from workbench.engine.engine_process import LOADED_WHEN_IDLE

    for module in (*LOADED_WHEN_IDLE, "workbench.steps", "workbench.measurement.gradients"):
        importlib.import_module(module)

    number, random = signal.Signals[name], np.random.default_rng(seed)
    session, out, told = folder / "s.qwb", folder / "out", folder / "told"
    out.mkdir()
    lengths, problems, codes = {}, list[str](), Counter[str]()
    for command, words in COMMANDS.items():
        words = [word.replace("S", str(session), 1) if word == "S" else word.replace("O/", f"{out}/") for word in words]
        COMMANDS[command] = words
        start = time.monotonic()
        code = finished(forked(words, told), 300)
        assert code == 0, (words, code, told.read_text())
        lengths[command] = time.monotonic() - start
        shutil.rmtree(out)
        out.mkdir()
    whole = session.read_bytes()
    for attempt in range(count):
        command = list(COMMANDS)[attempt % len(COMMANDS)]
        session.write_bytes(whole)
        (out / "repaired.qwb").unlink(missing_ok=True)
        process = forked(COMMANDS[command], told)
        time.sleep(float(random.uniform(0.02, 1.05)) * lengths[command])
        os.kill(process, number)
        at = time.monotonic()
        code = finished(process, 60)
        text, where = told.read_text(errors="replace"), f"{attempt} {command}"
        codes[str(code)] += 1
        if number == signal.SIGKILL:
            expected = code in (0, -9)
        else:
            lines = text.strip().splitlines()
            expected = code == 0 or (code == 128 + number and len(lines) == 1 and lines[0].endswith("cancelled"))
        if not expected or "Traceback" in text:
            problems.append(f"{where}: code {code}: {text[-600:]}")
        if number != signal.SIGKILL and time.monotonic() - at > LATEST * 3:
            problems.append(f"{where}: it took {time.monotonic() - at:.1f} s to end")
        if broken := problem(session, out, (whole,)):
            problems.append(f"{where}: {broken}")
        if left_over(process):
            problems.append(f"{where}: a process lives on")
            os.killpg(process, signal.SIGKILL)
    for words in COMMANDS.values():  # the next write beside them removes what the killed left
        for file in out.iterdir():
            if not file.name.startswith("."):
                file.unlink()
        session.write_bytes(whole)
        assert finished(forked(words, told), 300) == 0, told.read_text()
    left = sorted(file.name for place in (folder, out) for file in place.iterdir() if file.name.startswith("."))
    if left:
        problems.append(f"left over: {left}")
    print(json.dumps({"signal": name, "seed": seed, "count": count, "codes": codes, "problems": problems}))


if __name__ == "__main__":
    main()
