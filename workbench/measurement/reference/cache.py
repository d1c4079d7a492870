"""Arrays that may be computed again at any time, on the disk: a folder of bounded size that is safe to read.

A file holds named arrays in the safetensors format (no code is run) and a checksum of them.  What is missing, damaged
or of other names is as if it were not there; a disk that is full or cannot be written costs nothing but time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workbench.atomic import replacing
from workbench.errors import SessionError

MOST_BYTES = 4 << 30
"""The most bytes of all files together; the folders that were used least recently are removed first."""

SHARE_OF_DISK = 4
"""One part in so many of the free disk may be filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayCache:
    """Arrays by key and number in ``folder`` (None: nothing is stored).

    ``agreed`` notes, while this object lives, of which networks and keys what lies there is what they give now.
    """

    folder: Path | None
    most_bytes: int = MOST_BYTES
    agreed: dict[str, bool] = field(default_factory=dict)

    def load(self, key: str, name: str) -> dict[str, np.ndarray] | None:
        """Return the arrays that were stored under ``key`` and ``name``; None unless they are there and whole.

        They are mapped, not copied: what is not looked at again takes no memory.
        """
        if self.folder is None:
            return None
        from safetensors import SafetensorError, safe_open

        path = self._path(key, name)
        try:
            with safe_open(path, framework="pt") as file:
                stated = (file.metadata() or {}).get("checksum")
                arrays = {each: file.get_tensor(each).numpy() for each in file.keys()}  # noqa: SIM118 (not a mapping)
            os.utime(path.parent)
        except (OSError, SafetensorError, ValueError, TypeError, KeyError):
            return None
        return arrays if stated == _checksum(arrays) else None

    def store(self, key: str, name: str, arrays: Mapping[str, np.ndarray]) -> bool:
        """Store arrays, unless there is no room for them; tell whether they were stored."""
        nbytes = sum(array.nbytes for array in arrays.values())
        if self.folder is None or not self._make_room(key, nbytes):
            return False
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        path = self._path(key, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with replacing(path, SessionError, "a model's outputs") as temporary:
                save_file(dict(arrays), temporary, {"checksum": _checksum(arrays)})
        except (OSError, SessionError, SafetensorError):  # the last of a disk that became full
            return False
        return True

    def discard(self, key: str) -> None:
        """Remove everything under ``key``."""
        if self.folder is not None:
            shutil.rmtree(self._path(key, "").parent, ignore_errors=True)

    def _path(self, key: str, name: str) -> Path:
        assert self.folder is not None
        return self.folder / hashlib.sha256(key.encode()).hexdigest()[:32] / f"{name}.safetensors"

    def _make_room(self, key: str, nbytes: int) -> bool:
        """Remove other keys' folders, oldest first, until ``nbytes`` more fit; False where they cannot."""
        assert self.folder is not None
        mine = self._path(key, "").parent
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if nbytes > shutil.disk_usage(self.folder).free // SHARE_OF_DISK:
                return False
            folders = sorted((each for each in self.folder.iterdir() if each.is_dir()), key=lambda f: f.stat().st_mtime)
        except OSError:
            return False
        sizes = {each: _size(each) for each in folders}
        for each in folders:
            if sum(sizes.values()) + nbytes <= self.most_bytes:
                break
            if each != mine:
                shutil.rmtree(each, ignore_errors=True)
                sizes.pop(each)
        return sum(sizes.values()) + nbytes <= self.most_bytes


NO_CACHE = ArrayCache(folder=None)
"""Stores nothing."""


def _size(folder: Path) -> int:
    total = 0
    with suppress(OSError):
        for file in folder.iterdir():
            total += file.stat().st_size
    return total


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """Return a checksum over names, types, shapes and bytes."""
    total = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), total)
        raw: Any = array.reshape(-1).view(np.uint8)
        total = zlib.crc32(raw, total)
    return f"{total:08x}"
