"""Jobs and the engine under Qt's loop, as the window runs them: nothing blocks the loop, everything ends."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import asyncio, os, sys, time
import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import qasync
from tests.engine.fakes import Fake
from workbench.errors import CancelledError, EngineDiedError
from workbench.engine.engine import Engine
from workbench.engine.jobs import Jobs

async def main():
    gaps, last = [], time.monotonic()

    def beat():
        nonlocal last
        now = time.monotonic()
        gaps.append(now - last)
        last = now
        jobs.poll()

    engine = Engine()
    await engine.start()
    jobs = Jobs(engine)
    timer = QTimer(interval=5)
    timer.timeout.connect(beat)
    timer.start()
    assert await jobs.submit(Fake(answer=1)).result() == 1
    array = np.zeros(6_000_000)
    back = await jobs.submit(Fake(array=array)).result()
    assert back["array"][5] == 1.0
    job = jobs.submit(Fake(steps=10_000, pause=0.001, partials=True))
    while jobs.partial(job.id) is None or not job.view.fraction:  # the engine may be importing what jobs need
        await asyncio.sleep(0.01)
    job.cancel()
    try:
        await job.result()
    except CancelledError:
        pass
    try:
        await jobs.submit(Fake(kill=9)).result()
    except EngineDiedError:
        pass
    assert await jobs.submit(Fake(answer=2)).result() == 2
    timer.stop()
    await jobs.close()
    print(max(gaps))

if __name__ == "__main__":
    app = QApplication(sys.argv)
    app.setQuitOnLastWindowClosed(False)
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner:
        runner.run(main())
"""


def test_the_loop_of_the_window_runs_on(tmp_path: os.PathLike[str]) -> None:
    script = os.path.join(tmp_path, "window.py")
    with open(script, "w") as file:
        file.write(CODE)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": root}
    completed = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", script], env=environment, cwd=root, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    assert "leaked" not in completed.stderr and "Traceback" not in completed.stderr, completed.stderr
    assert float(completed.stdout) < 2.0, "the window's loop stood still"
