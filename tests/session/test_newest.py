"""The newest item is worked on; what fails is tried again until a newer one comes; closing finishes the last one."""

from __future__ import annotations

import threading

import pytest

from workbench.session import newest
from workbench.session.newest import Newest


def test_what_is_replaced_is_left_out_and_the_last_is_done() -> None:
    begun, go_on, done, left = threading.Event(), threading.Event(), list[int](), list[int]()

    def work(number: int) -> None:
        begun.set()
        assert go_on.wait(20)
        done.append(number)

    lane = Newest[int]("numbers", work, replaced=left.append)
    lane.put(1)
    assert begun.wait(20)
    for number in (2, 3, 4):
        lane.put(number)
    go_on.set()
    assert lane.close() and done == [1, 4] and left == [2, 3]


@pytest.mark.parametrize("newer", [False, True])
def test_what_fails_is_tried_again_unless_there_is_something_newer(
    monkeypatch: pytest.MonkeyPatch, newer: bool
) -> None:
    monkeypatch.setattr(newest, "AGAIN_SECONDS", 20.0 if newer else 0.01)
    failed, done, tried = list[Exception](), threading.Event(), list[int]()

    def work(number: int) -> None:
        tried.append(number)
        if len(tried) == 1:
            if newer:
                lane.put(2)
            raise OSError("full")
        done.set()

    lane = Newest[int]("numbers", work, failed=failed.append)
    lane.put(1)
    assert done.wait(20) and lane.close()
    assert tried == [1, 2 if newer else 1] and [str(error) for error in failed] == ["full"]


def test_a_lane_that_was_never_used_closes() -> None:
    assert Newest[int]("numbers", print).close()


def test_closing_ends_what_fails_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest, "AGAIN_SECONDS", 60.0)
    failed = threading.Event()

    def work(number: int) -> None:
        raise OSError("full")

    lane = Newest[int]("numbers", work, failed=lambda error: failed.set())
    lane.put(1)
    assert failed.wait(20) and lane.close()


def test_closing_tries_once_more_what_failed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest, "AGAIN_SECONDS", 60.0)
    failed, tried = threading.Event(), list[int]()

    def work(number: int) -> None:
        tried.append(number)
        raise OSError("full")

    lane = Newest[int]("numbers", work, failed=lambda error: failed.set())
    lane.put(1)
    assert failed.wait(20) and lane.close() and tried == [1, 1]
