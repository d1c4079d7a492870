"""How much memory this process may take, and arrays on the disk where that is not enough.

What counts is anonymous memory: what files back (mapped weights, :class:`Scratch`) the system takes back when it needs
the room.  Importing this loads no torch.
"""

from __future__ import annotations

import ctypes
import gc
import math
import mmap
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import psutil

from workbench.errors import MemoryLimitError

if TYPE_CHECKING:
    import numpy as np
    import torch

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
CGROUP_USED = Path("/sys/fs/cgroup/memory.current")
STATUS = Path("/proc/self/status")

DONT_NEED = 4
"""Linux's advice for pages that may leave; those of a shared file keep what was written."""

SPILLED = 1 << 20
"""Smaller tensors stay in memory: a file of their own would cost more than they take."""

GROWN, GROWN_IN_LIMIT = 1 << 28, 1 << 26
"""Bytes by which a process may grow before freed memory is given back; fresh pages cost a tenth of a calibration."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's ``mallopt``."""

LARGE_PIECE = 1 << 24
"""Bytes up to which freed pieces stay with the process in :func:`in_pieces`."""

LARGE_BLOCK = 1 << 17
"""Under a limit, blocks of so many bytes go back to the system as they are freed.

Tensors of 0.6 MB among others that stay left holes of 0.4 GB in a pass of SmolLM2-135M.
"""

holders: list[Callable[[], None]] = []
"""Release the memory that parts of the program keep for their next results."""

HELD = 1 << 24
"""So many bytes stay in memory of what lies in files from the start."""

LEFT_ON_DISK = 1 << 28
"""So much of the disk is left to others."""

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?|)b?", re.IGNORECASE)

_limits: list[int] = []


def parse_size(text: str) -> int:
    """Return bytes from ``2GB``, ``1.5 GiB`` or ``800M`` (decimal units, binary ones with i); raises ValueError."""
    match = SIZE.fullmatch(text.strip())
    size = float(match[1]) * UNITS[match[2].lower()] if match else 0.0
    if not 1 <= size < 2**63:
        raise ValueError(f"{text!r} is not a size; write a number and a unit, such as 120MB, 2GB or 1.5GiB")
    return int(size)


def size_text(nbytes: float) -> str:
    """Return bytes for people: ``2.34 GB``, ``12 MB``."""
    return "{:.3g} {}".format(*in_units(nbytes))


def in_units(nbytes: float) -> tuple[float, str]:
    """Return bytes in the decimal unit that leaves them three digits before the point, as files and budgets have it."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(nbytes) < 999.5:
            return nbytes, unit
        nbytes /= 1000
    return nbytes, "TB"


def left_text(nbytes: int) -> str:
    """State that ``nbytes`` are left, of what is allowed where there is a limit."""
    bound = limit()
    if bound is None:
        return f"{size_text(nbytes)} of memory are free"
    used, left = size_text(anonymous_memory()), size_text(nbytes) if nbytes else "nothing"
    return f"of {size_text(bound)} that are allowed, the program takes {used} already, and {left} is left"


def memory_limit(size: str | int) -> AbstractContextManager[None]:
    """Let what is done in a ``with`` block take at most ``size`` of memory: ``"2GB"``, ``"1.5GiB"``, or bytes.

    Models that are larger stay in their files, mapped; what is beyond the limit lies on the disk meanwhile.  Results
    are the same.  Raises ValueError where ``size`` cannot be read.
    """
    return limited_to(parse_size(str(size)))


@contextmanager
def limited_to(nbytes: int | None) -> Iterator[None]:
    """Let this process take at most ``nbytes`` of anonymous memory (None: what is free) meanwhile, as far as it can.

    Nothing enforces it: what computes asks :func:`available_memory` and takes smaller pieces.
    """
    if nbytes is None:
        yield
        return
    _limits.append(nbytes)
    free_at_once()
    release()
    try:
        yield
    finally:
        _limits.remove(nbytes)
        release()


def limit() -> int | None:
    """Return the limit that is in force, None where there is none."""
    return min(_limits, default=None)


def anonymous_memory() -> int:
    """Return the bytes of this process that no file backs; where the system does not say, what is resident."""
    with suppress(OSError, StopIteration, ValueError):
        lines = STATUS.read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024
    return int(psutil.Process().memory_info().rss)


def free_memory() -> int:
    """Return the machine's free memory, and no more than its container allows."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):
        free = min(free, max(int(CGROUP_LIMIT.read_text()) - int(CGROUP_USED.read_text()), 0))
    return free


def available_memory() -> int:
    """Bytes that this process can still use: of the limit, the machine's free memory and what its container allows."""
    free, bound = free_memory(), limit()
    return free if bound is None else min(free, max(bound - anonymous_memory(), 0))


def release() -> None:
    """Give freed memory back to the system: what many small results took stays with the process otherwise."""
    gc.collect()
    give_back()


