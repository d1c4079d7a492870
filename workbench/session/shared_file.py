"""One session file, several writers: each holds the lock while it reads, joins its result and writes; none is lost."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import platform
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from workbench.atomic import require_writable, shortened
from workbench.content_kind import SESSION
from workbench.errors import SessionError, WorkbenchError
from workbench.plain_file import read_bytes
from workbench.session.session import Session

Stamp = tuple[int, ...]
"""What tells the versions of a file apart."""

SECONDS = 120.0
"""How long a writer waits for each other one, which holds the lock while it reads and writes one file."""

WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
"""What file systems answer that have no locks."""


class _HeldError(SessionError):
    """Another process holds the lock."""


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A session as it was read from ``path``, and the file's identity by then."""

    path: Path
    session: Session
    stamp: Stamp

    @staticmethod
    def open(path: str | Path) -> SharedFile:
        """Read a session; raises SessionError."""
        place = Path(path)
        stamp = stamp_of(place)
        return SharedFile(place, Session.load(place), stamp)

    def require_writable(self, out: str | Path | None = None) -> None:
        """Raise SessionError where :meth:`save` could not write to ``out``: before the work whose result it saves."""
        require_writable(Path(out or self.path), SessionError, "the session", SESSION)

    def save(self, change: Callable[[Session], Session], out: str | Path | None = None) -> Session:
        """Write ``change`` of what the file holds by now to ``out`` (default: the file itself), and return it.

        What other programs added since it was read is kept; a file that was removed is written again.  Raises
        SessionError, also where the file is damaged, holds another model by now or stays locked: the result is in a
        file beside it.
        """
        target, refusal = Path(out or self.path), ""
        try:
            with writing(target):
                current = self.session
                if os.path.realpath(target) == os.path.realpath(self.path):
                    current, refusal = self._now()
                if not refusal:
                    after = change(current)
                    after.save(target)
                    return after
        except _HeldError as error:
            refusal = str(error)
        raise SessionError(f"{refusal}; the result is in {self._saved_beside(change, target)}")

    def _saved_beside(self, change: Callable[[Session], Session], target: Path) -> Path:
        """Write ``change`` of what was read to the first free name of the results of ``target``."""
        numbers = itertools.count()
        while True:
            beside = target.with_name(f"{target.stem}-result{next(numbers) or ''}{target.suffix}")
            with writing(beside):
                if not os.path.lexists(beside):
                    change(self.session).save(beside)
                    return beside

    def _now(self) -> tuple[Session, str]:
        """Return what the file holds by now, or what it held and why the result must not replace it."""
        if not self.path.exists() or stamp_of(self.path) == self.stamp:
            return self.session, ""
        try:
            current = Session.load(self.path)
        except WorkbenchError as error:
            return self.session, str(error)
        if current.model.fingerprint != self.session.model.fingerprint:
            return self.session, f"{self.path} holds another model now"
        return current, ""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the lock of the session file ``path``: a file beside it that names the holder, and goes with it.

    Raises SessionError naming the holder where one process holds it for more than SECONDS, and where something else has
    the lock's name.
    """
    place = Path(os.path.realpath(path))
    lock, holder, end = place.with_name(f".{shortened(place.name)}.lock"), "", 0.0
    while (acquired := _acquired(lock)) is None:
        if holder != (holder := _holder(lock)):  # several wait, and it was another one's turn
            end = time.monotonic() + SECONDS
        if time.monotonic() > end:
            own = lock.with_suffix(".held")
            way_out = f", or remove {own} if it has ended" if own.exists() else ""
            raise _HeldError(f"{path} is being written by {holder}; wait for it and try again{way_out}")
        time.sleep(0.05)
    try:
        with contextlib.suppress(OSError):  # a full disk: the lock holds without the note, and saving says why
            if acquired.descriptor >= 0:
                os.write(acquired.descriptor, json.dumps(_note()).encode())
        yield
    finally:
        for file in acquired.files:
            with contextlib.suppress(OSError):
                file.unlink()
        if acquired.descriptor >= 0:
            os.close(acquired.descriptor)


def _note() -> dict[str, object]:
    words = " ".join(os.path.basename(word) for word in sys.argv[:2])
    return {"process": os.getpid(), "machine": platform.node(), "command": words}


@dataclass(frozen=True, slots=True)
class _Acquired:
    """A lock that is held: its open file (-1 where there can be none), and the files that go with it."""

    descriptor: int
    files: tuple[Path, ...] = ()


def _acquired(lock: Path) -> _Acquired | None:
    """Return the lock, None where another holds it."""
    try:
        descriptor = _opened(lock)
    except OSError as error:
        locked = os.name == "nt" and isinstance(error, PermissionError)
        return None if locked else _Acquired(-1)  # a folder that cannot be written has no lock: saving says so
    try:
        _lock(descriptor)
        if os.path.samestat(os.fstat(descriptor), os.lstat(lock)):
            with contextlib.suppress(OSError):  # a full disk, whose lock holds
                os.ftruncate(descriptor, 0)
            return _Acquired(descriptor, (lock,))
    except OSError as error:
        if error.errno in WITHOUT_LOCKS:
            os.close(descriptor)
            return _made(lock)
    os.close(descriptor)
    return None


def _opened(lock: Path) -> int:
    """Open the lock's file, of another user's for reading; raises OSError.

    Raises SessionError for a link, which an untrusted folder may have there: the file that it leads to would be
    emptied.
    """
    flags = os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        try:
            descriptor = os.open(lock, os.O_RDWR | flags, 0o666)
        except PermissionError:
            if os.name == "nt" or not lock.exists():
                raise
            descriptor = os.open(lock, os.O_RDONLY | flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _no_lock(lock) from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise _no_lock(lock)
    return descriptor


def _no_lock(lock: Path) -> SessionError:
    return SessionError(f"{lock} stands where the session's lock belongs, but is not a plain file; remove it")


def _made(lock: Path) -> _Acquired | None:
    """Return the lock where the file system has none (some of networks): a file that only one process can make.

    One that a dead process of this machine left is removed.
    """
    own = lock.with_suffix(".held")
    try:
        return _Acquired(os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), (own, lock))
    except FileExistsError:
        pass
    except OSError:
        return _Acquired(-1, (lock,))
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        _remove_of_dead(own)
    return None


def _remove_of_dead(own: Path) -> None:
    """Remove what a process of this machine that is gone has made; raises OSError, ValueError, KeyError, TypeError."""
    text = read_bytes(own, largest=4096)
    note = json.loads(text)
    if note["machine"] != platform.node() or psutil.pid_exists(int(note["process"])):
        return
    aside = own.with_suffix(f".{os.getpid()}")
    own.rename(aside)
    if read_bytes(aside) == text:
        aside.unlink()
    else:  # another process noticed it first, and this is its own
        aside.rename(own)


def _lock(descriptor: int) -> None:
    """Lock an open file, or raise OSError at once; the system releases it with the process."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(lock: Path) -> str:
    for file in (lock.with_suffix(".held"), lock):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(read_bytes(file, largest=4096))
            return f"process {note['process']} on {note['machine']} ({note['command']})"
    return "another process"


def stamp_of(path: Path) -> Stamp:
    """Return what changes when a file is replaced; nothing for one that does not exist."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns
