"""Work that tests wait for (compilers, processes), begun on every core while earlier tests run.

A test names it in the mark ``ahead(function, *arguments)`` and takes ``result(function, *arguments)``: what the call
returned or raised.  A call is made once in a run, by whoever comes first: a thread of the pool or the test itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Call:
    """One call and, once made, what it returned or raised."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Hashable, ...]) -> None:
        self._call: Callable[[], Any] | None = lambda: function(*arguments)
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: Exception | None = None

    def make(self) -> None:
        """Make the call, or wait for the thread that makes it."""
        with self._lock:
            if self._call is None:
                return
            try:
                self._value = self._call()
            except Exception as error:
                self._error = error
            self._call = None

    def result(self) -> Any:
        """Return what the call returned; raises what it raised."""
        self.make()
        if self._error is not None:
            raise self._error
        return self._value


_pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="ahead")
_calls: dict[tuple[Callable[..., Any], tuple[Hashable, ...]], Call] = {}


def _call(function: Callable[..., Any], arguments: tuple[Hashable, ...]) -> Call:
    return _calls.setdefault((function, arguments), Call(function, arguments))


def begin(function: Callable[..., Any], *arguments: Hashable) -> None:
    """Queue a call."""
    _pool.submit(_call(function, arguments).make)


def result(function: Callable[..., T], *arguments: Hashable) -> T:
    """Return what a call returned, making it now if no thread has; raises what it raised."""
    actual: T = _call(function, arguments).result()
    return actual


def drop() -> None:
    """Drop what nobody waits for any more: the run ends."""
    _pool.shutdown(wait=False, cancel_futures=True)
