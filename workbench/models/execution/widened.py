"""Weights that compute in float32 and lie in memory as their file holds them: in two bytes, mapped, read when used.

A :class:`Widened` tensor says that it is float32 and holds a narrower one.  Whatever is computed with it sees exact
float32 values, some rows or columns at a time where a product allows it; autograd saves the tensor itself and not its
float32 copy, so that neither direction holds more than one piece of one weight in float32.  What a network has as one
tensor and the file as many (experts), and what a file holds in codes, is put on the disk when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Lock
from typing import Any, Self

import numpy as np
import torch
from torch.utils import _pytree as pytree

from workbench.errors import MemoryLimitError
from workbench.memory import Scratch, let_go, limit, put_away_again, size_text
from workbench.models.readers.mapped import require_whole

PIECE = 1 << 24
"""Weights that are widened at once in a product: 64 MB in float32, under a limit at most PIECE_SHARE of it."""

PIECE_SHARE, LEAST_PIECE = 32, 1 << 20
"""One part of the limit in so many is the room of a piece in float32; fewer weights than the latter are not a piece."""

LEAST = 1 << 10
"""Smaller tensors are float32 from the start."""

ops = torch.ops.aten

VIEWS = {
    ops.alias.default, ops.detach.default, ops.expand.default, ops.permute.default, ops.select.int,
    ops.slice.Tensor, ops.squeeze.dim, ops.t.default, ops.transpose.int, ops.unsqueeze.default, ops.view.default,
    ops._unsafe_view.default, ops.as_strided.default, ops.split.Tensor, ops.split_with_sizes.default,
    ops.unbind.int, ops.chunk.default, ops.lift_fresh.default,
}  # fmt: skip
"""What looks at the same numbers in another shape: the result is widened when it is used."""

PICKS = {ops.embedding.default, ops.index_select.default, ops.index.Tensor, ops.gather.default}
"""What picks some of the numbers: only those are widened."""

EXACT = {ops.aminmax.default, ops.amax.default, ops.amin.default}
"""What gives one of the numbers, the same in either dtype."""


without_room: list[MemoryLimitError] = []
"""Errors of tensors for which the disk has no room: a library that loads weights may say in its own words that they
failed."""

JOINS = {ops.stack.default, ops.cat.default}
"""What makes one tensor of several."""


class Later:
    """Numbers that ``fill`` writes to ``place``, in a file, when they are first used."""

    def __init__(self, place: torch.Tensor, fill: Callable[[torch.Tensor], object]) -> None:
        self.place = place
        self._fill: Callable[[torch.Tensor], object] | None = fill
        self._lock, self._numbers = Lock(), np.zeros(0, np.uint8)

    def written(self) -> torch.Tensor:
        """Return all numbers."""
        with self._lock:
            if self._fill is not None:
                self._write(self.place)
                self._fill, self._numbers = None, self.place.flatten().view(torch.uint8).numpy()
                put_away_again(self._numbers)
        return self.place

    def _write(self, out: torch.Tensor) -> None:
        """Write all numbers to ``out``; the lock is held."""
        out.copy_(self.place) if self._fill is None else self._fill(out)

    @staticmethod
    def joined(parts: Sequence[torch.Tensor | Later], axis: int, new: bool, out: torch.Tensor) -> None:
        """Write ``parts`` to ``out``, side by side along ``axis``, a ``new`` one or one that they have."""
        start = 0
        for part in parts:
            size = 1 if new else (part.place if isinstance(part, Later) else part).shape[axis]
            own = out.select(axis, start) if new else out.narrow(axis, start, size)
            start += size
            if isinstance(part, Later):
                with part._lock:
                    part._write(own)
            else:
                own.copy_(part)
                let_go(part)


class Wrapper(torch.Tensor):
    """A tensor of the shape and place of ``held`` that decides itself what functions make of it."""

    held: torch.Tensor

    @classmethod
    def around(cls, held: torch.Tensor, dtype: torch.dtype) -> Self:
        """Return one that says that it is of ``dtype``."""
        tensor: Self = torch.Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(), dtype=dtype,
            device=held.device, requires_grad=False,
        )  # fmt: skip
        tensor.held = held
        return tensor

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"{type(self).__name__}({self.held!r})"

    def data_ptr(self) -> int:
        """Return where the numbers lie."""
        return int(self.held.data_ptr())

    def untyped_storage(self) -> torch.UntypedStorage:
        """Return what holds the numbers."""
        return self.held.untyped_storage()

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        with torch._C.DisableTorchFunction():  # who watches functions sees the one that was called
            return cls._dispatched(func, args, kwargs or {})

    @staticmethod
    def _dispatched(func: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError


class Widened(Wrapper):
    """``stored`` (bfloat16 or float16, or float32 on the disk), to all that compute with it in float32.

    Nothing can be written into it.
    """

    later: Later | None

    @staticmethod
    def __new__(cls, held: torch.Tensor, later: Later | None = None) -> Widened:
        tensor = cls.around(held, torch.float32)
        tensor.later = later
        return tensor

    @property
    def stored(self) -> torch.Tensor:
        """The numbers, which are put on the disk first where no file has them so."""
        if self.later is not None:
            self.later.written()
        return self.held

    @staticmethod
    def _dispatched(func: Any, args: Any, kwargs: Any) -> Any:
        for leaf in pytree.tree_leaves(args):
            if isinstance(leaf, Widened):
                require_whole(leaf.data_ptr())
        first = args[0] if args else None
        if isinstance(first, Widened):
            if func in VIEWS:
                views = func(first.held, *args[1:], **kwargs)
                return pytree.tree_map_only(torch.Tensor, lambda view: Widened(view, first.later), views)
            if func in PICKS and not _any_widened((args[1:], kwargs)):
                return func(first.stored, *args[1:], **kwargs).float()
            if func in EXACT:
                return pytree.tree_map_only(torch.Tensor, torch.Tensor.float, func(first.stored, *args[1:], **kwargs))
            if func is ops._to_copy.default and kwargs.get("dtype") == first.held.dtype:
                return func(first.stored, *args[1:], **kwargs)
        if func in JOINS and _are_alike(args[0]):
            return _join(func, *args, **kwargs)
        if func in (ops.mm.default, ops.addmm.default):
            pieces = _product(func, args, kwargs)
            if pieces is not None:
                return pieces
        copied, run_in = func._schema.is_mutable, torch.float32  # what is written into would be the file's
        args, kwargs = pytree.tree_map_only(Widened, lambda each: each.stored.to(run_in, copy=copied), (args, kwargs))
        return func(*args, **kwargs)


def _join(func: Any, parts: Sequence[Widened], axis: int = 0) -> Widened:
    """Return widened tensors of one dtype as one that lies on the disk."""
    shape = func([torch.empty(part.shape, device="meta") for part in parts], axis).shape
    whole = [part.later if part.later is not None and _are_same(part.held, part.later.place) else part.stored
             for part in parts]  # fmt: skip
    new = func is ops.stack.default
    return put_on_disk(tuple(shape), partial(Later.joined, whole, axis % len(shape), new), parts[0].held.dtype)


def put_on_disk(
    shape: tuple[int, ...], fill: Callable[[torch.Tensor], object], dtype: torch.dtype = torch.float32
) -> Widened:
    """Return a tensor of ``dtype`` that ``fill`` writes to the disk when it is first used; MemoryLimitError where that
    has no room."""
    try:
        place = Scratch().empty(shape, dtype)
    except MemoryLimitError as error:
        without_room.append(error)
        raise
    return Widened(place, Later(place, fill))


def decoded_note(weights: Iterable[torch.Tensor]) -> str:
    """Say how much of the disk the ``weights`` of a model take that :func:`put_on_disk` returned."""
    nbytes = sum(each.held.nbytes for each in weights if isinstance(each, Widened) and each.later is not None)
    return (
        f"its weights in float32 do not fit into memory; they take {size_text(nbytes)} of the disk, in temporary files "
        "into which each is decoded when it is first used"
    )


def _are_alike(parts: Sequence[torch.Tensor]) -> bool:
    """Return whether all of ``parts`` are widened, of one dtype."""
    dtypes = {part.held.dtype if isinstance(part, Widened) else None for part in parts}
    return len(dtypes) == 1 and None not in dtypes


def _are_same(view: torch.Tensor, whole: torch.Tensor) -> bool:
    """Return whether a view of ``whole`` is all of it, with its axes in order."""
    return view.shape == whole.shape and view.stride() == whole.stride()


def piece_size() -> int:
    """Return how many weights are widened at once."""
    allowed = limit()
    return PIECE if allowed is None else min(PIECE, max(allowed // (4 * PIECE_SHARE), LEAST_PIECE))


def _any_widened(values: Any) -> bool:
    return any(isinstance(leaf, Widened) for leaf in pytree.tree_leaves(values))


def _product(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """Return ``a @ b`` or ``bias + a @ b`` in pieces of a large widened ``a`` (its rows) or ``b`` (its columns)."""
    *bias, a, b = args
    own = b if isinstance(b, Widened) else a
    most = piece_size()
    if not isinstance(own, Widened) or own.numel() <= most or _any_widened((bias, kwargs, b if own is a else a)):
        return None
    axis = 1 if own is b else 0
    step = max(most // own.shape[1 - axis], 1)
    result: torch.Tensor = (a if own is b else b).new_empty(a.shape[0], b.shape[1])
    for start in range(0, own.shape[axis], step):
        piece = own.stored.narrow(axis, start, min(step, own.shape[axis] - start)).float()
        added = [_narrowed(each, axis, start, piece.shape[axis]) for each in bias]
        part = func(*added, a, piece, **kwargs) if own is b else func(*added, piece, b, **kwargs)
        result.narrow(axis, start, piece.shape[axis]).copy_(part)
    return result


def _narrowed(bias: torch.Tensor, axis: int, start: int, length: int) -> torch.Tensor:
    """Return the part of a summand that belongs to a piece of the product; it may be broadcast."""
    place = bias.ndim - 2 + axis
    return bias if place < 0 or bias.shape[place] == 1 else bias.narrow(place, start, length)


def widened(stored: torch.Tensor) -> torch.Tensor:
    """Return ``stored`` as float32: a matrix of two bytes a number as it lies there, anything else as a copy."""
    large = stored.ndim > 1 and stored.numel() >= LEAST
    return Widened(stored) if large and stored.dtype in (torch.bfloat16, torch.float16) else stored.float()


def stored_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return what a widened tensor holds, any other as it is."""
    return tensor.stored if isinstance(tensor, Widened) else tensor
