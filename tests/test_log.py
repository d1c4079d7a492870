"""The log: versions first, errors with tracebacks, crashes of native code, a bounded number of bounded files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench import log

CHILD = """
import faulthandler, logging, sys
from workbench import log
path = log.start("command")
{}
"""


def run(folder: Path, body: str) -> tuple[int, str]:
    """Run a process that logs; returns its exit code and what its log holds."""
    environment = {**os.environ, log.FOLDER_VARIABLE: str(folder)}
    done = subprocess.run([sys.executable, "-c", CHILD.format(body)], env=environment, check=False, capture_output=True)
    return done.returncode, "".join(file.read_text() for file in folder.iterdir())


def test_a_native_crash_leaves_a_trace(tmp_path: Path) -> None:
    code, text = run(tmp_path, "faulthandler._sigsegv()")
    assert code < 0
    assert "Segmentation fault" in text and "<string>" in text


def test_a_crash_after_a_rotation_leaves_a_trace_too(tmp_path: Path) -> None:
    body = (
        "log_ = logging.getLogger('workbench'); [log_.info('x' * 1000) for _ in range(2500)]; faulthandler._sigsegv()"
    )
    _, text = run(tmp_path, body)
    assert "Segmentation fault" in text
    assert len(list(tmp_path.iterdir())) == 2 and len(text) < 2.5 * log.MAX_BYTES


def test_versions_and_uncaught_errors_are_logged(tmp_path: Path) -> None:
    code, text = run(tmp_path, "import time\ntime.sleep(2)\nraise ZeroDivisionError('nobody caught this')")
    assert code == 1
    assert "Quantization Workbench" in text and "numpy" in text
    assert "Traceback" in text and "nobody caught this" in text


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {**os.environ, log.FOLDER_VARIABLE: str(tmp_path / "file" / "log")}
    command = [sys.executable, "-c", CHILD.format("sys.exit(0 if path is None else 1)")]
    assert subprocess.run(command, env=environment, check=False).returncode == 0


def test_only_the_newest_files_of_ended_processes_are_kept(tmp_path: Path) -> None:
    long_ago = time.time() - 1e6
    for number in range(log.MAX_FILES + 5):
        file = tmp_path / f"command-{10**7 + number}.log"
        file.write_text("")
        os.utime(file, (long_ago + number, long_ago + number))
    living = tmp_path / f"command-{os.getpid()}.log"
    living.write_text("")
    os.utime(living, (0, 0))
    run(tmp_path, "")
    assert living.exists()
    assert len(list(tmp_path.iterdir())) == log.MAX_FILES + 1


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(log.FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert log.folder() == tmp_path / "quantization-workbench" / "log"
    monkeypatch.setenv(log.FOLDER_VARIABLE, str(tmp_path / "moved"))
    assert log.folder() == tmp_path / "moved"
