"""The contract of one kernel: what it computes, where it runs, how it is checked and launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from .build.source import CudaSource
    from .gpu.recording import KernelUse


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One problem, prepared: ``launch()`` runs the kernel, ``reference()`` computes the same in float64 from the
    same codes and scales; both return ``[batch, rows]``.  ``read`` is the bytes that a launch must
    read, to time it with a cold cache on a device; 0 on the CPU.  ``uses()`` says what the kernels that were launched
    take of the device; nothing for those of a library."""

    launch: Callable[[], torch.Tensor]
    reference: Callable[[], torch.Tensor]
    read: int = 0
    uses: Callable[[], tuple[KernelUse, ...]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Op:
    """A matrix product ``y = x W^T`` with ``W`` of ``rows x columns`` and ``x`` of ``batch x columns``.

    ``note`` says in words what runs.  ``tolerance`` bounds ``max |y - reference| / max |reference|``.  ``refuses(rows,
    columns)`` gives the reason why a shape does not fit, ``available()`` why this machine cannot run the kernel at all;
    both None if they can.  ``variants`` are shapes (rows, columns, batch) that the tests check.  ``device`` is cpu or
    cuda: where it runs, and with which clock it is timed.  ``sources`` are the CUDA files that it may launch, to have
    them compiled beforehand.
    """

    name: str
    note: str
    tolerance: float
    prepare: Callable[[int, int, int, int], Case]
    available: Callable[[], str | None]
    refuses: Callable[[int, int], str | None]
    variants: tuple[tuple[int, int, int], ...]
    device: str = "cpu"
    sources: tuple[CudaSource, ...] = ()
