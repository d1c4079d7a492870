"""Jobs: what was asked for, how far it is, how it ended.  asyncio only, no Qt; everything on the loop's thread.

A job is a frozen request that the engine answers with a frozen response.  One runs at a time, the others queue; a
request that waited may be made anew when its turn comes, of what is known by then.
Progress is a latest-value slot that the engine's reading thread writes and ``poll`` reads; a cancelled job is over for
its owner at once, however long the engine takes to heed it, and what it still sends is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from workbench.errors import CancelledError, WorkbenchError

if TYPE_CHECKING:
    from workbench.engine.request import OnProgress, Request

MAX_VIEWS = 200


class JobStatus(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        """Whether it will not change any more."""
        return self in (JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A snapshot of a job for the jobs panel; ``started`` and ``finished`` in seconds of ``time.monotonic``."""

    id: int
    title: str
    status: JobStatus = JobStatus.QUEUED
    fraction: float = 0.0
    text: str = ""
    error: str = ""
    started: float | None = None
    finished: float | None = None


class RunsRequests(Protocol):
    """What Jobs needs of an engine."""

    async def run(self, job: int, request: Request[Any], on_progress: OnProgress | None = None) -> Any:
        """Run one request and return its response."""
        ...

    def cancel(self, job: int) -> None:
        """Ask the running job to stop."""
        ...

    async def close(self) -> None:
        """End the engine."""
        ...


Listener = Callable[[tuple[JobView, ...]], None]

Renew = Callable[[Any], Any]
"""Makes of a request the one to run, on the loop's thread, when its turn comes."""


def unchanged(request: Any) -> Any:
    """Return the request as it is."""
    return request


class Job:
    """One request on its way.  Made by :meth:`Jobs.submit`."""

    def __init__(
        self, number: int, request: Request[Any], cancel: Callable[[Job], None], renew: Renew = unchanged
    ) -> None:
        self.id = number
        self.request = request
        self.renew = renew
        self.view = JobView(id=number, title=request.title)
        self._cancel = cancel
        self._over = asyncio.Event()
        self._response: Any = None
        self._error: WorkbenchError | None = None
        self.progress: tuple[float, str] | None = None  # the slot: written on the engine's reading thread
        self.partial: Any = None
        self.partial_is_new = False

    async def result(self) -> Any:
        """Wait for the response; raises the task's WorkbenchError, or CancelledError."""
        await self._over.wait()
        if self._error is not None:
            raise self._error
        return self._response

    def cancel(self) -> None:
        """End the job now; nothing happens if it is over."""
        self._cancel(self)

    def take(self, fraction: float | None, text: str, partial: Any) -> None:
        """Take up progress; called on the engine's reading thread."""
        if fraction is not None:
            self.progress = (fraction, text)
        if partial is not None:
            self.partial = partial
            self.partial_is_new = True

    def finish(self, status: JobStatus, response: Any = None, error: WorkbenchError | None = None) -> None:
        """End the job, once: a later call changes nothing."""
        if self.view.status.over:
            return
        self._response, self._error = response, error
        if isinstance(error, CancelledError) and hasattr(self.request, "kept"):
            error.partial = self.partial
        text = str(error) if error is not None and status is JobStatus.FAILED else ""
        fraction = 1.0 if status is JobStatus.DONE else self.view.fraction
        self.view = replace(self.view, status=status, fraction=fraction, error=text, finished=time.monotonic())
        self.progress = self.partial = None
        self._over.set()


