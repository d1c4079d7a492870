"""The limited process: arrays come out, nothing else does; what it may not do is one error."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.session.sessions import full_session
from workbench import limited as processes
from workbench.errors import DataError, PlanError
from workbench.limited import Pieces, in_fork, limited

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")


def test_arrays_come_out() -> None:
    arrays = [np.arange(6, dtype=np.int16).reshape(2, 3), np.array(3.5), np.zeros((0, 4), np.uint8)]
    for array, copy in zip(arrays, limited(lambda: arrays, "it", DataError), strict=True):
        assert copy.dtype == array.dtype and copy.shape == array.shape and np.array_equal(copy, array)


def test_arrays_in_pieces_come_out_between_others() -> None:
    whole, before = np.arange(1 << 20, dtype=np.int32).reshape(1 << 10, -1), np.arange(5.0)

    def work() -> Iterator[np.ndarray | Pieces]:
        yield before
        yield Pieces(whole.dtype, whole.shape, (row.tobytes() for row in whole))
        yield before

    first, copy, last = limited(work, "it", DataError)
    assert copy.dtype == whole.dtype and np.array_equal(copy, whole)
    assert np.array_equal(first, before) and np.array_equal(last, before)


@pytest.mark.parametrize("answer", [1 << 19, (1 << 20) + 8])
def test_what_it_hands_over_is_bounded(answer: int) -> None:
    """The file for it lies outside of the memory that the process may take."""
    with pytest.raises(DataError, match="it becomes more than .* the most for a file of its size"):
        limited(lambda: [np.zeros(1 << 20, np.uint8)], "it", DataError, answer=answer)
    (array,) = limited(lambda: [np.zeros(1 << 20, np.uint8)], "it", DataError, answer=(1 << 20) + 256)
    assert array.shape == (1 << 20,)


def test_no_more_is_allowed_than_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a terabyte takes no disk, and would allow forty."""
    monkeypatch.setattr("workbench.limited.free_memory", lambda: 1 << 20)
    monkeypatch.setattr("workbench.limited.MEMORY", 1 << 28)
    for work, answer in ((fills, None), (lambda: [np.zeros(1 << 28, np.uint8)] * 2, 1 << 42)):
        with pytest.raises(DataError, match="^it takes more than the 268 MB that are free; give less"):
            limited(work, "it", DataError, memory=1 << 42, answer=answer)
    with pytest.raises(DataError, match="too much memory .*malicious"):
        limited(fills, "it", DataError, memory=1 << 27)


def test_an_error_of_the_workbench_keeps_its_class_and_text() -> None:
    def work() -> list[np.ndarray]:
        raise PlanError("it is bad")

    with pytest.raises(PlanError, match="^it is bad$"):
        limited(work, "it", DataError)


def reads() -> list[np.ndarray]:
    return [np.array(len(Path("/etc/hosts").read_bytes()))]


def connects() -> list[np.ndarray]:
    socket.socket()
    return []


def crashes() -> list[np.ndarray]:
    os.abort()


def ends() -> list[np.ndarray]:
    os._exit(0)


def fills() -> list[np.ndarray]:
    return [np.ones(1 << 28)]


