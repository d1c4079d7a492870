"""Background threads of a paced process pause between bursts; the main thread and other processes never do."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from workbench import pacing


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The rests that were taken, in seconds; the clock moves by 1 ms with every look at it."""
    calls: list[float] = []
    clock = iter(tick / 1000 for tick in range(100_000))
    monkeypatch.setattr(pacing.time, "sleep", calls.append)
    monkeypatch.setattr(pacing.time, "perf_counter", lambda: next(clock))
    yield calls
    pacing.pace_this_process(False)


def on_a_thread(times: int) -> None:
    """Call ``pause`` on a new thread."""
    thread = threading.Thread(target=lambda: [pacing.pause() for _ in range(times)])
    thread.start()
    thread.join()


def test_only_a_paced_process_rests(rests: list[float]) -> None:
    on_a_thread(50)
    assert not rests
    pacing.pace_this_process()
    on_a_thread(50)
    assert set(rests) == {pacing.PAUSE_SECONDS}


def test_a_burst_lies_between_two_rests(rests: list[float]) -> None:
    pacing.pace_this_process()
    on_a_thread(301)
    looks = round(pacing.BURST_SECONDS * 1000) + 1  # the clock is read once in each call and once more after a pause
    assert abs(len(rests) - 301 / looks) < 301 / looks / 2


def test_the_main_thread_never_rests(rests: list[float]) -> None:
    pacing.pace_this_process()
    for _ in range(50):
        pacing.pause()
    assert not rests
