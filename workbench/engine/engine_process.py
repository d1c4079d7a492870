"""Inside the engine process: a receiver, which takes a cancel at any time, and one thread that runs the jobs.

The process is nice, takes all cores but one, and ends as soon as the window's end of the pipe closes, however the
window ended.  Progress is a latest-value slot here too: a job writes it as often as it likes, a reporter sends it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import queue
import signal
import sys
import threading
import time
from dataclasses import fields, is_dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, NoReturn, cast

from workbench import log as log_file
from workbench.engine.failure import portable
from workbench.engine.transport import Channel, Envelope
from workbench.errors import CancelledError
from workbench.preflight import Estimate
from workbench.private import hide
from workbench.progress import Notes

if TYPE_CHECKING:
    from workbench.engine.model_cache import ModelCache
    from workbench.engine.request import Request

log = logging.getLogger(__name__)

ENGINE, FILES, DRAWING = "engine", "files", "drawing"
"""The roles of a process: it computes; or it writes the document, or draws on its main thread, and loads no torch."""

RUN, CANCEL, CLOSE = "run", "cancel", "close"
READY, BROKEN, PROGRESS, PARTIAL, DONE, FAILED = "ready", "broken", "progress", "partial", "done", "failed"

NICENESS = 10
LOADED_WHEN_IDLE = (
    "workbench.models.sources.catalog", "workbench.models.data.datasets", "workbench.measurement.calibrate",
    "workbench.session.file.hdf5", "workbench.sensitivity.score", "workbench.quantization.quantize",
    "workbench.deployment.exporters", "workbench.models.sources.lean_transformers",
    "transformers.models.auto.modeling_auto", "scipy.optimize",
)  # fmt: skip
"""What most jobs need and takes seconds to import: done one by one while there is nothing to do."""

LOADED_FOR_FILES = ("workbench.session.file.hdf5", "workbench.steps.files.save_session")

PROGRESS_INTERVAL = 1 / 30
PARTIAL_INTERVAL = 1 / 5


def main(connection: Connection, role: str) -> NoReturn:
    """Run the engine until the window closes it or is gone.

    The cyclic garbage collector waits until the first job is done or everything is loaded: looking again and again
    through what the imports leave behind would take a third of the time to the first model.
    """
    log_file.start(role)
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the window's to answer
    if role != FILES:
        os.nice(NICENESS)
    channel = Channel(connection)
    worker = Worker(channel, role)

    def receive() -> NoReturn:
        with contextlib.suppress(EOFError, OSError):  # the window is gone
            while (envelope := channel.receive()).kind != CLOSE:
                worker.receive(envelope)
        _leave()

    first, second = (receive, worker.run) if role == DRAWING else (worker.run, receive)
    threading.Thread(target=first, name="first", daemon=True).start()
    second()
    raise AssertionError("neither ends")


def warm() -> str:
    """Load what every job needs and set the number of compute threads; returns a line for the user."""
    import torch

    import workbench.sensitivity.table
    import workbench.session.calibrated_ranges  # noqa: F401  (the first job does not wait for these)

    threads = max(1, cores() - 1)
    torch.set_num_threads(threads)
    return f"torch {torch.__version__}, {threads} compute thread{'s' if threads > 1 else ''}"


def warm_files() -> str:
    """Load what reading and writing a session need."""
    for name in LOADED_FOR_FILES:
        importlib.import_module(name)
    return "ready to read and save"


def collect_from_now_on() -> None:
    """Start the garbage collector; what was imported so far is never looked at."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Worker:
    """Runs one job after the other on its own thread."""

    def __init__(self, channel: Channel, role: str) -> None:
        self._channel = channel
        self._warm = {ENGINE: warm, FILES: warm_files}.get(role, lambda: "ready to draw")
        self._queue: queue.SimpleQueue[Envelope] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._reporter = Reporter(channel)
        self._running: int | None = None
        self._later = list(LOADED_WHEN_IDLE) if role == ENGINE else []

    def receive(self, envelope: Envelope) -> None:
        """Handle a message of the window (on the receiver's thread)."""
        if envelope.kind == CANCEL:
            self._cancelled.add(envelope.job)
            if envelope.job != self._running:  # it still waits: answer for it (a second answer would be dropped)
                self._channel.send(FAILED, envelope.job, CancelledError("cancelled"))
        else:
            self._queue.put(envelope)

    def run(self) -> None:
        """Warm up, then run jobs until the process ends; a window that is gone ends the process."""
        try:
            try:
                text = self._warm()
            except BaseException as error:
                log.exception("the engine cannot start")
                self._channel.send(BROKEN, 0, portable(error, "starting the engine"))
                _leave(1)
            from workbench.engine.model_cache import ModelCache

            models = ModelCache()
            threading.Thread(target=self._reporter.live, name="reporter", daemon=True).start()
            self._channel.send(READY, 0, text)
            while True:
                self._run(self._next(), models)
                collect_from_now_on()
        except OSError:
            _leave(1)

    def _next(self) -> Envelope:
        """Wait for the next job; use the time before the first ones for imports."""
        while self._later:
            with contextlib.suppress(queue.Empty):
                return self._queue.get_nowait()
            with contextlib.suppress(Exception):  # the job that needs it reports the error
                importlib.import_module(self._later.pop(0))
            if not self._later:
                _log_device()
        collect_from_now_on()
        return self._queue.get()

    def _run(self, envelope: Envelope, models: ModelCache) -> None:
        self._running = envelope.job
        kind, body = self._outcome(envelope, models)
        self._reporter.clear()
        try:
            self._channel.send(kind, envelope.job, body)
        except OSError:
            raise
        except Exception as error:  # a response that cannot be pickled
            self._channel.send(FAILED, envelope.job, portable(error, "handing over the result"))
        self._cancelled.discard(envelope.job)

    def _outcome(self, envelope: Envelope, models: ModelCache) -> tuple[str, object]:
        """Run the job; returns the message to send."""
        job, doing = envelope.job, "reading the request"

        def progress(fraction: float, text: str, partial: object = None) -> None:
            if job in self._cancelled:
                raise CancelledError(f"{doing}: cancelled")
            if isinstance(partial, Estimate | Notes):  # shown beside the job, whatever comes next
                self._channel.send(PARTIAL, job, partial)
                partial = None
            self._reporter.put(job, fraction, text, partial)

        try:
            request = cast("Request[object]", envelope.open())
            doing = request.title
            options = getattr(request, "options", None)
            hide(
                **{each.name: getattr(options, each.name) for each in fields(options)} if is_dataclass(options) else {}
            )
            log.info("job %d: %s", job, doing)
            progress(0.0, "")
            response = request.run(models, progress)
            log.info("job %d: done", job)
            return DONE, response
        except BaseException as error:
            log.info("job %d: %s failed", job, doing, exc_info=error)
            failure = portable(error, doing)
        if hasattr(failure, "__notes__"):
            models.clear()  # after a fault, memory or another, start from the file again
            gc.collect()
        return FAILED, failure


