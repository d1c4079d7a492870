"""Work that was interrupted: its finished pieces lie in the cache folder until the step that they belong to has ended.

A step runs within :func:`remembered`.  What it computes piece by piece asks :func:`pieces_of` for those that an
interrupted run with the same facts (model, data, options: whatever decides the bits) has left, and gives new ones from
time to time.  Cancelled, killed or failed, the same command or job goes on from them; a step that ends removes them.
The folder has a bounded size, and a disk that is full costs nothing but time.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.cache import cache_folder
from workbench.measurement.reference.cache import NO_CACHE, ArrayCache
from workbench.progress import Progress
from workbench.version import VERSION

FIRST, EVERY = 10.0, 20.0
"""Seconds after which pieces are saved for the first time and then again: shorter work is repeated as quickly."""

SHARE = 20
"""Saving takes at most one part in so many of the time."""


@dataclass(slots=True)
class _Run:
    """A step that runs: where it saves, under which keys, and what it tells the user."""

    cache: ArrayCache
    notes: list[str]
    keys: set[str] = field(default_factory=set)


_RUN: ContextVar[_Run | None] = ContextVar("run", default=None)


@contextmanager
def remembered(notes: list[str]) -> Iterator[None]:
    """Save the pieces of the work in this block, and remove them when it has ended without an error.

    ``notes`` gets a sentence for everything that goes on from an interrupted run.  Inside another such block it is that
    one's work.
    """
    if _RUN.get() is not None:
        yield
        return
    run = _Run(ArrayCache(folder=cache_folder("outputs-unfinished")), notes)
    token = _RUN.set(run)
    try:
        yield
    finally:
        _RUN.reset(token)
    for key in run.keys:
        run.cache.discard(key)


def pieces_of(what: str, kinds: tuple[type, ...], facts: Callable[[], Mapping[str, object]]) -> Pieces:
    """Return the pieces of ``what`` (``calibration``), dataclasses of ``kinds`` among them, that ``facts`` identify.

    Outside of :func:`remembered` nothing is saved and the facts are not asked for.
    """
    run = _RUN.get()
    if run is None or run.cache.folder is None:
        return Pieces(_Run(NO_CACHE, []), "", kinds)
    import torch

    circumstances = {
        "workbench": VERSION, "torch": torch.__version__, "threads": torch.get_num_threads(), "what": what,
    }  # fmt: skip
    key = json.dumps({**facts(), **circumstances}, sort_keys=True, default=str)
    run.keys.add(key)
    return Pieces(run, key, kinds)


@dataclass(slots=True)
class Pieces:
    """Named values of one interrupted run."""

    run: _Run
    key: str
    kinds: tuple[type, ...]
    next: float = field(default_factory=lambda: time.monotonic() + FIRST)

    def load(self, name: str) -> Any:
        """Return a piece, None where there is none or it is damaged."""
        if not self.key:
            return None
        arrays = self.run.cache.load(self.key, _file(name))
        try:
            return None if arrays is None else _Unpacking(arrays, {kind.__name__: kind for kind in self.kinds}).value
        except (KeyError, ValueError, TypeError, IndexError, AttributeError):
            return None

    def due(self) -> bool:
        """Return whether it is time to save again."""
        return bool(self.key) and time.monotonic() >= self.next

    def save(self, values: Mapping[str, object]) -> None:
        """Save pieces by name, each as a whole or not at all."""
        if not self.key:
            return
        start = time.monotonic()
        for name, value in values.items():
            self.run.cache.store(self.key, _file(name), packed(value, self.kinds))
        now = time.monotonic()
        self.next = now + max(EVERY, SHARE * (now - start))

    def saving(self, name: str, progress: Progress) -> Progress:
        """Return a progress that saves the partial results that pass through it."""

        def report(fraction: float, text: str, partial: object = None) -> None:
            if partial is not None and self.due():
                self.save({name: partial})
            progress(fraction, text, partial)

        return report

    def goes_on(self, text: str) -> None:
        """Tell the user where the work goes on: ``calibration continues at batch 12 of 32``."""
        self.run.notes.append(f"an interrupted run was found: {text}")


def _file(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def digest(value: object, kinds: tuple[type, ...] = ()) -> str:
    """Return a checksum of plain values, arrays and dataclasses of ``kinds``."""
    total = hashlib.sha256()
    for name, array in packed(value, kinds).items():
        raw: Any = np.ascontiguousarray(array).data
        total.update(name.encode())
        total.update(raw)
    return total.hexdigest()


def packed(value: object, kinds: tuple[type, ...]) -> dict[str, np.ndarray]:
    """Return a value as arrays of bytes: ``tree``, its structure as JSON, and its arrays by number, not copied.

    Takes None, numbers, texts, lists, tuples, tables, arrays, tensors, and dataclasses of ``kinds``; what is in it
    twice is so afterwards.  Raises TypeError for anything else.
    """
    packing = _Packing(kinds)
    tree = json.dumps(packing.node(value))
    return {"tree": np.frombuffer(tree.encode(), np.uint8), **packing.arrays}


@dataclass(slots=True)
class _Packing:
    kinds: tuple[type, ...]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    known: dict[int, tuple[int, object]] = field(default_factory=dict)

    def node(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is dict:
            return ["dict", [[self.node(key), self.node(each)] for key, each in value.items()]]
        if type(value) in (list, tuple):
            return [type(value).__name__, [self.node(each) for each in value]]
        if id(value) in self.known:
            return ["again", self.known[id(value)][0]]
        self.known[id(value)] = (len(self.known), value)  # held, so that no other takes its id
        if isinstance(value, np.ndarray | np.generic):
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            return [kind, value.dtype.str, list(value.shape), self._array(value)]
        if type(value) in self.kinds and is_dataclass(value):
            return ["object", type(value).__name__, [self.node(getattr(value, each.name)) for each in fields(value)]]
        import torch

        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{type(value).__name__} cannot be saved")
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        dtype = str(value.dtype).removeprefix("torch.")
        return ["tensor", dtype, list(value.shape), self._array(flat), str(value.device)]

    def _array(self, value: Any) -> str:
        name = str(len(self.arrays))
        flat = np.ascontiguousarray(value).reshape(-1)
        self.arrays[name] = flat.view(np.uint8) if flat.nbytes else np.zeros(0, np.uint8)
        return name


class _Unpacking:
    def __init__(self, arrays: Mapping[str, np.ndarray], kinds: Mapping[str, type]) -> None:
        self._arrays, self._kinds = arrays, kinds
        self._known: list[Any] = []
        self._tree = json.loads(arrays["tree"].tobytes())

    @cached_property
    def value(self) -> Any:
        return self._of(self._tree)

    def _of(self, node: Any) -> Any:
        if not isinstance(node, list):
            return node
        match node:
            case ["dict", pairs]:
                return {self._of(key): self._of(each) for key, each in pairs}
            case ["list" | "tuple" as kind, items]:
                values = [self._of(each) for each in items]
                return values if kind == "list" else tuple(values)
            case ["again", number]:
                return self._known[number]
        place = len(self._known)
        self._known.append(None)
        self._known[place] = value = self._object(node)
        return value

    def _object(self, node: list[Any]) -> Any:
        match node:
            case ["array" | "scalar" as kind, dtype, shape, name]:
                array = np.frombuffer(self._arrays[name].tobytes(), dtype).reshape(shape)
                return array.copy() if kind == "array" else array[()]
            case ["object", name, values]:
                kind = self._kinds[name]
                value: Any = object.__new__(kind)
                for each, item in zip(fields(kind), values, strict=True):
                    object.__setattr__(value, each.name, self._of(item))
                return value
            case ["tensor", dtype, shape, name, device]:
                import torch

                flat = torch.frombuffer(bytearray(self._arrays[name].tobytes()), dtype=torch.uint8)
                return flat.view(getattr(torch, dtype)).reshape(shape).to(device)
        raise ValueError(f"{str(node)[:40]} is not part of a saved value")
