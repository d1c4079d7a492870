"""The display is lost, or the process is told to end: unsaved work is there at the next start."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gui import sessions
from workbench.session.autosave import recoverable
from workbench.session.session import Session

LAYER = "model.layers.0.mlp.up_proj"

WINDOW = f"""
import sys
from PySide6.QtCore import QSettings, QTimer
QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, sys.argv[2])
from workbench.gui import app, window
from workbench.gui.context import edits

def step():
    shown = [w for w in app.application().topLevelWidgets() if isinstance(w, window.Window)]
    if shown and shown[0].context.workspace.state.session is not None:
        timer.stop()
        edits.assign(shown[0].context.workspace, [{LAYER!r}], weights="nf4-b64")
        print("edited", flush=True)

application = app.application()
timer = QTimer()
timer.timeout.connect(step)
timer.start(50)
sys.exit(app.run(sys.argv[1]))
"""


@pytest.fixture
def display(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A display of its own and its name."""
    if shutil.which("Xvfb") is None:
        pytest.skip("no Xvfb to take a display away from the window")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x720x24"], pass_fds=[write], stderr=subprocess.DEVNULL
    )
    os.close(write)
    with os.fdopen(read) as stream:
        name = f":{stream.readline().strip()}"
    yield server, name
    server.kill()
    server.wait()


def _edited(file: Path, folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Start a window that opens ``file``, edits it, and says so."""
    started = subprocess.Popen(
        [sys.executable, "-c", WINDOW, str(file), str(folder)], env={**os.environ, **environment}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert started.stdout is not None and started.stdout.readline() == "edited\n"
    return started


def _check(ended: subprocess.Popen[str], file: Path) -> None:
    """See that the edit is in a copy, and that a person is told of it in one line."""
    _, errors = ended.communicate(timeout=60)
    assert ended.returncode == 1 and "Traceback" not in errors, errors
    assert "unsaved work on tiny-llama was kept" in errors
    (copy,) = recoverable()
    assert copy.original == file and Session.load(copy.file).plan.of(LAYER).weights == "nf4-b64"
    assert Session.load(file).plan.of(LAYER).weights != "nf4-b64"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A session file that is older than any copy of it."""
    path = tmp_path / "kept.qwb"
    sessions.full(1).save(path)
    old = time.time() - 60
    os.utime(path, (old, old))
    return path


def test_work_is_kept_when_the_display_is_lost(
    display: tuple[subprocess.Popen[bytes], str], file: Path, tmp_path: Path
) -> None:
    server, name = display
    window = _edited(file, tmp_path / "settings", DISPLAY=name, QT_QPA_PLATFORM="xcb")
    server.kill()
    _check(window, file)


def test_work_is_kept_when_the_process_is_told_to_end(file: Path, tmp_path: Path) -> None:
    window = _edited(file, tmp_path / "settings")
    window.send_signal(signal.SIGTERM)
    _check(window, file)
