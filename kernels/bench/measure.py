"""Checks a kernel against its reference, then times it beside a baseline.  Nothing is timed that was not checked."""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import WrongResultError
from ..op import Case, Op

if TYPE_CHECKING:
    from ..gpu.recording import KernelUse

WARM_UP = 3
SHORTEST = 50e-6
"""The least duration of a sample in seconds: a faster kernel is launched several times for each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Microseconds of one launch, every repeat (float64), of the kernel and of the baseline, on ``device``.

    On a CUDA device ``read`` is the bytes that a launch must read, and ``uses`` what each of its kernels takes of a
    multiprocessor (nothing for a library's); on the CPU 0 and none.
    """

    kernel: np.ndarray
    baseline: np.ndarray
    device: str
    read: int = 0
    uses: tuple[KernelUse, ...] = ()


def check(op: Op, case: Case) -> float:
    """Return the kernel's largest error relative to the largest value; raises WrongResultError above the tolerance."""
    expected = case.reference()
    scale = float(expected.abs().max()) or 1.0
    error = float((case.launch().double() - expected).abs().max()) / scale
    if not error <= op.tolerance:
        raise WrongResultError(f"{op.name} is off by {error:.2e} of the largest value; {op.tolerance:.0e} is allowed")
    return error


def measure(
    rows: int, columns: int, batch: int, kernel: Op, baseline: Op, *, repeats: int = 30, seed: int = 0
) -> Samples:
    """Check both kernels on one problem, then time them in turns so that a change of clock meets both alike.

    On a CUDA device each is timed alone, cold: see ``cuda_bench``.
    """
    if kernel.device == "cuda":
        return _measure_cuda(rows, columns, batch, kernel, baseline, repeats, seed)
    cases = [op.prepare(rows, columns, batch, seed) for op in (kernel, baseline)]
    with torch.no_grad():
        for op, case in zip((kernel, baseline), cases, strict=True):
            check(op, case)
        launches = [_launches(case.launch) for case in cases]
        times = np.empty((2, repeats))
        for repeat in range(repeats):
            for which in (0, 1) if repeat % 2 else (1, 0):
                times[which, repeat] = _seconds(cases[which].launch, launches[which]) / launches[which] * 1e6
    return Samples(kernel=times[0], baseline=times[1], device=cpu_name())


def _measure_cuda(rows: int, columns: int, batch: int, kernel: Op, baseline: Op, repeats: int, seed: int) -> Samples:
    from .cuda import times_of
    from .cuda_layers import device

    times = []
    cases = [op.prepare(rows, columns, batch, seed) for op in (kernel, baseline)]
    for op, case in zip((kernel, baseline), cases, strict=True):
        check(op, case)
        make = functools.partial(_another, op, rows, columns, batch, seed)
        times.append(times_of(op.name, case, make, repeats))
    return Samples(
        kernel=times[0], baseline=times[1], device=device().name, read=cases[0].read, uses=cases[0].uses()
    )  # fmt: skip


def _another(op: Op, rows: int, columns: int, batch: int, seed: int, number: int) -> Case:
    return op.prepare(rows, columns, batch, seed + number)


def _launches(launch: Callable[[], torch.Tensor]) -> int:
    """Warm up, and return how many launches make one sample."""
    for _ in range(WARM_UP):
        launch()
    return max(int(np.ceil(SHORTEST / max(_seconds(launch, 1), 1e-9))), 1)


def _seconds(launch: Callable[[], torch.Tensor], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        launch()
    return time.perf_counter() - start


def cpu_name() -> str:
    """Return the processor's name and the number of threads that torch uses."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    threads = torch.get_num_threads()
    return f"CPU {name}, {threads} thread{'s' * (threads != 1)}"
