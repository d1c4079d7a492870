"""A learning run on disk: plain arrays, and a key that says which run they belong to."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import PlanError

_KEY = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a run is saved every ``every`` steps, and when it is cancelled."""

    path: Path
    key: str
    every: int = 50

    def load(self) -> dict[str, np.ndarray] | None:
        """Return the saved state, None where there is none yet; PlanError for a damaged file or another run's."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                state = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise PlanError(f"the checkpoint {self.path} cannot be read: {error}; remove it to start again") from None
        if str(state.pop(_KEY, "")) != self.key:
            raise PlanError(
                f"the checkpoint {self.path} belongs to another run (model, plan, data or options differ); give "
                "another path, or remove it to start again"
            )
        return state

    def save(self, state: Mapping[str, np.ndarray]) -> None:
        """Write the state, atomically."""
        beside = self.path.with_name(self.path.name + ".part")
        with beside.open("wb") as file:
            np.savez(file, **{**state, _KEY: np.array(self.key)})  # type: ignore[arg-type]
        os.replace(beside, self.path)


def run_key(**facts: Any) -> str:
    """Return ``sha256:`` over whatever decides a run's bits, in canonical form."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
