"""Runs what parses untrusted bytes in C or Rust in a limited process: a crash, a hang or a bomb is one error.

On Linux a fork of this process does the work: it may open nothing (no file, no socket), see no path, signal nobody
(Landlock, where the kernel has it), and take bounded time and memory; it hands over plain arrays.  Elsewhere a fork of
a process with threads is not safe and a new one takes a second, so the work is done in this process.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import mmap
import os
import select
import signal
import stat
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, FrozenImporter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from workbench import errors
from workbench.errors import WorkbenchError, first_line
from workbench.memory import free_memory, size_text

if TYPE_CHECKING:
    import numpy as np

FORKS = sys.platform == "linux"
RESULT = 3
"""The one open file of the process, besides the standard ones, which lead nowhere."""

SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom", "/proc/cpuinfo",
          "/proc/meminfo", "/sys/devices/system/cpu")  # fmt: skip
"""What libraries read of the system."""

FILES = 64
"""How many files a process may have open that reads."""

WITHOUT_FILES = (BuiltinImporter, FrozenImporter)
"""What imports without a file."""

SECONDS, MEMORY = 4.0, 1 << 30
"""Processor time and bytes, beyond what this process has, that the work may take; what is large gets more."""

NO_MEMORY, TOO_LARGE = 2, 3
"""How the process ends whose memory, or the room for whose answer, does not suffice."""

WAIT, STILL = 60.0, 5.0
"""Seconds that the process may wait for other things than a processor, and after which one that only sleeps hangs."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """An array that is handed over piece by piece (its bytes, row-major), and never lies in the fork as a whole."""

    dtype: np.dtype
    shape: tuple[int, ...]
    pieces: Iterable[bytes]

    @property
    def nbytes(self) -> int:
        """The bytes of all pieces."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Limits:
    """What a limited process may take: see :func:`limited`.  ``scarce``: it may take less, as no more is free."""

    seconds: float
    memory: int
    answer: int
    reads: Sequence[Path]
    scarce: bool


Work = Callable[[], "Iterable[np.ndarray | Pieces]"]


def limited(
    work: Work, what: str, error: type[WorkbenchError], *, seconds: float = SECONDS, memory: int = MEMORY,
    answer: int | None = None, reads: Sequence[Path] = (),
) -> list[np.ndarray]:  # fmt: skip
    """Return the arrays that ``work`` returns or yields; what it imports has to be imported already.

    ``reads``: folders whose files it may read; then it may import, too, as libraries do that are given a folder.

    A WorkbenchError that it raises is raised here.  Raises ``error``, which begins with ``what``, where it raises
    another, crashes, takes more than ``seconds`` of processor time or ``memory`` bytes, or where its arrays take more
    than ``answer`` bytes (None: half of ``memory``), which lie outside of its own memory.  Both are bounded by what is
    free, as a large file of a few bytes (a sparse one) would bound nothing.
    """
    if not FORKS:
        return _here(work, what, error)
    import numpy  # noqa: F401 - here, not in the fork

    free, answer = max(free_memory(), MEMORY), memory // 2 if answer is None else answer
    limits = Limits(seconds, min(memory, free), min(answer, free), reads, free < max(memory, answer))
    result = os.memfd_create("limited")
    try:
        code = _forked(work, result, limits)
        if code != 0:
            require_allowed(result, what, error)
            raise error(f"{what} {_ending(code, limits)}")
        return _read(result, what, error)
    finally:
        os.close(result)


