"""Bands of rows on several threads: every part once, errors told in order, nothing left running."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from workbench.numerics.bands import in_parallel, row_tiles


@pytest.fixture(autouse=True)
def two_threads() -> None:
    if torch.get_num_threads() < 2:
        torch.set_num_threads(2)


def test_every_part_is_worked_off_once_and_by_more_than_one_thread() -> None:
    received: list[tuple[int, str]] = []

    def task(part: slice) -> None:
        time.sleep(0.002)
        received.append((part.start, threading.current_thread().name))

    parts = list(row_tiles(40, 10, elements=10))
    in_parallel(task, parts)
    assert sorted(start for start, _ in received) == [part.start for part in parts]
    assert len({name for _, name in received}) > 1
    in_parallel(task, [])
    assert len(received) == 40


def test_the_first_bad_part_is_told_and_no_task_goes_on() -> None:
    running = []

    def task(part: slice) -> None:
        running.append(part)
        time.sleep(0.001)
        running.pop()
        if part.start >= 7:
            raise ValueError(f"part {part.start}")

    for _ in range(20):
        with pytest.raises(ValueError, match="part 7$"):
            in_parallel(task, row_tiles(200, 10, elements=10))
        assert not running


def test_a_task_may_work_in_bands_itself() -> None:
    counted: list[int] = []

    def outer(part: slice) -> None:
        in_parallel(lambda inner: counted.append(inner.start), row_tiles(5, 1, elements=1))

    in_parallel(outer, row_tiles(50, 1, elements=1))
    assert len(counted) == 250
