"""The engine as the window sees it: start, run, cancel, close, and a process that comes back by itself.

Everything here is called on the thread of the asyncio loop; only ``on_progress`` is called on the engine's reading
thread, so it must do no more than store what it gets.  No Qt, no torch, and no default executor of the loop (under
qasync that would be Qt's thread pool).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from functools import partial
from typing import cast

from workbench.engine import engine_process as wire
from workbench.engine.failure import Failure
from workbench.engine.process import EngineProcess
from workbench.engine.request import EngineListener, OnProgress, Request, Response
from workbench.engine.transport import Envelope
from workbench.errors import CancelledError, DeviceLostError, EngineDiedError, WorkbenchError

log = logging.getLogger(__name__)

HEED_SECONDS = 2.0
"""How long a job may ignore a cancel before the engine is terminated."""

TERM_SECONDS = 0.5
"""How long the process may ignore SIGTERM before it is killed."""

CLOSE_SECONDS = 1.0
MAX_FAILED_STARTS = 3


class Engine:
    """One pre-warmed process that runs one request at a time; it is started again whenever it dies, and after a job
    that lost the CUDA device, which only a new process can use.

    ``start`` returns at once and the listeners hear "started" when the process is warm; ``run`` waits for that.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process: EngineProcess | None = None
        self._listeners: list[EngineListener] = []
        self._ready = asyncio.Event()
        self._gone = asyncio.Event()
        self._closing = False
        self._terminated_for: int | None = None
        self._renewing = False
        self._lives = self._failed_starts = 0
        self._reason = ""
        self._job: int | None = None
        self._result: asyncio.Future[object] | None = None
        self._on_progress: OnProgress | None = None
        self._cancelled: set[int] = set()

    @property
    def alive(self) -> bool:
        """Whether the process is there and warm."""
        return self._process is not None and self._ready.is_set() and not self._gone.is_set()

    @property
    def pid(self) -> int | None:
        """The process's number, None while there is none."""
        return self._process.pid if self._process else None

    def subscribe(self, listener: EngineListener) -> Callable[[], None]:
        """Call ``listener(event, text)`` after the process started, died, restarted; returns the function to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def start(self) -> None:
        """Spawn the process and begin to warm it up; does not wait for it (``ready`` does)."""
        if self._process is None and not self._closing:
            self._loop = asyncio.get_running_loop()
            self._spawn()

    async def ready(self) -> None:
        """Wait until the process is warm; raises EngineDiedError if it cannot be started."""
        await self.start()
        await self._ready.wait()
        if not self.alive:
            raise EngineDiedError(f"the engine is not running: {self._reason}; start the workbench again")

    async def run(self, job: int, request: Request[Response], on_progress: OnProgress | None = None) -> Response:
        """Run ``request`` in the process and return its response.

        Raises the WorkbenchError that the task raised (any other exception comes as a WorkbenchError with the traceback
        as a note), CancelledError, or EngineDiedError.  One at a time: raises RuntimeError if a job is running.
        """
        if self._job is not None:
            raise RuntimeError(f"the engine is running job {self._job}; it takes one at a time")
        self._job, self._on_progress = job, on_progress
        self._result = asyncio.get_running_loop().create_future()
        try:
            await self._until_ready(job)
            assert self._process is not None
            self._process.send(wire.RUN, job, request)
            return cast(Response, await self._result)
        except asyncio.CancelledError:
            self.cancel(job)
            raise
        finally:
            self._job = self._result = self._on_progress = None
            self._cancelled.discard(job)

    def cancel(self, job: int) -> None:
        """Ask the running ``job`` to stop; if it does not within 2 s the process is terminated and started again."""
        if job != self._job or self._process is None or self._loop is None or job in self._cancelled:
            return
        self._cancelled.add(job)
        if not self._ready.is_set():
            self._settle(CancelledError("cancelled before it began"))
            return
        self._process.send(wire.CANCEL, job)
        self._loop.call_later(HEED_SECONDS, self._insist, self._process, job)

    async def close(self) -> None:
        """End the process, in order if it can, and wait until it is gone."""
        self._closing = True
        process = self._process
        if process is None:
            return
        process.send(wire.CLOSE)
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), CLOSE_SECONDS)
                break
            process.end(how)
        await self._gone.wait()
        process.join()
        self._process = None

    async def _until_ready(self, job: int) -> None:
        waiting = asyncio.ensure_future(self.ready())
        assert self._result is not None
        try:
            both = (cast("asyncio.Future[object]", waiting), self._result)
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if self._result.done():  # cancelled while the engine was warming up
                self._result.result()
            await waiting
        finally:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, WorkbenchError):
                await waiting

    def _spawn(self) -> None:
        self._ready.clear()
        self._gone.clear()
        process: EngineProcess

        def received(envelope: Envelope) -> None:
            self._received(process, envelope)

        def gone(reason: str) -> None:
            self._post(partial(self._died, process, reason))

        def unsent(job: int, error: Exception) -> None:
            self._post(partial(self._finished, process, job, Failure.of(error, "sending the request").error()))

        process = self._process = EngineProcess(received, gone, unsent)
        process.start()

    def _post(self, call: Callable[[], None]) -> None:
        """Make a call on the loop's thread; a loop that is closed needs none."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _received(self, process: EngineProcess, envelope: Envelope) -> None:
        """On the reading thread: unpickle here, so that the window's thread never does."""
        kind, job, on_progress = envelope.kind, envelope.job, self._on_progress
        if kind in (wire.READY, wire.BROKEN):
            self._post(partial(self._started if kind == wire.READY else self._broken, process, envelope.open()))
        elif job != self._job or on_progress is None and kind in (wire.PROGRESS, wire.PARTIAL):
            envelope.drop()
        elif kind in (wire.PROGRESS, wire.PARTIAL):
            _report(envelope, on_progress)
        else:
            self._post(partial(self._finished, process, job, _opened(envelope)))

    def _started(self, process: EngineProcess, text: object) -> None:
        if process is self._process and not self._closing:
            self._lives += 1
            self._failed_starts = 0
            self._ready.set()
            self._tell("started" if self._lives == 1 else "restarted", str(text))

    def _broken(self, process: EngineProcess, failure: object) -> None:
        if isinstance(failure, Failure):
            log.error("%s\n%s", failure.message, failure.trace)
            self._reason = failure.message

    def _finished(self, process: EngineProcess, job: int, outcome: object) -> None:
        if process is self._process and job == self._job:
            self._settle(outcome)
            if isinstance(outcome, DeviceLostError) and not self._closing:
                self._renew(process)

    def _renew(self, process: EngineProcess) -> None:
        """End a process that answered and is of no more use; the next job waits for the next process."""
        self._renewing = True
        self._ready.clear()
        self._end(process)

    def _settle(self, outcome: object) -> None:
        if self._result is None or self._result.done():
            return
        if isinstance(outcome, WorkbenchError):
            if getattr(outcome, "__notes__", None):
                log.error("%s\n%s", outcome, "\n".join(outcome.__notes__))
            self._result.set_exception(outcome)
        else:
            self._result.set_result(outcome)

    def _insist(self, process: EngineProcess, job: int) -> None:
        """The job ignored its cancel: end the process; the next one takes the next job."""
        if process is self._process and job == self._job and job in self._cancelled and not self._gone.is_set():
            self._terminated_for = job
            self._end(process)

    def _end(self, process: EngineProcess) -> None:
        process.end(signal.SIGTERM)
        assert self._loop is not None
        self._loop.call_later(TERM_SECONDS, self._kill, process)

    def _kill(self, process: EngineProcess) -> None:
        if process is self._process and not self._gone.is_set():
            process.end(signal.SIGKILL)

    def _died(self, process: EngineProcess, reason: str) -> None:
        if process is not self._process:
            return
        renewed, self._renewing = self._renewing, False
        was_ready = self._ready.is_set() or renewed
        stopped, self._terminated_for = self._terminated_for, None
        self._gone.set()
        if self._closing:
            self._ready.set()
            self._settle(CancelledError("the workbench is closing"))
            return
        self._ready.clear()
        self._failed_starts = 0 if was_ready else self._failed_starts + 1
        self._reason = reason if was_ready or not self._reason else f"{self._reason}; {reason}"
        if stopped is not None and stopped == self._job:
            self._settle(CancelledError("cancelled; the engine did not stop and was started again"))
        elif was_ready and not renewed:
            self._settle(
                EngineDiedError(f"the engine process ended in the middle of the job: {reason}; it is started again")
            )
        if renewed:
            reason = "the device failed, and only a new process can use it"
        self._tell("died", "the job did not stops cancel" if stopped is not None else reason)
        if self._failed_starts < MAX_FAILED_STARTS:
            self._spawn()
        else:
            self._ready.set()  # whoever waits learns from `alive` that there is no engine

    def _tell(self, event: str, text: str) -> None:
        log.info("the engine %s: %s", event, text)
        for listener in tuple(self._listeners):
            listener(event, text)


def _report(envelope: Envelope, on_progress: OnProgress | None) -> None:
    """Hand progress on; one that cannot be read is not worth the job."""
    try:
        body = envelope.open()
    except Exception:
        log.exception("a progress message could not be read")
        return
    if on_progress is None:
        return
    if envelope.kind == wire.PARTIAL:
        on_progress(None, "", body)
    else:
        fraction, text = cast("tuple[float, str]", body)
        on_progress(fraction, text, None)


def _opened(envelope: Envelope) -> object:
    """Return the response, or the error that stands for it."""
    try:
        body = envelope.open()
    except Exception as error:
        return Failure.of(error, "reading the result").error()
    return body.error() if isinstance(body, Failure) else body
