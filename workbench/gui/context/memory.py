"""How much memory a process holds."""

from __future__ import annotations

import os
from pathlib import Path


def resident(pid: int | None) -> int | None:
    """Return the resident bytes of a process, None where they cannot be read."""
    if pid is None:
        return None
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
