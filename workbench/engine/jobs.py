"""Jobs: what was asked for, how far it is, how it ended.  asyncio only, no Qt; everything on the loop's thread.

A job is a frozen request that an engine answers with a frozen response.  In each of several lanes one job runs at a
time and the others queue.  What writes the document, or a report, has a lane of its own: saving waits for no training.
A request that waited may be brought up to date when its turn comes.
Progress is a latest-value slot that the engine's reading thread writes and ``poll`` reads; a cancelled job is over for
its owner at once, however long the engine takes to react, and what it still sends is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from workbench.engine.failure import portable
from workbench.engine.request import OnProgress, Request
from workbench.errors import CancelledError, EngineDiedError, WorkbenchError
from workbench.preflight import Estimate
from workbench.progress import Notes

R = TypeVar("R")

MAX_VIEWS = 200

LEAST_SHARE = 0.02
"""Of a job that is done before the time that is left can be said."""


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
    """A snapshot of a job for the jobs panel; ``started`` and ``finished`` in seconds of ``time.monotonic``.

    ``listed``: the user sees it.  ``estimate``: what the engine said that it will take, or took.
    """

    id: int
    title: str
    status: JobStatus = JobStatus.QUEUED
    fraction: float = 0.0
    text: str = ""
    error: str = ""
    started: float | None = None
    finished: float | None = None
    listed: bool = True
    estimate: Estimate | None = None

    @property
    def took(self) -> float:
        """Seconds since the job began, up to its end."""
        now = time.monotonic() if self.finished is None else self.finished
        return 0.0 if self.started is None else now - self.started

    @property
    def left(self) -> float | None:
        """Seconds left: by the estimate at first, from the middle on by the share that is done; None if unknown."""
        if self.status != JobStatus.RUNNING:
            return None
        expected = None if self.estimate is None else self.estimate.seconds * (1 - self.fraction)
        if self.fraction < LEAST_SHARE:
            return expected
        left = self.took * (1 - self.fraction) / self.fraction
        trust = 1.0 if expected is None else min(2 * self.fraction, 1.0)
        return trust * left + (1 - trust) * (expected or 0.0)


class RunsRequests(Protocol):
    """The part of :class:`workbench.engine.engine.Engine` that jobs use."""

    async def run(self, job: int, request: Request[R], on_progress: OnProgress | None = None) -> R: ...

    def cancel(self, job: int, *, insist: bool = True) -> None: ...

    async def close(self) -> None: ...


Listener = Callable[[tuple[JobView, ...]], None]


class Job(Generic[R]):
    """One request on its way.  Made by :meth:`Jobs.submit`.

    ``prepare`` makes of the request the one to run, on the loop's thread, when its turn comes; ``again`` starts the
    same work again.
    """

    def __init__(
        self, number: int, request: Request[R], cancel: Callable[[int], None], prepare: Callable[[], Request[R]],
        again: Callable[[], object],
    ) -> None:  # fmt: skip
        self.id = number
        self.request = request
        self.prepare = prepare
        self.again = again
        self.view = JobView(id=number, title=request.title, listed=request.listed)
        self._cancel = cancel
        self._over = asyncio.Event()
        self._outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self.progress: tuple[float, str] | None = None  # the slot: written on the engine's reading thread
        self.partial: object = None
        self.partial_is_new = False
        self.estimate: Estimate | None = None
        self.notes = Notes()

    async def result(self) -> R:
        """Wait for the response; raises the task's WorkbenchError, or CancelledError."""
        await self._over.wait()
        return self._outcome.result()

    def cancel(self) -> None:
        """End the job now; nothing happens if it is over."""
        self._cancel(self.id)

    def report(self, fraction: float | None, text: str, partial: object) -> None:
        """Note progress; called on the engine's reading thread."""
        if fraction is not None:
            self.progress = (fraction, text)
        if isinstance(partial, Estimate):
            self.estimate = partial
        elif isinstance(partial, Notes):
            self.notes = partial
        elif partial is not None:
            self.partial = partial
            self.partial_is_new = True

    def succeed(self, response: R) -> None:
        """End the job with its response; nothing happens if it is over."""
        if not self.view.status.over:
            self._outcome.set_result(response)
            self._end(JobStatus.DONE, 1.0)

    def fail(self, error: WorkbenchError) -> None:
        """End the job with an error, which may be a CancelledError; nothing happens if it is over."""
        if self.view.status.over:
            return
        self._outcome.set_exception(error)
        self._outcome.exception()  # it was noted, whether anybody waits for the result or not
        if isinstance(error, CancelledError | EngineDiedError):
            error.partial = self.partial if self.request.keeps_partial else None
        if isinstance(error, CancelledError):
            self._end(JobStatus.CANCELLED, self.view.fraction)
        else:
            self._end(JobStatus.FAILED, self.view.fraction, str(error))

    def _end(self, status: JobStatus, fraction: float, error: str = "") -> None:
        text = self.progress[1] if self.progress else self.view.text
        self.view = replace(
            self.view, status=status, fraction=fraction, text=text, error=error, finished=time.monotonic(),
            estimate=self.estimate,
        )  # fmt: skip
        self.progress = self.partial = None
        self._over.set()


