"""A thread that works on the newest item and skips items that newer ones have replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

AGAIN_SECONDS = 2.0
"""Seconds after which a failed item is tried again, unless there is a newer one; at the end, at once."""

CLOSE_SECONDS = 5.0
"""Seconds that closing waits for work in progress: a disk may never answer."""


class Newest(Generic[T]):
    """Calls ``work`` with the newest item, ``replaced`` with each item that is skipped, ``failed`` with work's error.

    The thread starts with the first item.
    """

    def __init__(
        self, name: str, work: Callable[[T], None], *, failed: Callable[[Exception], None] = lambda error: None,
        replaced: Callable[[T], None] = lambda item: None,
    ) -> None:  # fmt: skip
        self._name, self._work, self._failed, self._replaced = name, work, failed, replaced
        self._changed = threading.Condition()  # what is next, or whether the end has come
        self._next: T | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def put(self, item: T) -> None:
        """Make ``item`` the next one; returns at once."""
        with self._changed:
            before, self._next = self._next, item
            self._changed.notify()
        if before is not None:
            self._replaced(before)
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name=self._name, daemon=True)
            self._thread.start()

    def close(self) -> bool:
        """Finish the last item and end the thread; returns whether it has ended."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
        return self._thread is None or not self._thread.is_alive()

    def _live(self) -> None:
        while (item := self._next_item()) is not None:
            last = self._closed
            try:
                self._work(item)
            except Exception as error:
                self._failed(error)
                if not last:
                    self._try_again(item)

    def _next_item(self) -> T | None:
        """Wait for the next item; None at the end."""
        with self._changed:
            while self._next is None and not self._closed:
                self._changed.wait()
            item, self._next = self._next, None
            return item

    def _try_again(self, item: T) -> None:
        """Make what failed the next item after a while, unless there is a newer one; at the end, at once."""
        with self._changed:
            if self._next is None and not self._closed:
                self._changed.wait(AGAIN_SECONDS)
            if self._next is None:
                self._next = item
