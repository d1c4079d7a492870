"""A file's bytes in memory, of which only the pages that are used are read."""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from workbench import memory
from workbench.errors import ModelError
from workbench.plain_file import opened

if TYPE_CHECKING:
    import torch

MOST_EMPTY = 1 << 24
"""What the axes of a tensor without numbers multiply to at most, but for those of 0: no bytes bound them."""

SHARED, LEAST_SHARED = 64, 1 << 26
"""Tensors may lie in the same bytes and take so many times as much as a file has, or so many bytes: all are read."""

NO_RESERVE = 0x4000
"""Linux: a private mapping takes no memory before it is written into, however large the file."""

_mapped: WeakKeyDictionary[mmap.mmap, tuple[Path, int, int]] = WeakKeyDictionary()
"""What is mapped, while any tensor of it is there: the file, its bytes when it was opened, and its address."""


def require_bounded(shape: Sequence[int], name: str) -> None:
    """Raise ValueError for a tensor without numbers whose other axes are beyond use: rows take time and memory."""
    if not math.prod(shape) and (size := math.prod(filter(None, shape))) > MOST_EMPTY:
        raise ValueError(f"{name} is empty and says to have axes of {size:.0e}")


def require_held(nbytes: int, size: int) -> None:
    """Raise ValueError where tensors in the same bytes of a file of ``size`` are too many to be read one by one."""
    if nbytes > max(SHARED * size, LEAST_SHARED):
        raise ValueError(f"its tensors take more than {SHARED} times the {size} bytes of the file")


def require_whole(address: int) -> None:
    """Raise ModelError where the mapped file at ``address`` is shorter than it was: reading what is gone would end the
    process.  Other files, and memory that no file is mapped to, are of no concern."""
    for data, (path, size, start) in tuple(_mapped.items()):
        if start <= address < start + size and (now := data.size()) < size:
            raise ModelError(
                f"{path} was truncated while it was open: it had {size:,} bytes and has {now:,}; restore the file, "
                "and open the model again"
            )


class MappedFile:
    """The bytes of a file; ``tensor`` makes tensors of them without a copy, which may be written into (not the file).

    ``passing``: nobody writes into them, and their pages may leave (see :func:`workbench.memory.let_go`).
    Raises OSError.
    """

    def __init__(self, path: Path, *, passing: bool = False) -> None:
        self.path = path
        with opened(path) as stream:
            self.size = stream.seek(0, 2)
            if not self.size:
                self.data: mmap.mmap | bytes = b""
                return
            if sys.platform == "linux":
                access = mmap.PROT_READ | mmap.PROT_WRITE
                self.data = mmap.mmap(stream.fileno(), self.size, mmap.MAP_PRIVATE | NO_RESERVE, access)
            else:
                self.data = mmap.mmap(stream.fileno(), self.size, access=mmap.ACCESS_COPY)
            self._start = ctypes.addressof(ctypes.c_char.from_buffer(self.data))
            _mapped[self.data] = path, self.size, self._start
            if passing and sys.platform == "linux":
                memory.passing(self.data, self._start, self.size)

    def let_go(self, start: int, end: int) -> None:
        """Have the pages between two bytes leave the process, if the system can; what uses them reads them again.

        What was written into their tensors is lost.
        """
        first, last = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
        if sys.platform == "linux" and isinstance(self.data, mmap.mmap) and last > first:
            self.data.madvise(mmap.MADV_DONTNEED, first, last - first)

    def tensor(self, start: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return the tensor whose numbers, row-major and little-endian, begin at byte ``start``.

        Raises ValueError where it is not wholly within the file.
        """
        import torch

        count = math.prod(shape)
        size = count * dtype.itemsize
        if start < 0 or start + size > self.size:
            raise ValueError(f"{size} bytes at {start} were expected, the file has {self.size}")
        if not count:
            return torch.empty(tuple(shape), dtype=dtype)
        require_whole(self._start + start)
        stored = torch.uint8 if dtype is torch.bool else dtype
        if start % dtype.itemsize:
            tensor = torch.frombuffer(bytearray(self.data[start : start + size]), dtype=stored)
        else:
            tensor = torch.frombuffer(self.data, dtype=stored, count=count, offset=start)
        return (tensor != 0 if dtype is torch.bool else tensor).reshape(tuple(shape))
