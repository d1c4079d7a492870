"""What every panel and command gets: the document, the jobs, the messages."""

from __future__ import annotations

from collections.abc import Callable

from workbench.gui.context.background import BackgroundTasks
from workbench.gui.context.messages import MessageLog
from workbench.gui.context.runner import JobRunner, RunsJobs
from workbench.session.workspace import Workspace


class Context:
    """``workspace`` is the document, ``jobs`` the queue before the engine, ``runner`` runs requests in it,
    ``messages`` is the log, ``tasks`` runs coroutines in the background.

    The window sets ``trigger(action id)``, the application ``engine_pid()``.
    """

    def __init__(self, workspace: Workspace, jobs: RunsJobs) -> None:
        self.workspace = workspace
        self.jobs = jobs
        self.messages = MessageLog()
        self.tasks = BackgroundTasks(
            lambda error: self.messages.report("Something went wrong inside the workbench", error)
        )
        self.runner = JobRunner(workspace, jobs, self.messages, self.tasks)
        self.trigger: Callable[[str], None] = lambda action: None
        self.engine_pid: Callable[[], int | None] = lambda: None
