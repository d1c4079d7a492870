"""The process and its futures."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import pytest

from tests.engine.fakes import HoldLock
from tests.engine.processes import engine, run
from workbench.engine.engine import Engine
from workbench.engine.process import _how_it_ended


def test_a_process_ends_in_order_when_the_task_that_follows_it_was_cancelled() -> None:
    async def main() -> None:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, what: faults.append(what))
        engine = Engine()
        await engine.ready()
        process, follower = engine._process, engine._lives
        assert process is not None and follower is not None
        follower.cancel()
        await asyncio.wait((follower,))
        process.end(signal.SIGKILL)
        assert "killed" in await asyncio.wait_for(process.ended, 20) and not faults
        process.join()

    run(main)


def test_a_model_file_that_was_cut_under_the_engine_is_named() -> None:
    class Ended:
        exitcode = -signal.SIGBUS

        def join(self, seconds: float) -> None:
            """The process is over."""

    assert "the model's file was truncated" in _how_it_ended(Ended())  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep such locks elsewhere")
def test_locks_of_libraries_have_no_name_in_shared_memory() -> None:
    """tqdm's was left there for good where the window was killed with all of its processes."""

    async def main() -> None:
        async with engine() as running:
            assert await running.run(1, HoldLock()) == set()

    run(main)
