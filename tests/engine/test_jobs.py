"""Jobs: order, cancel, partial results, errors, retry, and what the views say."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.fakes import Fake
from tests.engine.inline_engine import InlineEngine
from tests.engine.processes import run, until
from workbench.engine.engine import Engine
from workbench.engine.jobs import MAX_VIEWS, Job, Jobs, JobStatus, JobView
from workbench.errors import CancelledError, DataError, EngineDiedError, WorkbenchError
from workbench.preflight import Estimate


@asynccontextmanager
async def inline() -> AsyncIterator[Jobs]:
    """Jobs on a thread of this process."""
    jobs = Jobs(InlineEngine())
    try:
        yield jobs
    finally:
        await jobs.close()


@asynccontextmanager
async def spawned() -> AsyncIterator[Jobs]:
    """Jobs on a real engine."""
    engine = Engine()
    await engine.start()
    jobs = Jobs(engine)
    try:
        yield jobs
    finally:
        await jobs.close()


def in_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an async test without the checks on processes."""
    asyncio.run(main())


def test_the_time_left_is_that_of_the_estimate_until_the_share_that_is_done_tells_more() -> None:
    def left(fraction: float, took: float, estimated: float | None) -> float | None:
        estimate = None if estimated is None else Estimate(seconds=estimated, memory=0)
        return JobView(
            id=1, title="", status=JobStatus.RUNNING, started=0.0, finished=took, fraction=fraction, estimate=estimate
        ).left

    assert left(0.0, 3.0, None) is None and left(0.0, 3.0, 2400.0) == 2400
    early = left(0.1, 20.0, 2400.0)  # the model was loaded; the work has hardly begun
    assert early is not None and 0.7 * 2400 < early < 2400
    assert left(0.1, 20.0, None) == pytest.approx(180)
    assert left(0.6, 300.0, 20.0) == pytest.approx(200), "by then an estimate that was wrong no longer counts"


def test_jobs_run_one_after_the_other_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with inline() as jobs:
            received: list[tuple[JobView, ...]] = []
            jobs.subscribe(received.append)
            submitted = [jobs.submit(Fake(title=f"job {n}", answer=n, steps=2, pause=0.002)) for n in range(4)]
            assert [job.view.status for job in submitted] == [JobStatus.QUEUED] * 4
            assert [await job.result() for job in submitted] == [0, 1, 2, 3]
            for views in received:
                assert sum(view.status is JobStatus.RUNNING for view in views) <= 1
            final = jobs.views
            assert [view.id for view in final] == sorted(view.id for view in final)
            assert all(view.status is JobStatus.DONE and view.fraction == 1.0 for view in final)
            for earlier, later in zip(final, final[1:], strict=False):
                assert earlier.finished is not None and later.started is not None
                assert earlier.finished <= later.started

    in_loop(main)


def test_a_request_is_prepared_when_its_turn_comes_from_what_was_answered_by_then() -> None:
    async def main() -> None:
        async with inline() as jobs:
            known: list[int] = []

            async def take_up(job: Job) -> None:
                known.append(await job.result())

            def prepared() -> Fake:
                return Fake(steps=1, pause=0.01, answer=sum(known) + 1)

            taking = [asyncio.create_task(take_up(jobs.submit(Fake(), prepared))) for _ in range(4)]
            await asyncio.gather(*taking)
            assert known == [1, 2, 4, 8]

    in_loop(main)


def test_a_request_that_cannot_be_prepared_fails_and_the_queue_goes_on() -> None:
    def refuse() -> Fake:
        raise DataError("the data are gone")

    async def main() -> None:
        async with inline() as jobs:
            job, follower = jobs.submit(Fake(), refuse), jobs.submit(Fake(answer=2))
            with pytest.raises(DataError, match="the data are gone"):
                await job.result()
            assert job.view.status is JobStatus.FAILED and await follower.result() == 2

    in_loop(main)


def test_result_may_be_awaited_by_several_and_late() -> None:
    async def main() -> None:
        async with inline() as jobs:
            job = jobs.submit(Fake(answer=[1]))
            first, second = await asyncio.gather(job.result(), job.result())
            assert first is second is await job.result()

    in_loop(main)


def test_listeners_hear_only_changes() -> None:
    async def main() -> None:
        async with inline() as jobs:
            heard: list[tuple[JobView, ...]] = []
            unsubscribe = jobs.subscribe(heard.append)
            job = jobs.submit(Fake(steps=1, pause=0.0, deaf=0.2))
            await until(lambda: job.progress is not None and job.progress[1] == "step 0")
            assert [views[-1].status for views in heard] == [JobStatus.QUEUED, JobStatus.RUNNING]
            jobs.poll()
            assert len(heard) == 3 and heard[-1][-1].text == "step 0"
            jobs.poll()
            jobs.poll()
            assert len(heard) == 3, "told of nothing new"
            await job.result()
            assert len(heard) == 4 and heard[-1][-1].status is JobStatus.DONE
            jobs.poll()
            unsubscribe()
            await jobs.submit(Fake()).result()
            assert len(heard) == 4

    in_loop(main)


