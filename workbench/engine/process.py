"""One life of the engine process, seen from the window: two threads that start it, read from it, write to it, bury it.

Nothing here runs on the window's thread except ``send`` (a queue) and ``terminate`` (a signal).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from workbench.engine import engine_process
from workbench.engine.transport import Channel, Envelope, SharedFolder

Message = tuple[str, int, Any]

LOOK_SECONDS = 0.04
"""How often the reading thread looks whether the process was killed, of which Linux tells late."""

EXIT_CODE = 49
"""Where ``/proc/PID/stat`` has the exit code, after the name and counted from 0 (proc_pid_stat(5), field 52)."""


class EngineProcess:
    """Spawns the engine; ``received`` and ``gone`` are called on the reading thread, ``gone`` exactly once, last.

    ``gone`` gets the reason as readable text; a killed process may take a moment longer to give its memory back.
    ``failed_to_send`` is called on the writing thread with the message's
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
        self._process: BaseProcess | None = None
        self._signal: int | None = None
        self._thread = threading.Thread(target=self._live, name="engine-reader", daemon=True)
        self.pid: int | None = None

    def start(self) -> None:
        """Spawn the process on the reading thread; returns at once."""
        self._thread.start()

    def send(self, kind: str, job: int = 0, body: Any = None) -> None:
        """Queue a message for the writing thread, which pickles it."""
        self._outgoing.put((kind, job, body))

    def end(self, how: int = signal.SIGTERM) -> None:
        """Signal the process to end; ``gone`` follows."""
        self._signal = how
        if self._process is not None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.kill(self.pid, how)

    def join(self) -> None:
        """Wait for the reading thread, which ends right after ``gone``."""
        self._thread.join()

    def _live(self) -> None:
        reason = "it could not be started"
        try:
            with SharedFolder() as folder:
                reason = self._run(folder)
        except Exception as error:
            reason = f"it could not be started ({error})"
        finally:
            self._gone(reason)
            if self._process is not None:
                _bury(self._process)

    def _run(self, folder: SharedFolder) -> str:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=engine_process.main, args=(theirs, str(folder.path)), name="workbench-engine", daemon=True
        )
        with ours:
            with theirs:
                process.start()
            self._process, self.pid = process, process.pid
            if self._signal is not None:
                self.end(self._signal)
            channel = Channel(ours, folder.path, "window")
            writer = threading.Thread(target=self._write, args=(channel,), name="engine-writer", daemon=True)
            writer.start()
            try:
                self._read(ours, channel, process)
            finally:
                code = _killed(process)
                reason = _told(_end(process) if code is None else code)
                self.pid = None
                self._outgoing.put(None)
                writer.join()
        return reason

    def _read(self, ours: Connection, channel: Channel, process: BaseProcess) -> None:
        """Read until the pipe ends or the process does (a child of its own could hold the pipe open)."""
        with _death_watch(process) as death, contextlib.suppress(EOFError, OSError):
            while True:
                ready = wait([ours, death], LOOK_SECONDS)
                if ours in ready:
                    self._received(channel.receive())
                elif ready or _killed(process) is not None:
                    return

    def _write(self, channel: Channel) -> None:
        while (message := self._outgoing.get()) is not None:
            try:
                channel.send(*message)
            except OSError:
                continue  # the process is gone; the reading thread tells
            except Exception as error:
                self._failed_to_send(message[1], error)


class _death_watch:
    """A descriptor that becomes readable when the process ends."""

    def __init__(self, process: BaseProcess) -> None:
        assert process.pid is not None
        self._own = hasattr(os, "pidfd_open")
        self._descriptor = os.pidfd_open(process.pid) if self._own else process.sentinel

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        if self._own:
            os.close(self._descriptor)


def _killed(process: BaseProcess) -> int | None:
    """Return the exit code of a process whose main thread was killed, None where it was not or cannot be known.

    Linux takes a tenth of a second for each gigabyte that a killed process held before it counts as ended; its main
    thread has ended long before.
    """
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    code = os.waitstatus_to_exitcode(int(fields[EXIT_CODE])) if fields[0] in ("Z", "X") else 0
    return code if code < 0 else None


def _end(process: BaseProcess) -> int:
    """Wait for the process, which is about to end, or is made to; returns its exit code."""
    process.join(1.0)
    if process.exitcode is None:
        process.kill()
        process.join()
    return process.exitcode or 0


def _bury(process: BaseProcess) -> None:
    """Wait until nothing of the process is left."""
    process.join()
    process.close()


def _told(code: int) -> str:
    """Return an exit code as a person reads it."""
    if code == -signal.SIGKILL:
        return "it was killed, by the system perhaps because memory ran out"
    if code < 0:
        return f"it was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"it ended with exit code {code}"
