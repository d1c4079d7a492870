"""Results that were measured already, one small file each, so that a killed run is not lost."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A folder of JSON files.  What decides a result is its key; the program's own code is not part of it, so
    ``fresh`` measures everything again."""

    folder: Path
    fresh: bool = False

    def path(self, *key: str) -> Path:
        """Return the file of a result."""
        digest = hashlib.sha256("\n".join(key).encode()).hexdigest()[:12]
        readable = "-".join(part for part in key[:3]).replace("/", "_").replace(" ", "_")
        return self.folder / "results" / f"{readable}-{digest}.json"

    def get(self, *key: str) -> dict[str, Any] | None:
        """Return the result of ``key``, None if it has to be measured."""
        path = self.path(*key)
        if self.fresh or not path.is_file():
            return None
        actual: dict[str, Any] = json.loads(path.read_text())
        return actual

    def put(self, result: dict[str, Any], *key: str) -> dict[str, Any]:
        """Store ``result`` at once and return it."""
        path = self.path(*key)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(result))
        os.replace(draft, path)
        return result
