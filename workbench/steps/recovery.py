"""The request that keeps a recovery copy of what was not saved yet; the engine writes it."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.engine.model_cache import ModelCache
from workbench.progress import Progress
from workbench.session.session import Session

TITLE = "Keep a recovery copy"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeepRecovery:
    """Write the recovery file of a session that belongs to ``path`` (None: never saved) into a window's ``folder``.

    The response is the file's path.
    """

    session: Session
    path: str | None
    folder: str

    @property
    def title(self) -> str:
        return TITLE

    def slim(self) -> KeepRecovery:
        """Everything is kept, so nothing is dropped."""
        return self

    def run(self, models: ModelCache, progress: Progress) -> str:
        """Write it, atomically; raises SessionError."""
        from pathlib import Path

        from workbench.session.autosave import write_recovery

        return str(write_recovery(self.session, None if self.path is None else Path(self.path), Path(self.folder)))
