"""The engine process: it answers, heeds cancel, comes back when it dies, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.fakes import AskProcess, Fake, Loaded
from tests.engine.inline_engine import InlineEngine
from tests.engine.processes import engine, run, shared_files, until
from workbench.engine import engine as engine_module
from workbench.engine import engine_process
from workbench.engine.engine import Engine
from workbench.engine.transport import Envelope
from workbench.errors import (
    CancelledError,
    DataError,
    DeviceError,
    DeviceLostError,
    EngineDiedError,
    MemoryLimitError,
    MissingResultError,
    TrustRequiredError,
    WorkbenchError,
)


def test_answers_from_a_nice_process_with_a_core_left_free() -> None:
    async def main() -> None:
        async with engine() as running:
            message = await running.run(1, AskProcess())
            assert message["pid"] == running.pid != os.getpid()
            assert message["nice"] == min(19, os.nice(0) + 10)
            assert message["threads"] == max(1, len(os.sched_getaffinity(0)) - 1)

    run(main)


def test_arrays_cross_both_ways_and_are_writable() -> None:
    async def main() -> None:
        async with engine() as running:
            for size in (3, 5_000, 1_000_000):
                array = np.arange(size, dtype=np.float64)
                back = await running.run(size, Fake(array=array))
                np.testing.assert_array_equal(back["array"], array + 1)
                assert back["writable"]
                back["array"][0] = 7.0
                del back
                await until(lambda: not shared_files())  # the reading thread may let go of the message a moment later

    run(main)


def test_errors_come_as_the_same_class_with_their_words() -> None:
    async def main() -> None:
        async with engine() as running:
            with pytest.raises(MissingResultError, match="^on purpose$"):
                await running.run(1, Fake(error="MissingResultError"))
            with pytest.raises(TrustRequiredError) as trust:
                await running.run(2, Fake(error="TrustRequiredError"))
            assert trust.value.file == "network.py"
            with pytest.raises(DataError):
                await running.run(3, Fake(error="DataError"))
            assert await running.run(4, Fake(answer=5)) == 5

    run(main)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Fake(title="Calibrate", error="ValueError"), r"^Calibrate failed with ValueError: on purpose$"),
        (Fake(title="Calibrate", error="MemoryError"), r"^Calibrate: the memory ran out"),
        (Fake(title="Calibrate", error="SystemExit"), r"^Calibrate failed with SystemExit"),
        (Fake(title="Calibrate", unpicklable=True), r"^handing over the result failed"),
        (Fake(title="Calibrate", extra={"no": lambda: 0}), r"^sending the request failed"),
    ],
    ids=["fault", "memory", "exit", "response", "request"],
)
def test_faults_say_what_failed_and_the_engine_goes_on(request_: Fake, words: str) -> None:
    async def main() -> None:
        async with engine() as running:
            pid = running.pid
            with pytest.raises(WorkbenchError) as caught:
                await running.run(1, request_)
            assert re.match(words, str(caught.value))
            assert type(caught.value) is (MemoryLimitError if request_.error == "MemoryError" else WorkbenchError)
            assert "Traceback" in "".join(caught.value.__notes__)
            assert "Traceback" not in str(caught.value)
            assert await running.run(2, Fake(answer=5)) == 5
            assert running.pid == pid

    run(main)


def test_progress_is_throttled_and_the_newest_arrives() -> None:
    async def main() -> None:
        async with engine() as running:
            fractions: list[float] = []
            partials: list[Any] = []

            def on_progress(fraction: float | None, text: str, partial: Any) -> None:
                if fraction is not None:
                    fractions.append(fraction)
                if partial is not None:
                    partials.append(partial)

            await running.run(1, Fake(steps=1000, pause=0.001, partials=True, deaf=0.3), on_progress)
            assert fractions == sorted(fractions)
            assert 10 <= len(fractions) <= 80
            assert fractions[-1] == 0.999, "the last report before a long silence was lost"
            assert 2 <= len(partials) <= 14
            assert partials == sorted(partials) and partials[-1] == ("partial", 999)

    run(main)


def test_a_job_that_waits_for_the_engine_says_so() -> None:
    async def main() -> None:
        running, said = Engine(), list[str]()
        await running.start()
        try:
            await running.run(1, Fake(), lambda fraction, text, partial: said.append(text))
            assert said[0] == "the engine starts"
            said.clear()
            await running.run(2, Fake(), lambda fraction, text, partial: said.append(text))
            assert "the engine starts" not in said
        finally:
            await running.close()

    run(main)


def test_cancel_is_heeded_and_the_process_is_kept() -> None:
    async def main() -> None:
        async with engine() as running:
            pid = running.pid
            began = threading.Event()
            job = asyncio.ensure_future(running.run(1, Fake(steps=10_000, pause=0.005), lambda *_: began.set()))
            await until(began.is_set)
            start = time.monotonic()
            running.cancel(1)
            with pytest.raises(CancelledError):
                await job
            assert time.monotonic() - start < 20, "it waited for the job, which takes 50 s"  # about 5 ms
            assert await running.run(2, Fake(answer="next")) == "next"
            assert running.pid == pid

    run(main)


def test_cancel_of_an_earlier_job_does_not_touch_the_running_one() -> None:
    async def main() -> None:
        async with engine() as running:
            assert await running.run(1, Fake(answer=1)) == 1
            job = asyncio.ensure_future(running.run(2, Fake(steps=20, pause=0.01, answer=2)))
            await asyncio.sleep(0.05)
            running.cancel(1)
            assert await job == 2

    run(main)


def test_a_deaf_job_is_ended_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "HEED_SECONDS", 0.2)

    async def main() -> None:
        async with engine() as running:
            events: list[str] = []
            running.subscribe(lambda event, text: events.append(event))
            pid = running.pid
            began = threading.Event()
            job = asyncio.ensure_future(running.run(1, Fake(deaf=60), lambda *_: began.set()))
            await until(began.is_set)
            start = time.monotonic()
            running.cancel(1)
            with pytest.raises(CancelledError):
                await job
            assert 0.2 <= time.monotonic() - start < 30, "it waited for the job, which takes 60 s"
            assert await running.run(2, Fake(answer="next")) == "next"
            assert running.pid != pid
            assert events == ["died", "restarted"]

    run(main)


def test_kill_is_noticed_at_once_and_the_engine_comes_back() -> None:
    async def main() -> None:
        async with engine() as running:
            events: list[str] = []
            running.subscribe(lambda event, text: events.append(event))
            pid = running.pid
            assert pid is not None
            job = asyncio.ensure_future(running.run(1, Fake(steps=10_000, pause=0.005)))
            await asyncio.sleep(0.1)
            start = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(EngineDiedError, match="killed"):
                await job
            assert time.monotonic() - start < 20, "it waited for the job, which takes 50 s"  # about 15 ms
            assert await running.run(2, Fake(answer="next")) == "next"
            assert events == ["died", "restarted"]

    run(main)


def test_an_engine_that_did_not_start_is_tried_again_by_the_next_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of its start three times, it was gone until the whole program was started again."""

    async def main() -> None:
        async with engine() as running:
            events: list[str] = []
            running.subscribe(lambda event, text: events.append(event))
            spawn = running._spawn

            def killed() -> engine_module.EngineProcess:
                process = spawn()
                process.end(signal.SIGKILL)
                return process

            monkeypatch.setattr(running, "_spawn", killed)
            os.kill(running.pid or 0, signal.SIGKILL)
            await until(lambda: events[-1:] == ["failed"])
            assert events == ["died"] * engine_module.MAX_FAILED_STARTS + ["failed"]
            monkeypatch.undo()
            assert await running.run(1, Fake(answer="next")) == "next" and running.alive

    run(main)


