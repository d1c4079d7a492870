"""Runs requests as jobs: asks for trust, reports errors, and joins results to the open session."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from workbench.errors import CancelledError, EngineDiedError, TrustRequiredError, WorkbenchError
from workbench.gui.context.background import BackgroundTasks
from workbench.gui.context.messages import MessageLog
from workbench.session.workspace import State, Workspace
from workbench.steps.step import Request

if TYPE_CHECKING:
    from workbench.engine import request as engine
    from workbench.engine.jobs import Job, JobView

O = TypeVar("O")  # noqa: E741
R = TypeVar("R")

ErrorHandler = Callable[[WorkbenchError], bool]
"""Gets the error of a failed request; returns whether it is shown in its place, so that a line in the log is enough.
Otherwise a dialog shows it."""


def as_it_is(request: Request[O, R]) -> Request[O, R]:
    """Return the request."""
    return request


def show_dialog(error: WorkbenchError) -> bool:
    """Leave an error to the dialog."""
    return False


def log_only(error: WorkbenchError) -> bool:
    """Leave an error to the log: for what the user did not ask for."""
    return True


class RunsJobs(Protocol):
    """The part of :class:`workbench.engine.jobs.Jobs` that the window uses."""

    @property
    def views(self) -> tuple[JobView, ...]: ...

    def submit(
        self, request: engine.Request[R], prepare: Callable[[], engine.Request[R]] | None = None,
        again: Callable[[], object] | None = None,
    ) -> Job[R]: ...  # fmt: skip

    def subscribe(self, listener: Callable[[tuple[JobView, ...]], None]) -> Callable[[], None]: ...

    def cancel(self, job_id: int) -> None: ...

    def retry(self, job_id: int) -> None: ...

    def request(self, job_id: int) -> engine.Request[object] | None: ...

    def forget(self, outdated: Callable[[engine.Request[object]], bool]) -> None: ...

    def poll(self) -> None: ...

    def partial(self, job_id: int) -> object: ...


class NoJobs:
    """Jobs where nothing can run: for a picture of the window."""

    views: tuple[JobView, ...] = ()

    def submit(
        self, request: engine.Request[R], prepare: Callable[[], engine.Request[R]] | None = None,
        again: Callable[[], object] | None = None,
    ) -> Job[R]:  # fmt: skip
        """Refuse."""
        raise WorkbenchError("this window cannot run anything; it was opened to be drawn")

    def subscribe(self, listener: Callable[[tuple[JobView, ...]], None]) -> Callable[[], None]:
        """Never call ``listener``."""
        return lambda: None

    def cancel(self, job_id: int) -> None:
        """Do nothing."""

    def retry(self, job_id: int) -> None:
        """Do nothing."""

    def request(self, job_id: int) -> engine.Request[object] | None:
        """Return None."""
        return None

    def forget(self, outdated: Callable[[engine.Request[object]], bool]) -> None:
        """Do nothing."""

    def poll(self) -> None:
        """Do nothing."""

    def partial(self, job_id: int) -> object:
        """Return None."""
        return None


class JobRunner:
    """Runs requests; the window sets ``ask_trust(file)``."""

    def __init__(self, workspace: Workspace, jobs: RunsJobs, messages: MessageLog, tasks: BackgroundTasks) -> None:
        self._workspace, self._jobs, self._messages, self._tasks = workspace, jobs, messages, tasks
        self.ask_trust: Callable[[str], Awaitable[bool]] = _refuse
        self._trusted: set[str] = set()
        workspace.subscribe(self._forget_closed)

    async def run(
        self,
        request: Request[O, R],
        again: Callable[[], object],
        keep: Callable[[object], str] = lambda partial: "",
        *,
        on_error: ErrorHandler = show_dialog,
        prepare: Callable[[Request[O, R]], Request[O, R]] = as_it_is,
    ) -> R | None:
        """Run a request as a job and return its result; None if it was cancelled or failed, which is reported.

        ``again`` repeats the work for the retry button; ``keep`` gets the partial result of a cancelled job (None for
        most) and returns what became of it; ``prepare`` updates the request when its turn comes.
        """
        try:
            return await self._trusting(request, again, prepare)
        except CancelledError as error:
            self._messages.say(f"Cancelled: {request.title}", keep(error.partial))
        except EngineDiedError as error:
            self._messages.report(request.title, error, dialog=False)
        except WorkbenchError as error:
            if on_error(error):
                self._messages.say(request.title, str(error), "warning")
            else:
                self._messages.report(request.title, error)
        return None

    async def work(
        self,
        request: Request[O, R],
        again: Callable[[], object] | None = None,
        on_error: ErrorHandler = show_dialog,
    ) -> R | None:
        """Run a request about the open session and join its result to the session; returns the result, or None.

        A step that names an undo entry makes the result an undoable edit.  A request that had to wait sees the results
        of those before it, and the plan as it was when the user asked.
        """
        retry = again or (lambda: self._repeat(request, on_error))
        keep = functools.partial(self._keep, request)
        result = await self.run(request, retry, keep, on_error=on_error, prepare=self._prepared)
        if result is None or self._workspace.state.session is None:
            return result
        if not self._join(request, result):
            self._messages.say(f"Dropped: {request.title}", "another model was opened in the meantime", "warning")
            return None
        self._messages.say(f"Done: {request.title}")
        return result

    def submit(self, request: Request[O, R], on_error: ErrorHandler = show_dialog) -> None:
        """Start :meth:`work` in the background."""
        self._tasks.start(self.work(request, on_error=on_error))

    def ask(self, request: Request[O, R], answered: Callable[[R], object]) -> None:
        """Run a request in the background without joining its result; ``answered(result)`` unless it fails."""

        async def asking() -> None:
            result = await self.run(request.reduced(), lambda: self.ask(request, answered))
            if result is not None:
                answered(result)

        self._tasks.start(asking())

    def cancel(self, job_id: int) -> None:
        """Cancel a job by its number."""
        self._jobs.cancel(job_id)

    def retry(self, job_id: int) -> None:
        """Repeat a failed or cancelled job's work."""
        self._jobs.retry(job_id)

    # ---------------------------------------------------------------- inside

    def _forget_closed(self, old: State, new: State) -> None:
        """Free what the jobs of a session that was closed hold of it."""
        before, now = old.session, new.session
        if before is not None and (now is None or now.model.fingerprint != before.model.fingerprint):
            self._jobs.forget(
                lambda request: isinstance(request, Request) and request.session is not None and not request.fits(now)
            )

    def _repeat(self, request: Request[O, R], on_error: ErrorHandler) -> None:
        """Start a request again, on the session as it is now."""
        session = self._workspace.state.session
        if session is not None:
            self.submit(replace(request, session=session), on_error)

    def _prepared(self, request: Request[O, R]) -> Request[O, R]:
        """Return the request with the results that are there by now, and no more than it needs."""
        return request.about(self._workspace.state.session).reduced()

    def _keep(self, request: Request[O, R], partial: object) -> str:
        """Join what a cancelled job had done and say so; an empty text where nothing is kept."""
        session = self._workspace.state.session
        if partial is None or session is None or not request.fits(session):
            return ""
        kept = request.kept(session, cast(R, partial))  # of the type of a result
        if kept is session:
            return ""
        self._workspace.update(lambda current: kept)
        return "what was done is kept"

    def _join(self, request: Request[O, R], result: R) -> bool:
        """Join a result to the session; False where another model, or none, is open by now."""
        session = self._workspace.state.session
        if session is None or not request.fits(session):
            return False
        if request.step.undo is not None:
            self._workspace.edit(request.step.undo(request.options), lambda current: request.joined(current, result))
            return True
        joined = request.joined(session, result)
        if joined is not session:
            self._workspace.update(lambda current: joined)
        return True

    async def _trusting(
        self, request: Request[O, R], again: Callable[[], object], prepare: Callable[[Request[O, R]], Request[O, R]]
    ) -> R:
        """Run a request; ask the user before the model's own Python file runs, once for each file."""
        if request.session is not None and request.session.model.source.path in self._trusted:
            request = replace(request, trust=True)
        try:
            return await self._jobs.submit(request, lambda: prepare(request), again).result()
        except TrustRequiredError as error:
            if not await self.ask_trust(error.file):
                raise CancelledError(f"{error.file} was not trusted") from None
            self._trusted.add(error.file)
            trusted = replace(request, trust=True)
            return await self._jobs.submit(trusted, lambda: prepare(trusted), again).result()


async def _refuse(file: str) -> bool:
    return False
