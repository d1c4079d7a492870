"""Runs requests as jobs: asks for trust, reports errors, and joins results to the open session."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from workbench.errors import CancelledError, EngineDiedError, TrustRequiredError, WorkbenchError
from workbench.gui.context.messages import MessageLog
from workbench.insight.sums import note_in_words
from workbench.models.placement import Placement
from workbench.session.workspace import State, Workspace
from workbench.steps.files.open_model import OPEN
from workbench.steps.files.open_session import OPEN_SESSION
from workbench.steps.step import Request, Step

if TYPE_CHECKING:
    from workbench.engine.jobs import Jobs

O = TypeVar("O")  # noqa: E741
R = TypeVar("R")

Update = Callable[[Request[O, R]], Request[O, R]]
ErrorHandler = Callable[[WorkbenchError], bool]
"""Gets the error of a failed request; returns whether a line in the log is enough.  Otherwise a dialog shows it."""

OPENINGS = (OPEN, OPEN_SESSION)


def show_dialog(error: WorkbenchError) -> bool:
    """Show every error in a dialog."""
    return False


def log_only(error: WorkbenchError) -> bool:
    """Log an error only: for work that the user did not request."""
    return True


class BackgroundTasks:
    """Starts coroutines and ends them together; ``on_error(error)`` gets what one of them raises."""

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``coroutine`` in the background."""
        task = asyncio.get_event_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        with contextlib.suppress(RuntimeError):  # a loop that Qt has stopped runs no task to its end
            await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._on_error(error)


