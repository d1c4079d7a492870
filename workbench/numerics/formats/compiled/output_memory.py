"""Memory for decoded matrices, reused from results that were released.

A system clears every page before it hands it out, which costs twice the time that decoding takes.  Going through a
model layer by layer, each result can have the memory of one that nobody holds any more.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from workbench import memory as process_memory

Array = Any

SMALLEST = 1 << 22
"""Bytes of a result below which the allocator keeps memory itself."""

CAPACITY = 1 << 28
"""The most bytes that wait for a next result."""

_LINE = 64

_waiting: dict[int, Array] = {}
"""Released memory by its id, oldest first.  Single operations on a dict are atomic: releasing may happen at any time,
on any thread, and takes no lock."""


process_memory.holders.append(_waiting.clear)


def uninitialised(rows: int, columns: int) -> Array:
    """Return float32 ``[rows, columns]`` on a cache line's edge, without values.

    The memory is handed out again only after the array and all that views it (slices, tensors) are gone: views of a
    view keep the first one alive, and it is the first one whose end is watched.
    """
    size = rows * columns
    if size * 4 < SMALLEST:
        return np.empty((rows, columns), np.float32)
    memory: Array = _taken(size)
    if memory is None:
        memory = np.empty(size + _LINE // 4, np.float32)  # numpy asks for huge pages
    lent = np.frombuffer(memoryview(memory), np.float32, count=size, offset=-memory.ctypes.data % _LINE)
    weakref.finalize(lent, _give_back, memory).atexit = False
    return lent.reshape(rows, columns)


def _taken(size: int) -> Array:
    """Return waiting memory of about ``size`` float32 numbers, None if there is none."""
    for key, memory in list(_waiting.items()):
        if size + _LINE // 4 <= memory.size <= size + size // 4 + _LINE // 4:
            block = _waiting.pop(key, None)
            if block is not None:
                return block
    return None


def _give_back(memory: Array) -> None:
    _waiting[id(memory)] = memory
    for key, _ in list(_waiting.items()):
        if sum(entry.nbytes for entry in list(_waiting.values())) <= CAPACITY:
            return
        _waiting.pop(key, None)
