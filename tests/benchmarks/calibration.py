"""What calibration costs beside a bare forward pass over the same batches: a table and one line of JSON.

    python tests/benchmarks/calibration.py MODEL DATA [--trust] [--weights FILE] [--batch-size N] [--batches N]

``statistics``: extremes, channels' extremes, moments and histograms of every layer's input and output, diagonal A.
``curvature``: that, full A and the rows of G.  By turns in one process, least times.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

from workbench.models.calibrate import calibrate
from workbench.models.datasets import open_dataset
from workbench.models.growing import Part
from workbench.models.model import Model
from workbench.models.sources import open_model


def bare(model: Model, data: Part) -> None:
    """Run the model once over the data."""
    with torch.no_grad():
        for batch in data.batches(data.batch_size):
            model.run(batch)


def by_turns(work: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the least seconds of each, all run in turn."""
    least = dict.fromkeys(work, float("inf"))
    for _ in range(repeats):
        for name, each in work.items():
            start = time.perf_counter()
            each()
            least[name] = min(least[name], time.perf_counter() - start)
    return least


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="demo:language-model")
    parser.add_argument("data", nargs="?", default="demo:language-model")
    parser.add_argument("--trust", action="store_true", help="the model is a Python file that may run")
    parser.add_argument("--weights", help="weights of a Python model")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--batches", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=12)
    options = parser.parse_args()
    model = open_model(options.model, weights=options.weights, trust=options.trust)
    data = open_dataset(options.data, model, samples=options.batches * options.batch_size)
    part = Part(data=data, start=0, stop=options.batches, batch_size=options.batch_size)
    size = options.batch_size
    least = by_turns({
        "bare": lambda: bare(model, part),
        "statistics": lambda: calibrate(model, part, batch_size=size, curvature=False),
        "curvature": lambda: calibrate(model, part, batch_size=size),
    }, options.repeats)  # fmt: skip
    for name, seconds in least.items():
        print(f"{name:12} {1e3 * seconds:8.1f} ms   {seconds / least['bare']:.2f} bare passes")
    print(json.dumps({"model": model.summary.name, **least}))


if __name__ == "__main__":
    main()