class JobRunner:
    """Runs requests; the window sets ``ask_trust(file)``, ``placement`` (where models run) and ``cluster``."""

    def __init__(self, workspace: Workspace, jobs: Jobs, messages: MessageLog, tasks: BackgroundTasks) -> None:
        self._workspace, self._jobs, self._messages, self._tasks = workspace, jobs, messages, tasks
        self.ask_trust: Callable[[str], Awaitable[bool]] = _refuse
        self.placement, self.cluster = Placement(), ""
        self._trusted: set[str] = set()
        workspace.subscribe(self._forget_closed)

    async def run(
        self, request: Request[O, R], again: Callable[[], object], keep: Callable[[object], str] = lambda partial: "",
        *, on_error: ErrorHandler = show_dialog, prepare: Update[O, R] = lambda request: request,
        notes: list[str] | None = None,
    ) -> R | None:  # fmt: skip
        """Run a request as a job and return its result; None if it was cancelled or failed, which is reported.

        ``again`` repeats the work for the retry button; ``keep`` gets the partial result of a job that was cancelled or
        whose engine died (None for most) and returns what became of it; ``prepare`` updates the request when its turn
        comes; ``notes`` gets the sentences on what the result leaves out.
        """
        try:
            return await self._trusting(request, again, prepare, [] if notes is None else notes)
        except CancelledError as error:
            kept = keep(error.partial)
            if request.listed:
                self._messages.cancelled(request.title, kept)
        except EngineDiedError as error:
            if kept := keep(error.partial):
                self._messages.say(request.title, kept)
            self._messages.report(request.title, error, dialog=False)
        except WorkbenchError as error:
            if on_error(error):
                if request.listed:  # else who asked shows it
                    self._messages.say(request.title, str(error), "warning")
            else:
                self._messages.report(request.title, error)
        return None

    async def work(
        self, request: Request[O, R], again: Callable[[Request[O, R]], Coroutine[Any, Any, object]] | None = None,
        on_error: ErrorHandler = show_dialog,
    ) -> R | None:  # fmt: skip
        """Run a request about the open session and join its result to the session; returns the result, or None.

        A step that names an undo entry makes the result an undoable edit.  A request that had to wait gets the results
        of those before it, and the plan as it was when the user asked.  ``again(request)`` repeats the work on the
        session of that time (default: this method).
        """
        repeat = again or functools.partial(self.work, on_error=on_error)
        result = await self.run(
            request, lambda: self._repeat(request, repeat), functools.partial(self._keep, request),
            on_error=on_error, prepare=self._prepared, notes=(notes := list[str]()),
        )  # fmt: skip
        before = self._workspace.state.session
        if result is None or before is None:
            return result
        if not self._join(request, result, notes):
            self._messages.say(f"Dropped: {request.title}", "another model was opened in the meantime", "warning")
            return None
        self._messages.done(request.title)
        after = self._workspace.state.session or before
        more = (*notes, *getattr(result, "notes", ()), *after.notes)
        for note in dict.fromkeys(note for note in more if note not in before.notes):
            self._messages.say(f"Note: {request.title}", note_in_words(after, note), "warning")
        return result

    def submit(self, request: Request[O, R], on_error: ErrorHandler = show_dialog) -> None:
        """Start :meth:`work` in the background."""
        self._tasks.start(self.work(request, on_error=on_error))

    def ask(self, request: Request[O, R], answered: Callable[[R], object], failed: ErrorHandler = show_dialog) -> None:
        """Run a request in the background without joining its result; ``answered(result)``, or ``failed(error)``."""
        told: list[WorkbenchError] = []

        def fail(error: WorkbenchError) -> bool:
            told.append(error)
            return failed(error)

        async def asking() -> None:
            result = await self.run(request.reduced(), lambda: self.ask(request, answered, failed), on_error=fail)
            if result is not None:
                answered(result)
            elif not told:
                failed(CancelledError(f"{request.title}: cancelled"))

        self._tasks.start(asking())

    def drop(self, step: Step[O, R]) -> None:
        """End the jobs of a step for which nobody waits any more; the engine goes on."""
        for view in self._jobs.views:
            request = self._jobs.request(view.id)
            if isinstance(request, Request) and request.step is step:
                self._jobs.cancel(view.id, insist=False)

    # ---------------------------------------------------------------- inside

    def _forget_closed(self, old: State, new: State) -> None:
        """Free what the jobs of a closed session hold of it."""
        before, now = old.session, new.session
        if before is not None and (now is None or now.model.fingerprint != before.model.fingerprint):
            self._jobs.forget(
                lambda request: isinstance(request, Request) and request.session is not None and not request.fits(now)
            )

    def _repeat(self, request: Request[O, R], work: Callable[[Request[O, R]], Coroutine[Any, Any, object]]) -> None:
        """Start the work of a request again, on the session as it is now."""
        session = self._workspace.state.session
        if session is not None:
            self._tasks.start(work(replace(request, session=session)))

    def _prepared(self, request: Request[O, R]) -> Request[O, R]:
        """Return the request with the session's present results, reduced to what it needs."""
        return request.about(self._workspace.state.session).reduced()

    def _keep(self, request: Request[O, R], partial: object) -> str:
        """Join the partial result of a job that ended early and say so; an empty text where there is none to join."""
        session = self._workspace.state.session
        if partial is None or session is None or not request.fits(session):
            return ""
        joined = request.with_partial(session, cast(R, partial))  # of the type of a result
        if joined is session:
            return ""
        self._workspace.update(lambda current: joined)
        return "the results so far are kept"

    def _join(self, request: Request[O, R], result: R, notes: Sequence[str]) -> bool:
        """Join a result, with its notes, to the session; False if another model, or none, is open now."""
        session = self._workspace.state.session
        if session is None or not request.fits(session):
            return False
        if request.step.undo is not None:
            self._workspace.edit(request.step.undo(request.options), lambda current: request.joined(current, result))
            return True
        joined = request.joined(session, result)
        if joined is not session:
            joined = replace(joined, notes=tuple(dict.fromkeys((*joined.notes, *notes))))
            self._workspace.update(lambda current: joined)
        return True

    async def _trusting(
        self, request: Request[O, R], again: Callable[[], object], prepare: Update[O, R], notes: list[str]
    ) -> R:
        """Run a request; ask the user before the model's own Python file runs, once for each file."""
        if request.step.runs_model:
            request = replace(request, placement=self.placement, cluster=self.cluster if request.step.spreads else "")
        if request.session is not None and request.session.model.source.path in self._trusted:
            request = replace(request, trust=True)
        while True:
            aside = request.step is not OPEN_SESSION or not self._jobs.busy  # results of running jobs come first
            job = self._jobs.submit(request, functools.partial(prepare, request), again, aside=aside)
            try:
                result = await job.result()
                notes += job.notes
                return result
            except WorkbenchError as error:
                if request.step in OPENINGS and not isinstance(error, EngineDiedError | CancelledError):
                    self._jobs.withdraw(job.id)  # what was refused is not a job: a dialog says why
                if not isinstance(error, TrustRequiredError):
                    raise
                self._jobs.withdraw(job.id)
                if not await self.ask_trust(error.file):
                    raise CancelledError(f"{error.file} was not trusted") from None
                self._trusted.add(error.file)
                request = replace(request, trust=True)


async def _refuse(file: str) -> bool:
    return False


def running_steps(jobs: Jobs) -> dict[str, str]:
    """Return what the jobs that run or wait are doing, by the name of their step."""
    requests = ((view, jobs.request(view.id)) for view in jobs.views if not view.status.over)
    return {request.step.name: view.title for view, request in requests if isinstance(request, Request)}
