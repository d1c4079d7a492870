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
    "safetensors", "pt", "pt pickle", "pt2", "pt2 graph", "gguf", "config.json", "tokenizer.json", "png", "jpeg", "wav",
    "flac", "npy", "npz", "jsonl", "csv", "parquet", "plan", "session",
)  # fmt: skip
QUICK, WHOLE = 12, 20_000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


def tried(names: str, count: int, folder: Path) -> list[dict[str, Any]]:
    """Run the tries; returns the lines, a process that ended as one with ``failure``."""
    lines: list[dict[str, Any]] = []
    first, now = 0, folder / "now"
    while first < count:
        command = [sys.executable, "-m", "tests.fuzz.mutated", names, str(first), str(count - first)]
        environment = {**os.environ, "FUZZ_NOW": str(now), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        ended = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
        lines += [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        if ended.returncode == 0:
            break
        name, _, number = now.read_text().rpartition(" ")
        details = ended.stderr[-2000:]
        lines.append({"format": name, "try": int(number), "failure": f"exit {ended.returncode}", "details": details})
        if name != names:
            break
        first = int(number) + 1
    return lines


def check(lines: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """Print what was tried; fail with what failed."""
    for line in lines:
        print(f"seed {SEED}: {json.dumps(line)}")
    failures = [line for line in lines if "failure" in line]
    assert not failures, json.dumps(failures, indent=1)[:20_000]
    assert {line["format"] for line in lines} == set(names)


def test_some_of_every_format(tmp_path: Path) -> None:
    from tests.fuzz.formats import FORMATS as whole

    assert tuple(whole) == FORMATS
    check(tried(",".join(FORMATS), QUICK, tmp_path), FORMATS)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", FORMATS)
def test_many_of_one_format(tmp_path: Path, name: str) -> None:
    check(tried(name, WHOLE, tmp_path), (name,))
