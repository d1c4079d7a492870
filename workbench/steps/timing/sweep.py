"""Time the plan's kernels at several batch sizes and measure the machine's ceilings beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.errors import PlanError
from workbench.measurement.evaluation import Ceilings, Timing
from workbench.progress import Progress, part_of, silent
from workbench.session.session import Session
from workbench.steps.options import OptionInfo, option
from workbench.steps.requirements import QUANTIZES
from workbench.steps.step import Context, Step
from workbench.steps.timing.ceilings import measure_ceilings
from workbench.steps.timing.kernels import REPEATS, join_timings, time_kernels

LATENCY, THROUGHPUT = (1, 4, 16), (128, 1024, 4096)
"""Rows of inputs: a few tokens at a time, and prompts or many users at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBatchesOptions:
    """Over which batch sizes, how often."""

    batches: tuple[int, ...] = option((), OptionInfo(
        label="Batches", minimum=1, metavar="N,N,...", help="rows of the input, one sweep over all",
        empty="1 to 4096 on a GPU, 1 to 128 on a processor",
    ))  # fmt: skip
    repeats: int = option(10, REPEATS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sweep:
    """The timings of a sweep and the ceilings measured in the same run."""

    timings: tuple[Timing, ...]
    ceilings: Ceilings


def usual_batches() -> tuple[int, ...]:
    """Return the batch sizes of a sweep: on a processor, which takes seconds for a larger one, up to 128."""
    from workbench_kernels.catalog import cuda_reason

    return LATENCY + (THROUGHPUT[:1] if cuda_reason() else THROUGHPUT)


def sweep_batches(
    session: Session, batches: Sequence[int] | None = None, *, repeats: int = 10, progress: Progress = silent
) -> tuple[Timing, ...]:
    """Time the plan's kernels at every batch size (none: the usual ones); raises PlanError for one below 1."""
    batches = batches or usual_batches()
    if min(batches) < 1:
        raise PlanError(f"got the batch sizes {list(batches)}; each must be at least 1")
    timings: list[Timing] = []
    for number, batch in enumerate(batches):
        part = part_of(progress, number / len(batches), (number + 1) / len(batches))
        timings += time_kernels(session, batch=batch, repeats=repeats, progress=part)
    return tuple(timings)


def _run(context: Context, options: SweepBatchesOptions) -> Sweep:
    timing, measuring = part_of(context.progress, 0.0, 0.9), part_of(context.progress, 0.9, 1.0)
    timings = sweep_batches(context.session, options.batches, repeats=options.repeats, progress=timing)
    return Sweep(timings=timings, ceilings=measure_ceilings(measuring))


SWEEP_BATCHES = Step(
    name="sweep-batches", title="Sweep batch sizes", options=SweepBatchesOptions, requires=(QUANTIZES,), run=_run,
    summary="Times the plan's kernels at several batch sizes and measures the memory's and the arithmetic's ceilings.",
    heading=lambda options, session: "Sweep batch sizes" + (f" of {session.plan.name}" if session else ""),
    join=lambda session, options, sweep: join_timings(session, options, sweep.timings),
)  # fmt: skip
