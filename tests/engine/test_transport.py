"""Messages: what goes through the pipe, what through shared memory, and what is left of it."""

from __future__ import annotations

import errno
import multiprocessing
import pickle
import threading
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.engine.processes import shared_files
from workbench.engine import transport
from workbench.engine.transport import LARGE, SHARE_FROM, Channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    """Both ends of a pipe in this process."""
    near, far = multiprocessing.Pipe()
    with near, far:
        yield Channel(near), Channel(far)


def crossed(ends: tuple[Channel, Channel], body: Any) -> Any:
    """Send ``body`` across and return what arrives."""
    sender = threading.Thread(target=ends[0].send, args=("kind", 7, body))
    sender.start()  # a pipe holds 64 KiB; the rest waits for the reader
    envelope = ends[1].receive()
    sender.join()
    assert (envelope.kind, envelope.job) == ("kind", 7)
    return envelope.open()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arrays=st.lists(
        hnp.arrays(
            st.sampled_from(["float32", "int64", "uint8", "bool"]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=40),
        ),
        max_size=6,
    )
)
def test_every_array_arrives_as_it_was(ends: tuple[Channel, Channel], arrays: list[np.ndarray]) -> None:
    arrays.append(np.arange(20_000, dtype=np.float32).reshape(100, 200)[:, ::2])
    arrays.append(np.asfortranarray(np.arange(30_000.0).reshape(100, 300)))
    back = crossed(ends, {"arrays": arrays})["arrays"]
    for before, after in zip(arrays, back, strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("sizes", "shared"),
    [([SHARE_FROM - 8], False), ([SHARE_FROM], True), ([LARGE - 8] * 100, False), ([LARGE] * 16, True)],
)
def test_only_large_buffers_use_shared_memory(
    ends: tuple[Channel, Channel], sizes: list[int], shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = transport._write
    arrays = [np.full(size // 8, number, dtype=np.int64) for number, size in enumerate(sizes)]
    files = []
    monkeypatch.setattr(transport, "_write", lambda file, views: files.append(file) or write(file, views))
    for before, after in zip(arrays, crossed(ends, arrays), strict=True):
        np.testing.assert_array_equal(before, after)
        assert after.flags.writeable and after.ctypes.data % 8 == 0
    assert bool(files) == shared


def test_writing_into_a_received_array_changes_nothing_else(ends: tuple[Channel, Channel]) -> None:
    array = np.zeros(SHARE_FROM, dtype=np.uint8)
    back = crossed(ends, array)
    back[:] = 1
    assert not array.any()


def test_a_dropped_message_frees_its_file(ends: tuple[Channel, Channel]) -> None:
    ends[0].send("kind", 1, np.zeros(SHARE_FROM, dtype=np.uint8))
    envelope = ends[1].receive()
    assert len(shared_files()) == 1
    envelope.drop()
    assert not shared_files()


def test_a_full_memory_file_system_sends_all_through_the_pipe(
    ends: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: IO[bytes], views: list[memoryview]) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(transport, "_write", full)
    array = np.arange(SHARE_FROM // 8, dtype=np.int64)
    np.testing.assert_array_equal(crossed(ends, array), array)
    assert not shared_files()


def test_large_arrays_are_not_copied_on_arrival(ends: tuple[Channel, Channel]) -> None:
    back = crossed(ends, np.zeros(10_000_000, dtype=np.uint8))
    assert not back.flags.owndata


def test_the_file_goes_with_the_last_array(ends: tuple[Channel, Channel]) -> None:
    back = crossed(ends, np.zeros(SHARE_FROM, dtype=np.uint8))
    assert len(shared_files()) == 1
    del back
    assert not shared_files()


def test_a_message_whose_file_was_not_sent_is_the_end_of_the_pipe(ends: tuple[Channel, Channel]) -> None:
    ends[0].connection.send_bytes(pickle.dumps(("kind", 1, b"", [], [(0, SHARE_FROM)])))
    ends[0].connection.close()
    with pytest.raises(EOFError):
        ends[1].receive()
