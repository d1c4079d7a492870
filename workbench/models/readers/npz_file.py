"""Archives of NumPy arrays (``.npz``): unpacked piece by piece in a limited process, after their sizes were checked."""

from __future__ import annotations

import json
import math
import mmap
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.errors import DataError, MemoryLimitError
from workbench.limited import SECONDS, Pieces, limited
from workbench.memory import available_memory, left_text, size_text
from workbench.models.readers.mapped import MappedFile

LEAST, ROOM, SPEED = 1 << 28, 40, 2e6
"""Bytes that the arrays of any archive may take, what a byte of the file adds, and bytes of it unpacked in a second."""

PIECE, DIRECTORY = 1 << 22, 1 << 26
"""Bytes that are unpacked at once, and of the longest list of members that is counted on."""

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class _Member:
    entry: zipfile.ZipInfo
    start: int
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class _Seekable:
    """A mapped file as zipfile wants it; Python 3.13's says itself that it can be sought in."""

    def __init__(self, data: mmap.mmap) -> None:
        self.read, self.seek, self.tell = data.read, data.seek, data.tell

    def seekable(self) -> bool:
        return True


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays by their names.

    Raises OSError; DataError for a damaged archive, objects, and arrays that take far more than a file of its size
    holds; MemoryLimitError for what does not fit into memory.
    """
    import encodings.cp437  # noqa: F401 - of members' names; here, because the limited process cannot

    file, free = MappedFile(path), available_memory() // 2
    most = LEAST + ROOM * file.size

    def work() -> Iterator[np.ndarray | Pieces]:
        assert isinstance(file.data, mmap.mmap)
        with zipfile.ZipFile(_Seekable(file.data)) as archive:  # type: ignore[call-overload]
            members = [_member(archive, entry) for entry in archive.infolist()]
            nbytes = sum(each.nbytes for each in members)
            if nbytes > most:
                raise DataError(
                    f"{path} holds {size_text(nbytes)} in {size_text(file.size)}, and {size_text(most)} is the most "
                    "for a file of its size; if it is yours, save it without compression (np.savez)"
                )
            if nbytes > free:
                raise MemoryLimitError(f"{path} holds {size_text(nbytes)}; {left_text(2 * free)}; give a part of it")
            table = [[each.entry.filename.removesuffix(".npy"), each.by_columns] for each in members]
            yield np.frombuffer(json.dumps(table).encode(), np.uint8)
            for each in members:
                shape = each.shape[::-1] if each.by_columns else each.shape
                yield Pieces(each.dtype, shape, _pieces(archive, each))

    memory = LEAST + 20 * min(file.size, DIRECTORY)
    table, *arrays = limited(
        work, str(path), DataError, seconds=SECONDS + file.size / SPEED, memory=memory, answer=most + memory
    )
    pairs = zip(json.loads(table.tobytes()), arrays, strict=True)
    return {name: array.T if by_columns else array for (name, by_columns), array in pairs}


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> _Member:
    """Read what a member says of its array."""
    with archive.open(entry) as stream:
        read = HEADERS.get(np.lib.format.read_magic(stream))
        if read is None:
            raise ValueError(f"{entry.filename} is of a version that NumPy writes for tables alone")
        shape, by_columns, dtype = read(stream)
        if dtype.hasobject or min(shape, default=0) < 0:
            raise ValueError(f"{entry.filename} holds objects, or a size below 0")
        return _Member(entry, stream.tell(), shape, by_columns, dtype)


def _pieces(archive: zipfile.ZipFile, member: _Member) -> Iterator[bytes]:
    with archive.open(member.entry) as stream:
        stream.read(member.start)
        left = member.nbytes
        while left:
            piece = stream.read(min(left, PIECE))
            if not piece:
                raise ValueError(f"{member.entry.filename} ends before its array does")
            left -= len(piece)
            yield piece
        if stream.read(1):  # whose end shows whether its checksum is right
            raise ValueError(f"{member.entry.filename} goes on after its array")
