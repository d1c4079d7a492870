"""What an interrupted command has computed stays in the session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.progress import Progress
from workbench.sensitivity.table import Sensitivity

if TYPE_CHECKING:
    from workbench.session.session import Session


class _Latest:
    """A Progress that holds on to the latest table on its way to another."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.table: Sensitivity | None = None

    def __call__(self, fraction: float, text: str, partial: Any = None) -> None:
        if isinstance(partial, Sensitivity):
            self.table = partial
        self._progress(fraction, text, partial)


@contextmanager
def keeping(session: Session, metric: str, out: str | Path, progress: Progress) -> Iterator[Progress]:
    """Give a Progress to a command that fills the table of ``metric``; Ctrl-C saves what it has filled to ``out``.

    The same command goes on from there.  A table that knows more already is not replaced.
    """
    latest = _Latest(progress)
    try:
        yield latest
    except KeyboardInterrupt:
        if latest.table is not None and _known(latest.table) > _known(session.sensitivities.get(metric)):
            replace(session, sensitivities={**session.sensitivities, metric: latest.table}).save(out)
        raise


def _known(table: Sensitivity | None) -> int:
    return 0 if table is None else int(np.isfinite(table.score).sum())
