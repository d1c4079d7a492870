"""The checksum of a whole session file, in 48 bytes after the end of its HDF5, where HDF5 does not look.

SHA-256 over all bytes before it: one flipped bit anywhere is noticed before anything else reads the file.  The root of
the file says that it is sealed, so that a lost seal is noticed, too; files of older versions have none.  Every object
has checksums of its own, of its attributes and its values, by which a repair tells what is whole.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from workbench.errors import SessionError
from workbench.memory import available_memory, size_text
from workbench.session.file.backup import split
from workbench.session.file.hdf5_child import attributes_checksum, plain_attributes

if TYPE_CHECKING:
    import h5py

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MARK = b"QWB SHA-256\r\n\x1a\n\0"
SEAL = len(MARK) + 32
BROKEN = "its bytes are not those that were written: it is damaged, or another program changed it"


def add_checksums(file: h5py.File) -> None:
    """Give every object the checksum of its attributes, and the root the sign of a seal; the last thing to write."""
    file.attrs["sealed"] = True
    items = [file]
    file.visititems(lambda _, item: items.append(item))
    for item in items:
        item.attrs["attributes_crc32"] = attributes_checksum(plain_attributes(item))


def seal_of(*parts: memoryview | bytes) -> bytes:
    """Return the seal that follows these parts of the file: its HDF5 and its spare copy."""
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part)
    return MARK + checksum.digest()


def contents(path: Path) -> tuple[memoryview, memoryview, str]:
    """Return a file's HDF5, its packed spare copy, and what is wrong with its bytes.

    The last is empty where nothing is wrong, or nothing that a seal would tell.

    Raises SessionError for a path without a file and a file that is not HDF5.
    """
    if path.is_dir():
        command = f"workbench calibrate {shlex.quote(str(path))} --out S.qwb"
        raise SessionError(
            f"{path} is a folder, not a session; one that holds a model opens as a model", command=command
        )
    if path.exists() and not path.is_file():
        raise SessionError(f"{path} is not a session: it is a device or a pipe; choose a .qwb file of the workbench")
    try:
        with path.open("rb") as stream:
            data = stream.read(8)
            if data == SIGNATURE or _ends_with_seal(stream):
                data += _rest(stream, path)
    except OSError as error:
        raise SessionError(f"the session {path} cannot be read: {error.strerror}") from error
    if not data:
        raise SessionError(f"{path} is not a session: the file is empty")
    if not data.startswith(SIGNATURE) and data[-SEAL : 16 - SEAL] != MARK:
        raise SessionError(f"{path} is not a session: it is not an HDF5 file; choose a .qwb file of the workbench")
    view = memoryview(data)
    if len(data) < SEAL or data[-SEAL : 16 - SEAL] != MARK:
        place = 40 if data[8:9] == b"\0" else 28  # the end of the file, as the superblock's version has it
        whole = len(data) >= max(int.from_bytes(data[place : place + 8], "little"), 64)
        return view, view[:0], "" if whole else "it is truncated"
    return *split(view[:-SEAL]), "" if seal_of(view[:-SEAL]) == data[-SEAL:] else BROKEN


def with_end(image: memoryview) -> memoryview:
    """Return an HDF5 that says the end that it has: of one that was cut off HDF5 reads nothing."""
    end = len(image).to_bytes(8, "little")
    if image[:9] != SIGNATURE + b"\0" or image[40:48] == end:  # later superblocks have a checksum
        return image
    return memoryview(b"".join((image[:40], end, image[48:])))


def _rest(stream: BinaryIO, path: Path) -> bytes:
    """Read on, unless what is free holds no session of the file's size: its bytes, and the arrays that they hold."""
    size, free = os.fstat(stream.fileno()).st_size, available_memory()
    if size > free // 2:
        raise SessionError(
            f"the session {path} holds {size_text(size)}, and {size_text(free)} of memory are free; it is damaged, or "
            "needs a machine with more memory"
        )
    return stream.read()


def _ends_with_seal(stream: BinaryIO) -> bool:
    """Return whether a file that does not begin as HDF5 was a session; the stream stays behind the first 8 bytes."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(size - SEAL, 0))
    sealed = stream.read(16) == MARK
    stream.seek(min(8, size))
    return sealed
