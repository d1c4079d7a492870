"""What a library makes of settings in an untrusted folder (tokenizers, processors): made in a limited process first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from workbench.errors import DataError, WorkbenchError, first_line
from workbench.limited import FORKS, MEMORY, SECONDS, limited

Made = TypeVar("Made")
BYTES_PER_SECOND, ROOM = 1e6, 100
"""Bytes of settings that are read in a second at least, and memory that each of them takes."""

PANIC = "PanicException"
"""What libraries of Rust raise where they meet what they did not expect: no Exception, and of no module's own."""


def tried(make: Callable[[], Made], what: str, folder: Path, nbytes: int = 0) -> Made:
    """Return what ``make`` returns where it ends in a limited process, which may read files of ``folder`` alone.

    ``nbytes``: the size of what it reads.  Raises DataError, which begins with ``what``, where it fails, crashes,
    hangs, or takes too much memory.
    """

    import torch  # noqa: F401 - here, not in the fork

    def work() -> list[np.ndarray]:
        in_one_thread()
        made(make, what)
        return []

    if FORKS:
        seconds, memory = SECONDS + nbytes / BYTES_PER_SECOND, MEMORY + ROOM * nbytes
        limited(work, what, DataError, seconds=seconds, memory=memory, reads=[folder])
    return made(make, what)


def in_one_thread() -> None:
    """Have torch compute in one thread in a limited process that is a fork: its other threads are not there."""
    import torch

    if FORKS:
        torch.set_num_threads(1)


def made(make: Callable[[], Made], what: str) -> Made:
    """Return what ``make`` returns; raises DataError, which begins with ``what``, where it fails."""
    try:
        return make()
    except (WorkbenchError, MemoryError):
        raise
    except BaseException as error:  # transformers raises nearly everything for settings that it does not understand
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        raise DataError(f"{what} cannot be used: {first_line(error)}") from error
