"""A calibration and a predicted table on two processes, with and without one of them killed, beside one process.

    python tests/benchmarks/cluster.py MODEL DATA [--samples N] [--address ADDRESS] [--batch N]

The processes have one thread each, as does the run beside them; ADDRESS is ``local:2`` or that of a Dask scheduler.
The limit is 1.4 times half of the time of one process, without what opening the model in the workers takes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import psutil
import torch

import workbench as wb
from tests.numerics.statistics.same import same
from workbench.models.workers import Workers

LIMIT = 1.4


def warm(model: Any, place: int) -> int:
    """Do nothing, in a worker that has opened the model."""
    time.sleep(1.0)
    return place


def worked(model: Any, data: str, samples: int, batch: int, kill: bool = False) -> tuple[float, Any]:
    """Return wall seconds and the session; ``kill`` ends a worker in the middle of the calibration."""

    def progress(fraction: float, text: str, partial: object = None) -> None:
        workers = [p for p in psutil.Process().children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]
        if kill and fraction > 0.4 and workers and not killed:
            killed.append(workers[0].pid)
            os.kill(workers[0].pid, signal.SIGKILL)

    killed: list[int] = []
    start = time.perf_counter()
    session = wb.score(wb.calibrate(model, data, samples=samples, batch_size=batch, progress=progress), model=model)
    return time.perf_counter() - start, session


def same_sessions(a: Any, b: Any) -> bool:
    """Tell whether two sessions hold the same statistics and losses, bit for bit."""
    tables = zip(a.sensitivities.values(), b.sensitivities.values(), strict=True)
    return all(same(a.statistics[key], b.statistics[key]) for key in a.statistics) and all(
        (item.score == other.score).all() for item, other in tables
    )


def main() -> None:
    """Read the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--address", default="local:2")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = wb.open(options.model)
    run = (model, options.data, options.samples, options.batch)
    alone, expected = worked(*run)
    rows = {"one process": alone}
    equal = True
    for name, kill in (("two processes", False), ("two, one killed", True)):
        with wb.cluster(options.address) as workers:
            assert isinstance(workers, Workers)
            list(workers.map(model, warm, [1, 2, 3, 4]))
            rows[name], session = worked(*run, kill=kill)
            equal &= same_sessions(expected, session)
    print(f"{'what':18} {'seconds':>8} {'of half':>8} {'limit':>6}")
    for name, seconds in rows.items():
        print(f"{name:18} {seconds:8.1f} {seconds / (alone / 2):8.2f} {LIMIT:6}")
    print(json.dumps({"rows": rows, "equal_bits": equal, "limit": LIMIT}))


if __name__ == "__main__":
    main()
