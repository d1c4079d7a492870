"""How long commands take to end: ``python -m tests.faults.endings FOLDER COUNT SEED [MODEL [DATA]]`` prints JSON.

Each command is a new process, imports included, that gets SIGINT or SIGTERM at a random moment of its length, from the
program's first line on: before, Python itself is not ready.  It has to end within two seconds with 130 or 143 and one
line, leave the session as it was or whole, and no file or process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from tests.faults.kills import LATEST, hears, left_over, problem

MODEL = "demo:language-model"
COMMANDS = {
    "calibrate": "calibrate M --data D --samples 64 --out O/c.qwb",
    "front": "front S --metric weight-error",
    "predicted": "sensitivity S --metric predicted-kl --out O/d.qwb",
    "measured": "sensitivity S --metric measured-kl --schemes int4-g32 --out O/m.qwb",
    "weight error": "sensitivity S --metric weight-error",
    "plan": "plan S --metric weight-error --bits-per-weight 5 --out O/p.json",
    "evaluate": "evaluate S --plan P --samples 8",
    "audit": "audit S --plan P --samples 2",
    "gptq": "apply M --plan P --session S --to safetensors --out O/g.safetensors",
    "rtn": "apply M --plan R --to safetensors --out O/r.safetensors",
    "onnx": "apply M --plan R --to onnx --set external=true --out O/o.onnx",
    "train": "train S --plan R --steps 20 --to safetensors --out O/t.safetensors",
    "export": "export S --to script --out O/e.py",
    "report": "report S O/r.html",
    "repair": "repair S --out O/n.qwb",
    "inspect": "inspect M",
    "info": "info S",
    "compare": "compare S S",
    "check": "check S --target gguf",
    "reconstruction": "reconstruction S --plan R",
}  # fmt: skip


def started(words: list[str], errors: Path) -> subprocess.Popen[bytes]:
    with errors.open("wb") as stream:
        command = [sys.executable, "-m", "workbench", *words, "--quiet"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stream, start_new_session=True)


def waited(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def prepared(folder: Path, model: str, data: str) -> tuple[dict[str, list[str]], bytes]:
    """Make the session and the plans; returns the commands and the session's bytes."""
    from workbench.planning.plan import Plan

    names = {"M": model, "D": data, "S": str(folder / "s.qwb"), "P": str(folder / "p.json"), "R": f"{folder}/r.json"}
    (folder / "out").mkdir(parents=True)
    for name, algorithm in (("P", "gptq"), ("R", "rtn")):
        Plan().assign(["*layers.*"], weights="int4-g32", algorithm=algorithm).save(Path(names[name]))
    first = f"calibrate M --data D --samples 8 --out {names['S']}"
    for line in (first, COMMANDS["weight error"]):
        words = [names.get(word, word) for word in line.split()]
        process = started(words, folder / "errors")
        assert waited(process, 600) and process.returncode == 0, (folder / "errors").read_text()
    out = f"{folder / 'out'}/"
    commands = {
        name: [names.get(word, word.replace("O/", out)) for word in line.split()] for name, line in COMMANDS.items()
    }
    return commands, (folder / "s.qwb").read_bytes()


def ending(
    folder: Path, words: list[str], moment: float, number: signal.Signals, whole: bytes
) -> tuple[float, str, list[str]]:
    """Stop a command at a moment; returns the seconds that it took, its code and what is wrong."""
    errors, session, out, troubles = folder / "errors", folder / "s.qwb", folder / "out", list[str]()
    process = started(words, errors)
    hears(process.pid)
    waited(process, moment)
    at = time.monotonic()
    process.send_signal(number)
    ended = waited(process, 60)
    took, code = time.monotonic() - at, process.returncode
    text = errors.read_text(errors="replace")
    if not ended or left_over(process.pid):
        troubles.append("it lives on")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    stopped = code == 128 + number and text.endswith("cancelled\n") and text.count("\n") == 1
    if code != 0 and not stopped:
        troubles.append(f"code {code}: {text[-800:]!r}")
    if took > LATEST:
        troubles.append(f"{took:.2f} s")
    if broken := problem(session, out, (whole,)):
        troubles.append(broken)
    parts = [file.name for file in (*out.iterdir(), *folder.iterdir()) if file.name.endswith((".part", ".old"))]
    return took, str(code), [*troubles, *(f"left {name}" for name in parts)]


def main() -> None:
    """Stop them, one after the other."""
    folder, count, seed, model, data = Path(sys.argv[1]), *map(int, sys.argv[2:4]), *[*sys.argv[4:], MODEL, MODEL][:2]
    os.environ["WORKBENCH_CACHE_FOLDER"], random = str(folder / "cache"), np.random.default_rng(seed)
    commands, whole = prepared(folder, model, data)
    lengths, times, codes, problems = dict[str, float](), list[float](), Counter[str](), list[str]()
    for attempt in range(count):
        name = list(commands)[attempt % len(commands)]
        (folder / "s.qwb").write_bytes(whole)
        if name not in lengths:
            at, process = time.monotonic(), started(commands[name], folder / "errors")
            waited(process, 120)
            if process.poll() is None:  # long enough
                process.kill()
                process.wait()
            elif process.returncode not in (0, 1):
                problems.append(f"{name}: {(folder / 'errors').read_text()[-500:]}")
            lengths[name] = time.monotonic() - at
        shutil.rmtree(folder / "out")
        (folder / "out").mkdir()
        (folder / "s.qwb").write_bytes(whole)
        moment = float(random.uniform(0, lengths[name]))
        number = (signal.SIGINT, signal.SIGTERM)[attempt // len(commands) % 2]
        took, code, troubles = ending(folder, commands[name], moment, number, whole)
        codes[code] += 1
        times += [took] if code != "0" else []
        problems += [f"{attempt} {name} {number.name} at {moment:.2f} s: {trouble}" for trouble in troubles]
        print(attempt, name, number.name, round(moment, 2), round(took, 2), code, troubles, file=sys.stderr, flush=True)
    longest = [round(float(np.quantile(times, share)), 2) for share in (0.5, 0.95, 1)] if times else []
    facts = {"seed": seed, "count": count, "codes": codes, "seconds (median, 95 %, longest)": longest}
    print(json.dumps(facts | {"problems": problems}))


if __name__ == "__main__":
    main()