@pytest.mark.parametrize(("work", "words"), [
    (reads, "it cannot be read"), (connects, "it cannot be read"), (crashes, "crash"), (ends, "end"),
    (fills, "too much memory"),
])  # fmt: skip
def test_what_it_may_not_do_is_one_line(work: Callable[[], list[np.ndarray]], words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        limited(work, "it", DataError)
    assert "\n" not in str(caught.value)


def test_it_neither_makes_nor_moves_nor_removes_a_file_nor_signals(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    parent = os.getpid()
    acts: list[Callable[[], object]] = [
        lambda: (tmp_path / "b").mkdir(), lambda: os.rename(tmp_path / "a", tmp_path / "c"),
        lambda: os.unlink(tmp_path / "a"), lambda: os.symlink("x", tmp_path / "d"), lambda: os.kill(parent, 0),
    ]  # fmt: skip

    def work(act: Callable[[], object]) -> list[np.ndarray]:
        act()
        return []

    done = []
    for number, act in enumerate(acts):
        try:
            limited(lambda act=act: work(act), "it", DataError)  # type: ignore[misc]
            done.append(number)
        except DataError:
            pass
    assert os.listdir(tmp_path) == ["a"] or Path("/proc/version").read_text() < "Linux version 5.13"
    assert not done or done == [4]  # signals need a newer kernel


def test_a_user_with_less_memory_is_not_told_of_damage() -> None:
    """As ``ulimit -v`` has it: the limits of the process are the user's where those are lower."""
    process = os.fork()
    if not process:
        code = 1
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), used + (1 << 28)))
            (array,) = limited(lambda: [np.arange(3)], "it", DataError)
            code = 0 if array.tolist() == [0, 1, 2] else 1
        finally:
            os._exit(code)
    assert os.waitpid(process, 0)[1] == 0


LOW = """
import resource, sys
import numpy as np
from pathlib import Path
from workbench.errors import DataError, WorkbenchError
from workbench.limited import limited
from workbench.session.session import Session

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 13, 1 << 14))
(array,) = limited(lambda: [np.arange(3)], "it", DataError)
assert array.tolist() == [0, 1, 2]
for read in (
    lambda: limited(lambda: [np.zeros(1 << 20, np.uint8)], "it", DataError), lambda: Session.load(Path(sys.argv[1]))
):
    try:
        read()
    except WorkbenchError as error:
        print(error)
"""


def test_a_user_with_smaller_files_is_not_told_of_damage(tmp_path: Path) -> None:
    """As ``ulimit -f`` has it, which counts files in memory, too."""
    full_session().save(tmp_path / "s.qwb")
    ended = subprocess.run([sys.executable, "-c", LOW, str(tmp_path / "s.qwb")], capture_output=True, text=True)
    lines, end = (
        ended.stdout.splitlines(),
        "becomes more than the 16.4 kB that a file may hold here (ulimit -f); allow more",
    )
    assert ended.returncode == 0 and [line.endswith(end) for line in lines] == [True, True], ended


def test_a_hang_ends() -> None:
    start = time.monotonic()

    def spins() -> list[np.ndarray]:
        while True:
            pass

    with pytest.raises(DataError, match="more than 0.5 s"):
        limited(spins, "it", DataError, seconds=0.5)
    assert time.monotonic() - start < 20


def test_work_that_sleeps_for_ever_is_ended_soon() -> None:
    def work() -> list[np.ndarray]:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()  # as in a fork of a process whose threads held locks
        return []

    start = time.monotonic()
    with pytest.raises(DataError, match="takes more than"):
        limited(work, "it", DataError)
    assert time.monotonic() - start < 40


def test_an_optional_package_is_missing_whatever_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of modules that has changed has to be listed again, which the process cannot."""
    monkeypatch.syspath_prepend(tmp_path)

    def work() -> list[np.ndarray]:
        try:
            import a_package_that_nobody_has  # type: ignore[import-not-found]  # noqa: F401
        except ImportError:
            return [np.array(1)]
        return [np.array(0)]

    assert limited(work, "it", DataError) == [1]


@pytest.mark.parametrize(("state", "seconds", "code"), [("R", 1.5, 7), ("D", 60, None)])
def test_who_waits_for_a_busy_processor_does_not_hang(
    monkeypatch: pytest.MonkeyPatch, state: str, seconds: float, code: int | None
) -> None:
    """On a machine with ten times more work than processors a whole session was called damaged after 80 seconds."""
    monkeypatch.setattr(processes, "WAIT", 0.0)
    monkeypatch.setattr(processes, "_activity", lambda process: (state, "0 0"))
    assert in_fork(lambda: (time.sleep(seconds), os._exit(7)), 0.1) == code
