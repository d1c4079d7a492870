"""What autograd holds for the way back: in memory as far as there is room, beyond that in files.

Nothing is computed twice and no number changes, so that gradients are the same bits wherever their tensors lay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing import reductions

from workbench.memory import Scratch
from workbench.models.execution.widened import Widened


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """A tensor whose storage, bytes, lies in a file."""

    storage: torch.Tensor
    offset: Any
    size: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype

    def tensor(self) -> torch.Tensor:
        """Return the tensor, whose pages are the file's."""
        tensor: torch.Tensor = torch.empty(0, dtype=self.dtype)
        first = int(self.storage.storage_offset()) // self.dtype.itemsize
        return tensor.set_(self.storage.untyped_storage(), first + self.offset, self.size, self.stride)


Packed = torch.Tensor | Moved

SMALL = 1 << 14
"""Bytes of what always stays in memory: norms' factors and such are few."""

CHUNK = 1 << 26
"""Bytes of a file that several tensors share: the states of a small model's tokens take less than a megabyte each."""

ALIGNED = 64
"""Tensors begin at multiples of so many bytes."""


@dataclass(slots=True, kw_only=True)
class SavedTensors:
    """Holds at most ``room`` bytes of what a pass saves in memory, the rest in ``scratch``; ``own`` are the model's.

    A storage that several operations save is held once.
    """

    room: int
    own: Iterable[torch.Tensor]
    scratch: Scratch = field(default_factory=Scratch)
    spilled: int = 0
    _chunk: torch.Tensor | None = None
    _used: int = 0
    _places: set[int] = field(default_factory=set)
    _seen: dict[int, tuple[Any, int, torch.Tensor | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = {tensor.untyped_storage().data_ptr() for tensor in self.own}

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Hold what is saved meanwhile."""
        with torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack):
            yield

    def pack(self, tensor: torch.Tensor) -> Packed:
        """Return what stands for ``tensor`` until it is needed again."""
        values = tensor.detach()
        if isinstance(tensor, Widened) or values.device.type != "cpu" or values.layout != torch.strided:
            return values
        storage = values.untyped_storage()
        place = storage.data_ptr()
        if storage.nbytes() < SMALL or place in self._places:
            return values
        reference, version, moved = self._seen.get(place, (None, -1, None))
        if reference is None or reference.expired() or version != values._version:
            moved = None
            if self.room >= storage.nbytes():
                self.room -= storage.nbytes()
            else:
                moved = self._written(torch.empty(0, dtype=torch.uint8).set_(storage))
            self._seen[place] = reductions.StorageWeakRef(storage), values._version, moved  # type: ignore[no-untyped-call]
        if moved is None:
            return values
        return Moved(
            storage=moved, offset=values.storage_offset(), size=values.size(), stride=values.stride(),
            dtype=values.dtype,
        )  # fmt: skip

    def _written(self, values: torch.Tensor) -> torch.Tensor:
        """Return a copy of bytes in a file; small ones share one."""
        size = values.numel()
        self.spilled += size
        if size >= CHUNK // 4:
            return self.scratch.copy(values)
        if self._chunk is None or self._used + size > CHUNK:
            self._chunk, self._used = self.scratch.empty((CHUNK,), torch.uint8), 0
        place = self._chunk[self._used : self._used + size]
        self._used += -(-size // ALIGNED) * ALIGNED
        return place.copy_(values)

    @staticmethod
    def unpack(packed: Packed) -> torch.Tensor:
        """Return the tensor that ``packed`` stands for."""
        return packed if isinstance(packed, torch.Tensor) else packed.tensor()
