"""One life of the engine process, seen from the window: two threads, of which one starts it and reads, one writes.

Nothing here runs on the window's thread except ``send`` (a queue) and ``end`` (a signal).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from workbench.engine import engine_process
from workbench.engine.transport import Channel, Envelope, SharedFolder

Message = tuple[str, int, object]


class EngineProcess:
    """Spawns the engine; ``received`` and ``gone`` are called on the reading thread, ``gone`` exactly once, last.

    ``gone`` gets the reason as readable text.  ``failed_to_send`` is called on the writing thread with the message's
    job and the exception if a message cannot be pickled.
    """

    def __init__(
        self,
        received: Callable[[Envelope], None],
        gone: Callable[[str], None],
        failed_to_send: Callable[[int, Exception], None],
    ) -> None:
        self._received = received
        self._gone = gone
        self._failed_to_send = failed_to_send
        self._outgoing: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._signal: int | None = None
        self._thread = threading.Thread(target=self._live, name="engine-reader", daemon=True)
        self.pid: int | None = None

    def start(self) -> None:
        """Spawn the process on the reading thread; returns at once."""
        self._thread.start()

    def send(self, kind: str, job: int = 0, body: object = None) -> None:
        """Queue a message for the writing thread, which pickles it."""
        self._outgoing.put((kind, job, body))

    def end(self, how: int = signal.SIGTERM) -> None:
        """Signal the process to end; ``gone`` follows."""
        self._signal = how
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, how)

    def join(self) -> None:
        """Wait for the reading thread, which ends right after ``gone``."""
        self._thread.join()

    def _live(self) -> None:
        reason = "it could not be started"
        try:
            with SharedFolder() as folder:
                reason = self._run(folder.path)
        except Exception as error:
            reason = f"it could not be started ({error})"
        finally:
            self._gone(reason)

    def _run(self, folder: Path) -> str:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=engine_process.main, args=(theirs, str(folder)), name="workbench-engine", daemon=True
        )
        with ours:
            with theirs:
                process.start()
            self.pid = process.pid
            if self._signal is not None:
                self.end(self._signal)
            channel = Channel(ours, folder, "window")
            writer = threading.Thread(target=self._write, args=(channel,), name="engine-writer", daemon=True)
            writer.start()
            try:
                self._read(ours, channel, process)
            finally:
                self.pid = None
                reason = _ended(process)
                self._outgoing.put(None)
                writer.join()
        process.close()
        return reason

    def _read(self, ours: Connection, channel: Channel, process: BaseProcess) -> None:
        """Read until the pipe ends or the process does: a child of its own could hold the pipe open."""
        assert process.pid is not None
        watch = os.pidfd_open(process.pid) if sys.platform == "linux" else process.sentinel
        try:
            with contextlib.suppress(EOFError, OSError):
                while ours in wait([ours, watch]):
                    self._received(channel.receive())
        finally:
            if watch != process.sentinel:
                os.close(watch)

    def _write(self, channel: Channel) -> None:
        while (message := self._outgoing.get()) is not None:
            try:
                channel.send(*message)
            except OSError:
                continue  # the process is gone, which the reading thread notices
            except Exception as error:
                self._failed_to_send(message[1], error)


def _ended(process: BaseProcess) -> str:
    """Wait for the process, which is about to end or is made to; return its exit code as readable text."""
    process.join(1.0)
    if process.exitcode is None:
        process.kill()
        process.join()
    code = process.exitcode or 0
    if code == -signal.SIGKILL:
        return "it was killed, by the system perhaps because memory ran out"
    if code < 0:
        return f"it was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"it ended with exit code {code}"
