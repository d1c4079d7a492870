"""Processes behind an executor: results, errors, and processes that end at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, CancelledError, wait
from multiprocessing.connection import Connection

import psutil
import pytest

from workbench.engine.local_executor import LocalExecutor
from workbench.errors import DataError

TIMEOUT = 60


@pytest.fixture
def executor():
    executor = LocalExecutor(2)
    yield executor
    executor.kill()
    assert not [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]


def raise_error(kind: type[Exception]):
    raise kind("a file is missing")


class HoldsItsProcess(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.writer = open(os.devnull, "w")  # noqa: SIM115 - a file cannot be pickled


def end_in_the_middle_of_the_result() -> bytes:
    def half(self: Connection, data: bytes) -> None:
        os.write(self.fileno(), data[: len(data) // 2])
        os._exit(3)

    Connection._send = half
    return bytes(10_000)


def test_calls_run_in_processes_and_their_results_come_back(executor):
    futures = [executor.submit(pow, number, exp=2) for number in range(20)]
    assert [future.result(TIMEOUT) for future in futures] == [number**2 for number in range(20)]
    assert executor.submit(os.getpid).result(TIMEOUT) != os.getpid()


def test_errors_come_back_even_those_that_cannot_be_sent(executor):
    with pytest.raises(DataError, match="a file is missing"):
        executor.submit(raise_error, DataError).result(TIMEOUT)
    with pytest.raises(RuntimeError, match="a file is missing"):
        executor.submit(raise_error, HoldsItsProcess).result(TIMEOUT)


def test_a_process_that_ends_in_the_middle_of_its_result_is_replaced(executor):
    with pytest.raises(BrokenExecutor, match="ended with code 3"):
        executor.submit(end_in_the_middle_of_the_result).result(TIMEOUT)
    assert [executor.submit(abs, -number).result(TIMEOUT) for number in range(5)] == list(range(5))


def test_processes_end_at_once_in_the_middle_of_their_calls(executor):
    futures = [executor.submit(time.sleep, 600) for _ in range(8)]
    while not futures[0].running():
        time.sleep(0.01)
    executor.kill()
    assert wait(futures, TIMEOUT).not_done == set()
    for future in futures:
        with pytest.raises((BrokenExecutor, CancelledError)):
            future.result()
    with pytest.raises(RuntimeError, match="have been ended"):
        executor.submit(abs, 1)


def test_submitted_calls_are_finished_before_the_processes_end():
    with LocalExecutor(1) as executor:
        futures = [executor.submit(abs, -number) for number in range(5)]
    assert [future.result(0) for future in futures] == list(range(5))


PROGRAM = """
import os, time
from workbench.engine.local_executor import LocalExecutor
if __name__ == "__main__":
    executor = LocalExecutor(1)
    print(executor.submit(os.getpid).result(), flush=True)
    executor.submit(time.sleep, 600).result()
"""


def test_a_process_ends_with_the_one_that_started_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as parent:
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    worker.wait(TIMEOUT)
