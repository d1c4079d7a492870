"""The user's cache folder: what can be computed again at any time and lies on the disk to save that time."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

FOLDER_VARIABLE = "WORKBENCH_CACHE_FOLDER"
"""The environment variable that names another folder; an empty text switches the cache off."""


def cache_folder(part: str) -> Path | None:
    """Return the folder of one ``part`` of the user's cache, None where the cache is switched off."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named is None:
        named = platformdirs.user_cache_dir("quantization-workbench", appauthor=False)
    return Path(named) / part if named else None
