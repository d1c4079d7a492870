"""What every panel and command gets: the document, the jobs, the messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from workbench.engine.jobs import Jobs
from workbench.engine.request import OnProgress, Request
from workbench.errors import WorkbenchError
from workbench.gui.context.messages import MessageLog
from workbench.gui.context.runner import BackgroundTasks, JobRunner, R
from workbench.session.workspace import Workspace


class NoEngine:
    """Refuses every request: for a picture of the window."""

    async def run(self, job: int, request: Request[R], on_progress: OnProgress | None = None) -> R:
        """Raise WorkbenchError."""
        raise WorkbenchError("this window cannot run jobs; it was opened only for a picture")

    def cancel(self, job: int, *, insist: bool = True) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


class Context:
    """``workspace`` is the document, ``jobs`` the queue before the engine, ``runner`` runs requests in it,
    ``messages`` is the log, ``tasks`` runs coroutines in the background.

    The window sets ``trigger(action id)``, ``save()`` and ``may_discard()``, which asks about unsaved work, the
    application ``engine_pid()``.
    """

    def __init__(self, workspace: Workspace, jobs: Jobs | None = None) -> None:
        self.workspace = workspace
        self.jobs = jobs or Jobs(NoEngine())
        self.messages = MessageLog()
        self.tasks = BackgroundTasks(lambda error: self.messages.report("Internal error of the workbench", error))
        self.runner = JobRunner(workspace, self.jobs, self.messages, self.tasks)
        self.trigger: Callable[[str], None] = lambda action: None
        self.save: Callable[[], Awaitable[bool]] = _unsaved
        self.may_discard: Callable[[], Awaitable[bool]] = _unsaved
        self.engine_pid: Callable[[], int | None] = lambda: None


async def _unsaved() -> bool:
    return False
