"""Messages between the window and the engine process: small ones through a pipe, arrays through shared memory.

A message is ``(kind, job, body)``.  The body is pickled with protocol 5; its large array buffers do not go
through the pipe but into one file in a private folder on the memory file system, which the receiver maps copy-on-write
and unlinks: the arrays are not copied again, and the memory is freed with the last array.  The folder belongs to one
life of the engine and is removed when it ends; if both processes were killed, a later start removes it.

The receiver gets an :class:`Envelope`; opening it (unpickling) is a separate step, so that a late message is dropped
unread and a cancel is never stuck behind a large body.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import gc
import io
import mmap
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from workbench.models.summary import ModelSummary
from workbench.pacing import rest
from workbench.planning.plan import Plan
from workbench.session.columns import Columns

SHARE_FROM = 64 * 1024
"""Bytes of large buffers from which on a message uses shared memory."""

LARGE = 4 * 1024
"""Bytes from which on a buffer counts as large."""

ALIGNMENT = 64
"""Bytes to whose multiples buffers are aligned in the file."""

GAP = memoryview(bytes(ALIGNMENT))

AT_ONCE = 256
"""Buffers that are written by one call; systems take 1,024 at least."""

PREFIX = "workbench-engine-"
LOCK = "lock"

Collect = Callable[[pickle.PickleBuffer], bool]


class SharedFolder:
    """A private folder on the memory file system (or the temporary folder), locked for as long as it is used."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or shared_root()
        remove_orphans(self._root)
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=self._root))
        self._lock = os.open(self.path / "new", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.rename(self.path / "new", self.path / LOCK)

    def __enter__(self) -> SharedFolder:
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def shared_root() -> Path:
    """Return the memory file system's folder, or the temporary folder where there is none."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def remove_orphans(root: Path) -> None:
    """Remove the folders whose owners were killed: those whose lock can be taken."""
    for folder in root.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder / LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A received message whose body is still pickled; ``open`` or ``drop`` it exactly once."""

    kind: str
    job: int
    body: bytes
    file: str | None
    spans: tuple[tuple[int, int], ...]

    def open(self) -> object:
        """Unpickle the body; its large arrays live in the mapped file."""
        if self.file is None:
            return pickle.loads(self.body)
        view = _map(self.file)
        with _uncollected():
            return pickle.loads(self.body, buffers=_parts(view, self.spans))

    def drop(self) -> None:
        """Free what the body holds without reading it."""
        if self.file is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.file)


class Channel:
    """One end of the pipe.  ``send`` may be called from any thread, ``receive`` from one."""

    def __init__(self, connection: Connection, folder: Path, side: str) -> None:
        self._connection = connection
        self._folder = folder
        self._side = side
        self._count = 0
        self._lock = threading.Lock()

    def send(self, kind: str, job: int = 0, body: object = None) -> None:
        """Send a message; raises OSError (BrokenPipeError) if the other end is gone, and what pickling raises."""
        frame = pickle.dumps((kind, job, *self._encode(body)), protocol=5)
        with self._lock:
            self._connection.send_bytes(frame)

    def receive(self) -> Envelope:
        """Wait for the next message; raises EOFError or OSError if the other end is gone."""
        return Envelope(*pickle.loads(self._connection.recv_bytes()))

    def _encode(self, body: object) -> tuple[bytes, str | None, tuple[tuple[int, int], ...]]:
        views: list[memoryview] = []
        with _uncollected():
            pickled = _pickled(body, _collector(views))
        if sum(view.nbytes for view in views) < SHARE_FROM:
            return _pickled(body) if views else pickled, None, ()
        with self._lock:
            self._count += 1
            name = str(self._folder / f"{self._side}-{self._count}")
        try:
            return pickled, name, _write(name, views)
        except OSError:  # the memory file system is full (64 MB in many containers): all through the pipe then
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            return _pickled(body), None, ()


COLUMNS: Mapping[type, tuple[str, ...]] = {ModelSummary: ("layers", "kept"), Plan: ("rules",)}
"""Which tuples of equal records travel as columns; the results in a session are columns already."""


class _Pickler(pickle.Pickler):
    """Packs the tuples in COLUMNS: thousands of small objects would hold the interpreter's lock for long."""

    def reducer_override(self, obj: object) -> tuple[Callable[..., object], tuple[object, ...]]:
        names = COLUMNS.get(type(obj))
        if names is None:
            return NotImplemented  # type: ignore[no-any-return]
        values = {field.name: getattr(obj, field.name) for field in dataclasses.fields(obj)}  # type: ignore[arg-type]
        tuples = {name: values.pop(name) for name in names}
        return _unpacked, (type(obj), values, {name: _packed(records) for name, records in tuples.items()})


def _packed(records: tuple[object, ...]) -> Columns[object] | None:
    return Columns.of(type(records[0]), records) if records else None


def _unpacked(kind: type, values: dict[str, object], tuples: dict[str, Columns[object] | None]) -> object:
    return kind(**values, **{name: tuple(packed.records()) if packed else () for name, packed in tuples.items()})


def _pickled(body: object, collect: Collect | None = None) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, protocol=5, buffer_callback=collect).dump(body)
    return stream.getvalue()


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the cyclic garbage collector: messages hold no cycles, and a search through a large one would stop every
    thread of the window several times."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _collector(views: list[memoryview]) -> Collect:
    """Return pickle's buffer callback: collects large buffers, returns True for those that stay in the pickle."""

    def collect(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < LARGE:
            return True
        views.append(view)
        rest()
        return False

    return collect


def _parts(view: memoryview, spans: Sequence[tuple[int, int]]) -> Iterator[memoryview]:
    for start, length in spans:
        yield view[start : start + length]
        rest()


def _write(name: str, views: Sequence[memoryview]) -> tuple[tuple[int, int], ...]:
    """Write the buffers, many at a time, and return where each lies: its start and its length in bytes."""
    spans, parts, position = [], list[memoryview](), 0
    for view in views:
        spans.append((position, view.nbytes))
        gap = -view.nbytes % ALIGNMENT
        parts += [view, GAP[:gap]] if gap else [view]
        position += view.nbytes + gap
    with open(name, "xb", buffering=0) as file:
        for start in range(0, len(parts), AT_ONCE):
            _write_all(file.fileno(), parts[start : start + AT_ONCE])
    return tuple(spans)


def _write_all(descriptor: int, parts: list[memoryview]) -> None:
    """Write all of ``parts``, however much the system accepts at a time; the interpreter's lock is free meanwhile."""
    while parts:
        done = os.writev(descriptor, parts)
        while parts and done >= parts[0].nbytes:
            done -= parts.pop(0).nbytes
        if parts:
            parts[0] = parts[0][done:]


def _map(name: str) -> memoryview:
    """Map the file copy-on-write (so that the arrays are writable and no other process sees it) and unlink it."""
    descriptor = os.open(name, os.O_RDONLY)
    try:
        os.unlink(name)
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY))
    finally:
        os.close(descriptor)
