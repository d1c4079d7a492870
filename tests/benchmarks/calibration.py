"""What calibration costs beside a bare forward pass over the same batches: a table and one line of JSON.

    python tests/benchmarks/calibration.py [MODEL DATA] [--trust] [--weights FILE] [--batch-size N] [--batches N]

``statistics``: extremes, channels' extremes, moments, histograms and outlier tokens of every layer's input and output,
diagonal A.
``curvature``: that, full A and the rows of G.  Each pass is timed right before or after a bare one (by turns, in one
process), and the median of these pairs' ratios is what counts; half of the ratios lie in the span beside it.  Peers'
figures are ratios measured elsewhere on the same models.  Memory is the peak of resident memory during the pass, each
in a process of its own in which everything that the passes need (numba too) was loaded and compiled before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

from workbench.measurement.calibrate import calibrate
from workbench.measurement.data_doublings import BatchRange
from workbench.models.data.datasets import open_dataset
from workbench.models.data.files import ALL
from workbench.models.model import Model
from workbench.models.sources import open_model

LIMITS = {"token_logits": 1.5, "class_logits": 1.6}
"""Of ``statistics``, in bare passes."""

PEERS = {
    "token_logits": "torch.ao histograms of inputs 1.7, PT2E 2.15, ModelOpt 1.6, AIMET 3.1 to 14, ONNX 1.9 to 6.3",
    "class_logits": "torch.ao histograms of inputs 2.27, PT2E 2.15, ModelOpt 1.5, AIMET 1.9 to 7.3, ONNX 3.5 to 10",
}

LAYER_BYTES = 64 << 10
"""What a layer may take beyond 1.2 times a bare pass."""


def bare(model: Model, data: BatchRange) -> None:
    """Run the model once over the data."""
    with torch.no_grad():
        for batch in data.batches(data.batch_size):
            model.run(batch)


def passes(model: Model, data: BatchRange) -> dict[str, Callable[[], object]]:
    """Return what is timed and weighed."""
    size = data.batch_size
    return {
        "bare": lambda: bare(model, data),
        "statistics": lambda: calibrate(model, data, batch_size=size, curvature=False),
        "curvature": lambda: calibrate(model, data, batch_size=size),
    }


def seconds(work: Callable[[], object]) -> float:
    """Return how long ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Seconds of a bare pass and of another one, taken one right after the other."""

    bare: tuple[float, ...]
    other: tuple[float, ...]

    @classmethod
    def of(cls, bare: Callable[[], object], other: Callable[[], object], repeats: int) -> Pairs:
        """Time both so many times, the one and the other first by turns, after one run of each that does not count."""
        other(), bare()
        result: list[tuple[float, float]] = []
        for number in range(repeats):
            if number % 2:
                late = seconds(other)
                result.append((seconds(bare), late))
            else:
                result.append((seconds(bare), seconds(other)))
        return cls(bare=tuple(first for first, _ in result), other=tuple(second for _, second in result))

    @property
    def quartiles(self) -> list[float]:
        """The quartiles of the pairs' ratios; the middle one is the median."""
        ratios = [other / bare for bare, other in zip(self.bare, self.other, strict=True)]
        return statistics.quantiles(ratios, n=4, method="inclusive")


def resident(field: str) -> int:
    """Return ``VmRSS`` (now) or ``VmHWM`` (peak) of this process in bytes (Linux)."""
    result = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert result is not None
    return int(result[1]) * 1024


def weigh(work: Callable[[], object], small: Iterable[Callable[[], object]]) -> dict[str, int]:
    """Return resident bytes before and at the peak of ``work``, after ``small`` has loaded all that any pass needs."""
    for each in small:
        each()
    Path("/proc/self/clear_refs").write_text("5")  # starts the peak anew
    before = resident("VmRSS")
    work()
    return {"before": before, "peak": resident("VmHWM")}


def memory(arguments: list[str]) -> dict[str, dict[str, int]]:
    """Return what each pass weighs in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    return {
        name: json.loads(subprocess.run([*command, "--weigh", name], check=True, capture_output=True).stdout)
        for name in ("bare", "statistics", "curvature")
    }


def print_times(work: dict[str, Callable[[], object]], repeats: int, limit: float | None) -> dict[str, list[float]]:
    """Time each pass beside bare ones, print and return the quartiles of its ratios."""
    times: dict[str, list[float]] = {}
    for name, count in (("statistics", repeats), ("curvature", max(repeats // 4, 2))):
        pairs = Pairs.of(work["bare"], work[name], count)
        low, middle, high = times[name] = pairs.quartiles
        requested = f"   asked: {limit}" if name == "statistics" and limit else ""
        both = f"{1e3 * min(pairs.other):7.1f} ms at least, bare {1e3 * min(pairs.bare):.1f}"
        print(f"{name:12} {middle:.2f} bare passes ({low:.2f} to {high:.2f}){requested}   {both}")
    return times


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="demo:language-model")
    parser.add_argument("data", nargs="?", default="demo:language-model")
    parser.add_argument("--trust", action="store_true", help="the model is a Python file that may run")
    parser.add_argument("--weights", help="weights of a Python model")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--batches", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=40, help="pairs; of those with curvature a fourth")
    parser.add_argument("--weigh", choices=("bare", "statistics", "curvature"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    model = open_model(options.model, weights=options.weights, trust=options.trust)
    split = "calibration" if options.data.startswith("demo:") else ALL
    data = open_dataset(options.data, model, samples=options.batches * options.batch_size, split=split)
    work = passes(model, BatchRange(data=data, start=0, stop=options.batches, batch_size=options.batch_size))
    if options.weigh:
        small = passes(model, BatchRange(data=data, start=0, stop=1, batch_size=1))
        print(json.dumps(weigh(work[options.weigh], small.values())))
        return
    kind = model.summary.output.value
    times = print_times(work, options.repeats, LIMITS.get(kind))
    print(f"peers        {PEERS.get(kind, 'none measured')}")
    weighed = memory(sys.argv[1:])
    room = 1.2 * weighed["bare"]["peak"] + LAYER_BYTES * len(model.summary.layers)
    for name, result in weighed.items():
        requested = f"   asked: {room / 2**20:.1f}" if name == "statistics" else ""
        more = (result["peak"] - result["before"]) / 2**20
        print(f"{name:12} {result['peak'] / 2**20:8.1f} MiB at the peak, {more:.1f} of them for the pass{requested}")
    print(json.dumps({"model": model.summary.name, **times, "memory": weighed, "memory_limit": room}))


if __name__ == "__main__":
    main()
