"""An executor that hands out the same memory on every pass: a repeated sequence of launches allocates once."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..build.source import CudaSource
from ..errors import ArgumentError
from .launch import Executor, Launch


class Workspace:
    """Wraps another executor.

    Between two calls of ``rewind`` every buffer is its caller's alone; after it the same requests, in the same order,
    get the same buffers again.
    """

    def __init__(self, on: Executor) -> None:
        self._on = on
        self._buffers: list[torch.Tensor] = []
        self._next = 0

    @property
    def device(self) -> torch.device:
        """Where tensors are."""
        return self._on.device

    @property
    def processors(self) -> int:
        """How many multiprocessors there are."""
        return self._on.processors

    def nbytes(self) -> int:
        """Return the bytes of all buffers."""
        return sum(x.numel() * x.element_size() for x in self._buffers)

    def rewind(self) -> None:
        """Begin a pass."""
        self._next = 0

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return the next buffer; raises ArgumentError if an earlier pass asked for another one here."""
        if self._next == len(self._buffers):
            self._buffers.append(self._on.empty(shape, dtype))
        buffer = self._buffers[self._next]
        if tuple(buffer.shape) != tuple(shape) or buffer.dtype != dtype:
            raise ArgumentError(
                f"buffer {self._next} of this workspace is {buffer.dtype} {tuple(buffer.shape)}; now {dtype} "
                f"{tuple(shape)} was asked for: one workspace serves one sequence of launches with fixed shapes"
            )
        self._next += 1
        return buffer

    def run(self, source: CudaSource, launch: Launch) -> None:
        """Enqueue a kernel."""
        self._on.run(source, launch)
