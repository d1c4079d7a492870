"""How fast the kernels are beside what people use today: a table and one line of JSON.

    python tests/benchmarks/kernels.py [--rows 4096] [--columns 4096] [--batches 1 16 256] [--repeats 15] [--ops w4a16]

On the CPU: every linear kernel of the catalog beside torch's FP32 product, in turns, medians.  With a CUDA device also
every CUDA kernel, cold, beside the copy rate measured in the same run; without one the reason stands in its place.
Every result is checked before it is timed.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import torch
from workbench_kernels.bench import cpu_name, measure
from workbench_kernels.catalog import CUDA_OPS, OPS, cuda_reason
from workbench_kernels.linear import FP32
from workbench_kernels.op import Op

Row = dict[str, Any]


def cpu_row(op: Op, rows: int, columns: int, batch: int, repeats: int) -> Row:
    """Return microseconds of a kernel and of FP32, or the reason why there are none."""
    row: Row = {"op": op.name, "rows": rows, "columns": columns, "batch": batch}
    reason = op.available() or op.refuses(rows, columns)
    if reason:
        return row | {"reason": reason}
    samples = measure(rows, columns, batch, op, FP32, repeats=repeats)
    ours, theirs = float(np.median(samples.kernel)), float(np.median(samples.baseline))
    return row | {"microseconds": ours, "fp32_microseconds": theirs, "times_faster": theirs / ours}


def cpu_table(rows: int, columns: int, batches: list[int], repeats: int) -> list[Row]:
    """Time and print every CPU kernel."""
    print(f"{cpu_name()}; {rows} x {columns}")
    print(f"{'kernel':<32} {'batch':>5} {'us':>10} {'FP32 us':>10} {'faster':>7}")
    table = []
    for op in OPS:
        for batch in batches:
            row = cpu_row(op, rows, columns, batch, repeats)
            table.append(row)
            figures = (
                f"{row['microseconds']:10.0f} {row['fp32_microseconds']:10.0f} {row['times_faster']:6.2f}x"
                if "microseconds" in row else row["reason"]
            )  # fmt: skip
            print(f"{op.name:<32} {batch:5d} {figures}", flush=True)
    return table


def copy_rate() -> float:
    """Return GB/s, read and written, of a device copy of 1 GiB; the best of ten."""
    source = torch.empty(2**28, device="cuda")
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(10):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return 2 * source.numel() * 4 / best / 1e6


def cuda_table(names: list[str]) -> list[Row]:
    """Time and print every CUDA kernel whose name holds one of ``names``."""
    from workbench_kernels.cuda_bench import measure as measure_cuda
    from workbench_kernels.device import CudaDevice
    from workbench_kernels.errors import BackendUnavailable

    device, limit = CudaDevice(), copy_rate()
    print(f"\n{device.name}; copy {limit:.0f} GB/s")
    print(f"{'kernel':<26} {'shape':<58} {'us':>9} {'GB/s':>7} {'of copy':>7} {'Tops':>7}")
    table = []
    for op in CUDA_OPS:
        for shape in op.sizes if any(name in op.name for name in names) else ():
            row: Row = {"op": op.name, "shape": {name: str(value) for name, value in shape.items()}}
            label = " ".join(f"{name}={str(value).removeprefix('torch.')}" for name, value in shape.items())
            try:
                found = measure_cuda(device, op, shape)
            except BackendUnavailable as error:
                print(f"{op.name:<26} {label:<58} {error}", flush=True)
                table.append(row | {"reason": str(error)})
                continue
            rate, operations = found.gigabytes_per_second(), found.teraoperations_per_second()
            median = float(np.median(found.microseconds))
            figures = f"{median:9.1f} {rate:7.0f} {rate / limit:7.1%} {operations:7.1f}"
            print(f"{op.name:<26} {label:<58} {figures}", flush=True)
            table.append(row | {"microseconds": found.microseconds.tolist(), "GB/s": rate, "Tops": operations})
    return table


def main() -> None:
    """Print the tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--ops", nargs="+", default=[""], help="parts of the names of CUDA kernels")
    given = parser.parse_args()
    result: Row = {"cpu": cpu_name(), "cpu_rows": cpu_table(given.rows, given.columns, given.batches, given.repeats)}
    reason = cuda_reason()
    if reason:
        print(f"\nCUDA: {reason}")
        result["cuda"] = reason
    else:
        result["cuda"] = torch.cuda.get_device_name()
        result["cuda_rows"] = cuda_table(given.ops)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
