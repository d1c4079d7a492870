"""Reads files and nothing else: a pipe or a device among untrusted files would keep the reader waiting for ever."""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO

from workbench.errors import MemoryLimitError
from workbench.memory import available_memory, left_text, size_text

KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}

LARGEST_TEXT, LARGEST_JSON = 1 << 28, 1 << 26
"""Bytes of the largest text that is read, and of the largest JSON that is parsed here, which may take twenty times as
much memory: a large vocabulary, or the index of 300,000 tensors, takes some tens of megabytes."""

_PIECE = 1 << 24
_SETTINGS = re.compile(r"(config|token|vocab|template).*\.(json|jinja|model|txt)$")


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
    """Raise OSError where a folder holds a pipe, a device or a socket, or settings without end.

    A library might open them.
    """
    for entry in folder.iterdir():
        try:
            status = entry.stat()
        except OSError:  # a link that leads nowhere
            continue
        kind = stat.S_IFMT(status.st_mode)
        if status.st_size > LARGEST_TEXT and _SETTINGS.search(entry.name):
            raise _too_large(entry, f"{entry.name} holds", status.st_size, LARGEST_TEXT)
        if kind in KINDS:
            raise OSError(errno.EINVAL, f"{entry.name} is {KINDS[kind]}, and a file is expected", str(folder))


def read_bytes(path: Path, *, pipe: bool = False, largest: int | None = None) -> bytes:
    """Return what a file holds; raises OSError, also for more than ``largest`` bytes.

    None stands for half of the memory that is free: a few bytes make a file of terabytes (a sparse one).  Raises
    MemoryLimitError where not even a file of usual size fits there.
    """
    bound = available_memory() // 2 if largest is None else largest
    with opened(path, pipe=pipe) as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(size + 1) if size <= bound else b""
        while data and size < len(data) <= bound:  # a pipe, which has no size, or a file that grows
            size = len(data)
            data += stream.read(min(_PIECE, bound + 1 - size))
    read = max(size, len(data))
    if read > bound and largest is None and read <= LARGEST_TEXT:
        raise MemoryLimitError(
            f"{path} holds {size_text(read)}; {left_text(2 * bound)}; allow more (--memory), or close other programs"
        )
    if read > bound:
        raise _too_large(path, "it holds", read, bound)
    return data


def require_room(path: Path, size: int) -> None:
    """Raise MemoryLimitError where ``size`` bytes of a file are more than half of the memory that is free."""
    free = available_memory()
    if size > free // 2:
        raise MemoryLimitError(f"{path} holds {size_text(size)}; {left_text(free)}; give a part of it")


def _too_large(path: Path, holds: str, size: int, largest: int) -> OSError:
    return OSError(errno.EFBIG, f"{holds} {size_text(size)}, and {size_text(largest)} is the most", str(path))


def read_text(path: Path, largest: int = LARGEST_TEXT) -> str:
    """Return the text in UTF-8 of a file that is to be parsed; raises OSError and ValueError."""
    return decoded(read_bytes(path, largest=largest))


def decoded(data: bytes) -> str:
    """Return a text in UTF-8, without its mark; raises ValueError for another encoding."""
    require_utf8(data[:4])
    return data.decode("utf-8-sig")


def require_utf8(start: bytes) -> None:
    """Raise ValueError where a text that begins so is in UTF-16 or UTF-32."""
    wide = start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    if wide or start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or start[:2].count(0) == 1:
        raise ValueError(f"it is {'UTF-32' if wide else 'UTF-16'}; save it as UTF-8")


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; raises OSError, and ValueError for what is no JSON or nested without end."""
    try:
        return json.loads(read_text(path, LARGEST_JSON))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
