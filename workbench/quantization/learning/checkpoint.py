"""A learning run on disk: plain arrays, and a key that says which run they belong to."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from workbench.atomic import replacing, require_writable
from workbench.content_kind import ARCHIVE
from workbench.errors import PlanError
from workbench.measurement.partial_results import pieces_of

_KEY = "key"

EVERY = 50
"""Steps after which a run is saved to a path; without one, time decides."""


class Checkpoint:
    """The file of the run that ``facts`` identify: whatever decides its bits.

    Without a path it lies in the cache folder until the step has ended: :mod:`workbench.measurement.partial_results`.
    """

    def __init__(self, path: str | Path | None, **facts: object) -> None:
        self._path = None if path is None else Path(path)
        text = json.dumps(facts, sort_keys=True, default=str)
        self._key = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
        self._pieces = pieces_of("learning", (), lambda: facts)

    def load(self) -> dict[str, np.ndarray] | None:
        """Return the saved state, None where there is none yet; PlanError for a damaged file or another run's, and
        where none could be saved."""
        if self._path is None:
            state: dict[str, np.ndarray] | None = self._pieces.load("state")
            if state is not None:
                self._pieces.goes_on("learning continues")
            return state
        require_writable(self._path, PlanError, "the checkpoint", ARCHIVE)
        if not self._path.exists():
            return None
        try:
            with np.load(self._path, allow_pickle=False) as stored:
                state = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise PlanError(f"the checkpoint {self._path} cannot be read: {error}; remove it to start again") from None
        if str(state.pop(_KEY, "")) != self._key:
            raise PlanError(
                f"the checkpoint {self._path} belongs to another run (model, plan, data or options differ); give "
                "another path, or remove it to start again"
            )
        return state

    def due(self, taken: int, steps: int) -> bool:
        """Return whether the state after ``taken`` of ``steps`` should be saved."""
        return self._pieces.due() if self._path is None else taken % EVERY == 0 or taken == steps

    def save(self, state: Mapping[str, np.ndarray]) -> None:
        """Write the state, atomically; PlanError where the disk is full or another file is there."""
        if self._path is None:
            self._pieces.save({"state": dict(state)})
            return
        with replacing(self._path, PlanError, "the checkpoint") as temporary, temporary.open("wb") as file:
            np.savez(file, **{**state, _KEY: np.array(self._key)})  # type: ignore[arg-type]
