"""A session file as a tree of plain values, which a limited process has read from HDF5."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

import numpy as np

from workbench.errors import DamagedSessionError, SessionError
from workbench.limited import FORKS, WAIT, confine, in_fork, require_allowed
from workbench.session.file import hdf5_child
from workbench.session.file.hdf5_child import Answer, Node, Settings

Scalar = str | np.generic
SECONDS, BYTES_A_SECOND = 4, 2_000_000
"""How much processor time a file gets, at least and by its size."""

MEMORY = 1 << 29
"""Bytes beyond the file's size that reading may take; arrays are handed over piece by piece and do not count."""

ATTEMPTS = 200
"""How many parts a repair gives up, one after another, because reading them ends the process."""


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """An array of numbers or truth values."""

    name: str
    values: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A list of strings."""

    name: str
    texts: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Named parts; ``attrs`` are texts and numbers (a value of another type is an empty ``void``)."""

    name: str
    attrs: Mapping[str, Scalar]
    members: Mapping[str, Part] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        """Return whether there is a part of that name."""
        return name in self.members

    def __iter__(self) -> Iterator[str]:
        """The names of the parts, in the file's order."""
        return iter(self.members)


Part = Group | Array | Texts | None
"""None is an array of something else."""


def read_tree(image: bytes | memoryview, largest: int) -> Group:
    """Return what an HDF5 file holds; raises SessionError for what is damaged, foreign, or larger than ``largest``."""
    outcome = _asked(image, largest)
    if isinstance(outcome, str):
        raise DamagedSessionError(f"it is damaged: {outcome.splitlines()[0]}")
    answer, buffer = outcome
    if "tree" not in answer:
        if "refused" in answer:
            raise SessionError(answer["refused"])
        raise DamagedSessionError(f"it is damaged: {answer.get('damaged')}")
    return _group("/", answer["tree"], buffer)


def read_whole_parts(image: bytes | memoryview, largest: int) -> tuple[Group, list[str]]:
    """Return the parts of a damaged file that match their checksums, and what was lost, with the reasons."""
    skip, lost = list[str](), list[str]()
    for _ in range(ATTEMPTS):
        outcome = _asked(image, largest, skip)
        if isinstance(outcome, str):
            reason, _, place = outcome.partition("\n")
        else:
            answer, buffer = outcome
            if "tree" in answer:
                return _group("/", answer["tree"], buffer), [*lost, *answer["lost"]]
            reason, place = answer.get("damaged") or answer.get("refused", ""), "/"
        if place in ("", "/", *skip):
            raise SessionError(f"none of it can be read: {reason}")
        skip.append(place)
        lost.append(f"{place}: {reason}")
    raise SessionError(f"more than {ATTEMPTS} of its parts are damaged")


def _asked(
    image: bytes | memoryview, largest: int, skip: list[str] | None = None
) -> tuple[Answer, mmap.mmap] | str:  # fmt: skip
    """Run the reader, for a repair without the parts to ``skip``; returns its answer and the arrays.

    If it died, how it ended and, on a second line, where.
    """
    size = len(image)
    seconds = SECONDS + size // BYTES_A_SECOND
    settings: Settings = {
        "path": [folder for folder in sys.path if folder], "size": size, "seconds": seconds,
        "memory": MEMORY + 4 * size, "largest": largest, "repair": skip is not None, "skip": skip or [],
    }  # fmt: skip
    with _memory_file() as result, _memory_file() as trace:
        code = (_forked if FORKS else _spawned)(image, settings, result, trace)
        length = os.fstat(result.fileno()).st_size
        if code == 0 and length > 8:
            buffer = mmap.mmap(result.fileno(), length, access=mmap.ACCESS_COPY)
            start = length - 8 - int.from_bytes(buffer[length - 8 :], "little")
            return json.loads(buffer[start : length - 8]), buffer
        if FORKS:
            require_allowed(result.fileno(), "what it holds", SessionError)
        trace.seek(0)
        return f"{_ending(code, seconds)}\n{_last_place(trace.read())}"


def _forked(image: bytes | memoryview, settings: Settings, result: IO[bytes], trace: IO[bytes]) -> int | None:
    """Read in a fork of this process; returns its exit code, None where it took too long."""
    import h5py  # noqa: F401 - here, not in every fork

    data = bytes(image)

    def task() -> None:
        settings["used"] = hdf5_child.address_space()
        confine()
        hdf5_child.read(data, settings, cast(BinaryIO, result), cast(BinaryIO, trace))

    return in_fork(task, settings["seconds"])


def _spawned(image: bytes | memoryview, settings: Settings, result: IO[bytes], trace: IO[bytes]) -> int | None:
    """Read in a process of its own, as :func:`_forked`."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "HDF5_USE_FILE_LOCKING": "FALSE"}
    command = [sys.executable, "-I", "-S", hdf5_child.__file__, json.dumps(settings)]
    with _memory_file() as source:
        source.write(image)
        source.flush()
        source.seek(0)
        timeout = WAIT + 5 * settings["seconds"]
        try:
            return subprocess.run(
                command, stdin=source, stdout=result, stderr=trace, env=environment, timeout=timeout
            ).returncode
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise SessionError(f"no process could be started to read it: {error.strerror or error}") from error


def _ending(code: int | None, seconds: int) -> str:
    if code in (None, -24, -9):  # SIGXCPU, SIGKILL
        return f"reading it took more than {seconds} s or too much memory"
    return "reading it ended the HDF5 library"


def _last_place(trace: bytes) -> str:
    """Return the part that was read last: the process writes each one's name before it."""
    for line in reversed(trace.decode(errors="replace").splitlines()):
        with contextlib.suppress(ValueError):
            place = json.loads(line)
            if isinstance(place, str):
                return place
    return ""


def _memory_file() -> IO[bytes]:
    """Return a file without a name, in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("session"), "w+b")
    return tempfile.TemporaryFile(dir=Path(tempfile.gettempdir()))


def _group(name: str, node: Node, buffer: mmap.mmap) -> Group:
    attributes = {key: _scalar(str(kind), value) for key, (kind, value) in node["attributes"].items()}
    prefix = name.rstrip("/")
    members = {key: _part(f"{prefix}/{key}", member, buffer) for key, member in node["members"].items()}
    return Group(name, attributes, members)


def _part(name: str, node: Node, buffer: mmap.mmap) -> Part:
    if "members" in node:
        return _group(name, node, buffer)
    texts = node.get("texts")
    if texts is not None:
        return Texts(name, texts)
    if "start" not in node:
        return None
    dtype, shape = np.dtype(node["dtype"]), tuple(node["shape"])
    count = int(np.prod(shape, dtype=object)) if shape else 1
    return Array(name, np.frombuffer(buffer, dtype, count, node["start"]).reshape(shape))


def _scalar(kind: str, value: object) -> Scalar:
    if kind in "U?":
        return str(value) if kind == "U" else np.void(0)
    if kind == "f":
        return np.float64(float.fromhex(str(value)))
    return np.bool_(value) if kind == "b" else np.int64(cast(int, value))
