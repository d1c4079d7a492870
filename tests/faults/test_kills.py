"""SIGKILL, SIGINT and SIGTERM at random moments of commands: nothing lost, nothing half, nothing left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SEED = 14

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks"), pytest.mark.slow, pytest.mark.timeout(7200),
]  # fmt: skip


def answer_of(*words: str) -> Any:
    """Run one of the programs beside this file; returns its line of JSON, printed with its seed and counts."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *words]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    answer = json.loads(ended.stdout.splitlines()[-1])
    print(answer)
    assert not answer["problems"], "\n".join(answer["problems"])
    return answer


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGINT", "SIGTERM"])
def test_nothing_is_lost(tmp_path: Path, signal: str) -> None:
    answer_of("tests.faults.kills", str(tmp_path), "500", str(SEED), signal)


def test_killed_steps_go_on_to_the_same_bits(tmp_path: Path) -> None:
    assert answer_of("tests.faults.resumed", str(tmp_path), "40", "14")["ends"]["went on"] > 5


def test_a_killed_window_leaves_nothing_and_loses_no_edit(tmp_path: Path) -> None:
    """Each window takes its engine's start, some seconds: so a tenth of the kills."""
    answer = answer_of("tests.faults.windows", str(tmp_path), "50", str(SEED))
    assert answer["ends"]["whole"] == 50 and answer["edits"] > 500


def test_signals_end_commands_within_two_seconds(tmp_path: Path) -> None:
    """Commands as new processes, imports included; on a machine that has nothing else to do."""
    answer = answer_of("tests.faults.endings", str(tmp_path / "place"), "114", str(SEED))
    assert sum(answer["codes"].get(code, 0) for code in ("130", "143")) > 50


def test_steps_without_memory_take_smaller_pieces_or_name_the_reason(tmp_path: Path) -> None:
    ends = answer_of("tests.faults.memory", str(tmp_path))["ends"]
    assert ends["calibrate"]["in smaller pieces"] > 0
