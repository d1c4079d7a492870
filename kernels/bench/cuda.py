"""Checks a CUDA kernel against its reference, then times it.  Nothing is timed that was not checked.

A sample is one replay of a CUDA graph of launches over rotating problems, together larger than the L2 cache, timed with
events and divided by their number: neither Python nor a warm cache is in the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..errors import WrongResultError
from ..gpu.device import CudaDevice
from ..gpu.launch import Baseline, CudaOp, ceil_div
from ..gpu.recording import KernelUse, Recorder, kernel_uses
from ..op import Case
from . import tuning
from .profiling import ncu_command as ncu

COLD_BYTES = 160 * 2**20
"""Rotating problems read at least so much together: three times the largest L2 cache there is (H200, 50 MB)."""
LAUNCHES = 20
WARM_UP = 3
Runs = Sequence[Callable[[], object]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CudaSamples:
    """Microseconds of one launch, every sample, of the kernel and of each baseline; what the kernel moves and computes.

    ``refused`` says why a baseline has no figures; ``variant`` is the tuned choice, empty where there is none.
    """

    microseconds: np.ndarray
    moved: int
    operations: int
    device: str
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    kernels: tuple[KernelUse, ...] = ()
    variant: str = ""

    def median(self) -> float:
        """Return the median microseconds."""
        return float(np.median(self.microseconds))

    def gigabytes_per_second(self) -> float:
        """Return bytes over the median time."""
        return self.moved / self.median() / 1e3

    def teraoperations_per_second(self) -> float:
        """Return operations over the median time."""
        return self.operations / self.median() / 1e6

    def times_faster(self) -> dict[str, float]:
        """Return each baseline's median over the kernel's."""
        return {name: float(np.median(times)) / self.median() for name, times in self.baselines.items()}


def check_results(op: CudaOp, results: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]) -> float:
    """Return the largest error relative to the largest value; raises WrongResultError above the op's tolerance."""
    if len(results) != len(expected):
        raise WrongResultError(f"{op.name} gives {len(results)} results; the reference gives {len(expected)}")
    worst = 0.0
    for number, (actual, want) in enumerate(zip(results, expected, strict=True)):
        if actual.shape != want.shape:
            raise WrongResultError(f"{op.name}: result {number} is {tuple(actual.shape)}; expected {tuple(want.shape)}")
        worst = max(worst, _error(op, number, actual, want))
    return worst


def _error(op: CudaOp, number: int, actual: torch.Tensor, expected: torch.Tensor) -> float:
    if not expected.dtype.is_floating_point:
        wrong = int((actual != expected).sum())
        if wrong:
            raise WrongResultError(f"{op.name}: {wrong} of {expected.numel()} integers of result {number} are wrong")
        return 0.0
    actual, expected = actual.double(), expected.double()
    finite = expected.isfinite()
    if not torch.equal(actual[~finite], expected[~finite]):
        raise WrongResultError(f"{op.name}: result {number} is wrong where the reference is not finite")
    if not finite.any():
        return 0.0
    scale = float(expected[finite].abs().max()) or 1.0
    error = float((actual - expected)[finite].abs().max()) / scale
    if not error <= op.tolerance:
        raise WrongResultError(
            f"{op.name}: result {number} is off by {error:.2e} of the largest value; {op.tolerance:.0e} is allowed"
        )
    return error


def measure(
    device: CudaDevice, op: CudaOp, shape: dict[str, Any], *, samples: int = 15, baselines: bool = True
) -> CudaSamples:
    """Check one problem, then time it cold beside its baselines, each kernel in its fastest known variant.

    Raises WrongResultError, BackendUnavailable, DeviceFault.
    """
    variant = tuned_variant(device, op, shape)
    full = {**shape, **variant}
    recorder = Recorder(device)
    first = op.prepare(recorder, 0, **full)
    check_results(op, first.launch(), first.reference())
    uses = kernel_uses(device, recorder.launches)
    moved, operations = first.read + first.written, first.operations
    runs: Runs = [first.launch] + [
        op.prepare(device, seed, **full).launch for seed in range(1, copies(first.read))
    ]  # fmt: skip
    times = _timed(op.name, runs, samples)
    beside: dict[str, np.ndarray] = {}
    refused: dict[str, str] = {}
    for baseline in op.baselines(device.device, **shape) if baselines and op.baselines else ():
        try:
            beside[baseline.name] = _timed(baseline.name, _baseline_runs(baseline), samples)
        except (RuntimeError, NotImplementedError) as error:  # torch has no such product for this device or shape
            refused[baseline.name] = str(error).splitlines()[0]
    return CudaSamples(
        microseconds=times, moved=moved, operations=operations, device=device.name, baselines=beside, refused=refused,
        kernels=uses, variant=" ".join(map(str, variant.values())),
    )  # fmt: skip


def copies(read: int) -> int:
    """Return how many problems of ``read`` bytes are rotated, so that none is in the cache."""
    return min(LAUNCHES, max(1, ceil_div(COLD_BYTES, read)))


def _baseline_runs(baseline: Baseline) -> Runs:
    return [baseline.make(seed) for seed in range(copies(baseline.read))]


def tuned_variant(device: CudaDevice, op: CudaOp, shape: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of the op's fastest variant for a shape, measured once for each device; {} if it has none."""
    if op.tunables is None:
        return {}
    variants = {" ".join(map(str, v.values())): v for v in op.tunables(device.processors, **shape)}

    def seconds(name: str) -> float:
        full = {**shape, **variants[name]}
        first = op.prepare(device, 0, **full)
        check_results(op, first.launch(), first.reference())
        runs: Runs = [first.launch] + [op.prepare(device, s, **full).launch for s in range(1, copies(first.read))]
        return float(np.median(_timed(f"tuning {op.name}", runs, 5))) / 1e6

    words = " ".join(f"{name}={str(value).removeprefix('torch.')}" for name, value in sorted(shape.items()))
    key = f"{op.name} {words} {tuning.source_mark(op.source)}"
    return variants[tuning.tuned(tuning.file_for(device.name), key, tuple(variants), seconds).variant]


def _timed(title: str, runs: Runs, samples: int) -> np.ndarray:
    """Return microseconds of one launch, every sample."""
    with torch.cuda.nvtx.range(title):
        return _times(_captured(runs), samples) / LAUNCHES


def profile(device: CudaDevice, op: CudaOp, shape: dict[str, Any]) -> None:
    """Launch an op a few times inside an NVTX range of its name, for a profiler."""
    problem = op.prepare(device, 0, **shape)
    problem.launch()
    device.synchronize()
    with torch.cuda.nvtx.range(op.name):
        for _ in range(WARM_UP):
            problem.launch()
        device.synchronize()


def ncu_command(op: CudaOp) -> str:
    """Return the command that profiles an op's kernels with Nsight Compute, clocks left as they are."""
    return ncu(op.name, f'python tests/benchmarks/kernels.py --profile "{op.name}"')


def times_of(title: str, first: Case, another: Callable[[int], Case], samples: int) -> np.ndarray:
    """Return microseconds of one launch of a linear layer, every sample, cold; ``another(n)`` draws more problems."""
    runs: Runs = [first.launch] + [another(number).launch for number in range(1, copies(first.read))]
    return _timed(title, runs, samples)


def _captured(launches: Runs) -> torch.cuda.CUDAGraph:
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
