"""One session file, several writers: each holds the lock while it reads, joins its result and writes; none is lost."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import SessionError
from workbench.session.session import Session

SECONDS = 120.0
"""How long a writer waits for another, which holds the lock while it reads and writes one file."""


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A session as it was read from ``path``, and the file's identity by then."""

    path: Path
    session: Session
    stamp: tuple[int, ...]

    @staticmethod
    def open(path: str | Path) -> SharedFile:
        """Read a session; raises SessionError."""
        place = Path(path)
        stamp = _stamp(place)
        return SharedFile(place, Session.load(place), stamp)

    def save(self, change: Callable[[Session], Session], out: str | Path | None = None) -> Session:
        """Write ``change`` of what the file holds by now to ``out`` (default: the file itself), and return it.

        What other programs added since it was read is kept.  Raises SessionError, also where the file holds another
        model by now.
        """
        target = Path(out or self.path)
        with writing(target):
            current = self.session
            if os.path.realpath(target) == os.path.realpath(self.path) and _stamp(self.path) != self.stamp:
                current = Session.load(self.path)
                if current.model.fingerprint != self.session.model.fingerprint:
                    raise SessionError(f"{self.path} holds another model now; the result was not written")
            after = change(current)
            after.save(target)
        return after


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the lock of the session file ``path``: a file beside it that names the holder, and goes with it.

    Raises SessionError naming the holder where it is held for more than SECONDS.
    """
    place = Path(os.path.realpath(path))
    lock, end = place.with_name(f".{place.name[:80]}.lock"), time.monotonic() + SECONDS
    while (descriptor := _acquired(lock)) is None:
        if time.monotonic() > end:
            raise SessionError(f"{path} is being written by {_holder(lock)}; wait for it and try again")
        time.sleep(0.02)
    try:
        if descriptor >= 0:
            words = " ".join(os.path.basename(word) for word in sys.argv[:2])
            note = {"process": os.getpid(), "machine": platform.node(), "command": words}
            with contextlib.suppress(OSError):  # a full disk: the lock holds without the note, and saving says why
                os.write(descriptor, json.dumps(note).encode())
        yield
    finally:
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                lock.unlink()
            os.close(descriptor)


def _acquired(lock: Path) -> int | None:
    """Return the descriptor of the lock, None where another holds it, -1 where there can be no lock."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        locked = os.name == "nt" and isinstance(error, PermissionError)
        return None if locked else -1  # in a folder that cannot be written there is no lock: saving says so
    try:
        _lock(descriptor)
        if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
            with contextlib.suppress(OSError):  # a full disk, whose lock holds
                os.ftruncate(descriptor, 0)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> None:
    """Lock an open file, or raise OSError at once; the system releases it with the process."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(lock: Path) -> str:
    try:
        note = json.loads(lock.read_text(encoding="utf-8"))
        return f"process {note['process']} on {note['machine']} ({note['command']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is replaced."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns
