"""Engine processes in tests: one that is warm, and a check that none is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from workbench.engine.engine import Engine
from workbench.engine.transport import FOLDER


@contextlib.asynccontextmanager
async def engine() -> AsyncIterator[Engine]:
    """A warm engine, closed at the end."""
    running = Engine()
    try:
        await running.ready()
        yield running
    finally:
        await running.close()


def shared_files() -> set[str]:
    """The files of messages that this process holds: arrays that still live in one."""
    links = (Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))
    return {str(link) for link in links if link.is_symlink() and os.readlink(link).startswith(f"{FOLDER}/")}


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an async test; no thread and no process may be left."""
    threads = set(threading.enumerate())
    asyncio.run(main())
    assert set(threading.enumerate()) <= threads
    with pytest.raises(ChildProcessError):  # also: no zombie
        while True:
            child, _ = os.waitpid(-1, os.WNOHANG)
            if child == 0:  # the resource tracker of multiprocessing may live on; nothing else may
                assert _only_the_resource_tracker()
                raise ChildProcessError


def _only_the_resource_tracker() -> bool:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return all(b"resource_tracker" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children)


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> float:
    """Wait for ``condition``; returns the seconds it took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "it did not happen in time"
        await asyncio.sleep(0.002)
    return time.monotonic() - start
