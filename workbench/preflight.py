"""What a step will take: seconds, memory, disk; said before it starts, compared with what it took.

Importing this loads no torch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from workbench.errors import MemoryLimitError
from workbench.memory import LEFT_ON_DISK, anonymous_memory, available_memory, limit, size_text

CLOCK: Callable[[], float] = time.perf_counter
"""What seconds are taken from; on a busy machine a benchmark of one thread takes those of the processor."""


@dataclass(slots=True)
class Compilation:
    """Seconds that this process has spent on compiling kernels, which a machine does once for each."""

    seconds: float = 0.0


COMPILATION = Compilation()


def clock() -> float:
    """Return the time in seconds since any moment, compilation left out: short trials speak for long runs."""
    return CLOCK() - COMPILATION.seconds


SHORT = 3.0
"""Nobody waits for an estimate of steps of fewer seconds."""

SAMPLING_SECONDS = 0.005
"""How often memory is looked at where a peak is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a step is expected to take, and afterwards what it took.

    ``memory`` is the most anonymous memory of the process in bytes, ``least`` what it cannot do without, however much
    lies on the disk; ``disk`` the bytes that it writes at ``folder``; each of ``samples`` takes ``sample_seconds``.
    ``took`` (seconds), ``peak`` (bytes) and the seconds of ``compiling``, which neither number of seconds counts, are
    known when it has ended.
    """

    seconds: float
    memory: int
    disk: int = 0
    least: int = 0
    folder: str = ""
    samples: int = 0
    sample_seconds: float = 0.0
    took: float | None = None
    peak: int | None = None
    compiling: float = 0.0

    @property
    def text(self) -> str:
        """The expectation in a few words: ``about 33 s, 1.5 GB of memory, 40 MB on the disk``."""
        disk = f", {size_text(self.disk)} on the disk" if self.disk else ""
        return f"about {duration(self.seconds)}, {size_text(self.memory)} of memory{disk}"

    @property
    def outcome(self) -> str:
        """What it took beside what was expected; empty before the end."""
        if self.took is None or self.peak is None:
            return ""
        compiling = f", and {duration(self.compiling)} to compile kernels, once on a machine"
        return (
            f"took {duration(self.took)} and {size_text(self.peak)} of memory "
            f"({duration(self.seconds)} and {size_text(self.memory)} were estimated)"
            f"{compiling if self.compiling >= 1 else ''}"
        )

    @property
    def is_short(self) -> bool:
        """Whether the step takes too little time to speak of."""
        return max(self.seconds, self.took or 0.0) < SHORT

    @property
    def is_count(self) -> bool:
        """Whether it says no more than how many samples there are: the step was too short to be tried."""
        return not self.memory

    def plus(self, seconds: float) -> Estimate:
        """Return the estimate of a step that takes so much longer."""
        return replace(self, seconds=self.seconds + seconds)

    def on(self, samples: int) -> Estimate:
        """Return the estimate of a run on so many samples."""
        return replace(self.plus((samples - self.samples) * self.sample_seconds), samples=samples)

    def require(self, title: str) -> None:
        """Raise MemoryLimitError, with the numbers, where the memory or the disk cannot hold what is needed."""
        allowed = limit() or anonymous_memory() + available_memory()
        if self.least > allowed:
            how = "are allowed (--memory)" if limit() else "are free"
            raise MemoryLimitError(
                f"{title} needs at least {size_text(self.least)} of memory, one sample at a time and with all that can "
                f"lie on the disk there, and {size_text(allowed)} {how}; allow more, or use shorter samples (--window)"
            )
        place = Path(self.folder or ".").absolute()
        there = next((each for each in (place, *place.parents) if each.is_dir()), place)
        free = int(psutil.disk_usage(str(there)).free)
        if self.disk and self.disk + LEFT_ON_DISK > free:
            raise MemoryLimitError(
                f"{title} writes about {size_text(self.disk)} at {there}, where {size_text(free)} are free; free some "
                "of it, or name a folder on another disk"
            )


def duration(seconds: float) -> str:
    """Return a time for people: ``0.4 s``, ``33 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass(slots=True)
class Usage:
    """Wall seconds, and the most anonymous memory in bytes, of a block of code; both grow until it ends.

    ``seconds`` leaves out those of ``compiling``.
    """

    before: int
    seconds: float = 0.0
    peak: int = 0
    compiling: float = 0.0


@contextmanager
def measured() -> Iterator[Usage]:
    """Measure what is done in a ``with`` block."""
    spent, over = Usage(anonymous_memory()), threading.Event()
    spent.peak = spent.before

    def watch() -> None:
        while not over.wait(SAMPLING_SECONDS):
            spent.peak = max(spent.peak, anonymous_memory())

    watcher = threading.Thread(target=watch, name="memory", daemon=True)
    start, compiling = clock(), COMPILATION.seconds
    watcher.start()
    try:
        yield spent
    finally:
        spent.seconds, spent.compiling = clock() - start, COMPILATION.seconds - compiling
        over.set()
        watcher.join()
        spent.peak = max(spent.peak, anonymous_memory())
