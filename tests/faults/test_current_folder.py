"""A folder with a stranger's modules as the current one: none of them is imported, however the program is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = (
    "argparse", "asyncio", "h5py", "hmac", "json", "logging", "numpy", "pickle", "psutil", "random", "secrets",
    "selectors", "signal", "socket", "struct", "subprocess", "tempfile", "threading", "torch", "weakref",
    "sitecustomize", "usercustomize",
)  # fmt: skip
ENGINE = """
import asyncio
import os
import sys

from workbench.engine.executors import _local
from workbench.engine.process import EngineProcess
from workbench.models.placement import Placement


async def warm():
    process = EngineProcess(lambda envelope: None, lambda job, error: None)
    print(await process.ready is not None)
    process.end(9)
    await process.ended


def main():
    workers = _local("local:1", Placement(), False)  # they end with it
    executor = workers.start()
    print(executor.submit(os.getpid).result() != os.getpid())
    workers.stop(executor)
    asyncio.run(warm())
    print("PYTHONSAFEPATH" in os.environ)


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a folder with modules that leave a marker, named as what the program imports."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in NAMES:
        code = f"open({str(tmp_path / 'marker')!r}, 'a').write({name!r} + '\\n')\nraise SystemExit(7)\n"
        (folder / f"{name}.py").write_text(code)
    return folder


def run(hostile: Path, *words: str) -> str:
    """Run Python in the hostile folder; returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONPATH")}
    ended = subprocess.run(
        [sys.executable, *words], cwd=hostile, env=environment, capture_output=True, text=True, timeout=120
    )
    marker = hostile.parent / "marker"
    assert not marker.exists(), marker.read_text()
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_program_as_a_module_leaves_it_out(hostile: Path) -> None:
    assert run(hostile, "-m", "workbench", "--version").startswith("workbench ")
    assert "calibrate" in run(hostile, "-m", "workbench", "--help")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no folder in which a program runs")
def test_a_folder_that_has_been_removed(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    command = ["sh", "-c", f"rmdir ../gone && exec '{sys.executable}' -m workbench --version"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run(command, cwd=tmp_path / "gone", env=environment, capture_output=True, text=True, timeout=120)
    assert ended.stdout.startswith("workbench ") and not ended.stderr


def test_processes_that_it_starts_leave_it_out(hostile: Path) -> None:
    """``multiprocessing`` itself imports from there: the program would run a stranger's ``threading.py``."""
    script = hostile.parent / "engine.py"
    script.write_text(ENGINE)
    assert run(hostile, str(script)).split() == ["True", "True", "False"]


def test_the_marker_is_left_by_what_python_does_itself(hostile: Path) -> None:
    with pytest.raises(AssertionError):
        run(hostile, "-c", "import socket")
