"""Tensors as files hold them: named, typed, hashed, read one at a time, and the memory that they take."""

from __future__ import annotations

import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from workbench.errors import ModelTooLargeError, NotAModelError, WorkbenchError
from workbench.memory import available_memory, let_go, limit, read_ahead, size_text, uncollected
from workbench.models.contents import Contents, are_large, identity, keep, known
from workbench.models.dtypes import FLOATING, dtype_name
from workbench.models.layer import StoredTensor
from workbench.models.readers.mapped import MappedFile
from workbench.models.readers.safetensors_header import Header, UnknownDtypeError, read_header

WORKING_SHARE = 1.2
"""A model in use takes its weights and about a fifth more: activations of a small batch, one layer's copies."""

RESIDENT = 1 << 28
"""Bytes of a file that stay resident where its tensors are read one after another."""

PIECE = 1 << 23
"""Numbers of a tensor that are looked through at a time."""

SMALL = 1 << 16
"""Bytes that are hashed sooner than another thread begins."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorStore:
    """Named tensors; ``read`` returns one in its stored dtype, never to be written into.

    ``files`` are those that hold them all, in no other form.  ``tied`` maps names whose tensor is another one's to that
    one's name.
    """

    tensors: Mapping[str, StoredTensor]
    read: Callable[[str], torch.Tensor]
    metadata: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    tied: Mapping[str, str] = field(default_factory=dict)


class _SafetensorsFile:
    """A file that stays mapped, as reading a header of 15,000 tensors takes 60 ms; mapped again when it has changed."""

    def __init__(self, path: Path, error: type[WorkbenchError], window: Window | None = None) -> None:
        self._path, self._error, self._window = path, error, window
        self._stamp: tuple[int, int] | None = None
        self._opened: tuple[MappedFile, Header] | None = None

    def opened(self) -> tuple[MappedFile, Header]:
        """Return the bytes and the checked header; raises the error for what is damaged."""
        try:
            status = self._path.stat()
            stamp = status.st_mtime_ns, status.st_size
            if self._opened is None or self._stamp != stamp:
                file = MappedFile(self._path, passing=self._window is not None)
                self._opened, self._stamp = (file, read_header(file)), stamp
            return self._opened
        except UnknownDtypeError as error:
            raise self._error(f"{self._path}: {error}") from None
        except ValueError as error:
            raise self._error(f"{self._path} is not a whole safetensors file: {error}; fetch it again") from None
        except OSError as error:
            raise self._error(f"{self._path} cannot be read: {error.strerror or error}") from error

    def read(self, name: str) -> torch.Tensor:
        """Return a tensor, mapped and never to be written into."""
        file, header = self.opened()
        entry = header.tensors.get(name)
        if entry is None:
            raise self._error(f"{self._path} holds no tensor {name} any more; it was changed while it was open")
        if self._window is not None:
            self._window.read(file, entry.start, entry.end)
        return file.tensor(entry.start, entry.shape, getattr(torch, entry.dtype))


class Window:
    """The pages of tensors that were read last; older ones need not stay resident, and are read again if used again."""

    def __init__(self) -> None:
        self._latest, self._size = deque[tuple[MappedFile, int, int]](), 0

    def read(self, file: MappedFile, start: int, end: int) -> None:
        """Note that a tensor is read, and let go of the oldest beyond :data:`RESIDENT`."""
        self._latest.append((file, start, end))
        self._size += end - start
        while self._size > RESIDENT and len(self._latest) > 1:
            oldest, first, last = self._latest.popleft()
            oldest.let_go(first, last)
            self._size -= last - first


def tensors_in_files(
    paths: Sequence[Path], error: type[WorkbenchError] = NotAModelError, *, passing: bool = False
) -> TensorStore:
    """Return the tensors of safetensors files, memory-mapped; only the headers are read at first.

    ``passing``: tensors are read one after another and written into by nobody, so that little of the files is resident.
    Raises ``error`` for a foreign, damaged or truncated file.
    """
    window = Window() if passing else None
    tensors, metadata = dict[str, StoredTensor](), dict[str, str]()
    file_of: dict[str, _SafetensorsFile] = {}
    with uncollected():
        for path in paths:
            file = _SafetensorsFile(path, error, window)
            _, header = file.opened()
            metadata |= header.metadata
            for name, entry in header.tensors.items():
                tensors[name], file_of[name] = StoredTensor(name=name, dtype=entry.dtype, shape=entry.shape), file
    if not tensors:
        raise error(f"{paths[0] if paths else 'the file'} holds no tensors; weights were expected")

    def read(name: str) -> torch.Tensor:
        if name not in file_of:
            raise error(f"{paths[0]} holds no tensor {name}")
        return file_of[name].read(name)

    return TensorStore(tensors, read, metadata, tuple(paths))


def in_blocks(store: TensorStore) -> TensorStore:
    """Return the tensors in the order of the numbers in their names: a file of safetensors has block 10 before 2."""

    def parts(name: str) -> list[tuple[int, str]]:
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in name.split(".")]

    return replace(store, tensors={name: store.tensors[name] for name in sorted(store.tensors, key=parts)})


def tensors_in_memory(state: Mapping[str, torch.Tensor]) -> TensorStore:
    """Return the tensors of a state dict; of several at one place of the memory, the first owns it."""
    facts = [StoredTensor(name=name, dtype=dtype_name(each), shape=tuple(each.shape)) for name, each in state.items()]
    owners, tied = dict[object, str](), dict[str, str]()
    for name, each in state.items():
        owner = owners.setdefault((each.data_ptr(), each.dtype, each.shape, each.stride()), name)
        if owner != name and each.numel():
            tied[name] = owner
    return TensorStore({tensor.name: tensor for tensor in facts}, lambda name: state[name].detach(), tied=tied)


def contents_of(store: TensorStore, *, read: bool = True) -> Contents:
    """Return the hash over every tensor's name, dtype, shape and bytes, in the order of names, and what is not finite.

    Large files that were read before are not read again while they stay the same; unless they are to be ``read``, the
    contents of others are unknown.
    """
    files = identity(store.files)
    contents = known(files, store.tensors)
    if contents is not None:
        return contents
    if not read and are_large(store.files):
        return Contents(fingerprint="")
    contents = _read(store)
    if identity(store.files) == files:
        keep(files, store.tensors, contents)
    return contents


def with_tied(store: TensorStore) -> TensorStore:
    """Return the tensors of a file of safetensors, which holds tied ones twice, with what its metadata say of them."""
    try:
        stated = json.loads(store.metadata.get("tied", "{}"))
        pairs = {name: owner for name, owner in stated.items() if {name, owner} <= store.tensors.keys()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return store
    return replace(store, tied={
        name: owner for name, owner in pairs.items() if owner not in pairs and _are_equal(store, name, owner)
    })  # fmt: skip


def _are_equal(store: TensorStore, name: str, other: str) -> bool:
    facts = [replace(store.tensors[each], name="") for each in (name, other)]
    pieces = (torch.split(store.read(each).reshape(-1).view(torch.uint8), PIECE) for each in (name, other))
    return facts[0] == facts[1] and all(map(torch.equal, *pieces))


def _read(store: TensorStore) -> Contents:
    """Read every tensor once and a piece at a time: one thread hashes a large piece that another one looks through,
    while the disk reads the next."""
    total, bad = hashlib.sha256(), set[str]()
    pieces, name = _pieces(store), None
    coming = next(pieces, None)
    with ThreadPoolExecutor(1) as hashing:
        while coming is not None:
            (tensor, piece), coming = coming, next(pieces, None)
            if coming is not None:
                read_ahead(coming[1])
            if tensor.name != name:
                name = tensor.name
                total.update(f"{name}\0{tensor.dtype}\0{','.join(map(str, tensor.shape))}\0".encode())
            data, hashed = piece.view(torch.uint8).numpy().data, None
            if len(data) >= SMALL:
                hashed = hashing.submit(total.update, data)
            else:
                total.update(data)
            if tensor.dtype in FLOATING and not all_finite(piece):
                bad.add(name)
            if hashed:
                hashed.result()
                let_go(piece)
    bad_in_order = tuple(name for name in store.tensors if name in bad)
    return Contents(fingerprint="sha256:" + total.hexdigest(), non_finite=bad_in_order)


def _pieces(store: TensorStore) -> Iterator[tuple[StoredTensor, torch.Tensor]]:
    """Yield all numbers in the order of names, at least one piece (which may be empty) of every tensor."""
    for name in sorted(store.tensors):
        flat = store.read(name).detach().cpu().contiguous().reshape(-1)
        for piece in torch.split(flat, PIECE):
            yield store.tensors[name], piece


def all_finite(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds no NaN and no infinity."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    values = tensor.float() if tensor.dtype.itemsize == 1 else tensor
    low, high = torch.aminmax(values.detach())
    return math.isfinite(low) and math.isfinite(high)


def memory_to_run(tensors: Iterable[StoredTensor], itemsize: int = 4) -> int:
    """Bytes to load ``tensors`` in numbers of ``itemsize`` bytes (float64 as it is), and to run a small batch."""
    total = 0
    for tensor in tensors:
        size = 8 if tensor.dtype == "float64" else itemsize if tensor.dtype in FLOATING else 8
        total += size * math.prod(tensor.shape)
    return int(total * WORKING_SHARE)


def fits(needed: int) -> bool:
    """Return whether ``needed`` bytes may be taken; under a limit, such that as much is left for the work."""
    return needed * (1 if limit() is None else 2) <= available_memory()


def require_memory(needed: int, what: str) -> None:
    """Raise ModelTooLargeError, with both numbers, if ``needed`` bytes are more than are available."""
    available = available_memory()
    if needed > available:
        raise ModelTooLargeError(
            f"{what} needs about {size_text(needed)} of memory to run, {size_text(available)} available; close other "
            "programs, run it in its own dtype (--dtype stored) if that is less than float32, use a machine with "
            "more memory, or open a .safetensors file of it for its weights"
        )
