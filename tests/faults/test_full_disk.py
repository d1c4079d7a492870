"""A disk that is full at any write: the old file is whole, nothing is left beside it, and one line says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.full_disk import RUNTIMES

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs a C compiler, to fill the disk"
)


def answers(place: Path, module: str, *words: str) -> list[Any]:
    """Run one of the programs beside this file with the shim preloaded; returns its lines of JSON."""
    shim, folder = place / "full.so", place / "files"
    folder.mkdir()
    source = Path(__file__).with_name("full_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(shim), "FULL_FOLDER": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module, str(shim), str(folder), *words]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(("what", "writers"), [
    ("files", 8), ("gguf", 1), *(pytest.param(kind, 1, marks=pytest.mark.slow) for kind in RUNTIMES if kind != "gguf"),
])  # fmt: skip
def test_every_write_may_be_the_one_that_fails(tmp_path: Path, what: str, writers: int) -> None:
    lines = answers(tmp_path, "tests.faults.full_disk", what)
    for line in lines:
        print(line)
        assert line["writes"] >= 2 and not line["problems"], line
    assert len(lines) == writers


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_commands_on_a_disk_that_becomes_full_at_a_random_write(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path, "tests.faults.full_moments", "500", "14")
    print(answer)
    assert not answer["problems"] and answer["ends"]["full"] > 100