def require_allowed(answer: int, what: str, error: type[WorkbenchError]) -> None:
    """Raise ``error`` where an answer ended at the most that the user allows a file to hold (ulimit -f)."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if most != resource.RLIM_INFINITY and os.fstat(answer).st_size >= most:
        raise error(f"{what} becomes more than the {size_text(most)} that a file may hold here (ulimit -f); allow more")


class _AnswerTooLargeError(Exception):
    """The file for the answer takes no more."""


def confine(reads: Sequence[Path] = ()) -> None:
    """Take from this process every path, connection and signal, for good, as far as the kernel can (Landlock).

    ``reads``: what lies in these folders can be read still, links in them followed, and what Python itself imports.

    Through ``syscall``: the only binding of the package index is an alpha version without network and signals.
    """
    system = ctypes.CDLL(None, use_errno=True)
    create, restrict, no_new_privileges = 444, 446, 38
    version = system.syscall(create, None, 0, 1)
    if version < 1:
        return
    files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    rights = (ctypes.c_uint64 * 3)(files, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = system.syscall(create, ctypes.byref(rights), size, 0)
    if rules >= 0:
        for place in _readable(reads) if reads else ():
            _allow(system, rules, place)
        system.prctl(no_new_privileges, 1, 0, 0, 0)
        system.syscall(restrict, rules, 0)
        os.close(rules)


def _readable(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the places that a process reads that may read ``folders``."""
    yield from (Path(place) for place in (*SYSTEM, sys.prefix, sys.base_prefix, *sys.path) if place)
    for folder in folders:
        yield folder
        yield from (entry.resolve() for entry in folder.iterdir() if entry.is_symlink())


def _allow(system: ctypes.CDLL, rules: int, place: Path) -> None:
    """Let a file, or all in a folder, be read; what is not there needs no rule."""
    add, beneath, read_file, read_folder = 445, 1, 1 << 2, 1 << 3
    try:
        entry = os.open(place, getattr(os, "O_PATH", 0))
    except OSError:
        return
    rights = read_file | (read_folder if stat.S_ISDIR(os.fstat(entry).st_mode) else 0)
    system.syscall(add, rules, beneath, struct.pack("=Qi", rights, entry), 0)
    os.close(entry)


def end_with_parent() -> None:
    """Have this process, a fork, killed when its parent ends, also by a signal (Linux)."""
    kill_me_with_my_parent = 1
    ctypes.CDLL(None).prctl(kill_me_with_my_parent, signal.SIGKILL, 0, 0, 0)


def _here(work: Work, what: str, error: type[WorkbenchError]) -> list[np.ndarray]:
    import numpy as np

    try:
        return [
            np.frombuffer(b"".join(each.pieces), each.dtype).reshape(each.shape) if isinstance(each, Pieces) else each
            for each in work()
        ]
    except WorkbenchError:
        raise
    except Exception as reason:
        raise error(f"{what} cannot be read: {first_line(reason)}") from reason


def _forked(work: Work, result: int, limits: Limits) -> int | None:
    return in_fork(lambda: _work(work, result, limits), limits.seconds)


def in_fork(task: Callable[[], object], seconds: float) -> int | None:
    """Run ``task``, which ends the process, in a fork; returns its exit code, None where it takes far too long.

    The fork dies with this process and handles none of its signals.  ``seconds`` of processor time are expected.
    """
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, whose locks the fork never takes
        process = os.fork()
    if not process:
        try:
            end_with_parent()
            gc.disable()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            task()
        finally:
            os._exit(1)
    return _ending_of(process, WAIT + 5 * seconds)


def _ending_of(process: int, seconds: float) -> int | None:
    """Wait for a fork of this process; returns its exit code.

    Kills it and returns None after ``seconds`` in which it did not ask for a processor (that which it gets is limited),
    or where it has slept for ``STILL`` seconds without taking processor time: what waits for a lock waits for ever, as
    the threads that hold locks are not in the fork.
    """
    ended, watched, waited, before = False, os.pidfd_open(process), 0.0, ""
    now = changed = time.monotonic()
    try:
        while not (ended := bool(select.select([watched], [], [], 0.5)[0])) and waited < seconds:
            last, now = now, time.monotonic()
            state, spent = _activity(process)
            waited += now - last if state != "R" else 0.0
            if state != "S" or spent != before:
                changed, before = now, spent
            elif now - changed > STILL:
                break
    finally:
        os.close(watched)
        if not ended:
            os.kill(process, signal.SIGKILL)
        status = os.waitpid(process, 0)[1]
    return os.waitstatus_to_exitcode(status) if ended else None


