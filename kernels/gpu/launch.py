"""What a launcher hands to a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from ..build.source import CudaSource

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Baseline:
    """What people use today for the same work: ``make(seed)`` draws its tensors and returns the launch; ``read`` bytes
    that it must read."""

    name: str
    make: Callable[[int], Callable[[], object]]
    read: int


Prepare = Callable[..., Problem]
"""``prepare(executor, seed, **shape)`` draws the tensors of one problem."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CudaOp:
    """The contract of a CUDA kernel.

    ``tolerance`` bounds ``max |result - reference| / max |reference|`` of each floating-point result; integers are
    equal.  ``variants`` are the small and odd shapes of the tests, ``sizes`` those that are timed; both are keywords of
    ``prepare`` and of ``baselines(device, **shape)``.  ``tunables(processors, **shape)`` are further keywords of
    ``prepare`` among which the fastest is found by measurement, the choice that is made without one first.
    """

    name: str
    note: str
    source: CudaSource
    tolerance: float
    prepare: Prepare
    variants: tuple[dict[str, Any], ...]
    sizes: tuple[dict[str, Any], ...] = field(default=())
    baselines: Callable[..., tuple[Baseline, ...]] | None = None
    tunables: Callable[..., tuple[dict[str, Any], ...]] | None = None


def ceil_div(a: int, b: int) -> int:
    """Return ``a / b`` rounded up."""
    return -(-a // b)


def line(threads: int, block: int) -> tuple[int, int, int]:
    """Return the grid of at least ``threads`` threads in blocks of ``block``, one after another."""
    return ceil_div(threads, block), 1, 1


def nbytes(*tensors: torch.Tensor | None) -> int:
    """Return the bytes of tensors together."""
    return sum(x.numel() * x.element_size() for x in tensors if x is not None)


def drawn(on: Executor, seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return normal random numbers, drawn on the device."""
    return torch.randn(*shape, generator=generator(on, seed), device=on.device).to(dtype)


def generator(on: Executor, seed: int) -> torch.Generator:
    """Return a generator of the device's random numbers."""
    return torch.Generator(on.device).manual_seed(seed)


def drawn_integers(
    on: Executor, seed: int, low: int, high: int, *shape: int, dtype: torch.dtype = torch.uint8
) -> torch.Tensor:
    """Return random integers from ``low`` to ``high - 1``, drawn on the device."""
    return torch.randint(low, high, shape, generator=generator(on, seed), dtype=dtype, device=on.device)
