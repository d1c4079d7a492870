"""How a long computation reports its progress, and learns that it must stop."""

from __future__ import annotations

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