def _activity(process: int) -> tuple[str, str]:
    """Return a process's state (S: it sleeps) and what says how much processor time it has taken."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return fields[0], f"{fields[11]} {fields[12]}"


def _work(work: Work, result: int, limits: Limits) -> NoReturn:
    """Be the fork: give everything up, work, write the answer, end."""
    _limit(result, limits)
    try:
        os._exit(_answer(work))
    except _AnswerTooLargeError:
        os._exit(TOO_LARGE)


def _limit(result: int, limits: Limits) -> None:
    import resource

    with open("/proc/self/statm") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.dup2(result, RESULT)
    os.closerange(RESULT + 1, os.sysconf("SC_OPEN_MAX"))
    confine(limits.reads)
    if not limits.reads:  # what an import does not find is not there: a folder that has changed cannot be listed
        sys.meta_path[:] = [importer for importer in sys.meta_path if importer in WITHOUT_FILES]
    whole = max(math.ceil(limits.seconds), 1)
    for limit, value in (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, whole), (resource.RLIMIT_AS, used + limits.memory),
        (resource.RLIMIT_NOFILE, FILES if limits.reads else RESULT + 1), (resource.RLIMIT_FSIZE, limits.answer),
    ):  # fmt: skip
        hard = resource.getrlimit(limit)[1]  # the user may have less
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (bound, bound))


def _answer(work: Work) -> int:
    """Write the arrays, then their types, shapes and places as JSON, then its length (8 bytes)."""
    answer: dict[str, Any] = {"arrays": []}
    place = 0
    try:
        for array in work():
            answer["arrays"].append([array.dtype.str, list(array.shape), place])
            parts = array.pieces if isinstance(array, Pieces) else [array.reshape(-1).view("u1")]
            place += sum(map(_write, parts)) + _write(bytes(-array.nbytes % 64))
    except WorkbenchError as reason:
        kind = next(base for base in type(reason).__mro__ if getattr(errors, base.__name__, None) is base)
        answer = {"error": kind.__name__, "message": str(reason)}
    except _AnswerTooLargeError:
        raise
    except MemoryError:
        return NO_MEMORY
    except Exception as reason:
        answer = {"failed": first_line(reason)}
    text = json.dumps(answer).encode()
    _write(text + len(text).to_bytes(8, "little"))
    return 0


def _write(data: bytes | np.ndarray) -> int:
    raw: Any = data
    view = memoryview(raw)
    try:
        while view:
            view = view[os.write(RESULT, view) :]
    except OSError as reason:
        raise _AnswerTooLargeError from reason
    return len(data)


def _ending(code: int | None, limits: Limits) -> str:
    if limits.scarce and code in (NO_MEMORY, TOO_LARGE, -signal.SIGXFSZ):
        return f"takes more than the {size_text(limits.memory)} that are free; give less, or close other programs"
    return f"{_what_ended(code, limits)}; it is damaged or malicious"


def _what_ended(code: int | None, limits: Limits) -> str:
    if code in (None, -signal.SIGXCPU, -signal.SIGKILL):
        return f"takes more than {limits.seconds:.3g} s or too much memory to read"
    if code == NO_MEMORY:
        return "takes too much memory to read"
    if code in (TOO_LARGE, -signal.SIGXFSZ):
        return f"becomes more than {size_text(limits.answer)}, the most for a file of its size"
    return "makes the library that reads it crash"


def _read(result: int, what: str, error: type[WorkbenchError]) -> list[np.ndarray]:
    """Return the arrays of the answer, or raise its error; nothing in it is believed but its numbers."""
    import numpy as np

    size = os.fstat(result).st_size
    if size < 8:
        raise error(f"{what} makes the library that reads it end; it is damaged or malicious")
    buffer = mmap.mmap(result, size, access=mmap.ACCESS_COPY)
    start = size - 8 - int.from_bytes(buffer[size - 8 :], "little")
    answer = json.loads(buffer[max(start, 0) : size - 8])
    if "error" in answer:
        kind = getattr(errors, str(answer["error"]), error)
        raise (kind if isinstance(kind, type) and issubclass(kind, WorkbenchError) else error)(answer["message"])
    if "failed" in answer:
        raise error(f"{what} cannot be read: {answer['failed']}")
    return [
        np.frombuffer(buffer, dtype, int(np.prod(shape, dtype=object)), place).reshape(shape)
        for dtype, shape, place in answer["arrays"]
    ]
