"""What the parts of the window share: the document, the jobs, the messages.  No widgets, no Qt."""

from __future__ import annotations

import asyncio
import functools
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from workbench.engine.jobs import Renew, unchanged
from workbench.errors import CancelledError, EngineDiedError, TrustRequiredError, WorkbenchError
from workbench.planning.plan import KEEP
from workbench.session.workspace import Edits, Workspace
from workbench.version import crash_details

if TYPE_CHECKING:
    from workbench.numerics.ranges import Range

MAX_HELD = 200

Refused = Callable[[WorkbenchError], bool]
"""Is given why a request failed and tells whether a panel has said so where it belongs, so that a line in the log is
enough; else a dialog says it."""

_TYPED = re.compile(r" \(workbench [^()]*\)")


def in_dialog(error: WorkbenchError) -> bool:
    """Leave an error to the dialog."""
    return False


def in_log(error: WorkbenchError) -> bool:
    """Leave an error to the log: for what nobody asked for."""
    return True


class JobsFace(Protocol):
    """The part of :class:`workbench.engine.jobs.Jobs` that the window uses."""

    @property
    def views(self) -> tuple[Any, ...]: ...

    def submit(self, request: Any, renew: Renew = unchanged) -> Any: ...

    def subscribe(self, listener: Callable[[tuple[Any, ...]], None]) -> Callable[[], None]: ...

    def poll(self) -> None: ...

    def partial(self, job_id: int) -> Any: ...


class NoJobs:
    """Jobs where nothing can be run: for a picture of the window."""

    views: tuple[Any, ...] = ()

    def submit(self, request: Any, renew: Renew = unchanged) -> Any:
        """Refuse."""
        raise WorkbenchError("this window cannot run anything; it was opened to be drawn")

    def subscribe(self, listener: Callable[[tuple[Any, ...]], None]) -> Callable[[], None]:
        """Never call ``listener``."""
        return lambda: None

    def poll(self) -> None:
        """Do nothing."""

    def partial(self, job_id: int) -> Any:
        """Return None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One line of the message log: ``level`` is ``info``, ``warning`` or ``error``; ``when`` in seconds since 1970."""

    level: str
    title: str
    text: str
    when: float


