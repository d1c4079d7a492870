"""The user's cache folder: what can be computed again at any time and lies on the disk to save that time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs

FOLDER_VARIABLE = "WORKBENCH_CACHE_FOLDER"
"""The environment variable that names another folder; an empty text switches the cache off."""


def cache_folder(part: str) -> Path | None:
    """Return the folder of one ``part`` of the user's cache; None if it is switched off, or others may write there."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named is None:
        named = platformdirs.user_cache_dir("quantization-workbench", appauthor=False)
    folder = Path(named) / part
    return folder if named and all(map(_is_own, (folder.parent, folder))) else None


def _is_own(folder: Path) -> bool:
    try:
        status = folder.stat()
    except OSError:
        return True  # it is made when it is used
    return os.name == "nt" or (status.st_uid in (0, os.geteuid()) and not status.st_mode & stat.S_IWOTH)
