"""The process that reads and writes the document: it waits for no job, and no file harms the window's own process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engine.fakes import Fake
from tests.engine.inline_engine import InlineEngine
from tests.engine.processes import run
from tests.gui import sessions
from workbench.engine.engine import Engine
from workbench.engine.files_engine import FilesEngine
from workbench.engine.jobs import Jobs, JobStatus
from workbench.errors import EngineDiedError
from workbench.gui.context.runner import JobRunner
from workbench.session.workspace import Workspace
from workbench.steps.files.open_session import OPEN_SESSION, OpenSessionOptions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Saving(Fake):
    """About a session, as a save is."""

    session: str = "a session"


class NeverStarts(Engine):
    """An engine that is not there yet."""

    async def run(self, job: int, request: Any, on_progress: Any = None) -> Any:
        """Wait for it."""
        await asyncio.sleep(1000)


def test_a_session_is_read_before_the_engine_is_there(tmp_path: Path) -> None:
    (session := sessions.full(1)).save(path := tmp_path / "kept.qwb")

    async def story() -> None:
        jobs = Jobs(NeverStarts(), files=FilesEngine())
        read = await jobs.submit(OPEN_SESSION.request(None, OpenSessionOptions(path=str(path)))).result()
        assert read.plan == session.plan and not jobs.busy
        await jobs.close()

    run(story)


def test_a_session_waits_for_the_jobs_of_the_open_one_where_it_is_told_to(tmp_path: Path) -> None:
    sessions.full(1).save(path := tmp_path / "kept.qwb")

    async def story() -> None:
        jobs = Jobs(InlineEngine(), files=FilesEngine())
        work = jobs.submit(Fake(steps=5, pause=0.05, answer="done"))
        assert jobs.busy
        opening = jobs.submit(OPEN_SESSION.request(None, OpenSessionOptions(path=str(path))), aside=False)
        await opening.result()
        assert work.view.status is JobStatus.DONE
        await jobs.close()

    asyncio.run(story())


@pytest.mark.parametrize("busy", [False, True])
def test_the_window_opens_a_session_aside_unless_a_job_runs(busy: bool) -> None:
    """Its result belongs to the session that is open now."""
    submitted = list[bool]()

    async def answer() -> str:
        return "the session"

    def submit(*arguments: Any, aside: bool = True) -> Any:
        submitted.append(aside)
        return SimpleNamespace(result=answer, notes=())

    async def story() -> None:
        jobs: Any = SimpleNamespace(busy=busy, submit=submit)
        nothing: Any = SimpleNamespace()
        runner = JobRunner(Workspace(), jobs, nothing, nothing)
        request = OPEN_SESSION.request(None, OpenSessionOptions(path="kept.qwb"))
        assert await runner.run(request, lambda: None)
        assert submitted == [not busy]

    asyncio.run(story())


def test_a_file_that_ends_the_process_is_not_read_again_in_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A save goes on in a thread."""

    async def dies(self: Engine, *arguments: Any) -> Any:
        raise EngineDiedError("killed")

    monkeypatch.setattr(Engine, "run", dies)

    async def story() -> None:
        with pytest.raises(EngineDiedError, match="killed"):
            await FilesEngine().run(1, Fake(answer="read"))
        assert await FilesEngine().run(2, Saving(answer="written")) == "written"

    asyncio.run(story())
