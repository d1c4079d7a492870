"""Runs requests as jobs: asks for trust, reports errors, and joins results to the open session."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from workbench.errors import CancelledError, EngineDiedError, TrustRequiredError, WorkbenchError
from workbench.gui.context.background import BackgroundTasks
from workbench.gui.context.messages import MessageLog
from workbench.session.workspace import EditableParts, Workspace

if TYPE_CHECKING:
    from workbench.engine.jobs import Job, JobView
    from workbench.engine.request import Request

R = TypeVar("R")

Renew = Callable[[Any], Any]
"""Makes of a request the one to run, when its turn comes."""

ErrorHandler = Callable[[WorkbenchError], bool]
"""Gets the error of a failed request; returns whether it is shown in its place, so that a line in the log is enough.
Otherwise a dialog shows it."""


def unchanged(request: Any) -> Any:
    """Return the request as it is."""
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
        self, request: Request[R], prepare: Callable[[], Request[R]] | None = None,
        again: Callable[[], object] | None = None,
    ) -> Job[R]: ...  # fmt: skip

    def subscribe(self, listener: Callable[[tuple[JobView, ...]], None]) -> Callable[[], None]: ...

    def cancel(self, job_id: int) -> None: ...

    def retry(self, job_id: int) -> None: ...

    def request(self, job_id: int) -> Request[object] | None: ...

    def poll(self) -> None: ...

    def partial(self, job_id: int) -> object: ...


class NoJobs:
    """Jobs where nothing can run: for a picture of the window."""

    views: tuple[JobView, ...] = ()

    def submit(
        self, request: Request[R], prepare: Callable[[], Request[R]] | None = None,
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

    def request(self, job_id: int) -> Request[object] | None:
        """Return None."""
        return None

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

    async def run(
        self,
        request: Any,
        again: Callable[[], None],
        keep: Callable[[Any], str] = lambda partial: "",
        *,
        on_error: ErrorHandler = show_dialog,
        renew: Renew = unchanged,
    ) -> Any:
        """Run a request as a job and return its answer; None if it was cancelled or failed, which is reported.

        ``again`` repeats the work for the retry button; ``keep`` gets the partial result of a cancelled job (None for
        most) and returns what became of it; ``renew`` updates the request when its turn comes.
        """
        try:
            return await self._trusting(request, again, renew)
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
        request: Any,
        edit: str = "",
        again: Callable[[], None] | None = None,
        on_error: ErrorHandler = show_dialog,
    ) -> Any:
        """Run a request about the open session and join its result to the session; returns the answer, or None.

        With ``edit`` the result is an undoable step of that name.  A request that has a method
        ``kept(current, partial)`` says with it what of a cancelled run goes into the session.  A request that had to
        wait sees the results of those before it, and the plan as it was when it was asked for.
        """
        retry = again or (lambda: self._repeat(request, edit, on_error))
        keep = functools.partial(self._keep, request)
        answer = await self.run(request, retry, keep, on_error=on_error, renew=self._renewed)
        if answer is None or self._workspace.state.session is None:
            return answer
        if not self._join(request, answer, edit):
            self._messages.say(f"Dropped: {request.title}", "another model was opened in the meantime", "warning")
            return None
        self._messages.say(f"Done: {request.title}")
        return answer

    def submit(self, request: Any, edit: str = "", on_error: ErrorHandler = show_dialog) -> None:
        """Start :meth:`work` in the background."""
        self._tasks.start(self.work(request, edit, on_error=on_error))

    def cancel(self, job_id: int) -> None:
        """Cancel a job by its number."""
        self._jobs.cancel(job_id)

    def retry(self, job_id: int) -> None:
        """Repeat a failed or cancelled job's work."""
        self._jobs.retry(job_id)

    def request_of(self, job_id: int) -> Any:
        """Return a job's request, None where it is not known any more."""
        return self._jobs.request(job_id)

    # ---------------------------------------------------------------- inside

    def _repeat(self, request: Any, edit: str, on_error: ErrorHandler) -> None:
        """Start a request again, on the session as it is now."""
        session = self._workspace.state.session
        if session is not None:
            self.submit(replace(request, session=session), edit, on_error)

    def _renewed(self, request: Any) -> Any:
        """Return a request of the open session with the results that are there by now, and no more than it needs."""
        from workbench.steps.requests import slim

        now, session = self._workspace.state.session, request.session
        if now is not None and now is not session and now.model.fingerprint == session.model.fingerprint:
            manual = {place: value for place, value in session.active_ranges.items() if value.method == "manual"}
            edits = replace(EditableParts.of(session), active_ranges={**now.active_ranges, **manual})
            request = replace(request, session=edits.into(now))
        return slim(request)

    def _keep(self, request: Any, partial: Any) -> str:
        """Join what a cancelled job had done and say so; an empty text where nothing is kept."""
        now = self._workspace.state.session
        if partial is None or now is None or now.model.fingerprint != request.session.model.fingerprint:
            return ""
        kept = request.kept(now, partial)
        if kept is now:
            return ""
        self._workspace.update(lambda current: kept)
        return "what was done is kept"

    def _join(self, request: Any, answer: Any, edit: str) -> bool:
        """Join an answer to the session; False where another model, or none, is open by now."""
        from workbench.steps.requests import merge

        now = self._workspace.state.session
        if now is None or now.model.fingerprint != request.session.model.fingerprint:
            return False
        if edit:
            self._workspace.edit(edit, lambda current: merge(current, request, answer))
        else:
            merged = merge(now, request, answer)
            if merged is not now:
                self._workspace.update(lambda current: merged)
        return True

    def _post(self, request: Any, again: Callable[[], None], renew: Renew) -> Any:
        return self._jobs.submit(request, lambda: renew(request), again)

    async def _trusting(self, request: Any, again: Callable[[], None], renew: Renew) -> Any:
        if hasattr(request, "trust") and self._trusts(request):
            request = replace(request, trust=True)
        try:
            return await self._post(request, again, renew).result()
        except TrustRequiredError as error:
            if not await self.ask_trust(error.file):
                raise CancelledError(f"{error.file} was not trusted") from None
            self._trusted.add(error.file)
            return await self._post(replace(request, trust=True), again, renew).result()

    def _trusts(self, request: Any) -> bool:
        session = getattr(request, "session", None)
        return session is not None and session.model.source.path in self._trusted


async def _refuse(file: str) -> bool:
    return False