def test_a_lost_device_renews_the_process_before_the_next_job() -> None:
    async def main() -> None:
        async with engine() as running:
            events: list[tuple[str, str]] = []
            running.subscribe(lambda event, text: events.append((event, text)))
            pid = running.pid
            with pytest.raises(DeviceLostError, match="its state is lost"):
                await running.run(1, Fake(error="DeviceLostError", message="its state is lost"))
            assert await running.run(2, Fake(answer="next")) == "next"
            assert running.pid != pid
            assert [event for event, _ in events] == ["died", "restarted"]
            assert events[0][1] == "the device failed, and only a new process can use it"
            pid = running.pid
            with pytest.raises(DeviceError):
                await running.run(3, Fake(error="DeviceError"))
            assert await running.run(4, Fake(answer=4)) == 4
            assert running.pid == pid, "memory ran out: the process stays"

    run(main)


def test_death_while_idle_and_while_answering_in_shared_memory() -> None:
    async def main() -> None:
        async with engine() as running:
            assert running.pid is not None
            os.kill(running.pid, signal.SIGKILL)
            await until(lambda: not running.alive)
            with pytest.raises(EngineDiedError):
                await running.run(1, Fake(kill=signal.SIGSEGV, array=np.zeros(100_000)))
            assert await running.run(2, Fake(answer=3)) == 3

    run(main)


