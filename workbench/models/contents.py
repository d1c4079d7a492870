"""What all the bytes of a model tell: their hash, and which tensors hold NaN or infinity.

Reading 16 GB takes half a minute.  What large files told is kept in the user's cache under what identifies them to the
system (device, inode, size, times of change), as git does for its index, so that the next command need not read them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.atomic import replacing
from workbench.cache import cache_folder
from workbench.errors import ModelError

LARGE = 1 << 28
"""Files of fewer bytes together are read each time, which takes less than half a second."""

SETTLED = 2.0
"""Seconds after a change in which another one may bear the same time; nothing is kept of such files."""

VERSION = 1
"""Of how tensors are hashed."""

MOST_ENTRIES = 1000
"""Entries of a few hundred bytes; the oldest are removed first."""

HASH = re.compile(r"sha256:[0-9a-f]{64}")

Identity = tuple[tuple[str, int, int, int, int, int], ...]
"""The path, device, inode, size, and times of the last change of contents and of the entry, of every file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """``fingerprint``: ``sha256:`` and the hash over all tensors; ``non_finite``: the tensors with NaN or infinity.

    The fingerprint is empty where nothing was read.
    """

    fingerprint: str
    non_finite: tuple[str, ...] = ()


def are_large(files: Sequence[Path]) -> bool:
    """Return whether reading ``files`` takes so long that what they tell is kept."""
    return sum(file.stat().st_size for file in files) >= LARGE


def identity(files: Sequence[Path]) -> Identity | None:
    """Return what identifies ``files``; None where they are small, gone, or changed a moment ago."""
    try:
        if not are_large(files):
            return None
        stats = [(str(file.resolve()), file.stat()) for file in files]
    except OSError:
        return None
    if max(max(stat.st_mtime, stat.st_ctime) for _, stat in stats) > time.time() - SETTLED:
        return None
    return tuple(
        (name, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for name, stat in stats
    )


def known(files: Identity | None, tensors: Collection[str]) -> Contents | None:
    """Return what the files told before of the ``tensors``; None where nothing whole is kept of them."""
    place = _entry(files, tensors)
    if place is None:
        return None
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        fingerprint, bad = stored["fingerprint"], stored["non_finite"]
        if HASH.fullmatch(fingerprint) and isinstance(bad, list) and {*bad} <= {*tensors}:
            return Contents(fingerprint=fingerprint, non_finite=tuple(bad))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def keep(files: Identity | None, tensors: Collection[str], contents: Contents) -> None:
    """Keep what the files told; a folder that cannot be written costs nothing but time."""
    place = _entry(files, tensors)
    if place is None:
        return
    text = json.dumps({"fingerprint": contents.fingerprint, "non_finite": contents.non_finite})
    with suppress(OSError, ModelError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacing(place, ModelError, "what is known of a model's files") as temporary:
            temporary.write_text(text, encoding="utf-8")
        entries = sorted(place.parent.glob("*.json"), key=os.path.getmtime)
        for old in entries[: max(len(entries) - MOST_ENTRIES, 0)]:
            old.unlink(missing_ok=True)


def _entry(files: Identity | None, tensors: Collection[str]) -> Path | None:
    folder = cache_folder("contents")
    if folder is None or files is None:
        return None
    return folder / f"{hashlib.sha256(repr((VERSION, files, sorted(tensors))).encode()).hexdigest()[:32]}.json"
