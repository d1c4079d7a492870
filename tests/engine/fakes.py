"""Requests that misbehave in every way a job can, importable by the engine process."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench import errors
from workbench.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fake:
    """Does what its fields say, in their order, and answers with ``answer``."""

    title: str = "fake"
    answer: Any = None
    steps: int = 0
    pause: float = 0.0
    partials: bool = False
    deaf: float = 0.0
    error: str = ""
    message: str = "on purpose"
    kill: int = 0
    array: np.ndarray | None = None
    unpicklable: bool = False
    unpicklable_partial: int = -1
    keeps_partial: bool = False
    aside: bool = False
    listed: bool = True
    touch: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def run(self, models: Any, progress: Progress) -> Any:
        """Do it."""
        if self.touch:
            with open(self.touch, "x"):
                pass
        for step in range(self.steps):
            partial: object = ("partial", step) if self.partials else None
            progress(step / self.steps, f"step {step}", (lambda: 0) if step == self.unpicklable_partial else partial)
            time.sleep(self.pause)
        if self.deaf:
            _sleep_without_reporting(self.deaf)
        if self.kill:
            os.kill(os.getpid(), self.kill)
            time.sleep(10)
        if self.error:
            raise _make(self.error, self.message)
        if self.array is not None:
            return {"array": self.array + 1, "pid": os.getpid(), "writable": self.array.flags.writeable}
        return (lambda: None) if self.unpicklable else self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class AskProcess:
    """Says what the engine process is like."""

    title: str = "ask"
    keeps_partial: bool = False
    aside: bool = False
    listed: bool = True

    def run(self, models: Any, progress: Progress) -> dict[str, Any]:
        """Look around."""
        import torch

        return {"pid": os.getpid(), "nice": os.nice(0), "threads": torch.get_num_threads()}


def _make(name: str, message: str) -> BaseException:
    if name == "TrustRequiredError":
        return errors.TrustRequiredError(message, "network.py")
    result = getattr(errors, name, None)
    if result is not None:
        return result(message)
    return {"MemoryError": MemoryError, "ValueError": ValueError, "SystemExit": SystemExit}[name](message)


def _sleep_without_reporting(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Says which of the modules the engine has imported."""

    names: tuple[str, ...]
    title: str = "loaded"
    keeps_partial: bool = False
    aside: bool = False
    listed: bool = True

    def run(self, models: Any, progress: Progress) -> tuple[str, ...]:
        """Look."""
        return tuple(name for name in self.names if name in sys.modules)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLock:
    """Makes a lock of processes as libraries do, and answers what of shared memory stands for it."""

    title: str = "hold a lock"
    aside: bool = False
    listed: bool = True

    def run(self, models: Any, progress: Progress) -> Any:
        """Make it."""
        before = set(os.listdir("/dev/shm"))
        lock = multiprocessing.RLock()
        name = str(getattr(lock, "_semlock").name)  # noqa: B009
        return {f"sem.{name.lstrip('/')}"} & (set(os.listdir("/dev/shm")) - before)
