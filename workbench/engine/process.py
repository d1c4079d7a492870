"""One life of the engine process, seen from the window: two threads, of which one starts it and reads, one writes.

Nothing here runs on the window's thread except ``send`` (a queue) and ``end`` (a signal).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import TypeVarTuple

from workbench.engine import engine_process as wire
from workbench.engine.failure import portable
from workbench.engine.spawning import SafeContext
from workbench.engine.transport import Channel, Envelope

Arguments = TypeVarTuple("Arguments")


class EngineProcess:
    """Spawns the engine; made on the thread of the asyncio loop, where the futures are set.

    ``ready`` is a line about the warm process, None where it ended before; ``ended`` says how it ended, after all
    messages.  ``received`` gets the messages about jobs on the reading thread; ``answered`` gets a job and the error if
    its request cannot be pickled.  ``retired`` says why the owner ends the process.
    """

    def __init__(
        self, received: Callable[[Envelope], None], answered: Callable[[int, object], None], role: str = wire.ENGINE
    ) -> None:
        self._role = role
        self._received, self._answered = received, answered
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[str | None] = self._loop.create_future()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self.retired = ""
        self.pid: int | None = None
        self._signal: int | None = None
        self._outgoing: queue.SimpleQueue[tuple[str, int, object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._live, name="engine-reader", daemon=True)
        self._thread.start()

    @property
    def warm(self) -> bool:
        """Whether the process waits for jobs or runs one."""
        return self.ready.done() and self.ready.result() is not None and not self.ended.done()

    def send(self, kind: str, job: int = 0, body: object = None) -> None:
        """Queue a message for the writing thread, which pickles it."""
        self._outgoing.put((kind, job, body))

    def end(self, how: int) -> None:
        """Signal the process to end; ``ended`` follows."""
        self._signal = how
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, how)

    def join(self) -> None:
        """Wait for the reading thread, which ends right after ``ended``."""
        self._thread.join()

    def post(self, call: Callable[[*Arguments], object], *arguments: *Arguments) -> None:
        """Make a call on the loop's thread; a loop that is closed needs none."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def _live(self) -> None:
        reason = "it could not be started"
        try:
            reason = self._run()
        except Exception as error:
            reason = f"{reason} ({error})"
        finally:
            self.post(self._finish, reason)

    def _finish(self, reason: str) -> None:
        self._greet(None)
        self.ended.set_result(reason)

    def _greet(self, text: str | None) -> None:
        if not self.ready.done():
            self.ready.set_result(text)

    def _run(self) -> str:
        context = SafeContext()
        ours, theirs = context.Pipe()
        name = f"workbench-{self._role}"
        process = context.Process(target=wire.main, args=(theirs, self._role), name=name)
        with ours:
            with theirs:
                process.start()
            self.pid = process.pid
            atexit.register(self.end, signal.SIGTERM)  # a daemon would end by itself, but may start no workers
            if self._signal is not None:
                self.end(self._signal)
            channel = Channel(ours)
            writer = threading.Thread(target=self._write, args=(channel,), name="engine-writer", daemon=True)
            writer.start()
            try:
                problem = self._read(channel, process)
            finally:
                self.pid = None
                atexit.unregister(self.end)
                reason = _how_it_ended(process)
                self._outgoing.put(None)
                writer.join()
        return f"{problem}; {reason}" if problem else reason

    def _read(self, channel: Channel, process: BaseProcess) -> str:
        """Read until the pipe ends or the process does: a child of its own could hold the pipe open.

        Returns why it could not warm up; empty where it could.
        """
        assert process.pid is not None
        problem = ""
        watch = os.pidfd_open(process.pid) if sys.platform == "linux" else process.sentinel
        try:
            with contextlib.suppress(EOFError, OSError):
                while channel.connection in wait([channel.connection, watch]):
                    envelope = channel.receive()
                    if envelope.kind == wire.READY:
                        self.post(self._greet, str(envelope.open()))
                    elif envelope.kind == wire.BROKEN:
                        problem = str(envelope.open())
                    else:
                        self._received(envelope)
        finally:
            if watch != process.sentinel:
                os.close(watch)
        return problem

    def _write(self, channel: Channel) -> None:
        while (message := self._outgoing.get()) is not None:
            try:
                channel.send(*message)
            except OSError:
                continue  # the process is gone, which the reading thread notices
            except Exception as error:
                self.post(self._answered, message[1], portable(error, "sending the request"))


def _how_it_ended(process: BaseProcess) -> str:
    """Wait for the process, which is about to end or is made to; return its exit code as readable text."""
    process.join(1.0)
    if process.exitcode is None:
        process.kill()
        process.join()
    code = process.exitcode or 0
    if code == -signal.SIGKILL:
        return "it was killed, by the system perhaps because memory ran out"
    if code == -getattr(signal, "SIGBUS", 0):
        return (
            "it read a part of a mapped file that no longer exists: the model's file was truncated, or the disk that "
            "holds it is gone or full; restore the file, and open the model again"
        )
    if code < 0:
        return f"it was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"it ended with exit code {code}"
