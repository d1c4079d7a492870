"""How fast the window is: ``python -m tests.benchmarks.window`` (under Xvfb, or offscreen without a display).

Start-up beside a bare PySide6 and pyqtgraph window; the event loop's delay, by a 4 ms heartbeat with a live plot, while
jobs run in the engine, and when it is killed; clicks at 5,000 layers, a step of the slider at 300, frames while
scrolling 10,000 rows; memory.  Prints a table and one line of JSON.  Figures are wall-clock: on a busy machine they
tell of the machine, and beside each delay stands the processor time of the window's thread in one turn, which does not.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import gc
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.window_start import Row, start_up
from workbench.models.data.files import BUNDLED_TEXT

if not os.environ.get("DISPLAY"):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

MODEL = "demo:language-model"
HEARTBEAT_MS = 4
IDLE_SECONDS = 3.0
SCHEMES = 24
"""Columns of the heatmap."""


# -------------------------------------------------------------------- the event loop


class Heart:
    """Notes how late a 4 ms timer is, while a plot is drawn anew 30 times a second."""

    def __init__(self) -> None:
        import pyqtgraph as pg
        from PySide6.QtCore import Qt, QTimer

        self.gaps: list[float] = []
        self.own: list[float] = []
        self._last, self._worked = time.perf_counter(), time.thread_time()
        self._plot = pg.PlotWidget()
        self._curve = self._plot.plot()
        self._plot.show()
        self._rng = np.random.default_rng(0)
        self._beat, self._draw = QTimer(), QTimer()
        self._beat.setTimerType(Qt.TimerType.PreciseTimer)
        self._beat.timeout.connect(self._tick)
        self._draw.timeout.connect(lambda: self._curve.setData(self._rng.normal(size=500)))
        self._beat.start(HEARTBEAT_MS)
        self._draw.start(33)

    def _tick(self) -> None:
        now, worked = time.perf_counter(), time.thread_time()
        self.gaps.append((now - self._last) * 1e3)
        self.own.append((worked - self._worked) * 1e3)
        self._last, self._worked = now, worked

    async def during(self, what: str, work: Awaitable[Any]) -> list[Row]:
        """Return the delay's 99th percentile and maximum while ``work`` runs, and the most work of one turn."""
        self.gaps, self.own, self._last, self._worked = [], [], time.perf_counter(), time.thread_time()
        await work
        gaps = np.array(self.gaps or [0.0])
        return [
            Row(what=f"event loop, {what}, own work, max", value=max(self.own, default=0.0), unit="ms", limit=50.0),
            Row(what=f"event loop, {what}, p99", value=float(np.percentile(gaps, 99)), unit="ms", limit=16.7),
            Row(what=f"event loop, {what}, max", value=float(gaps.max()), unit="ms", limit=50.0),
        ]

    def stop(self) -> None:
        """End timers and plot."""
        self._beat.stop()
        self._draw.stop()
        self._plot.close()


async def bare_loop() -> list[Row]:
    """Return the delays while the plot alone is shown: what this machine takes to draw it."""
    heart = Heart()
    await asyncio.sleep(1.0)
    rows = await heart.during("the plot alone", asyncio.sleep(IDLE_SECONDS))
    heart.stop()
    return [replace(row, limit=None) for row in rows]