def test_poll_takes_the_latest_progress_and_partial() -> None:
    async def main() -> None:
        async with inline() as jobs:
            job = jobs.submit(Fake(steps=4, pause=0.02, partials=True, deaf=0.2))
            await until(lambda: job.partial == ("partial", 3))
            jobs.poll()
            assert (job.view.fraction, job.view.text) == (0.75, "step 3")
            assert jobs.partial(job.id) == ("partial", 3)
            assert jobs.partial(job.id + 1) is None
            await job.result()
            assert jobs.partial(job.id) is None
            assert job.view.fraction == 1.0

    in_loop(main)


def test_errors_are_raised_and_shown() -> None:
    async def main() -> None:
        async with inline() as jobs:
            job = jobs.submit(Fake(error="DataError", message="the file is empty"))
            with pytest.raises(DataError, match="the file is empty"):
                await job.result()
            assert job.view.status is JobStatus.FAILED
            assert job.view.error == "the file is empty"
            fault = jobs.submit(Fake(title="Score", error="ValueError"))
            with pytest.raises(WorkbenchError):
                await fault.result()
            assert fault.view.error == "Score failed with ValueError: on purpose"
            assert await jobs.submit(Fake(answer="next")).result() == "next"

    in_loop(main)


def test_an_unawaited_failure_is_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with inline() as jobs:
            job = jobs.submit(Fake(error="DataError"))
            await until(lambda: job.view.status is JobStatus.FAILED)

    in_loop(main)
    gc.collect()
    assert not caplog.records


def test_cancel_is_answered_at_once_however_deaf_the_job() -> None:
    async def main() -> None:
        async with inline() as jobs:
            job = jobs.submit(Fake(deaf=2.0, answer="late"))
            follower = jobs.submit(Fake(answer="follower"))
            await until(lambda: job.view.status is JobStatus.RUNNING)
            await asyncio.sleep(0.05)
            start = time.monotonic()
            job.cancel()
            with pytest.raises(CancelledError):
                await job.result()
            assert time.monotonic() - start < 1.5, "it waited for the job"
            assert await follower.result() == "follower"
            assert job.view.status is JobStatus.CANCELLED, "a late answer was taken"
            job.cancel()

    in_loop(main)


def test_a_queued_job_is_cancelled_without_having_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with inline() as jobs:
            first = jobs.submit(Fake(steps=5, pause=0.01))
            second = jobs.submit(Fake(touch=str(tmp_path / "ran")))
            third = jobs.submit(Fake(answer=3))
            jobs.cancel(second.id)
            assert second.view.status is JobStatus.CANCELLED
            await first.result()
            assert await third.result() == 3
            assert not (tmp_path / "ran").exists()

    in_loop(main)


def test_retry_makes_a_new_job_of_a_failed_or_cancelled_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with inline() as jobs:
            marker = tmp_path / "marker"
            marker.touch()
            job = jobs.submit(Fake(touch=str(marker), answer="made"))
            with pytest.raises(WorkbenchError, match="FileExistsError"):
                await job.result()
            marker.unlink()
            jobs.retry(job.id)
            again = jobs.views[-1]
            assert again.id != job.id and again.title == job.view.title
            await until(lambda: jobs.views[-1].status is JobStatus.DONE)
            for number in (again.id, 999):
                with pytest.raises(WorkbenchError, match="cannot be tried again"):
                    jobs.retry(number)

    in_loop(main)


def test_retry_calls_what_starts_the_whole_work_again_and_requests_stay_known() -> None:
    async def main() -> None:
        async with inline() as jobs:
            called: list[str] = []
            failing = Fake(error="DataError")
            job = jobs.submit(failing, again=lambda: called.append("again"))
            with pytest.raises(DataError):
                await job.result()
            jobs.retry(job.id)
            assert called == ["again"] and len(jobs.views) == 1
            done = jobs.submit(Fake(), lambda: Fake(title="prepared"))
            await done.result()
            assert jobs.request(job.id) is failing and jobs.request(999) is None
            request = jobs.request(done.id)
            assert request is not None and request.title == "prepared", "the whole request of a done job is kept"

    in_loop(main)


def test_requests_that_are_outdated_are_forgotten_when_their_jobs_are_over() -> None:
    async def main() -> None:
        async with inline() as jobs:
            failed, running = jobs.submit(Fake(error="DataError")), jobs.submit(Fake(steps=5, pause=0.01))
            with pytest.raises(DataError):
                await failed.result()
            jobs.forget(lambda request: True)
            assert jobs.request(failed.id) is None and jobs.request(running.id) is not None
            assert [view.id for view in jobs.views] == [failed.id, running.id]
            with pytest.raises(WorkbenchError, match="cannot be tried again"):
                jobs.retry(failed.id)
            await running.result()

    in_loop(main)