def test_cancel_while_warming_up() -> None:
    async def main() -> None:
        running = Engine()
        await running.start()
        assert not running.alive
        job = asyncio.ensure_future(running.run(1, Fake(answer=1)))
        await asyncio.sleep(0)
        running.cancel(1)
        with pytest.raises(CancelledError):
            await job
        await running.close()

    run(main)


@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_close_while_starting(delay: float) -> None:
    async def main() -> None:
        running = Engine()
        await running.start()
        await asyncio.sleep(delay)
        await running.close()
        await running.close()

    run(main)


def test_close_ends_a_running_job() -> None:
    async def main() -> None:
        async with engine() as running:
            job = asyncio.ensure_future(running.run(1, Fake(deaf=60)))
            await asyncio.sleep(0.1)
            await running.close()
            with pytest.raises(CancelledError):
                await job

    run(main)


def test_an_engine_that_never_starts_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "main", _ends_at_once)

    async def main() -> None:
        running = Engine()
        with pytest.raises(EngineDiedError, match="exit code 3"):
            await running.run(1, Fake(answer=1))
        assert not running.alive
        await running.close()

    run(main)


def _ends_at_once(connection: object, role: str) -> None:
    os._exit(3)


def test_one_job_at_a_time() -> None:
    async def main() -> None:
        running = InlineEngine()
        assert await running.run(1, Fake(answer=1)) == 1
        await running.close()
        async with engine() as real:
            job = asyncio.ensure_future(real.run(1, Fake(steps=10, pause=0.01)))
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="one at a time"):
                await real.run(2, Fake())
            await job

    run(main)


OWNER = """
import asyncio, sys
from workbench.engine.engine import Engine

async def main():
    engine = Engine()
    await engine.ready()
    print(engine.pid, flush=True)
    await asyncio.sleep(60)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_the_engine_ends_when_its_window_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    owner = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert owner.stdout is not None and owner.stderr is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "the engine outlived its window"
        time.sleep(0.01)
    assert "leaked" not in owner.stderr.read()
    owner.stdout.close()
    owner.stderr.close()


def test_idle_time_is_used_for_imports_and_a_job_need_not_wait_for_all() -> None:
    async def main() -> None:
        async with engine() as running:
            loaded = await running.run(1, Loaded(names=("transformers",)))
            assert loaded == (), "the first job had to wait for the imports"
            number, start = 1, time.monotonic()
            while loaded != engine_process.LOADED_WHEN_IDLE:
                assert time.monotonic() - start < 60
                await asyncio.sleep(0.1)
                number += 1
                loaded = await running.run(number, Loaded(names=engine_process.LOADED_WHEN_IDLE))

    run(main)


def test_a_job_that_still_waits_is_cancelled_at_once() -> None:
    channel = FakeChannel()
    worker = engine_process.Worker(channel, engine_process.ENGINE)  # type: ignore[arg-type]
    worker.receive(Envelope("run", 1, b""))
    worker.receive(Envelope("cancel", 1, b""))
    (kind, job, error) = channel.sent[0]
    assert (kind, job) == ("failed", 1) and isinstance(error, CancelledError)


class FakeChannel:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int, Any]] = []

    def send(self, kind: str, job: int = 0, body: Any = None) -> None:
        """Keep it."""
        self.sent.append((kind, job, body))
