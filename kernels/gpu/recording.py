"""What launched kernels take of the device: a recorder before the executor, each kernel's share of a multiprocessor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from ..build.occupancy import Occupancy, occupancy
from ..build.source import CudaSource
from .device import CudaDevice
from .launch import Executor, Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelUse:
    """One kernel of an op: its grid and block, registers of a thread, and how much of a multiprocessor it fills."""

    entry: str
    grid: tuple[int, int, int]
    block: int
    registers: int
    occupancy: Occupancy

    def text(self) -> str:
        """Return the kernel and its occupancy in words."""
        return f"{self.entry} {self.occupancy.text()}"


class Recorder:
    """Wraps an executor and records each kernel that is launched, once and without its tensors."""

    def __init__(self, on: Executor) -> None:
        self._on = on
        self.launches: list[tuple[CudaSource, Launch]] = []

    @property
    def device(self) -> torch.device:
        """Where tensors are."""
        return self._on.device

    @property
    def processors(self) -> int:
        """How many multiprocessors there are."""
        return self._on.processors

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return memory."""
        return self._on.empty(shape, dtype)

    def run(self, source: CudaSource, launch: Launch) -> None:
        """Note and enqueue a kernel."""
        if all(known.entry != launch.entry for _, known in self.launches):
            self.launches.append((source, replace(launch, arguments=())))
        self._on.run(source, launch)


def kernel_uses(device: CudaDevice, launches: Sequence[tuple[CudaSource, Launch]]) -> tuple[KernelUse, ...]:
    """Return what each recorded launch takes."""
    made = []
    for source, launch in launches:
        used = device.resources(source, launch.entry)
        full = occupancy(used, launch.block, launch.shared, device.capability)
        made.append(KernelUse(
            entry=launch.entry, grid=launch.grid, block=launch.block, registers=used.registers, occupancy=full
        ))  # fmt: skip
    return tuple(made)