def test_a_listener_that_raises_is_reported_and_stops_neither_the_job_nor_other_listeners() -> None:
    async def main() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        async with inline() as jobs:
            heard: list[tuple[JobView, ...]] = []

            def broken(views: tuple[JobView, ...]) -> None:
                raise ValueError("on purpose")

            jobs.subscribe(broken)
            jobs.subscribe(heard.append)
            assert await jobs.submit(Fake(answer=1)).result() == 1
            assert await jobs.submit(Fake(answer=2)).result() == 2
            assert heard[-1][-1].status is JobStatus.DONE
        assert "ValueError: on purpose" in reported[0]["message"]

    in_loop(main)


def test_a_partial_result_that_cannot_be_pickled_does_not_end_progress() -> None:
    async def main() -> None:
        async with spawned() as jobs:
            job = jobs.submit(Fake(steps=60, pause=0.02, unpicklable_partial=3, answer="done"))
            received: set[str] = set()
            while not job.view.status.over:
                jobs.poll()
                received.add(job.view.text)
                await asyncio.sleep(0.01)
            assert len(received) > 10, "progress ended at the value that could not be sent"
            assert await job.result() == "done"

    run(main)


def test_only_the_last_200_views_are_kept_and_done_jobs_are_freed() -> None:
    async def main() -> None:
        async with inline() as jobs:
            response = {1, 2}
            job = jobs.submit(Fake(answer=response))
            ended = weakref.ref(job)
            await job.result()
            for _ in range(MAX_VIEWS + 5):
                job = jobs.submit(Fake())
            await job.result()
            await asyncio.sleep(0)
            assert len(jobs.views) == MAX_VIEWS
            assert jobs.views[-1].id == job.id
            del job
            gc.collect()
            assert ended() is None, "a done job, and with it its response, is kept"

    in_loop(main)


def test_close_cancels_everything_and_takes_nothing_more() -> None:
    async def main() -> None:
        async with inline() as jobs:
            running = jobs.submit(Fake(steps=1000, pause=0.005))
            queued = jobs.submit(Fake())
            await until(lambda: running.view.status is JobStatus.RUNNING)
            await jobs.close()
            assert running.view.status is queued.view.status is JobStatus.CANCELLED
            with pytest.raises(WorkbenchError, match="closing"):
                jobs.submit(Fake())

    in_loop(main)


def test_a_dead_engine_fails_the_job_and_the_queue_goes_on() -> None:
    async def main() -> None:
        async with spawned() as jobs:
            doomed = jobs.submit(Fake(kill=9))
            follower = jobs.submit(Fake(answer="alive"))
            with pytest.raises(EngineDiedError):
                await doomed.result()
            assert doomed.view.status is JobStatus.FAILED
            assert await follower.result() == "alive"
            jobs.retry(doomed.id)
            await until(lambda: jobs.views[-1].status is JobStatus.FAILED, 20)
            assert "the engine process ended" in jobs.views[-1].error

    run(main)


@pytest.mark.parametrize("keeps", [True, False])
def test_what_a_job_had_outlives_its_engine(keeps: bool) -> None:
    """Scores that had been streamed for minutes were dropped with the process that had computed them."""

    async def main() -> None:
        async with spawned() as jobs:
            doomed = jobs.submit(Fake(kill=9, steps=4, partials=True, deaf=0.5, keeps_partial=keeps))
            with pytest.raises(EngineDiedError) as caught:
                await doomed.result()
            assert caught.value.partial == (("partial", 3) if keeps else None)

    run(main)


def test_late_messages_of_a_cancelled_job_never_reach_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with spawned() as jobs:
            noisy = jobs.submit(Fake(steps=100_000, partials=True, pause=0.0001, answer="noisy"))
            await until(lambda: noisy.partial is not None)
            noisy.cancel()
            quiet = jobs.submit(Fake(deaf=0.1, answer="quiet"))
            assert await quiet.result() == "quiet"
            assert quiet.partial is None
            assert noisy.partial is None or noisy.view.status is JobStatus.CANCELLED
            assert jobs.partial(noisy.id) is None

    run(main)


def test_partials_cross_the_process() -> None:
    async def main() -> None:
        async with spawned() as jobs:
            job = jobs.submit(Fake(steps=100, partials=True, pause=0.01))
            received = set()

            def listener(views: tuple[JobView, ...]) -> None:
                if jobs.partial(job.id) is not None:
                    received.add(jobs.partial(job.id))

            jobs.subscribe(listener)
            while not job.view.status.over:
                jobs.poll()
                await asyncio.sleep(0.02)
            assert len(received) >= 3

    run(main)


@pytest.mark.parametrize("close_while", ["warming", "running"])
def test_close_with_jobs_in_every_state(close_while: str) -> None:
    async def main() -> None:
        async with spawned() as jobs:
            running = jobs.submit(Fake(deaf=30))
            queued = jobs.submit(Fake())
            if close_while == "running":
                await until(lambda: running.progress is not None)
            await jobs.close()
            assert running.view.status is queued.view.status is JobStatus.CANCELLED

    run(main)
