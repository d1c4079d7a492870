"""Processes of this machine that run functions, each behind a pipe of its own.

``ProcessPoolExecutor`` has one pipe for the results of all its processes, and holds its other end open, too: where a
process is killed in the middle of a result, it waits for the rest for ever.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, ParamSpec, TypeVar

from workbench.engine.spawning import SafeContext
from workbench.errors import first_line

P = ParamSpec("P")
R = TypeVar("R")


class LocalExecutor(Executor):
    """Up to ``count`` processes, each started by the first call that it gets.

    A call raises BrokenExecutor where its process ends meanwhile; the next call gets a new process.
    """

    def __init__(self, count: int) -> None:
        self._context = SafeContext()
        self._calls: SimpleQueue[tuple[Future[Any], bytes] | None] = SimpleQueue()
        self._processes: list[_Process] = []
        self._lock = threading.Lock()
        self._closed = self._killed = False
        self._threads = [threading.Thread(target=self._serve, name=f"worker {k}", daemon=True) for k in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Call the function in the next process that is free; raises RuntimeError after ``shutdown``."""
        if self._closed:
            raise RuntimeError("the processes have been ended")
        future: Future[R] = Future()
        self._calls.put((future, pickle.dumps((function, args, kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End each process after the calls that were submitted; calls that have not begun may be cancelled."""
        self._closed = True
        if cancel_futures:
            with suppress(Empty):
                while call := self._calls.get_nowait():
                    call[0].cancel()
                    call[0].set_running_or_notify_cancel()  # tells those who wait for it
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def kill(self) -> None:
        """End the processes at once, in the middle of their calls."""
        with self._lock:
            self._killed = True
            for process in self._processes:
                process.kill()
        self.shutdown(cancel_futures=True)

    def _serve(self) -> None:
        """Hand calls to one process, and start another one where it has ended."""
        process: _Process | None = None
        while (call := self._calls.get()) is not None:
            future, request = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                process = process or self._start()
                future.set_result(process.call(request))
            except BrokenExecutor as error:
                future.set_exception(error)
                process = None
            except Exception as error:  # the function's own, and that of a result that cannot be read
                future.set_exception(error)
        if process is not None:
            process.end()

    def _start(self) -> _Process:
        with self._lock:
            if self._killed:
                raise BrokenExecutor("the processes have been ended")
            self._processes = [process for process in self._processes if process.runs]
            self._processes.append(_Process(self._context))
            return self._processes[-1]


class _Process:
    """One process, and this end of its pipe; the other end is open in the process only, so that its end is noticed."""

    def __init__(self, context: SafeContext) -> None:
        self._pipe, end = context.Pipe()
        with end:
            self._process = context.Process(target=_run, args=(end,), name="worker")
            self._process.start()

    @property
    def runs(self) -> bool:
        return self._process.is_alive()

    def call(self, request: bytes) -> object:
        """Return what the function returns, or raise what it raises, or BrokenExecutor."""
        try:
            self._pipe.send_bytes(request)
            answer = self._pipe.recv_bytes()
        except (EOFError, OSError):
            self.end()
            raise BrokenExecutor(f"a process ended with code {self._process.exitcode}") from None
        succeeded, result = pickle.loads(answer)
        if not succeeded:
            raise result
        return result

    def end(self) -> None:
        """Wait for its end: it waits for no call once the pipe is closed."""
        self._pipe.close()
        self._process.join()

    def kill(self) -> None:
        self._process.kill()


def _run(pipe: Connection) -> None:
    """Answer calls until the pipe is closed; Ctrl+C is left to the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="end", daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _answer(request: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(request)
        return pickle.dumps((True, function(*args, **kwargs)))
    except Exception as error:
        try:
            return pickle.dumps((False, error))
        except Exception:  # an error may hold anything
            return pickle.dumps((False, RuntimeError(first_line(error) or type(error).__name__)))


def _end_with_parent() -> NoReturn:
    if (parent := parent_process()) is not None:
        parent.join()
    os._exit(1)
