"""How to profile what was timed: the ``ncu`` command line for a row of the timings."""

from __future__ import annotations

from workbench.measurement.evaluation import Timing

LAUNCHES = 8
"""How many launches are profiled: those that warm a kernel up, alike except for the cache."""


def ncu_command(timing: Timing) -> str | None:
    """Return the command that times the row's shape and scheme again under Nsight Compute; None for a CPU kernel."""
    from workbench_kernels.bench.profiling import ncu_command as command

    if not timing.on_cuda:
        return None
    rows, columns = timing.shape
    again = f"workbench bench --shape {rows}x{columns} --schemes {timing.scheme} --batch {timing.batch}"
    return str(command(timing.kernel, again, LAUNCHES))
