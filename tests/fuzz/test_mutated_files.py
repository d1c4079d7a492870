"""Mutated files of every format: opened, or refused in one line, in time, without a crash and without a trace.

The tries run in a process of their own; what ends it is a failure, too, and it goes on behind that.  A failed try is
repeated by ``python -m tests.fuzz.mutated FORMAT NUMBER 1``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.mutated import SEED

FORMATS = (
    "safetensors", "pt", "pt pickle", "pt2", "pt2 graph", "gguf", "onnx", "config.json", "tokenizer.json", "png",
    "jpeg", "wav", "flac", "npy", "npz", "jsonl", "csv", "parquet", "arrow", "arrow stream", "plan", "session",
    "old session", "safetensors header", "gguf metadata", "onnx graph", "pt2 members", "session tree",
    "quantized config", "weight index",
)  # fmt: skip
QUICK, WHOLE = 6, 20_000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


def tried(names: str, first: int, count: int, folder: Path, warm: str = "") -> list[dict[str, Any]]:
    """Run the tries; returns the lines, a process that ended as one with ``failure``."""
    lines: list[dict[str, Any]] = []
    end, now = first + count, folder / "now"
    environment = {**os.environ, "FUZZ_NOW": str(now), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    while first < end:
        command = [sys.executable, "-m", "tests.fuzz.mutated", names, str(first), str(end - first), str(SEED), warm]
        ended = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
        lines += [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        if ended.returncode == 0:
            break
        name, _, text = now.read_text().rpartition(" ")
        number, details = int(text), ended.stderr[-2000:]
        if warm:
            lines.append({"format": name, "first": first, "count": number - first, "ended by": ended.returncode})
            lines += tried(name, number, 1, folder)
        else:
            lines.append({"format": name, "try": number, "failure": f"exit {ended.returncode}", "details": details})
        if name != names:
            break
        first = number + 1
    return lines


def check(lines: list[dict[str, Any]], names: tuple[str, ...]) -> int:
    """Print what was tried; fail with what failed; returns the number of tries."""
    for line in lines:
        print(f"seed {SEED}: {json.dumps(line)}")
    failures = [line for line in lines if "failure" in line]
    assert not failures, json.dumps(failures, indent=1)[:20_000]
    assert {line["format"] for line in lines} == set(names)
    return sum(line.get("count", 0) for line in lines)


def test_some_of_every_format(tmp_path: Path) -> None:
    from tests.fuzz.formats import FORMATS as whole

    assert tuple(whole) == FORMATS
    assert check(tried(",".join(FORMATS), 0, QUICK, tmp_path), FORMATS) == QUICK * len(FORMATS)


@pytest.mark.parametrize(("name", "number"), [
    ("onnx graph", 148), ("gguf metadata", 45), ("weight index", 188), ("quantized config", 367),
])  # fmt: skip
def test_what_was_a_traceback_is_one_line(tmp_path: Path, name: str, number: int) -> None:
    """An operator without inputs, a tokenizer's kind that is a list, a file's name of 3000 characters (seed 41)."""
    command = [sys.executable, "-m", "tests.fuzz.mutated", name, str(number), "1", "41", "warm"]
    environment = {**os.environ, "FUZZ_NOW": str(tmp_path / "now"), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert [line.get("failure") for line in lines] == [None], lines


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", FORMATS)
def test_many_of_one_format(tmp_path: Path, name: str) -> None:
    assert check(tried(name, 0, WHOLE, tmp_path, "warm"), (name,)) == WHOLE
