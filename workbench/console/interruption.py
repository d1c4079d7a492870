"""What an interrupted command has computed stays in the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.progress import Progress
from workbench.session.session import Session


class _Latest:
    """A Progress that holds on to the latest partial result on its way to another."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.partial: Any = None

    def __call__(self, fraction: float, text: str, partial: Any = None) -> None:
        if partial is not None:
            self.partial = partial
        self._progress(fraction, text, partial)


@contextmanager
def keeping(keep: Callable[[Any], Session] | None, out: str | Path, progress: Progress) -> Iterator[Progress]:
    """Give a Progress to a step; Ctrl-C saves to ``out`` what ``keep`` makes of the latest partial result.

    The same command goes on from there.
    """
    latest = _Latest(progress)
    try:
        yield latest
    except KeyboardInterrupt:
        if keep is not None and latest.partial is not None:
            keep(latest.partial).save(out)
        raise
