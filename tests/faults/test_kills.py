"""SIGKILL, SIGINT and SIGTERM at random moments of commands: nothing lost, nothing half, nothing left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SEED = 14

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks"), pytest.mark.slow, pytest.mark.timeout(7200),
]  # fmt: skip


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGINT", "SIGTERM"])
def test_nothing_is_lost(tmp_path: Path, signal: str) -> None:
    command = [sys.executable, "-m", "tests.faults.kills", str(tmp_path), "500", str(SEED), signal]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    answer = json.loads(ended.stdout.splitlines()[-1])
    print(answer)
    assert not answer["problems"], "\n".join(answer["problems"])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_steps_go_on_to_the_same_bits(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.resumed", str(tmp_path), "40", "14"]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    line = json.loads(ended.stdout.splitlines()[-1])
    print(line)
    assert not line["problems"] and line["ends"]["went on"] > 5, line
