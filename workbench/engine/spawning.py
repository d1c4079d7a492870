"""Processes that import nothing from the folder in which the program was started, where untrusted files may lie.

``multiprocessing`` starts them as ``python -c``, which looks for modules in the current folder first, until the child
has been told where its parent looks.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess

SAFE = "PYTHONSAFEPATH"
"""Set in the environment, this has Python leave the current folder out (3.11 and later)."""

_one_at_a_time = threading.Lock()


class SafeProcess(SpawnProcess):
    """A spawned process without the current folder among the places of modules."""

    def start(self) -> None:
        """Start it."""
        with _without_current_folder():
            super().start()

    def run(self) -> None:
        """Be it, with locks for forks (Linux): others have names in shared memory, left there where all is killed."""
        if sys.platform == "linux":
            multiprocessing.set_start_method("fork", force=True)
        super().run()


class SafeContext(SpawnContext):
    """What ``multiprocessing.get_context("spawn")`` is, with such processes."""

    Process = SafeProcess

    def __init__(self) -> None:
        super().__init__()
        if os.name != "nt":  # elsewhere the first lock or process starts one that clears up behind the others
            from multiprocessing.resource_tracker import ensure_running

            with _without_current_folder():
                ensure_running()


@contextmanager
def _without_current_folder() -> Iterator[None]:
    """Have Python leave the current folder out in processes that are started meanwhile."""
    with _one_at_a_time:
        before = os.environ.get(SAFE)
        os.environ[SAFE] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[SAFE]
            else:
                os.environ[SAFE] = before
