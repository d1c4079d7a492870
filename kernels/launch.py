"""What a launcher hands to a device, and the checks that every launcher makes before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from .errors import ArgumentError
from .source import CudaSource

MOST_ELEMENTS = 2**31 - 1
ALIGNMENT = 16
FLOATS = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
"""Element types that kernels read and write, and what they are called in the names of kernels."""


@dataclass(frozen=True, slots=True)
class Int:
    """A 32-bit integer argument."""

    value: int


@dataclass(frozen=True, slots=True)
class Long:
    """A 64-bit integer argument."""

    value: int


@dataclass(frozen=True, slots=True)
class Float:
    """A float32 argument."""

    value: float


Argument = torch.Tensor | Int | Long | Float | None
"""None is a null pointer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Launch:
    """One run of a kernel: ``shared`` is bytes of dynamic shared memory, ``block`` is threads."""

    entry: str
    grid: tuple[int, int, int]
    block: int
    arguments: tuple[Argument, ...]
    shared: int = 0


class Executor(Protocol):
    """Where kernels run: a CUDA device, or the emulator of the tests."""

    @property
    def device(self) -> torch.device:
        """Where tensors must be."""
        ...

    @property
    def processors(self) -> int:
        """How many multiprocessors there are, for splitting work."""
        ...

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return memory whose content is not to be relied on."""
        ...

    def run(self, source: CudaSource, launch: Launch) -> None:
        """Enqueue a kernel.  Raises BackendUnavailable, DeviceFault."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """One prepared problem.

    ``launch`` runs the kernels, ``reference`` computes the same with torch; both return the same tensors in the same
    order.  ``read`` and ``written`` are bytes that must cross memory once, ``operations`` counts additions and
    multiplications.
    """

    launch: Callable[[], tuple[torch.Tensor, ...]]
    reference: Callable[[], tuple[torch.Tensor, ...]]
    read: int
    written: int
    operations: int = 0


Prepare = Callable[..., Problem]
"""``prepare(executor, seed, **shape)`` draws the tensors of one problem."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CudaOp:
    """The contract of a CUDA kernel.

    ``tolerance`` bounds ``max |result - reference| / max |reference|`` of each floating-point result; integers are
    equal.  ``variants`` are the small and odd shapes of the tests, ``sizes`` those that are timed; both are keywords of
    ``prepare``.
    """

    name: str
    note: str
    source: CudaSource
    tolerance: float
    prepare: Prepare
    variants: tuple[dict[str, Any], ...]
    sizes: tuple[dict[str, Any], ...] = field(default=())


def check_tensor(
    name: str, x: torch.Tensor, on: Executor, dtypes: Sequence[torch.dtype], shape: Sequence[int | None]
) -> None:
    """Raise ArgumentError unless ``x`` is a contiguous, aligned tensor on the device; None in ``shape`` is any size."""
    if not isinstance(x, torch.Tensor):
        raise ArgumentError(f"{name} is a {type(x).__name__}; expected a tensor")
    if x.dtype not in dtypes:
        raise ArgumentError(f"{name} is {_plain(x.dtype)}; expected {' or '.join(map(_plain, dtypes))}")
    fits = x.ndim == len(shape) and all(want is None or want == got for want, got in zip(shape, x.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ArgumentError(f"{name} has shape {tuple(x.shape)}; expected ({wanted})")
    if x.device != on.device:
        raise ArgumentError(f"{name} is on {x.device}; the kernel runs on {on.device}: move it there first")
    if not x.numel():
        raise ArgumentError(f"{name} is empty (shape {tuple(x.shape)}); there is nothing to compute")
    if x.numel() > MOST_ELEMENTS:
        raise ArgumentError(f"{name} has {x.numel()} elements; at most {MOST_ELEMENTS}: split it")
    if not x.is_contiguous():
        raise ArgumentError(f"{name} is not contiguous (strides {x.stride()}); call .contiguous() first")
    if x.data_ptr() % ALIGNMENT:
        raise ArgumentError(f"{name} starts at an address that is no multiple of {ALIGNMENT} bytes; clone it first")


def check_multiple(name: str, value: int, of: int) -> None:
    """Raise ArgumentError unless ``value`` is a positive multiple of ``of``."""
    if value <= 0 or value % of:
        raise ArgumentError(f"{name} is {value}; expected a positive multiple of {of}")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise ArgumentError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ArgumentError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}")


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def ceil_div(a: int, b: int) -> int:
    """Return ``a / b`` rounded up."""
    return -(-a // b)


def nbytes(*tensors: torch.Tensor | None) -> int:
    """Return the bytes of tensors together."""
    return sum(x.numel() * x.element_size() for x in tensors if x is not None)


def drawn(on: Executor, seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return normal random numbers, the same on every device."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(on.device)
