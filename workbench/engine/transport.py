"""Messages between the window and the engine process: small ones through a pipe, arrays through shared memory.

A message is ``(kind, job, body)``.  The body is pickled with protocol 5; its large array buffers do not go
through the pipe but into a file without a name on the memory file system.  The receiver gets its descriptor and maps it
copy-on-write: the arrays are not copied again, and the memory is freed with the last array, or by the system when both
processes are gone.

The receiver gets an :class:`Envelope`; opening it (unpickling) is a separate step, so that a late message is dropped
unread and a cancel is never stuck behind a large body.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import pickle
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import IO

from workbench.memory import uncollected
from workbench.models.layer import Layer, StoredTensor
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

FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None
"""The memory file system; None is the folder of temporary files."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A received message whose body is still pickled; ``open`` or ``drop`` it exactly once.

    The body's large buffers are in ``buffers``, or at ``spans`` (start, length in bytes) of ``file``.
    """

    kind: str
    job: int
    body: bytes
    buffers: Sequence[bytearray] = ()
    spans: Sequence[tuple[int, int]] = ()
    file: int | None = None

    def open(self) -> object:
        """Unpickle the body; its large arrays live in the mapped file."""
        with uncollected():
            return pickle.loads(self.body, buffers=self.buffers if self.file is None else _parts(self.file, self.spans))

    def drop(self) -> None:
        """Free what the body holds without reading it."""
        if self.file is not None:
            os.close(self.file)


class Channel:
    """One end of the pipe, a Unix socket.  ``send`` may be called from any thread, ``receive`` from one."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._lock = threading.Lock()

    def send(self, kind: str, job: int = 0, body: object = None) -> None:
        """Send a message; raises OSError (BrokenPipeError) if the other end is gone, and what pickling raises."""
        views: list[memoryview] = []
        with uncollected():
            pickled = _pickled(body, views)
        file, spans = _shared(views)
        with file or contextlib.nullcontext():
            buffers = [] if file else [bytearray(view) for view in views]
            frame = pickle.dumps((kind, job, pickled, buffers, spans), protocol=5)
            with self._lock:
                self.connection.send_bytes(frame)
                if file:
                    with self._socket() as stream:
                        socket.send_fds(stream, [b"f"], [file.fileno()])

    def receive(self) -> Envelope:
        """Wait for the next message; raises EOFError or OSError if the other end is gone."""
        kind, job, pickled, buffers, spans = pickle.loads(self.connection.recv_bytes())
        if not spans:
            return Envelope(kind, job, pickled, buffers)
        with self._socket() as stream:
            _, files, _, _ = socket.recv_fds(stream, 1, 1)
        if not files:
            raise EOFError("the other end is gone")
        return Envelope(kind, job, pickled, spans=spans, file=files[0])

    def _socket(self) -> socket.socket:
        return socket.fromfd(self.connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)


COLUMNS: Mapping[type, Mapping[str, type]] = {
    ModelSummary: {"layers": Layer, "others": StoredTensor},
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


def _shared(views: Sequence[memoryview]) -> tuple[IO[bytes] | None, list[tuple[int, int]]]:
    """Write large buffers into a file and return it and where each lies: its start and its length in bytes.

    None where the buffers are small, or the memory file system is full (64 MB in many containers).
    """
    if sum(view.nbytes for view in views) < SHARE_FROM:
        return None, []
    with contextlib.suppress(OSError):
        file = tempfile.TemporaryFile(dir=FOLDER)  # noqa: SIM115  (the caller closes it)
        try:
            return file, _write(file, views)
        except OSError:
            file.close()
    return None, []


def _write(file: IO[bytes], views: Sequence[memoryview]) -> list[tuple[int, int]]:
    spans = []
    for view in views:
        spans.append((file.tell(), view.nbytes))
        file.write(view)
        file.write(bytes(-view.nbytes % ALIGNMENT))
    file.flush()
    return spans


def _parts(file: int, spans: Sequence[tuple[int, int]]) -> Iterator[memoryview]:
    """Yield the buffers of a file, which is closed and mapped copy-on-write, so that the arrays are writable."""
    with open(file, "rb") as stream:
        view = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY))
    for start, length in spans:
        yield view[start : start + length]
        pause()
