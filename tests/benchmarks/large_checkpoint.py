"""Opening a large checkpoint: its list of layers, and its histograms beside a bare torch loop over min, max and histc.

    python tests/benchmarks/large_checkpoint.py [--parameters 1B|8B] [--work FOLDER]

Takes the random Llama of ``export_size.py`` (1.1 B or 8.0 B weights in bfloat16).  Each row runs in a process of its
own; the list is the whole command ``workbench inspect``, the others count without their imports.
To reach: the list in 1 s, histograms in 0.35 of the loop's time, under 400 MB of anonymous memory.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from tests.benchmarks.export_size import SHAPES, forget, write_model

LIMITS = {"list": (1.0, "s"), "histograms": (0.35, "of the loop"), "memory": (400.0, "MB")}
BINS = 2048


def listed(folder: Path) -> float:
    """Return the wall seconds of ``workbench inspect``, from its start to its end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "workbench", "inspect", str(folder)], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def histograms(folder: Path) -> Iterator[None]:
    """Open the model, then make every layer's statistics."""
    import workbench as wb

    model = wb.open(folder)
    yield
    assert wb.start(model).statistics


def loop(folder: Path) -> Iterator[None]:
    """Find least, largest and counts of every tensor with torch's own functions."""
    import torch
    from safetensors import safe_open

    yield
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - not a dictionary
            values = file.get_tensor(name).float()
            torch.histc(values, BINS, float(values.min()), float(values.max()))


ROWS: dict[str, Callable[[Path], Iterator[None]]] = {"loop": loop, "histograms": histograms}


def run(row: str, folder: Path) -> dict[str, float]:
    """Run one row in this process."""
    from tests.benchmarks.size_limited import watched

    importlib.import_module("workbench.steps")  # before the time counts
    start, used, peak = time.perf_counter(), time.process_time(), watched()
    work = ROWS[row](folder)
    next(work)
    opening, start = time.perf_counter() - start, time.perf_counter()
    opened, used = time.process_time() - used, time.process_time()
    next(work, None)
    return {
        "opening": opening, "opening CPU": opened, "wall": time.perf_counter() - start,
        "cpu": time.process_time() - used, "anonymous": float(peak()),
    }  # fmt: skip


def child(row: str, folder: Path) -> dict[str, float]:
    """Return what a row measures in a process of its own."""
    forget(folder / "model.safetensors")
    arguments = [sys.executable, __file__, "--child", row, "--work", str(folder)]
    ended = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Read the command line, write the model, run the rows, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", default="1B", choices=SHAPES)
    parser.add_argument("--work", default="")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(run(options.child, Path(options.work))))
        return
    with tempfile.TemporaryDirectory() as made:
        work = Path(options.work or made)
        os.environ["WORKBENCH_CACHE_FOLDER"] = ""
        folder = work / f"model-{options.parameters}"
        if not folder.exists():
            write_model(folder, *SHAPES[options.parameters])
        forget(folder / "model.safetensors")
        seconds = min(listed(folder) for _ in range(3))
        rows = {row: child(row, folder) for row in ROWS}
        for row, figures in rows.items():
            memory = figures["anonymous"] / 1e6
            print(
                f"{row:12} {figures['wall']:8.2f} s {figures['cpu']:8.2f} CPU s {memory:8.0f} MB anonymous, "
                f"opened in {figures['opening']:.2f} s, {figures['opening CPU']:.2f} CPU s"
            )
        ratios = {
            "list": seconds,
            "histograms": rows["histograms"]["cpu"] / rows["loop"]["cpu"],
            "memory": rows["histograms"]["anonymous"] / 1e6,
        }
        for name, value in ratios.items():
            most, unit = LIMITS[name]
            print(f"{name:12} {value:8.2f} {unit:12} at most {most:g}{'' if value <= most else '  over'}")
        print(json.dumps({"benchmark": "large checkpoint", "parameters": options.parameters, **ratios, "rows": rows}))


if __name__ == "__main__":
    main()
