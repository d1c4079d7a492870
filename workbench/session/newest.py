"""A thread that does one thing with the newest of what it is given, and leaves out what newer things have replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

AGAIN_SECONDS = 2.0
"""After this time what failed is tried again, unless there is something newer."""

CLOSE_SECONDS = 5.0
"""How long closing waits for what is under way: a disk may never answer."""


class Newest(Generic[T]):
    """Does ``work`` with the newest thing; ``replaced`` gets each that is left out, ``failed`` why ``work`` failed.

    The thread starts with the first thing.
    """

    def __init__(
        self, name: str, work: Callable[[T], None], *, failed: Callable[[Exception], None] = lambda error: None,
        replaced: Callable[[T], None] = lambda thing: None,
    ) -> None:  # fmt: skip
        self._name, self._work, self._failed, self._replaced = name, work, failed, replaced
        self._news = threading.Condition()  # of what is next, and of the end
        self._next: T | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def put(self, thing: T) -> None:
        """Have the work done with ``thing``; returns at once."""
        with self._news:
            before, self._next = self._next, thing
            self._news.notify()
        if before is not None:
            self._replaced(before)
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name=self._name, daemon=True)
            self._thread.start()

    def close(self) -> bool:
        """Do what is due, and end the thread; returns whether it has ended."""
        with self._news:
            self._closed = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
        return self._thread is None or not self._thread.is_alive()

    def _live(self) -> None:
        while (thing := self._taken()) is not None:
            try:
                self._work(thing)
            except Exception as error:
                self._failed(error)
                self._try_again(thing)

    def _taken(self) -> T | None:
        """Wait for the next thing; None at the end."""
        with self._news:
            while self._next is None and not self._closed:
                self._news.wait()
            thing, self._next = self._next, None
            return thing

    def _try_again(self, thing: T) -> None:
        """Make what failed the next thing after a while, unless there is a newer one or the end has come."""
        with self._news:
            if self._next is None and not self._closed:
                self._news.wait(AGAIN_SECONDS)
            if self._next is None and not self._closed:
                self._next = thing
