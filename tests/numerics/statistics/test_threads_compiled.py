"""Counters that threads raise together, and waiting for one."""

from __future__ import annotations

import threading

import numpy as np

from workbench.numerics.statistics.threads_compiled import await_counter, next_turn, raise_counter
from workbench.numerics.statistics.tokens_compiled import compiled


@compiled
def take_all(counters: np.ndarray, taken: np.ndarray) -> None:
    """Take turns until there is none left."""
    number = next_turn(counters, 0)
    while number < taken.size:
        taken[number] += 1
        number = next_turn(counters, 0)


def test_every_turn_goes_to_one_thread() -> None:
    counters, taken = np.zeros(1, np.int64), np.zeros((3, 200_000), np.int8)
    threads = [threading.Thread(target=take_all, args=(counters, own)) for own in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(taken.sum(axis=0), np.ones(200_000))
    assert counters[0] == 200_000 + 3  # each saw the end once


def test_a_counter_is_returned_as_it_was_and_waited_for() -> None:
    counters = np.zeros(2, np.int64)
    assert (raise_counter(counters, 1, 5), raise_counter(counters, 1, 2)) == (0, 5)
    assert counters.tolist() == [0, 7]
    assert await_counter(counters, 1, 7) is True
    assert await_counter(counters, 1, 8) is False