class Desk:
    """The document and the jobs, and what every panel may ask for.

    ``ask_trust(file)``, ``show_error(title, text, details)`` and ``act(id)``, which does an action, are given by the
    window, ``engine_pid()`` by the application.
    """

    def __init__(self, workspace: Workspace, jobs: JobsFace) -> None:
        self.workspace = workspace
        self.jobs = jobs
        self.messages: list[Message] = []
        self._held: dict[int, tuple[Any, Callable[[], None]]] = {}
        self.ask_trust: Callable[[str], Awaitable[bool]] = _refuse
        self.show_error: Callable[..., None] = lambda title, text, details="": None
        self.on_message: Callable[[Message], None] = lambda message: None
        self.engine_pid: Callable[[], int | None] = lambda: None
        self.act: Callable[[str], None] = lambda action: None
        self._trusted: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    # ---------------------------------------------------------------- edits

    def assign(self, layers: Iterable[str], **changes: Any) -> None:
        """Give ``layers`` new fields of their Assignment, as one undoable step."""
        names = tuple(layers)
        session = self.workspace.state.session
        if not names or session is None:
            return
        held = self.workspace.state.assignments
        if held and all(getattr(held[name], key) == value for name in names for key, value in changes.items()):
            return
        title = f"Set {_whose(names)} to {_what(changes)}"
        self.workspace.edit(title, lambda now: replace(now, plan=now.plan.assign(names, **changes)))

    def lock(self, layers: Iterable[str], locked: bool) -> None:
        """Lock or unlock ``layers``: a search leaves locked layers alone."""
        names = frozenset(layers)
        if not names:
            return
        title = f"{'Lock' if locked else 'Unlock'} {_whose(tuple(names))}"
        self.workspace.edit(
            title, lambda now: replace(now, locked=now.locked | names if locked else now.locked - names)
        )

    def set_range(self, layer: str, tap: str, new: Range) -> None:
        """Put a range in force, as one undoable step."""
        self.workspace.edit(
            f"Set the {tap} range of {layer} ({new.method})",
            lambda now: replace(now, active_ranges={**now.active_ranges, (layer, tap): new}),
        )

    def take_plan(self, title: str, plan: Any) -> None:
        """Make ``plan`` the current plan, as one undoable step."""
        self.workspace.edit(title, lambda now: replace(now, plan=plan))

    # ---------------------------------------------------------------- messages

    def say(self, title: str, text: str = "", level: str = "info") -> None:
        """Add a line to the message log and show it in the status bar."""
        message = Message(level=level, title=title, text=text, when=time.time())
        self.messages = [*self.messages[-199:], message]
        self.on_message(message)

    def report(self, title: str, error: BaseException, *, dialog: bool = True) -> None:
        """Tell the person about an error: a line in the log and, unless it mends itself, a dialog."""
        text = said(str(error) or type(error).__name__, title)
        self.say(title, text, "error")
        if dialog:
            on_purpose = isinstance(error, WorkbenchError) and not getattr(error, "__notes__", None)
            self.show_error(title, text, "" if on_purpose else crash_details(error))

    # ---------------------------------------------------------------- work

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``coroutine`` in the background; what it raises is reported, never lost."""
        task = asyncio.get_event_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """Cancel what was started and wait until it has ended."""
        mine = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not mine]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run(
        self,
        request: Any,
        again: Callable[[], None],
        keep: Callable[[Any], str] = lambda partial: "",
        *,
        refused: Refused = in_dialog,
        renew: Renew = unchanged,
    ) -> Any:
        """Run a request as a job and return its answer; None if it was cancelled or failed, which is then reported.

        ``again`` starts the same work anew and serves the retry button; ``keep`` is given what a cancelled job had by
        then (None for most) and says what became of it; ``refused`` is given an error first; ``renew`` makes the
        request anew when its turn comes.
        """
        try:
            return await self._trusting(request, again, renew)
        except CancelledError as error:
            self.say(f"Cancelled: {request.title}", keep(error.partial))
        except EngineDiedError as error:
            self.report(request.title, error, dialog=False)
        except WorkbenchError as error:
            if refused(error):
                self.say(request.title, said(str(error)), "warning")
            else:
                self.report(request.title, error)
        return None

    async def work(
        self, request: Any, edit: str = "", again: Callable[[], None] | None = None, refused: Refused = in_dialog
    ) -> Any:
        """Run a request about the open session and take its result up; returns the answer, or None.

        With ``edit`` the result is taken up as an undoable step of that name.  A request that has a method
        ``kept(current, partial)`` says with it what of a cancelled run goes into the session.  A request that had to
        wait sees the results of those before it, and the plan as it was when it was asked for.
        """
        retry = again or (lambda: self.again(request, edit, refused))
        keep = functools.partial(self._keep, request)
        answer = await self.run(request, retry, keep, refused=refused, renew=self._renewed)
        if answer is None or self.workspace.state.session is None:
            return answer
        if not self._take_up(request, answer, edit):
            self.say(f"Dropped: {request.title}", "another model was opened in the meantime", "warning")
            return None
        self.say(f"Done: {request.title}")
        return answer

    def _renewed(self, request: Any) -> Any:
        """Return a request of the open session with the results that are there by now, and no more than it needs."""
        from workbench.steps.requests import slim

        now, session = self.workspace.state.session, request.session
        if now is not None and now is not session and now.model.fingerprint == session.model.fingerprint:
            manual = {place: one for place, one in session.active_ranges.items() if one.method == "manual"}
            edits = replace(Edits.of(session), active_ranges={**now.active_ranges, **manual})
            request = replace(request, session=edits.into(now))
        return slim(request)

    def _keep(self, request: Any, partial: Any) -> str:
        """Take up what a cancelled job had done, and say so; an empty text where nothing of it is kept."""
        now = self.workspace.state.session
        if partial is None or now is None or now.model.fingerprint != request.session.model.fingerprint:
            return ""
        kept = request.kept(now, partial)
        if kept is now:
            return ""
        self.workspace.update(lambda current: kept)
        return "what was done is kept"

    def _take_up(self, request: Any, answer: Any, edit: str) -> bool:
        """Merge an answer into the session; False where another model, or none, is open by now."""
        from workbench.steps.requests import merge

        now = self.workspace.state.session
        if now is None or now.model.fingerprint != request.session.model.fingerprint:
            return False
        if edit:
            self.workspace.edit(edit, lambda current: merge(current, request, answer))
        else:
            merged = merge(now, request, answer)
            if merged is not now:
                self.workspace.update(lambda current: merged)
        return True

    def submit(self, request: Any, edit: str = "", refused: Refused = in_dialog) -> None:
        """Start :meth:`work` in the background."""
        self.start(self.work(request, edit, refused=refused))

    def again(self, request: Any, edit: str = "", refused: Refused = in_dialog) -> None:
        """Start the work of ``request`` anew, on the session as it is now."""
        session = self.workspace.state.session
        if session is not None:
            self.submit(replace(request, session=session), edit, refused)

    def cancel(self, job_id: int) -> None:
        """Cancel a job by its number."""
        if job_id in self._held:
            self._held[job_id][0].cancel()

    def retry(self, job_id: int) -> None:
        """Start a failed or cancelled job's work anew."""
        if job_id in self._held:
            self._held[job_id][1]()

    def request_of(self, job_id: int) -> Any:
        """Return what a job was asked to do, None where that is not known any more."""
        return self._held[job_id][0].request if job_id in self._held else None

    def _post(self, request: Any, again: Callable[[], None], renew: Renew) -> Any:
        job = self.jobs.submit(request, renew)
        self._held[job.id] = job, again
        while len(self._held) > MAX_HELD:
            self._held.pop(next(iter(self._held)))
        return job

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

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert error is not None
            self.report("Something went wrong inside the workbench", error)


def said(error: str, title: str = "") -> str:
    """Return an error as the window says it: without what to type in a terminal, and without ``title`` once more."""
    text = _TYPED.sub("", error)
    return text.removeprefix(title).lstrip(" :") if title and text != title else text


async def _refuse(file: str) -> bool:
    return False


def _whose(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,} layers"


def _what(changes: dict[str, Any]) -> str:
    texts = []
    for key, value in changes.items():
        if key == "weights":
            texts.append("keep FP" if value == KEEP else str(value))
        elif key == "inputs":
            texts.append(f"inputs {value}" if value else "floating-point inputs")
        elif key == "cache":
            texts.append(f"cache {value}" if value else "floating-point cache")
        else:
            texts.append(str(value))
    return ", ".join(texts)
