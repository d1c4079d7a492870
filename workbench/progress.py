"""How a long computation reports its progress, and learns that it must stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Progress(Protocol):
    """Called at least once for each batch, layer or cell.

    ``fraction`` is the share done in [0, 1]; ``text`` what happens now; ``partial`` an optional intermediate result of
    the same type as the final one.  Raises CancelledError when the user has cancelled: let it pass.
    """

    def __call__(self, fraction: float, text: str, partial: object = None) -> None:
        """Report progress."""
        ...


def silent(fraction: float, text: str, partial: object = None) -> None:
    """Report to nobody."""


_heeded: ContextVar[Progress] = ContextVar("heeded", default=silent)


@contextmanager
def heeding(progress: Progress) -> Iterator[None]:
    """Let trials in a ``with`` block end when the user has cancelled: they report no share, so nothing is handed on."""
    token = _heeded.set(progress)
    try:
        yield
    finally:
        _heeded.reset(token)


def heed() -> None:
    """Raise CancelledError when the user has cancelled what is tried; asked before trials and modules in them."""
    _heeded.get()(0.0, "Estimating how long it takes")


def part_of(progress: Progress, start: float, stop: float) -> Progress:
    """Return a progress that fills the share from ``start`` to ``stop`` of ``progress``."""

    def report(fraction: float, text: str, partial: object = None) -> None:
        progress(start + (stop - start) * fraction, text, partial)

    return report


def rising(progress: Progress) -> Progress:
    """Return a progress whose fraction never falls: for work whose parts report ahead of the results they yield."""
    reached = 0.0

    def report(fraction: float, text: str, partial: object = None) -> None:
        nonlocal reached
        reached = max(reached, fraction)
        progress(reached, text, partial)

    return report


class Notes(tuple[str, ...]):
    """Sentences on what a step's result leaves out: they come as its last partial result."""

    __slots__ = ()