async def event_loop(window: Any, engine: Any, folder: Path, model: str) -> list[Row]:
    """Return the delays while the jobs of a language model run, and a session of 10,000 layers is saved."""
    from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
    from workbench.steps.evaluate import EVALUATE, EvaluateOptions
    from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions
    from workbench.steps.files.save_session import SAVE_SESSION, SaveSessionOptions
    from workbench.steps.score import SCORE, ScoreOptions
    from workbench.steps.search import SEARCH, SearchOptions

    context, heart = window.context, Heart()
    await asyncio.sleep(1.0)
    rows = await heart.during("idle", asyncio.sleep(IDLE_SECONDS))
    rows += await heart.during("engine starts, torch is imported", engine.ready())
    rows += await heart.during("open a model", window.document.open(model))

    def session() -> Any:
        return context.workspace.state.session

    data, samples = (MODEL, 16) if model == MODEL else (BUNDLED_TEXT, 4)
    calibrate = CALIBRATE.request(session(), CalibrateOptions(data=data, samples=samples))
    rows += await heart.during("calibrate", context.runner.work(calibrate))
    names = ("int4-g32-asym", "int3-g32-asym", "int8-channel")
    score = SCORE.request(session(), ScoreOptions(schemes=names, samples=samples // 2))
    rows += await heart.during("predicted loss", context.runner.work(score))
    if model == MODEL:
        measured = SCORE.request(session(), ScoreOptions(metric="measured_kl", schemes=names[:1], samples=2))
        rows += await heart.during("measured KL", context.runner.work(measured))
    stored = [layer.name for layer in session().model.stored]
    plan = session().plan.assign(stored, weights="int4-g32-asym", algorithm="gptq")
    gptq = EVALUATE.request(replace(session(), plan=plan), EvaluateOptions(samples=samples // 4))
    rows += await heart.during("GPTQ of all layers", context.runner.work(gptq))
    search = SEARCH.request(session(), SearchOptions(bits_per_weight=4.5))
    rows += await heart.during("search", context.runner.work(search))
    large = _many(10_000)
    path = str(folder / "large.qwb")
    save = SAVE_SESSION.request(large, SaveSessionOptions(path=path))
    rows += await heart.during("save 10,000 layers", context.runner.run(save, lambda: None))
    reading = OPEN_SESSION.request(None, OpenSessionOptions(path=path))
    rows += await heart.during("open 10,000 layers", context.runner.run(reading, lambda: None))
    rows += await killed(window, engine, heart)
    heart.stop()
    return rows


async def killed(window: Any, engine: Any, heart: Heart) -> list[Row]:
    """Return how the window takes the end of its engine in the middle of a job."""
    from workbench.steps.score import SCORE, ScoreOptions

    context, spoken = window.context, list[float]()
    restarted = asyncio.Event()

    def hear(event: str, text: str) -> None:
        if event == "died":
            spoken.append(time.perf_counter())
        elif event == "restarted":
            restarted.set()

    end = engine.subscribe(hear)
    request = SCORE.request(context.workspace.state.session, ScoreOptions(metric="measured_kl", samples=32))
    job = asyncio.ensure_future(context.runner.work(request))
    await asyncio.sleep(1.5)
    began = time.perf_counter()
    os.kill(engine.pid, signal.SIGKILL)
    rows = await heart.during("engine killed and started again", restarted.wait())
    took = time.perf_counter() - began
    await job
    await asyncio.sleep(0.2)
    end()
    assert window.status.retry_button.isVisible(), "the window offers to try the job again"
    titles = [message.title for message in context.messages.entries]
    assert "The engine process ended" in titles, titles
    return [
        *rows,
        Row(what="engine killed, until the window says so", value=(spoken[0] - began) * 1e3, unit="ms", limit=100.0),
        Row(what="engine killed, until it runs again", value=took, unit="s", limit=3.0),
    ]


# -------------------------------------------------------------------- clicks and frames


def _many(layers: int) -> Any:
    from tests.gui import sessions

    session = sessions.opened(replace(sessions.summary(layers // 7), others=()))
    table = sessions.table(session.model)
    names = tuple(f"int{bits}-g128{kind}" for bits in (3, 4, 5, 6, 8) for kind in ("", "-asym"))
    more = names[: SCHEMES - len(table.schemes)]
    wide = np.hstack([table.score, table.score[:, : len(more)]])
    return replace(session, sensitivities={"predicted_kl": replace(table, schemes=table.schemes + more, score=wide)})


def _milliseconds(app: Any, window: Any, act: Callable[[], object]) -> float:
    """Return how long it takes until every panel that is seen shows what ``act`` did, on the screen."""
    began = time.perf_counter()
    act()
    app.processEvents()
    while not window.is_drawn:
        app.processEvents()
    app.processEvents()
    return (time.perf_counter() - began) * 1e3


def clicks(window: Any, app: Any) -> list[Row]:
    """Return the time from a click to what it draws, at 5,000 layers, and a step of the slider at 300."""
    workspace = window.context.workspace
    workspace.open(_many(5000), None)
    _milliseconds(app, window, lambda: window.reveal("distributions"))
    names = [layer.name for layer in workspace.state.session.model.layers]
    select = [_milliseconds(app, window, functools.partial(workspace.select, [names[n]])) for n in range(50, 4950, 350)]
    panel = window.panels["sensitivity"]
    assign = [_milliseconds(app, window, functools.partial(panel._click, n, 4 + n % 3)) for n in range(60, 4900, 350)]
    from workbench.gui.shell import theme

    colours = (theme.DARK, theme.LIGHT) * 2
    themes = [_milliseconds(app, window, functools.partial(window.recolour, each)) for each in colours]
    workspace.open(_many(300), None)
    _milliseconds(app, window, lambda: window.reveal("pareto"))
    slider = window.panels["pareto"].slider
    steps = range(0, slider.maximum(), max(slider.maximum() // 30, 1))
    slider.setSliderDown(True)
    slide = [_milliseconds(app, window, functools.partial(slider.setValue, at)) for at in steps][1:]
    slider.setSliderDown(False)
    app.processEvents()
    window.reveal("sensitivity")
    return [
        Row(what="click on a layer to histograms, 5,000 layers", value=_median(select), unit="ms", limit=50),
        Row(what="click on a cell to totals and colours, 5,000 layers", value=_median(assign), unit="ms", limit=50),
        Row(what="light to dark, 5,000 layers", value=_median(themes), unit="ms", limit=200),
        Row(what="slider to plan, totals and plots, 300 layers", value=_median(slide), unit="ms", limit=33),
    ]  # fmt: skip


def frames(window: Any, app: Any) -> list[Row]:
    """Return the 95th percentile of a frame's time while scrolling 10,000 rows and a heatmap of 5,000, and zooming."""
    rows: list[Row] = []
    times: list[float] = []

    def frame(act: Callable[[], object], view: Any) -> None:
        began = time.perf_counter()
        act()
        view.viewport().repaint()
        times.append((time.perf_counter() - began) * 1e3)

    def row(title: str) -> Row:
        return Row(what=f"{title}, p95", value=float(np.percentile(times, 95)), unit="ms", limit=16.7)

    for title, layers, panel, widget in (
        ("tree of 10,000 rows", 10_000, "layers", "view"),
        (f"heatmap of 5,000 x {SCHEMES}", 5000, "sensitivity", "heatmap"),
    ):
        window.context.workspace.open(_many(layers), None)
        _milliseconds(app, window, functools.partial(window.reveal, panel))
        view = getattr(window.panels[panel], widget)
        if panel == "layers":
            view.expandAll()
        bar = view.verticalScrollBar()
        times.clear()
        for at in np.linspace(0, bar.maximum(), 200).astype(int):
            frame(functools.partial(bar.setValue, int(at)), view)
        rows.append(row(f"scroll frame, {title}"))
    times.clear()
    for factor in [1.25] * 20 + [0.8] * 20:
        frame(functools.partial(view.zoom, factor), view)
    rows.append(row(f"zoom frame, heatmap of 5,000 x {SCHEMES}"))
    return rows


def _median(values: list[float]) -> float:
    return float(np.median(values))


# -------------------------------------------------------------------- all of it


def in_the_window(model: str) -> list[Row]:
    """Return everything that is measured in a window of this process, with the jobs of a language model."""
    from PySide6.QtCore import QSettings
    from qasync import QEventLoop

    from workbench.engine.engine import Engine
    from workbench.engine.jobs import Jobs
    from workbench.gui.app import SWITCH_SECONDS, application, warm_up
    from workbench.gui.context.context import Context
    from workbench.gui.shell import theme
    from workbench.gui.window import Window
    from workbench.pacing import pace_this_process
    from workbench.session.workspace import Workspace

    app = application()
    theme.apply(app, theme.LIGHT)
    sys.setswitchinterval(SWITCH_SECONDS)
    pace_this_process()

    async def live(folder: Path) -> list[Row]:
        QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(folder))
        bare = await bare_loop()
        engine = Engine()
        jobs = Jobs(engine)
        context = Context(Workspace(), jobs)
        window = Window(context, theme.LIGHT, keep_layout=False)
        window.resize(1600, 1000)
        window.show()
        gc.freeze()
        unsubscribe = engine.subscribe(window.engine_event)
        threading.Thread(target=warm_up, name="warm", daemon=True).start()
        rows = bare + await event_loop(window, engine, folder, model)
        unsubscribe()
        done: asyncio.Future[list[Row]] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.1, lambda: done.set_result(clicks(window, app) + frames(window, app)))
        rows += await done
        await context.tasks.stop()
        await jobs.close()
        window.dispose()
        return rows

    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=lambda: QEventLoop(app)) as runner:
        return runner.run(live(Path(folder)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How fast the window is.")
    parser.add_argument("--no-start", action="store_true", help="leave out the start-up times")
    parser.add_argument("--model", default=MODEL, help="the language model whose jobs run (default: the bundled one)")
    options = parser.parse_args()
    rows = ([] if options.no_start else start_up()) + in_the_window(options.model)
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:>8.1f}  {'ok' if row.value <= row.limit else 'over'}"
        print(f"{row.what:<64}{row.value:>9.2f} {row.unit:<3}{limit}")
    load = os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} cores, {os.environ.get('QT_QPA_PLATFORM') or 'xcb'}")
    print(json.dumps({"benchmark": "window", "load": load, **{row.what: round(row.value, 3) for row in rows}}))


if __name__ == "__main__":
    main()
