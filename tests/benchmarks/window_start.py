"""How fast the window starts, beside a bare PySide6 and pyqtgraph window, and its memory (see ``window.py``)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

BARE = """
import sys, time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMainWindow
import pyqtgraph as pg
app = QApplication(sys.argv)
window = QMainWindow()
plot = pg.PlotWidget()
plot.plot([1, 3, 2])
window.setCentralWidget(plot)
window.show()
QTimer.singleShot(0, lambda: (window.grab(), print(time.time(), flush=True), app.quit()))
app.exec()
"""

OURS = """
import gc, sys, time, dataclasses
gc.disable()  # as workbench.console.launch does
from PySide6.QtCore import QSettings, QTimer
QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, sys.argv[1])
from workbench.gui import app, window
from workbench.memory import resident
from workbench.steps.files.first_session import is_first_look
import os
qapp = app.application()
told, seen = [], []
def look():
    shown = [w for w in qapp.topLevelWidgets() if isinstance(w, window.Window)]
    if not shown or not shown[0].isVisible():
        return
    if not told:
        shown[0].grab()
        told.append(time.time())
    state = shown[0].context.workspace.state
    if state.session is not None and not seen:
        shown[0].grab()
        seen.append(time.time())
    if state.session is not None and not is_first_look(state.session):
        timer.stop()
        shown[0].grab()
        print(told[0], seen[0], time.time(), resident(os.getpid()), resident(shown[0].context.engine_pid()), flush=True)
        shown[0].context.workspace.state = dataclasses.replace(state, dirty=False)
        QTimer.singleShot(0, shown[0].close)
timer = QTimer()
timer.timeout.connect(look)
timer.start(5)
app.run("demo:language-model")
"""

RUNS = 3
"""Starts of which the quickest counts: other programs only make them slower."""

HEADLESS = """
import asyncio, os
from workbench.memory import resident
from workbench.engine.engine import Engine
from workbench.engine.jobs import Jobs
from workbench.steps.files.open_model import OPEN, OpenModelOptions
from workbench.session.workspace import Workspace

async def main():
    engine, document = Engine(), Workspace()
    jobs = Jobs(engine)
    await engine.start()
    document.open(await jobs.submit(OPEN.request(None, OpenModelOptions(path="demo:language-model"))).result(), None)
    print(resident(os.getpid()), flush=True)
    await jobs.close()

if __name__ == "__main__":
    asyncio.run(main())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure beside what is to be reached, or a peer's; None where there is neither."""

    what: str
    value: float
    unit: str
    limit: float | None = None


def start_up() -> list[Row]:
    """Return the seconds to a window, to the demo model in it, and to a bare window; and the memory."""
    bare = _started([sys.executable, "-c", BARE])
    with tempfile.TemporaryDirectory() as folder:
        ours = _started([sys.executable, "-c", OURS, folder], XDG_STATE_HOME=folder)
    headless = _started([sys.executable, "-c", HEADLESS])[0]
    rows = [
        Row(what="cold start, a bare PySide6 and pyqtgraph window", value=bare[0], unit="s"),
        Row(what="cold start to the window", value=ours[0], unit="s", limit=1.2),
        Row(what="cold start to the window over the bare one", value=ours[0] / bare[0], unit="", limit=1.6),
        Row(what="cold start to the demo model shown", value=ours[1], unit="s", limit=3.0),
        Row(what="cold start to the demo model ready to run", value=ours[2], unit="s"),
        Row(what="memory of the window's process", value=ours[3] / 1e6, unit="MB"),
        Row(what="memory of a process that only talks to the engine", value=headless / 1e6, unit="MB"),
        Row(what="memory of the window over that", value=(ours[3] - headless) / 1e6, unit="MB", limit=150.0),
        Row(what="memory of the engine's process", value=ours[4] / 1e6, unit="MB"),
    ]
    return rows


def _started(command: list[str], **environment: str) -> list[float]:
    """Run once to fill the caches, then RUNS times, and return what the quickest printed; times since its start.

    Modules are compiled as in an installation, whatever the environment says: without their bytecode a start would be
    measured that no user has.
    """
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(1 + RUNS):
            began = time.time()
            done = subprocess.run(
                command, env={**usual, "PYTHONPYCACHEPREFIX": folder, **environment}, capture_output=True, text=True,
                check=True, timeout=300,
            )  # fmt: skip
            values = [float(part) for part in done.stdout.split()[-5:]]
            runs.append([value - began if abs(value - began) < 300 else value for value in values])
    return min(runs[1:])
