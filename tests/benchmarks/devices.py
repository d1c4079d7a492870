"""What each step costs on each device: seconds, bare passes, device memory, and whether devices agree.

    python tests/benchmarks/devices.py [--devices cpu cuda:0] [--hidden N] [--layers N] [--dtype NAME] [--work FOLDER]
                                       [--steps A,B] [--windows N] [--tokens N]

Writes a random Llama in bfloat16 (default: 1.1 B weights, 2.2 GB) and random tokens.  A pass is one bare forward pass
over the same windows on that device.  Every device runs in a process of its own; ``memory`` is torch's peak on a CUDA
device.  The two columns at the end are the predicted and the measured loss of one INT4 plan, which no device changes by
more than its arithmetic does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.size_limited import VOCABULARY, write_model

STEPS = ("calibrate", "score", "evaluate", "again", "gptq", "learned")
SCHEME = "int4-g128-asym"


class Device:
    """Times calls on one device."""

    def __init__(self, name: str) -> None:
        import torch

        self.cuda = torch.cuda if name.startswith("cuda") else None

    def measure(self, call: Any) -> tuple[Any, dict[str, float]]:
        """Return what ``call`` returns, its wall seconds and the device's peak memory in GB."""
        if self.cuda:
            self.cuda.synchronize()
            self.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        result = call()
        if self.cuda:
            self.cuda.synchronize()
        seconds = time.perf_counter() - start
        return result, {"seconds": seconds, "GB": self.cuda.max_memory_allocated() / 1e9 if self.cuda else 0.0}


def bare(model: Any, data: Any) -> None:
    """Run one forward pass over the data."""
    import torch

    with torch.no_grad():
        for batch in data.batches(8):
            model.run(batch)


def run(device: str, options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Run every step on one device in this process."""
    import workbench as wb
    from workbench.models.layer import LayerKind
    from workbench.steps import session_data

    clock, tokens = Device(device), work / "tokens.npy"
    model, figures = wb.open(work / "model", device=device, dtype=options.dtype), {}
    data = session_data.for_calibration(model, tokens, samples=options.windows, seed=0)
    bare(model, data)
    _, figures["bare"] = clock.measure(lambda: bare(model, data))
    _show(device, "bare", figures["bare"], figures)
    stored = wb.start(model).model.stored
    linear = [layer for layer in stored if layer.kind is LayerKind.LINEAR and "head" not in layer.name]
    plans = {name: wb.Plan.uniform(linear, SCHEME, algorithm=name) for name in ("rtn", "gptq", "learned")}
    session: Any = None
    calls = {
        "calibrate": lambda: wb.calibrate(model, tokens, samples=options.windows),
        "score": lambda: wb.score(session, model=model, schemes=(SCHEME, "int8-channel", "q4_0", "q4_k")),
        "evaluate": lambda: wb.evaluate(session, plans["rtn"], model=model, data=tokens, samples=options.windows),
        "again": lambda: wb.evaluate(session, plans["rtn"], model=model, data=tokens, samples=options.windows),
        "gptq": lambda: wb.quantize(model, plans["gptq"], session=session),
        "learned": lambda: wb.quantize(model, plans["learned"], session=session),
    }
    for name in options.steps.split(","):
        result, figures[name] = clock.measure(calls[name])
        _show(device, name, figures[name], figures)
        if name in ("calibrate", "score"):
            session = result
        elif name == "evaluate":
            figures |= {"predicted": result.predicted_kl, "measured": result.divergence.value}
    return figures


def _show(device: str, name: str, row: dict[str, float], figures: dict[str, Any]) -> None:
    passes = row["seconds"] / figures["bare"]["seconds"]
    print(f"{device:8} {name:10} {row['seconds']:9.2f} s {passes:8.1f} passes {row['GB']:7.2f} GB", file=sys.stderr)


def main() -> None:
    """Read the command line, write the model, run each device, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--windows", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--dtype", default="stored")
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--work", default="")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(options.child, options, Path(options.work))))
        return
    import numpy as np

    with tempfile.TemporaryDirectory() as made:
        work = Path(options.work or made)
        os.environ["WORKBENCH_CACHE_FOLDER"] = ""
        if not (work / "model").exists():
            write_model(work / "model", options.hidden, options.layers)
        shape = 2 * options.windows, options.tokens
        np.save(work / "tokens.npy", np.random.default_rng(0).integers(0, VOCABULARY, shape))
        rows = {}
        for device in options.devices:
            arguments = [sys.executable, __file__, *sys.argv[1:], "--work", str(work), "--child", device]
            ended = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False)
            rows[device] = json.loads(ended.stdout.splitlines()[-1]) if not ended.returncode else {}
            print(f"{device}: predicted {rows[device].get('predicted')}, measured {rows[device].get('measured')}")
        print(json.dumps({"hidden": options.hidden, "layers": options.layers, "dtype": options.dtype, "devices": rows}))


if __name__ == "__main__":
    main()