@dataclass(eq=False)
class _Lane:
    """The queue before one engine, and what runs in it."""

    engine: RunsRequests
    queue: deque[Job[Any]] = field(default_factory=deque)
    running: Job[Any] | None = None
    worker: asyncio.Task[None] | None = None


class Jobs:
    """The queues before the engine and before those that run what is ``aside`` under their names (default: the engine),
    and the one list of what was asked for."""

    def __init__(self, engine: RunsRequests, **aside: RunsRequests) -> None:
        self._lane = _Lane(engine)
        self._aside = {name: _Lane(other) for name, other in aside.items()}
        self._numbers = itertools.count(1)
        self._views: dict[int, JobView] = {}
        self._retriable: dict[int, Job[Any]] = {}  # not those that are done: their responses would stay in memory
        self._requests: dict[int, Request[object]] = {}
        self._listeners: list[Listener] = []
        self._closed = False

    @property
    def _lanes(self) -> tuple[_Lane, ...]:
        return (self._lane, *self._aside.values())

    @property
    def views(self) -> tuple[JobView, ...]:
        """The last 200 jobs, newest last."""
        return tuple(self._views.values())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener(views)`` after every change; returns the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def busy(self) -> bool:
        """Whether the engine runs a job or has one to run."""
        return self._lane.running is not None or bool(self._lane.queue)

    def submit(
        self, request: Request[R], prepare: Callable[[], Request[R]] | None = None,
        again: Callable[[], object] | None = None, *, aside: bool = True,
    ) -> Job[R]:  # fmt: skip
        """Queue ``request``; raises WorkbenchError after ``close``.

        ``prepare`` returns the request to run when its turn comes (default: the request itself), ``again`` is what
        :meth:`retry` calls (default: submit the same); without ``aside`` it queues behind the engine's jobs.
        """
        if self._closed:
            raise WorkbenchError("the workbench is closing; no further job can be started")
        job = Job(
            next(self._numbers), request, self.cancel, prepare or (lambda: request),
            again or (lambda: self.submit(request, prepare, again, aside=aside)),
        )  # fmt: skip
        self._retriable[job.id] = job
        lane = self._aside.get(request.aside if aside else "", self._lane)
        lane.queue.append(job)
        self._show(job)
        if lane.worker is None or lane.worker.done():
            lane.worker = asyncio.get_running_loop().create_task(self._work(lane), name="jobs")
        return job

    def retry(self, job_id: int) -> None:
        """Start the work of a failed or cancelled job again, as a new job; raises WorkbenchError for any other."""
        job = self._retriable.get(job_id)
        if job is None or job.view.status not in (JobStatus.FAILED, JobStatus.CANCELLED):
            raise WorkbenchError(f"job {job_id} cannot be tried again: only failed and cancelled jobs can")
        job.again()

    def request(self, job_id: int) -> Request[object] | None:
        """Return what a job was asked to do; None for one that is no longer listed."""
        return self._requests.get(job_id)

    def cancel(self, job_id: int, *, insist: bool = True) -> None:
        """End a job now, whether it runs or waits; nothing happens if it is over.  Where one does not heed that, the
        engine is restarted, unless ``insist`` is false."""
        job = self._retriable.get(job_id)
        if job is None or job.view.status.over:
            return
        for lane in self._lanes:
            if job is lane.running:
                lane.engine.cancel(job.id, insist=insist)
            elif job in lane.queue:
                lane.queue.remove(job)
        job.fail(CancelledError(f"{job.view.title}: cancelled"))
        self._show(job)

    def forget(self, outdated: Callable[[Request[object]], bool]) -> None:
        """Drop the ``outdated`` requests of jobs that are over, which hold sessions; retry refuses those jobs."""
        for number, request in tuple(self._requests.items()):
            if self._views[number].status.over and outdated(request):
                del self._requests[number]
                self._retriable.pop(number, None)

    def withdraw(self, job_id: int) -> None:
        """Take a job that is over off the list, with all that it holds: it was refused before it began."""
        if job_id in self._views and self._views[job_id].status.over:
            for ledger in (self._views, self._requests, self._retriable):
                ledger.pop(job_id, None)
            self._report()

    def partial(self, job_id: int) -> object:
        """Return the latest partial result of a running job, or None."""
        running = [lane.running for lane in self._lanes if lane.running is not None]
        return next((job.partial for job in running if job.id == job_id), None)

    def poll(self) -> None:
        """Show the latest progress; the window's one timer calls this about 30 times a second."""
        for lane in self._lanes:
            if lane.running is not None and not lane.running.view.status.over:
                self._poll(lane.running)

    def _poll(self, job: Job[R]) -> None:
        slot, job.progress = job.progress, None
        view = job.view if slot is None else replace(job.view, fraction=slot[0], text=slot[1])
        view = replace(view, estimate=job.estimate)
        if view != job.view or job.partial_is_new:
            job.view, job.partial_is_new = view, False
            self._show(job)

    async def close(self) -> None:
        """Cancel everything, end the engines, and wait for all."""
        self._closed = True
        for lane in self._lanes:
            for job in (*lane.queue, *filter(None, (lane.running,))):
                self.cancel(job.id)
        for lane in self._lanes:
            await lane.engine.close()
        for lane in self._lanes:
            if lane.worker is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await lane.worker

    async def _work(self, lane: _Lane) -> None:
        while lane.queue:
            job = lane.running = lane.queue.popleft()
            job.view = replace(job.view, status=JobStatus.RUNNING, started=time.monotonic())
            self._show(job)
            await self._run(job, lane.engine)
            lane.running = None
            self._show(job)
            await asyncio.sleep(0)  # whoever waits for the result gets it before the next request is prepared

    async def _run(self, job: Job[R], engine: RunsRequests) -> None:
        try:
            job.request = self._requests[job.id] = job.prepare()
            job.succeed(await engine.run(job.id, job.request, job.report))
        except WorkbenchError as error:
            job.fail(error)
        except Exception as error:  # a fault of our own: shown, and the queue goes on
            job.fail(portable(error, job.view.title))

    def _show(self, job: Job[R]) -> None:
        """Note the job's view and tell the listeners."""
        self._views[job.id] = job.view
        self._requests.setdefault(job.id, job.request)
        if job.view.status is JobStatus.DONE:
            self._retriable.pop(job.id, None)
        while len(self._views) > MAX_VIEWS:
            oldest = next((number for number, view in self._views.items() if view.status.over), None)
            if oldest is None:
                break
            for ledger in (self._views, self._requests, self._retriable):
                ledger.pop(oldest, None)
        self._report()

    def _report(self) -> None:
        """Tell the listeners; one that raises is reported and does not stop the queue."""
        views = self.views
        for listener in tuple(self._listeners):
            try:
                listener(views)
            except Exception as error:
                message = f"a listener to the jobs failed with {type(error).__name__}: {error}"
                asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
