"""What bounds a kernel on this machine: how fast it copies memory and multiplies matrices."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.errors import DeviceError
from workbench.measurement.evaluation import Ceilings
from workbench.measurement.timing import on_gpu
from workbench.progress import Progress, silent

if TYPE_CHECKING:
    from workbench_kernels.gpu.thread import Device, Report

COPIED = 1 << 26
"""Bytes that are copied to measure the memory: far more than any cache holds."""

SIDE = 1024
"""Rows and columns of the matrices whose product measures the arithmetic."""

TRIES = 8


def measure_ceilings(progress: Progress = silent) -> Ceilings:
    """Measure the memory (a copy) and the arithmetic (a matrix product) of the device on which kernels are timed.

    A CUDA device's arithmetic is that of bfloat16, the processor's that of FP32.  Raises DeviceError.
    """
    from workbench_kernels.catalog import cuda_reason

    progress(0.0, "measuring memory and products")
    ceilings = _of_the_processor() if cuda_reason() else on_gpu("measuring the device", _of_the_device, progress)
    progress(1.0, "measured")
    return ceilings


def _of_the_device(device: Device, report: Report) -> Ceilings:
    from workbench_kernels.bench.ceilings import measure

    limits = measure(device)
    if "bf16" not in limits.products:
        raise DeviceError(f"the bfloat16 product of {device.name} could not be measured: {limits.refused['bf16']}")
    return Ceilings(
        device=device.name, bandwidth=limits.copy, peak=limits.products["bf16"] * 1e3, measured=True,
        how="measured here: a copy of 1 GiB, a bfloat16 product of 8192 × 8192",
    )  # fmt: skip


def _of_the_processor() -> Ceilings:
    import torch
    from workbench_kernels.bench.measure import cpu_name

    with torch.inference_mode():
        source = torch.ones(COPIED // 4)
        target = torch.empty_like(source)
        copying = _best(lambda: target.copy_(source))
        left, right = torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE)
        product = torch.empty(SIDE, SIDE)
        multiplying = _best(lambda: torch.mm(left, right, out=product))
    threads = torch.get_num_threads()
    return Ceilings(
        device=cpu_name(), bandwidth=2 * COPIED / copying / 1e9, peak=2 * SIDE**3 / multiplying / 1e9, measured=True,
        how=f"measured here with {threads} thread{'s' if threads > 1 else ''}: a copy of {COPIED >> 20} MiB, "
        f"an FP32 product of {SIDE} × {SIDE}",
    )  # fmt: skip


def _best(work: Callable[[], object]) -> float:
    """Return the shortest of several runs in seconds, after one to warm up."""
    work()
    return min(timeit.repeat(work, number=1, repeat=TRIES))