class Jobs:
    """The queue before one engine, and what the window shows of it."""

    def __init__(self, engine: RunsRequests) -> None:
        self._engine = engine
        self._numbers = itertools.count(1)
        self._views: dict[int, JobView] = {}
        self._kept: dict[int, Job] = {}  # queued, running, failed and cancelled ones: those that can be tried again
        self._queue: deque[Job] = deque()
        self._running: Job | None = None
        self._worker: asyncio.Task[None] | None = None
        self._listeners: list[Listener] = []
        self._closed = False

    @property
    def views(self) -> tuple[JobView, ...]:
        """The last 200 jobs, newest last."""
        return tuple(self._views.values())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener(views)`` after every change; returns the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def submit(self, request: Request[Any], renew: Renew = unchanged) -> Job:
        """Queue ``request``, to be run as ``renew`` makes it then; raises WorkbenchError after ``close``."""
        if self._closed:
            raise WorkbenchError("the workbench is closing; no further job can be started")
        job = Job(next(self._numbers), request, self._cancel, renew)
        self._kept[job.id] = job
        self._queue.append(job)
        self._show(job)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work(), name="jobs")
        return job

    def retry(self, job_id: int) -> Job:
        """Submit the request of a failed or cancelled job again, as a new job; raises WorkbenchError for any other."""
        job = self._kept.get(job_id)
        if job is None or job.view.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
            raise WorkbenchError(f"job {job_id} cannot be tried again: only failed and cancelled jobs can")
        return self.submit(job.request, job.renew)

    def cancel(self, job_id: int) -> None:
        """End a job now, whether it runs or waits; nothing happens if it is over."""
        job = self._kept.get(job_id)
        if job is not None:
            self._cancel(job)

    def partial(self, job_id: int) -> Any:
        """Return the latest partial result of a running job, or None."""
        job = self._running
        return job.partial if job is not None and job.id == job_id else None

    def poll(self) -> None:
        """Take up the latest progress; the window's one timer calls this about 30 times a second."""
        job = self._running
        if job is None or job.view.status.over:
            return
        slot, job.progress = job.progress, None
        view = job.view if slot is None else replace(job.view, fraction=slot[0], text=slot[1])
        if view != job.view or job.partial_is_new:
            job.view, job.partial_is_new = view, False
            self._show(job)

    async def close(self) -> None:
        """Cancel everything, end the engine, and wait for both."""
        self._closed = True
        for job in (*self._queue, *filter(None, (self._running,))):
            self._cancel(job)
        await self._engine.close()
        if self._worker is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker

    def _cancel(self, job: Job) -> None:
        if job.view.status.over:
            return
        if job is self._running:
            self._engine.cancel(job.id)
        else:
            self._queue.remove(job)
        job.finish(JobStatus.CANCELLED, error=CancelledError(f"{job.view.title}: cancelled"))
        self._show(job)

    async def _work(self) -> None:
        while self._queue:
            job = self._running = self._queue.popleft()
            job.view = replace(job.view, status=JobStatus.RUNNING, started=time.monotonic())
            self._show(job)
            try:
                job.request = job.renew(job.request)
                response = await self._engine.run(job.id, job.request, job.take)
                job.finish(JobStatus.DONE, response=response)
            except CancelledError as error:
                job.finish(JobStatus.CANCELLED, error=error)
            except WorkbenchError as error:
                job.finish(JobStatus.FAILED, error=error)
            except Exception as error:  # a fault of our own: shown, and the queue goes on
                fault = WorkbenchError(f"{job.view.title} failed with {type(error).__name__}: {error}")
                fault.add_note("".join(traceback.format_exception(error)))
                job.finish(JobStatus.FAILED, error=fault)
            self._running = None
            self._show(job)
            await asyncio.sleep(0)  # whoever waits for the answer takes it up before the next request is made anew

    def _show(self, job: Job) -> None:
        """Note the job's view and tell the listeners."""
        self._views[job.id] = job.view
        if job.view.status is JobStatus.DONE:
            self._kept.pop(job.id, None)
        while len(self._views) > MAX_VIEWS:
            oldest = next((number for number, view in self._views.items() if view.status.over), None)
            if oldest is None:
                break
            self._views.pop(oldest)
            self._kept.pop(oldest, None)
        views = self.views
        for listener in tuple(self._listeners):
            listener(views)
