"""Reads files and nothing else: a pipe or a device among a stranger's files would keep the reader waiting for ever."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def opened(path: Path, *, pipe: bool = False) -> BinaryIO:
    """Open a file for reading; raises OSError, for folders, devices and pipes too.

    With ``pipe``, one that somebody writes into is as good, as ``<(command)`` makes it.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if kind in KINDS and not (pipe and kind == stat.S_IFIFO):
            raise OSError(errno.EINVAL, f"it is {KINDS[kind]}, and a file is expected", str(path))
        if os.name != "nt":
            os.set_blocking(descriptor, True)
        return open(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def kind_of(path: Path) -> str | None:
    """Return what stands at ``path`` that is neither a file nor a folder (a pipe, a device, a socket), else None."""
    try:
        return KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:
        return None


def require_files(folder: Path) -> None:
    """Raise OSError where a folder holds a pipe, a device or a socket, which a library might open."""
    for entry in folder.iterdir():
        try:
            kind = stat.S_IFMT(entry.stat().st_mode)
        except OSError:  # a link that leads nowhere
            continue
        if kind in KINDS:
            raise OSError(errno.EINVAL, f"{entry.name} is {KINDS[kind]}, and a file is expected", str(folder))


def read_bytes(path: Path, *, pipe: bool = False) -> bytes:
    """Return what a file holds; raises OSError."""
    with opened(path, pipe=pipe) as stream:
        return stream.read()


def read_text(path: Path) -> str:
    """Return a file's text in UTF-8; raises OSError and UnicodeDecodeError (a ValueError)."""
    return read_bytes(path).decode("utf-8-sig")


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; raises OSError, and ValueError for what is no JSON or nested without end."""
    try:
        return json.loads(read_text(path))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
