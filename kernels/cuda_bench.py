"""Checks a CUDA kernel against its reference, then times it.  Nothing is timed that was not checked.

A sample is one replay of a CUDA graph of launches over rotating problems, together larger than the L2 cache, timed with
events and divided by their number: neither Python nor a warm cache is in the figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .bench import WrongResultError
from .device import CudaDevice
from .launch import CudaOp, Problem, ceil_div

COLD_BYTES = 160 * 2**20
"""Rotating problems read at least so much together: three times the largest L2 cache there is (H200, 50 MB)."""
LAUNCHES = 20
WARM_UP = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CudaSamples:
    """Microseconds of one launch, every sample, and what was moved and computed by it."""

    microseconds: np.ndarray
    moved: int
    operations: int
    device: str

    def gigabytes_per_second(self) -> float:
        """Return bytes over the median time."""
        return self.moved / float(np.median(self.microseconds)) / 1e3

    def teraoperations_per_second(self) -> float:
        """Return operations over the median time."""
        return self.operations / float(np.median(self.microseconds)) / 1e6


def check_results(op: CudaOp, results: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]) -> float:
    """Return the largest error relative to the largest value; raises WrongResultError above the op's tolerance."""
    if len(results) != len(expected):
        raise WrongResultError(f"{op.name} gives {len(results)} results; the reference gives {len(expected)}")
    worst = 0.0
    for number, (got, want) in enumerate(zip(results, expected, strict=True)):
        if got.shape != want.shape:
            raise WrongResultError(f"{op.name}: result {number} is {tuple(got.shape)}; expected {tuple(want.shape)}")
        worst = max(worst, _error(op, number, got, want))
    return worst


def _error(op: CudaOp, number: int, got: torch.Tensor, want: torch.Tensor) -> float:
    if not want.dtype.is_floating_point:
        wrong = int((got != want).sum())
        if wrong:
            raise WrongResultError(f"{op.name}: {wrong} of {want.numel()} integers of result {number} are wrong")
        return 0.0
    got, want = got.double(), want.double()
    finite = want.isfinite()
    if not torch.equal(got[~finite], want[~finite]):
        raise WrongResultError(f"{op.name}: result {number} is wrong where the reference is not finite")
    if not finite.any():
        return 0.0
    scale = float(want[finite].abs().max()) or 1.0
    error = float((got - want)[finite].abs().max()) / scale
    if not error <= op.tolerance:
        raise WrongResultError(
            f"{op.name}: result {number} is off by {error:.2e} of the largest value; {op.tolerance:.0e} is allowed"
        )
    return error


def measure(device: CudaDevice, op: CudaOp, shape: dict[str, Any], *, samples: int = 15) -> CudaSamples:
    """Check one problem, then time it cold.  Raises WrongResultError, BackendUnavailable, DeviceFault."""
    first = op.prepare(device, 0, **shape)
    check_results(op, first.launch(), first.reference())
    problems = [first] + [op.prepare(device, seed, **shape) for seed in range(1, _copies(first))]
    graph = _captured([problem.launch for problem in problems])
    return CudaSamples(
        microseconds=_times(graph, samples) / LAUNCHES, moved=first.read + first.written, operations=first.operations,
        device=device.name,
    )  # fmt: skip


def _copies(problem: Problem) -> int:
    return min(LAUNCHES, max(1, ceil_div(COLD_BYTES, problem.read)))


def _captured(launches: list[Callable[[], object]]) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            for launch in launches:
                launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(LAUNCHES):
            launches[number % len(launches)]()
    return graph


def _times(graph: torch.cuda.CUDAGraph, samples: int) -> np.ndarray:
    times = np.empty(samples)
    for number in range(-WARM_UP, samples):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        if number >= 0:
            times[number] = start.elapsed_time(end) * 1e3
    return times
