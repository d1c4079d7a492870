"""The composition root: starts and ends the event loop, the engine, the document and the window, in order.

The engine's process is spawned before the window's modules are imported: both take about a second, side by side.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

from workbench.engine.engine import Engine
from workbench.gui.shell import settings, theme, words
from workbench.insight.quantities import use_comma
from workbench.pacing import pace_this_process

if TYPE_CHECKING:
    from workbench.gui.context.context import Context
    from workbench.gui.recovery import Recovery
    from workbench.session.workspace import State

log = logging.getLogger(__name__)

SWITCH_SECONDS = 0.001
"""How long a thread that reads from the engine may hold the interpreter while the window waits for it."""

STOPPED = "Event loop stopped before Future completed."
"""What qasync says when Qt ends the loop by itself, as it does when it has lost its display."""

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that tell the process to end, as at the end of the desktop session."""

_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_handlers: list[object] = []
"""Xlib keeps the handler's address only."""


def application() -> QApplication:
    """Return the application object, made on first use."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication([sys.argv[0] if sys.argv else "workbench"])
        words.install(app, settings.language())
        use_comma(settings.decimal_mark() == ",")
    app.setApplicationName("workbench")
    app.setApplicationDisplayName("Quantization Workbench")
    app.setDesktopFileName("quantization-workbench")
    app.setQuitOnLastWindowClosed(False)
    return app


def run(path: str | None = None, *, factory: str | None = None, weights: str | None = None, trust: bool = False) -> int:
    """Show the window, with the model or session at ``path`` if given, until it is closed; returns an exit code.

    If the display is lost or the process is terminated, unsaved work is copied first, and the exit code is 1.
    """
    app = application()
    recoveries: list[Recovery] = []
    sys.setswitchinterval(SWITCH_SECONDS)
    pace_this_process()
    try:
        with asyncio.Runner(loop_factory=lambda: QEventLoop(app)) as runner:
            runner.run(_live(app, path, {"factory": factory, "weights": weights, "trust": trust}, recoveries))
    except RuntimeError as error:
        if str(error) != STOPPED:
            raise
        for recovery in recoveries:
            _save_copy(recovery)
        return 1
    return 0


def _save_copy(recovery: Recovery) -> None:
    """Copy unsaved work where the window cannot go on, and say so in the terminal."""
    outcome = recovery.copy_now()
    print(f"workbench: the display was lost, or the process was terminated{outcome}", file=sys.stderr, flush=True)


async def _live(app: QApplication, path: str | None, how: dict[str, Any], recoveries: list[Recovery]) -> None:
    engine = Engine()
    await engine.start()
    from workbench.engine.drawing_engine import DrawingEngine
    from workbench.engine.files_engine import FilesEngine

    files = FilesEngine()
    if path is not None and path.endswith(".qwb"):
        await files.start()  # which reads it before the engine is there
    from workbench.engine.jobs import Jobs
    from workbench.gui.commands.tour import FirstRun
    from workbench.gui.context.context import Context
    from workbench.gui.recovery import Recovery
    from workbench.gui.window import Window, until_closed
    from workbench.session.workspace import Workspace

    colours = theme.choose(settings.theme())
    theme.apply(app, colours)
    jobs = Jobs(engine, files=files, drawing=DrawingEngine())
    context = Context(Workspace(), jobs)
    context.engine_pid = lambda: engine.pid
    window = Window(context, colours)
    restore = install_hooks(context)
    unsubscribe = engine.subscribe(window.engine_event)
    engine.subscribe(lambda event, text: context.tasks.start(files.start()))  # once; saving need not wait for it then
    signal.signal(signal.SIGINT, lambda *_: window.close())  # seen when the window's timer runs Python
    recovery = Recovery(context, window)
    recoveries.append(recovery)
    _save_at_sudden_end(app, recovery)
    first_run = FirstRun(context, window)
    try:
        closed = asyncio.ensure_future(until_closed(window))
        window.show()
        _after_show(context, recovery)
        if path is not None:
            window.document.open_path(path, **how)
        await closed
    finally:
        first_run.end()
        recovery.stop()
        await context.tasks.stop()
        unsubscribe()
        await jobs.close()
        recovery.end(discard=window.closed)
        window.dispose()
        restore()


def _after_show(context: Context, recovery: Recovery) -> None:
    """Do what can wait until the window is on the screen."""
    gc.freeze()
    gc.enable()
    context.workspace.subscribe(pass_results_by)
    context.tasks.start(recovery.offer())
    threading.Thread(target=warm_up, name="warm", daemon=True).start()


def pass_results_by(old: State, new: State) -> None:
    """Let the collector of cycles pass by new results, which have none: of 5,000 layers they would take it 0.1 s."""
    before, now = old.session, new.session
    if now is not None and (before is None or now.statistics is not before.statistics):
        gc.freeze()


def _save_at_sudden_end(app: QApplication, recovery: Recovery) -> None:
    """Copy unsaved work when the display is lost or the process is terminated."""
    _when_display_is_lost(partial(_save_copy, recovery))
    for number in ENDINGS:
        signal.signal(number, lambda *_: app.exit(1))


def _when_display_is_lost(act: Callable[[], None]) -> None:
    """Call ``act()`` before Xlib ends the process; it may not use the display.  Nothing happens on other platforms."""
    if QApplication.platformName() != "xcb":
        return
    try:
        xlib = ctypes.CDLL("libX11.so.6")
    except OSError:
        return

    def lost(display: int | None) -> int:
        act()
        os._exit(1)  # Xlib would run what ends a process in order, beside threads that still run

    _handlers[:] = [_HANDLER(lost)]
    xlib.XSetIOErrorHandler(*_handlers)


def install_hooks(context: Context) -> Callable[[], None]:
    """Report every uncaught exception of slots and of the loop; returns the function that removes the hooks."""
    loop = asyncio.get_running_loop()
    before = sys.excepthook
    shown = weakref.ref(context.messages)  # a thread holds the hook that it was started under, for as long as it lives

    def report(error: BaseException) -> None:
        traceback.print_exception(error)
        log.error("uncaught exception", exc_info=error)
        messages = shown()
        if messages is not None:
            messages.report("Internal error of the workbench", error)

    sys.excepthook = lambda kind, error, trace: report(error)
    loop.set_exception_handler(lambda loop, what: report(what.get("exception") or RuntimeError(str(what["message"]))))

    def restore() -> None:
        sys.excepthook = before
        loop.set_exception_handler(None)

    return restore


def warm_up() -> None:
    """Load in a thread what a click or the end of a job would otherwise have to load first."""
    import numpy.ma  # noqa: F401

    from workbench.deployment.exporters import REGISTRY as EXPORTERS
    from workbench.insight import schemes
    from workbench.numerics.ranges import REGISTRY as RANGES
    from workbench.numerics.rounding import REGISTRY as ALGORITHMS

    for registry in (EXPORTERS, ALGORITHMS, RANGES):
        registry.names()
    schemes.families()