def give_back() -> None:
    """Give back what the C library and :data:`holders` hold of freed memory; looks for no garbage."""
    for release in holders:
        release()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class Footprint:
    """Keeps a long run from growing by memory that is freed and stays with the process, in pieces between others.

    What the first piece took stays, for those that follow to take again; under a limit it is given back, too.
    ``grown`` is by how many bytes it may grow (default: GROWN, under a limit GROWN_IN_LIMIT).
    """

    def __init__(self, grown: int | None = None) -> None:
        self._first = None if limit() is None else anonymous_memory()
        self._grown = grown or (GROWN if limit() is None else GROWN_IN_LIMIT)

    def settle(self) -> None:
        """Give freed memory back where the process has grown by more since the first piece."""
        if self._first is None:
            self._first = anonymous_memory()
        elif anonymous_memory() > self._first + self._grown:
            give_back()


@contextmanager
def uncollected() -> Iterator[None]:
    """Make many objects without cycles: the search for cycles, which would go through all of torch, waits."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def free_at_once() -> None:
    """Let the C library give back large blocks as they are freed, from now on; it keeps some to be faster."""
    _adjust(LARGE_BLOCK, LARGE_BLOCK)


def _adjust(mapped: int, trimmed: int) -> None:
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, mapped)
        library.mallopt(M_TRIM_THRESHOLD, trimmed)


@contextmanager
def in_pieces() -> Iterator[None]:
    """Work in which pieces of the same few sizes come and go: under a limit, too, what is freed is used again.

    Fresh pages for each piece took half of the time of an export.
    """
    if limit() is None:
        yield
        return
    _adjust(LARGE_PIECE, 8 * LARGE_PIECE)
    try:
        yield
    finally:
        free_at_once()
        give_back()


class Scratch:
    """Tensors in files that are gone when the tensors are, or when the process ends.

    ``folder`` (default: :func:`scratch_folder`) must lie on a disk with room.  Raises MemoryLimitError where it is
    full, before anything is written into the tensor.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or scratch_folder()

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor of zeros that a file backs."""
        import torch

        storage = self._storage(max(math.prod(shape) * dtype.itemsize, 1))
        return torch.empty(0, dtype=dtype).set_(storage, 0, shape)  # type: ignore[no-any-return,call-overload]

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy that a file backs."""
        copy = self.empty(tuple(tensor.shape), tensor.dtype)
        copy.copy_(tensor.detach())
        return copy

    def written(self, array: np.ndarray) -> np.ndarray:
        """Return a copy that a file backs, none of it in memory: a third of the time that a mapped file's pages take.

        The array must not be empty.
        """
        import numpy as np
        import torch

        octets = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        storage = self._storage(octets.size, octets)
        raw = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (octets.size,))  # type: ignore[call-overload]
        away: np.ndarray = raw.numpy().view(array.dtype).reshape(array.shape)
        return away

    def _storage(self, nbytes: int, octets: np.ndarray | None = None) -> torch.UntypedStorage:
        """Return a file's bytes, those of ``octets`` or zeros."""
        import torch

        named = not os.path.exists("/proc/self/fd")
        make: Any = partial(tempfile.NamedTemporaryFile, delete=False) if named else tempfile.TemporaryFile
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if psutil.disk_usage(str(self._folder)).free < nbytes + LEFT_ON_DISK:
                raise OSError(28, "no space left")
            with make(prefix="workbench-", suffix=".scratch", dir=self._folder) as file:
                try:
                    reserve(file.fileno(), nbytes)
                    file.write(b"" if octets is None else octets.data)
                    file.flush()
                    place = file.name if named else f"/proc/self/fd/{file.fileno()}"
                    return torch.UntypedStorage.from_file(place, shared=True, nbytes=nbytes)  # type: ignore[return-value]
                finally:
                    if named:
                        with suppress(OSError):  # where an open file keeps its name, it stays
                            os.unlink(file.name)
        except (OSError, RuntimeError) as error:
            raise MemoryLimitError(
                f"{size_text(nbytes)} that do not fit into memory cannot be put on the disk, at {self._folder}: "
                f"{getattr(error, 'strerror', None) or str(error).splitlines()[0]}; free some of it, name another "
                f"folder ({SCRATCH_VARIABLE}), or allow more memory (--memory)"
            ) from None


SCRATCH_VARIABLE = "WORKBENCH_SCRATCH_FOLDER"
"""The environment variable that names the folder for what does not fit into memory."""


def scratch_folder() -> Path:
    """Return the folder for what does not fit into memory: in that of the variable, else in the user's cache."""
    named = os.environ.get(SCRATCH_VARIABLE)
    return Path(named or platformdirs.user_cache_dir("quantization-workbench", appauthor=False)) / "scratch"


