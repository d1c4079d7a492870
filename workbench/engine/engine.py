"""The engine as the window sees it: start, run, cancel, close, and a process that comes back by itself.

Everything here is called on the thread of the asyncio loop; only ``on_progress`` is called on the engine's reading
thread, so it must do no more than store what it gets.  No Qt, no torch, and no default executor of the loop (under
qasync that would be Qt's thread pool).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import cast

from workbench.engine import engine_process as wire
from workbench.engine.failure import portable
from workbench.engine.process import EngineProcess
from workbench.engine.request import EngineListener, OnProgress, Request, Response
from workbench.engine.transport import Envelope
from workbench.errors import CancelledError, DeviceLostError, EngineDiedError, WorkbenchError

log = logging.getLogger(__name__)

HEED_SECONDS = 2.0
"""How long a job may ignore a cancel before the engine is terminated."""

TERM_SECONDS = 0.5
"""How long the process may ignore SIGTERM before it is killed."""

CANCELLED = "the job did not stop when it was cancelled"
"""Why the process ended, where the user ended its job."""

CLOSE_SECONDS = 1.0
MAX_FAILED_STARTS = 3


class Engine:
    """One pre-warmed process that runs one request at a time; it is started again whenever it dies, and after a job
    that lost the CUDA device, which only a new process can use.

    ``start`` returns at once and the listeners get "started" when the process is warm; ``run`` waits for that.
    """

    role = wire.ENGINE

    def __init__(self) -> None:
        self._process: EngineProcess | None = None
        self._lives: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()  # the process is warm, or none could be started
        self._closing = False
        self._reason = ""
        self._listeners: list[EngineListener] = []
        self._job: int | None = None
        self._result: asyncio.Future[object] | None = None
        self._on_progress: OnProgress | None = None
        self._insist: asyncio.TimerHandle | None = None

    @property
    def alive(self) -> bool:
        """Whether the process is there and warm."""
        return self._process is not None and self._process.warm

    @property
    def pid(self) -> int | None:
        """The process's number, None while there is none."""
        return self._process.pid if self._process else None

    def subscribe(self, listener: EngineListener) -> Callable[[], None]:
        """Call ``listener(event, text)`` after the process started, died, restarted or failed to; returns the function
        to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def start(self) -> None:
        """Spawn the process and begin to warm it up; does not wait for it (``ready`` does)."""
        if (self._lives is None or self._lives.done()) and not self._closing:  # done: it did not start, several times
            self._ready.clear()
            self._lives = asyncio.create_task(self._live(self._spawn()), name="engine")

    async def ready(self) -> None:
        """Wait until the process is warm; raises EngineDiedError if it cannot be started."""
        await self.start()
        await self._ready.wait()
        if not self.alive:
            raise EngineDiedError(f"the engine does not start: {self._reason}; the next job tries it again")

    async def run(self, job: int, request: Request[Response], on_progress: OnProgress | None = None) -> Response:
        """Run ``request`` in the process and return its response.

        Raises the WorkbenchError that the task raised (any other exception comes as a WorkbenchError with the traceback
        as a note), CancelledError, or EngineDiedError.  One at a time: raises RuntimeError if a job is running.
        """
        if self._job is not None:
            raise RuntimeError(f"the engine is running job {self._job}; it runs one at a time")
        self._job, self._on_progress = job, on_progress
        self._result = asyncio.get_running_loop().create_future()
        if on_progress is not None and not self._ready.is_set():
            on_progress(0.0, "the engine starts", None)
        sending = asyncio.create_task(self._send(job, request))
        try:
            return cast(Response, await self._result)
        except asyncio.CancelledError:
            self.cancel(job)
            raise
        finally:
            sending.cancel()
            if self._insist is not None:
                self._insist.cancel()
            self._job = self._result = self._on_progress = self._insist = None

    def cancel(self, job: int, *, insist: bool = True) -> None:
        """Ask the running ``job`` to stop; if it does not within 2 s the process is terminated and restarted where that
        is worth it (``insist``)."""
        if job != self._job or self._process is None or self._insist is not None:
            return
        if self._ready.is_set():
            self._process.send(wire.CANCEL, job)
            if insist:
                self._insist = asyncio.get_running_loop().call_later(HEED_SECONDS, self._end_deaf_job)
        else:
            self._settle(CancelledError("cancelled before it started"))

    async def close(self) -> None:
        """End the process, in order if it can, and wait until it is gone."""
        self._closing = True
        if self._process is None or self._lives is None:
            return
        self._process.send(wire.CLOSE)
        for how in (signal.SIGTERM, signal.SIGKILL):
            await asyncio.wait((self._lives,), timeout=CLOSE_SECONDS)
            if not self._lives.done():
                self._process.end(how)
        await self._lives
        self._process.join()

    async def _live(self, process: EngineProcess) -> None:
        """Follow one process after the other, until the engine is closed or several in a row did not start; the next
        job then tries again."""
        starts = failed_starts = 0
        while True:
            text = await asyncio.shield(process.ready)  # the process sets it, even if this task is cancelled
            if text is not None and not self._closing:
                starts, failed_starts = starts + 1, 0
                self._ready.set()
                self._tell("started" if starts == 1 else "restarted", text)
            self._reason = await asyncio.shield(process.ended)
            if self._closing:
                self._settle(CancelledError("the workbench is closing"))
                break
            self._ready.clear()
            if text is None:
                failed_starts += 1
            elif not process.retired:
                self._settle(
                    EngineDiedError(f"the engine process ended during the job: {self._reason}; it is restarting")
                )
            if failed_starts == MAX_FAILED_STARTS:
                self._tell("failed", self._reason)
                break
            self._tell("died", process.retired or self._reason)
            process = self._spawn()
        self._ready.set()  # whoever waits learns from `alive` that there is no engine

    def _spawn(self) -> EngineProcess:
        self._process = EngineProcess(self._received, self._answered, self.role)
        return self._process

    async def _send(self, job: int, request: Request[Response]) -> None:
        try:
            await self.ready()
            assert self._process is not None
            self._process.send(wire.RUN, job, request)
        except EngineDiedError as error:
            self._settle(error)

    def _received(self, envelope: Envelope) -> None:
        """On the reading thread: unpickle here, so that the window's thread never does."""
        on_progress, is_progress = self._on_progress, envelope.kind in (wire.PROGRESS, wire.PARTIAL)
        if envelope.job != self._job or is_progress and on_progress is None:
            envelope.drop()
            return
        try:
            body = envelope.open()
        except Exception as error:
            if is_progress:
                log.exception("a progress message could not be read")  # not worth the job
                return
            body = portable(error, "reading the result")
        if not is_progress or on_progress is None:
            assert self._process is not None
            self._process.post(self._answered, envelope.job, body)
        elif envelope.kind == wire.PARTIAL:
            on_progress(None, "", body)
        else:
            on_progress(*cast("tuple[float, str]", body), None)

    def _answered(self, job: int, outcome: object) -> None:
        if job == self._job:
            self._settle(outcome)
            if isinstance(outcome, DeviceLostError):
                self._retire("the device failed, and only a new process can use it")

    def _end_deaf_job(self) -> None:
        self._retire(CANCELLED)
        self._settle(CancelledError("cancelled; the engine did not stop and is restarting"))

    def _retire(self, reason: str) -> None:
        """End a process that is of no more use; the next job waits for the next process."""
        process = self._process
        if process is None or self._closing:
            return
        self._ready.clear()
        process.retired = reason
        process.end(signal.SIGTERM)
        asyncio.get_running_loop().call_later(TERM_SECONDS, process.end, signal.SIGKILL)

    def _settle(self, outcome: object) -> None:
        if self._result is None or self._result.done():
            return
        if isinstance(outcome, WorkbenchError):
            if getattr(outcome, "__notes__", None):
                log.error("%s\n%s", outcome, "\n".join(outcome.__notes__))
            self._result.set_exception(outcome)
        else:
            self._result.set_result(outcome)

    def _tell(self, event: str, text: str) -> None:
        log.info("the engine %s: %s", event, text)
        for listener in tuple(self._listeners):
            listener(event, text)
