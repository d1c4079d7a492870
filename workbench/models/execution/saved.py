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

from workbench.memory import SPILLED, Scratch
from workbench.models.execution.widened import Widened


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """A tensor whose storage lies in a file."""

    storage: torch.Tensor
    offset: Any
    size: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype

    def tensor(self) -> torch.Tensor:
        """Return the tensor, whose pages are the file's."""
        tensor: torch.Tensor = torch.empty(0, dtype=self.dtype)
        return tensor.set_(self.storage.untyped_storage(), self.offset, self.size, self.stride)


Packed = torch.Tensor | Moved


@dataclass(slots=True, kw_only=True)
class SavedTensors:
    """Holds at most ``room`` bytes of what a pass saves in memory, the rest in ``scratch``; ``own`` are the model's.

    A storage that several operations save is held once.
    """

    room: int
    own: Iterable[torch.Tensor]
    scratch: Scratch = field(default_factory=Scratch)
    spilled: int = 0
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
        if storage.nbytes() < SPILLED or place in self._places:
            return values
        reference, version, moved = self._seen.get(place, (None, -1, None))
        if reference is None or reference.expired() or version != values._version:
            moved = None
            if self.room >= storage.nbytes():
                self.room -= storage.nbytes()
            else:
                whole = torch.empty(0, dtype=torch.uint8).set_(storage)
                moved = self.scratch.copy(whole)
                self.spilled += storage.nbytes()
            self._seen[place] = reductions.StorageWeakRef(storage), values._version, moved  # type: ignore[no-untyped-call]
        if moved is None:
            return values
        return Moved(
            storage=moved, offset=values.storage_offset(), size=values.size(), stride=values.stride(),
            dtype=values.dtype,
        )  # fmt: skip

    @staticmethod
    def unpack(packed: Packed) -> torch.Tensor:
        """Return the tensor that ``packed`` stands for."""
        return packed if isinstance(packed, torch.Tensor) else packed.tensor()