def reserve(file: int, nbytes: int) -> None:
    """Reserve the blocks of a file, so that a full disk is an OSError now and no crash at a write into the map."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, nbytes)
    else:
        os.truncate(file, nbytes)


_passing: weakref.WeakKeyDictionary[mmap.mmap, tuple[int, int]] = weakref.WeakKeyDictionary()
"""Mapped files into which nobody writes, with their address and bytes: any page may leave and is read again if used."""


def passing(data: mmap.mmap, address: int, nbytes: int) -> None:
    """Let the pages of a mapped file leave wherever :func:`let_go` is called for them."""
    _passing[data] = address, nbytes


def let_go(values: np.ndarray | torch.Tensor) -> None:
    """Have the pages of what was read out of a passing file leave the memory; nothing happens to other arrays."""
    for data, first, last in _pages(values, whole=True):
        data.madvise(mmap.MADV_DONTNEED, first, last - first)


def read_ahead(values: np.ndarray | torch.Tensor) -> None:
    """Have the system begin to read from a passing file what is used next; nothing happens to other arrays."""
    for data, first, last in _pages(values, whole=False):
        data.madvise(mmap.MADV_WILLNEED, first, last - first)


def _pages(values: np.ndarray | torch.Tensor, *, whole: bool) -> Iterator[tuple[mmap.mmap, int, int]]:
    """Yield the passing file that holds ``values``, and the place of the pages that they fill, ``whole`` or in part."""
    values = getattr(values, "stored", values)  # of numbers that compute in float32, those that the file holds
    start = values.ctypes.data if hasattr(values, "ctypes") else values.data_ptr()
    for data, (address, nbytes) in tuple(_passing.items()):
        if address <= start < address + nbytes:
            first, last = start - address, start + values.nbytes - address
            up, down = -first % mmap.PAGESIZE, last % mmap.PAGESIZE
            first, last = (first + up, last - down) if whole else (first - first % mmap.PAGESIZE, last)
            if last > first:
                yield data, first, last


_away: list[weakref.ref[np.ndarray]] = []
"""Arrays that lie in files, while they are used."""


def put_away_again(*arrays: np.ndarray) -> None:
    """Have the pages of arrays that lie in files leave the memory; without ``arrays``, of all that were put away."""
    if sys.platform != "linux":
        return
    _away[:] = [*(each for each in _away if each() is not None), *map(weakref.ref, arrays)]
    advise = ctypes.CDLL(None).madvise
    for array in arrays or [array for each in _away if (array := each()) is not None]:
        advise(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), DONT_NEED)


def _in_file(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    import torch

    raw = Scratch().empty((math.prod(shape) * dtype.itemsize,), torch.uint8).numpy()
    away: np.ndarray = raw.view(dtype).reshape(shape)
    put_away_again(away)
    return away


class Spill:
    """Keeps tensors in memory until they take ``room`` bytes together, and later ones in files."""

    def __init__(self, room: int | None = None, share: float = 0.25) -> None:
        self._room = int(available_memory() * share) if room is None else room
        self.spilled = 0

    @staticmethod
    def in_files(nbytes: int) -> Spill:
        """Return where ``nbytes`` lie that are read rarely: in files but for HELD, where the disk has room for them.

        Of MiniLM's 430 MB of differences each batch reads all; from files that the system holds their products with
        gradients take nearly twice as long.
        """
        return Spill(room=HELD if disk_room() > nbytes else None)

    def takes(self, nbytes: int) -> bool:
        """Return whether so many more bytes stay in memory, and count them."""
        fits = nbytes < SPILLED or nbytes <= self._room
        self._room -= nbytes if fits else 0
        self.spilled += 0 if fits else nbytes
        return fits

    def keep(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor, or a copy of it in a file; what lies on a device stays there."""
        return tensor if tensor.device.type != "cpu" or self.takes(tensor.nbytes) else Scratch().copy(tensor)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return an array without values, in memory or in a file."""
        import numpy as np

        return np.empty(shape, dtype) if self.takes(math.prod(shape) * dtype.itemsize) else _in_file(shape, dtype)

    def put_away(self, array: np.ndarray) -> np.ndarray:
        """Return the array, or a copy of it in a file, which takes no memory until it is read."""
        if self.takes(array.nbytes):
            return array
        away = Scratch().written(array)
        put_away_again(away)
        return away

    def zeros(self, like: torch.Tensor, *shape: int) -> torch.Tensor:
        """Return zeros of the dtype and on the device of ``like``."""
        count = like.element_size()
        for size in shape:
            count *= size
        if like.device.type != "cpu" or self.takes(count):
            return like.new_zeros(shape)
        return Scratch().empty(shape, like.dtype)


def disk_room() -> int:
    """Return the bytes that may lie on the disk for what does not fit into memory."""
    folder = scratch_folder()
    there = next((each for each in (folder, *folder.parents) if each.is_dir()), folder)
    try:
        return max(int(psutil.disk_usage(str(there)).free) // 2 - LEFT_ON_DISK, 0)
    except OSError:
        return 0


def resident(pid: int | None) -> int | None:
    """Return the resident bytes of a process, None where they cannot be read."""
    with suppress(psutil.Error):
        return None if pid is None else int(psutil.Process(pid).memory_info().rss)
    return None
