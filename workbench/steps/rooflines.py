"""What bounds a kernel on this machine: batch sizes swept, and the machine's own ceilings measured beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.errors import DeviceError, PlanError
from workbench.measurement.device_jobs import on_gpu
from workbench.measurement.evaluation import Timing
from workbench.progress import Progress, part_of, silent
from workbench.session.session import Session
from workbench.steps.needs import without_results
from workbench.steps.timings import time_kernels, with_timings

if TYPE_CHECKING:
    from workbench_kernels.gpu.thread import Device, Report

    from workbench.engine.model_cache import ModelCache

LATENCY, THROUGHPUT = (1, 4, 16), (128, 1024, 4096)
"""Rows of inputs: a few tokens at a time, and prompts or many users at once."""

COPIED = 1 << 26
"""Bytes that are copied to measure the memory: far more than any cache holds of it."""

SIDE = 1024
"""Rows and columns of the matrices whose product measures the arithmetic."""

TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """``bandwidth`` in GB/s and ``peak`` in 1e9 operations a second (a multiply-add is two) of ``device``.

    ``how`` says in words where they come from; ``measured`` tells them from an estimate.
    """

    device: str
    bandwidth: float
    peak: float
    how: str
    measured: bool


def usual_batches() -> tuple[int, ...]:
    """Return the batch sizes of a sweep: on a processor, which takes seconds for a larger one, up to 128."""
    from workbench_kernels.catalog import cuda_reason

    return LATENCY + (THROUGHPUT[:1] if cuda_reason() else THROUGHPUT)


def sweep_batches(
    session: Session, batches: Sequence[int] | None = None, *, repeats: int = 10, progress: Progress = silent
) -> tuple[Timing, ...]:
    """Time the plan's kernels at every batch size (None: the usual ones); raises PlanError for one below 1."""
    batches = usual_batches() if batches is None else batches
    if not batches or min(batches) < 1:
        raise PlanError(f"batch sizes {list(batches)} were given; each has to be at least 1")
    found: list[Timing] = []
    for number, batch in enumerate(batches):
        part = part_of(progress, number / len(batches), (number + 1) / len(batches))
        found += time_kernels(session, batch=batch, repeats=repeats, progress=part)
    return tuple(found)


def measure_ceilings(progress: Progress = silent) -> Ceilings:
    """Measure the memory (a copy) and the arithmetic (a matrix product) of the device on which kernels are timed.

    A CUDA device's arithmetic is that of bfloat16, the processor's that of FP32.  Raises DeviceError.
    """
    from workbench_kernels.catalog import cuda_reason

    progress(0.0, "measuring memory and products")
    found = _of_the_processor() if cuda_reason() else on_gpu("measuring the device", _of_the_device, progress)
    progress(1.0, "measured")
    return found


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
    found = []
    for _ in range(TRIES):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweptBatches:
    """The timings of a sweep and the ceilings measured in the same run."""

    timings: tuple[Timing, ...]
    ceilings: Ceilings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepBatches:
    """Time the plan's kernels at several batch sizes and measure the machine's ceilings."""

    session: Session
    batches: tuple[int, ...] | None = None
    repeats: int = 10

    @property
    def title(self) -> str:
        """What a person reads in the jobs panel."""
        return f"Sweep batch sizes of {self.session.plan.name}"

    def slim(self) -> SweepBatches:
        """Keep the model's facts and the plan."""
        return replace(self, session=without_results(self.session))

    def run(self, models: ModelCache, progress: Progress) -> SweptBatches:
        """Time and measure; needs the shapes only, not the model's file."""
        timings = sweep_batches(
            self.session, self.batches, repeats=self.repeats, progress=part_of(progress, 0.0, 0.9)
        )  # fmt: skip
        return SweptBatches(timings=timings, ceilings=measure_ceilings(part_of(progress, 0.9, 1.0)))

    def joined(self, current: Session, response: SweptBatches) -> Session:
        """Add the timings, in place of earlier ones of the same layer, scheme, batch and device."""
        return replace(current, timings=with_timings(current.timings, response.timings))
