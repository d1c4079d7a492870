"""Cutting a matrix into bands of rows that fit a core's cache, and working on them with all cores.

Rounding a 4096 x 4096 matrix band by band is several times as fast as whole-matrix operations, and a half-precision
weight is never copied whole to float32.

Plain threads that stay: kernels run without the interpreter's lock, and starting threads for each matrix costs as much
as rounding a small one.  numba's own thread pools are not used, as they must not be entered from two threads at once.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import torch

A = TypeVar("A", "np.ndarray", "torch.Tensor")

TILE_ELEMENTS, DEVICE_ELEMENTS = 1 << 18, 1 << 24
"""What a core's cache holds in float32, and what a device is given at once, whose kernels else end before the next one
starts: on an H200, the clip search of four blocks of a Llama took 79,000 tiles of the first size."""

_NAME = "workbench-bands"
_working = threading.local()


@cache
def _workers(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix=_NAME)


os.register_at_fork(after_in_child=_workers.cache_clear)  # a forked process has none of the threads


def in_parallel(task: Callable[[slice], None], parts: Iterable[slice], *, alone: bool = False) -> None:
    """Run ``task`` on every part, on as many threads as torch uses or ``alone``; the first bad part's error is raised.

    The calling thread is one of them: woken threads may all start on one core, and this one is on another already.
    A task may call this in turn: its parts are then worked off by its own thread.
    """
    import torch

    parts = list(parts)
    threads = min(torch.get_num_threads(), len(parts))
    if alone or threads < 2 or getattr(_working, "now", False):
        for part in parts:
            task(part)
        return
    queue = deque(enumerate(parts))
    errors: list[tuple[int, Exception]] = []

    def work() -> None:
        _working.now = True
        try:
            while queue:
                try:
                    order, part = queue.popleft()
                except IndexError:  # another thread took the last one
                    return
                try:
                    task(part)
                except Exception as error:
                    errors.append((order, error))
                    queue.clear()
        finally:
            _working.now = False

    others = [_workers(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        wait([other for other in others if not other.cancel()])  # one that has not started finds nothing left
    if errors:
        raise min(errors, key=lambda entry: entry[0])[1]


def of_band(member: A, part: slice) -> A:
    """Return the rows ``part`` of what has an entry for each row, or the one entry that serves them all."""
    return member[part] if member.shape[0] > 1 else member


def tile_elements(device: torch.device, on_cpu: int = TILE_ELEMENTS) -> int:
    """Return how many elements of a tensor on ``device`` are worked on at once."""
    return on_cpu if device.type == "cpu" else DEVICE_ELEMENTS


def row_tiles(rows: int, columns: int, multiple: int = 1, elements: int = TILE_ELEMENTS) -> Iterator[slice]:
    """Yield slices that cover ``range(rows)`` in bands of about ``elements`` elements.

    Every band but the last holds a multiple of ``multiple`` rows, so that no block of rows is cut.  An empty matrix
    has no bands.
    """
    if not columns:
        return
    band = max(elements // columns, 1)
    band = -(-band // multiple) * multiple
    for start in range(0, rows, band):
        yield slice(start, min(start + band, rows))
