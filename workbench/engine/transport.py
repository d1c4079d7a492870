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
import fcntl
import gc
import io
import itertools
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

from workbench.models.layer import StoredTensor, Layer
from workbench.models.summary import ModelSummary
from workbench.pacing import pause
from workbench.planning.plan import Plan, Rule
from workbench.session.columns import Columns, hints

SHARE_FROM = 64 * 1024
"""Bytes of large buffers from which on a message uses shared memory."""

LARGE = 4 * 1024
"""Bytes from which on a buffer counts as large."""

ALIGNMENT = 64
"""Bytes to whose multiples buffers are aligned in the file."""

PREFIX = "workbench-engine-"
LOCK = "lock"


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
    """A received message whose body is still pickled; ``open`` or ``drop`` it exactly once.

    The body's large buffers are in ``buffers``, or at ``spans`` (start, length in bytes) of ``file``.
    """

    kind: str
    job: int
    body: bytes
    buffers: Sequence[bytearray] = ()
    file: str | None = None
    spans: Sequence[tuple[int, int]] = ()

    def open(self) -> object:
        """Unpickle the body; its large arrays live in the mapped file."""
        with _uncollected():
            return pickle.loads(self.body, buffers=self.buffers if self.file is None else _parts(self.file, self.spans))

    def drop(self) -> None:
        """Free what the body holds without reading it."""
        if self.file is not None:
            Path(self.file).unlink(missing_ok=True)


class Channel:
    """One end of the pipe.  ``send`` may be called from any thread, ``receive`` from one."""

    def __init__(self, connection: Connection, folder: Path, side: str) -> None:
        self.connection = connection
        self._files = (folder / f"{side}-{number}" for number in itertools.count(1))
        self._lock = threading.Lock()

    def send(self, kind: str, job: int = 0, body: object = None) -> None:
        """Send a message; raises OSError (BrokenPipeError) if the other end is gone, and what pickling raises."""
        views: list[memoryview] = []
        with _uncollected():
            pickled = _pickled(body, views)
        frame = pickle.dumps((kind, job, pickled, *self._buffers(views)), protocol=5)
        with self._lock:
            self.connection.send_bytes(frame)

    def receive(self) -> Envelope:
        """Wait for the next message; raises EOFError or OSError if the other end is gone."""
        return Envelope(*pickle.loads(self.connection.recv_bytes()))

    def _buffers(self, views: list[memoryview]) -> tuple[object, ...]:
        """Put buffers into a file if they are large, and return the last fields of the envelope."""
        if sum(view.nbytes for view in views) >= SHARE_FROM:
            with self._lock:
                file = next(self._files)
            try:
                return (), str(file), _write(file, views)
            except OSError:  # the memory file system is full (64 MB in many containers): all through the pipe then
                file.unlink(missing_ok=True)
        return ([bytearray(view) for view in views],)


COLUMNS: Mapping[type, Mapping[str, type]] = {
    ModelSummary: {"layers": Layer, "kept": StoredTensor},
    Plan: {"rules": Rule},
}
"""Which tuples of equal records travel as columns; the results in a session are columns already."""


class _Pickler(pickle.Pickler):
    """Packs the tuples in COLUMNS: unpickling 10,000 layers one by one stops the window's thread for up to 90 ms, as
    columns for 20 ms."""

    def reducer_override(self, obj: object) -> tuple[Callable[..., object], tuple[object, ...]]:
        kinds = COLUMNS.get(type(obj))
        if kinds is None:
            return NotImplemented  # type: ignore[no-any-return]
        values = {name: getattr(obj, name) for name in hints(type(obj))}
        columns = {name: Columns.of(kind, values.pop(name)) for name, kind in kinds.items()}
        return _unpacked, (type(obj), values, columns)


def _unpacked(kind: type, values: dict[str, object], columns: dict[str, Columns[object]]) -> object:
    return kind(**values, **{name: tuple(packed.records()) for name, packed in columns.items()})


def _pickled(body: object, views: list[memoryview]) -> bytes:
    """Pickle ``body`` without its large buffers, which are added to ``views``."""

    def stays(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < LARGE:
            return True
        views.append(view)
        pause()
        return False

    stream = io.BytesIO()
    _Pickler(stream, protocol=5, buffer_callback=stays).dump(body)
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


def _write(file: Path, views: Sequence[memoryview]) -> list[tuple[int, int]]:
    """Write the buffers and return where each lies: its start and its length in bytes."""
    spans = []
    with file.open("xb") as stream:
        for view in views:
            spans.append((stream.tell(), view.nbytes))
            stream.write(view)
            stream.write(bytes(-view.nbytes % ALIGNMENT))
    return spans


def _parts(file: str, spans: Sequence[tuple[int, int]]) -> Iterator[memoryview]:
    """Yield the buffers of a file, which is unlinked and mapped copy-on-write: the arrays are writable, unseen by
    others."""
    with open(file, "rb") as stream:
        os.unlink(file)
        view = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY))
    for start, length in spans:
        yield view[start : start + length]
        pause()