class Reporter:
    """Sends the newest progress at most 30 times a second and the newest partial result at most 5 times a second."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._progress: tuple[int, tuple[float, str]] | None = None
        self._partial: tuple[int, object] | None = None
        self._partial_sent = 0.0

    def put(self, job: int, fraction: float, text: str, partial: object = None) -> None:
        """Replace what is to be sent next."""
        with self._lock:
            self._progress = (job, (min(1.0, max(0.0, float(fraction))), text))
            if partial is not None:
                self._partial = (job, partial)
        self._news.set()

    def clear(self) -> None:
        """Forget what was not sent: the job is over.  Nothing of it is on its way once this returns."""
        with self._lock:
            self._progress = self._partial = None
            self._partial_sent = 0.0

    def live(self) -> None:
        """Send until the process ends; ends when the window is gone (the receiver ends the process)."""
        with contextlib.suppress(OSError):
            while True:
                self._news.wait()
                self._news.clear()
                try:
                    self._send()
                except OSError:
                    raise
                except Exception:  # a value that cannot be pickled: the next one may be
                    log.exception("a progress message could not be sent")
                time.sleep(PROGRESS_INTERVAL)

    def _send(self) -> None:
        with self._lock:
            progress, self._progress = self._progress, None
            if progress is not None:
                self._channel.send(PROGRESS, *progress)
            if self._partial is None:
                return
            if time.monotonic() - self._partial_sent < PARTIAL_INTERVAL:
                self._news.set()  # look again after the pause
                return
            partial, self._partial = self._partial, None
            self._partial_sent = time.monotonic()
            self._channel.send(PARTIAL, *partial)


def _log_device() -> None:
    from workbench.session.session import Environment

    log.info("device: %s", Environment.here().device)


def _leave(code: int = 0) -> NoReturn:
    """End now: no destructor of a library may hold the window up."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
