"""How fast the kernels are beside what people use today: tables and one line of JSON.

    python tests/benchmarks/kernels.py [--rows 4096] [--columns 4096] [--batches 1 16 256] [--repeats 15] [--ops w4a16]
    python tests/benchmarks/kernels.py --ncu "w4a16 linear"        prints the command that profiles an op's kernels

On the CPU: every linear kernel of the catalog beside torch's FP32 product, in turns, medians; number formats beside the
gguf package; the limits beside the figures.  With a CUDA device also every CUDA kernel, tuned, cold, beside its
baselines and the ceilings measured in the same run, written into kernels/RESULTS.md; else the reason in its place.
Every result is checked before it is timed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from workbench_kernels.bench import ceilings, report
from workbench_kernels.bench.choice import fastest
from workbench_kernels.bench.cuda import measure as measure_cuda
from workbench_kernels.bench.cuda import ncu_command, profile
from workbench_kernels.bench.measure import cpu_name, measure
from workbench_kernels.catalog import CUDA_OPS, OPS, SAME_SCHEME, SOURCES, cuda_reason
from workbench_kernels.cpu.linear import FP32
from workbench_kernels.errors import BackendUnavailable
from workbench_kernels.gpu.device import CudaDevice
from workbench_kernels.gpu.launch import CudaOp
from workbench_kernels.gpu.thread import compile_all
from workbench_kernels.op import Op

Row = dict[str, Any]
RESULTS = Path(__file__).parent.parent.parent / "kernels" / "RESULTS.md"

LINEAR_LIMITS = {  # scheme's first kernel, batch -> times FP32; the fastest kernel of the scheme must reach it
    ("torch int4 group 32 linear", 1): 4.0, ("torch int4 group 64 linear", 1): 4.0,
    ("torch int4 group 128 linear", 1): 4.0, ("torch int8 dynamic linear", 16): 5.0,
    ("torch int8 dynamic linear", 256): 5.0,
}  # fmt: skip


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
    print(f"{'kernel':<36} {'batch':>5} {'us':>10} {'FP32 us':>10} {'faster':>7}")
    table = []
    for op in OPS:
        for batch in batches:
            row = cpu_row(op, rows, columns, batch, repeats)
            table.append(row)
            figures = (
                f"{row['microseconds']:10.0f} {row['fp32_microseconds']:10.0f} {row['times_faster']:6.2f}x"
                if "microseconds" in row else row["reason"]
            )  # fmt: skip
            print(f"{op.name:<36} {batch:5d} {figures}", flush=True)
    return table


def choices(table: list[Row], rows: int, columns: int, batches: list[int]) -> list[Row]:
    """Print which kernel of each scheme ``choice.fastest`` takes, and its speed-up beside the limit."""
    print(f"\n{'scheme, by measurement':<36} {'batch':>5} {'faster':>7} {'limit':>6}")
    result = []
    for same in SAME_SCHEME:
        for batch in batches:
            chosen = fastest(same, rows, columns, batch)
            times = next(r["times_faster"] for r in table if r["op"] == chosen.op.name and r["batch"] == batch)
            limit = LINEAR_LIMITS.get((same[0].name, batch))
            print(f"{chosen.op.name:<36} {batch:5d} {times:6.2f}x {verdict(times, limit)}")
            result.append({"choice": chosen.op.name, "batch": batch, "times_faster": times, "limit": limit})
    return result


def verdict(figure: float, limit: float | None) -> str:
    """Return the limit and whether it is reached."""
    return "" if limit is None else f"{limit:6.2f} {'reached' if figure >= limit else 'missed'}"


def best_seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the least seconds of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def format_table(rows: int, columns: int, repeats: int) -> list[Row]:
    """Time number formats on one thread, beside the gguf package where there is one: GB/s of float32 values."""
    from workbench.numerics.formats import parse_scheme

    gguf: ModuleType | None = None
    try:
        gguf = importlib.import_module("gguf")
    except ImportError as error:
        print(f"\nno figures of the gguf package: {error} (pip install gguf)")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0))
    table = [row for name in ("q4_0", "q4_k") for row in _format_rows(x, parse_scheme(name), gguf, repeats)]
    torch.set_num_threads(threads)
    print(f"\n{'format, one thread':<20} {'GB/s':>7} {'gguf':>7} {'limit':>14}")
    for row in table:
        beside = f"{row['gguf GB/s']:7.2f}" if "gguf GB/s" in row else "      -"
        print(f"{row['format']:<20} {row['GB/s']:7.2f} {beside} {verdict(row['GB/s'], row['limit'])}")
    return table


def _format_rows(x: torch.Tensor, scheme: Any, gguf: Any, repeats: int) -> tuple[Row, Row]:
    """Return the rows of decoding and of encoding; limits that are multiples of gguf's figures are None without it."""
    name = scheme.name

    def rate(call: Callable[[], object]) -> float:
        return 4 * x.numel() / best_seconds(call, repeats) / 1e9

    stored = scheme.encode(x, scheme.fit(x))
    octets = next(iter(stored.arrays.values()))
    decode: Row = {"format": f"{name} decode", "GB/s": rate(lambda: scheme.decode(stored)), "limit": 5.0}
    encode: Row = {"format": f"{name} encode", "GB/s": rate(lambda: scheme.encode(x, scheme.fit(x))), "limit": 0.15}
    if name == "q4_0":
        decode["limit"] = encode["limit"] = None
    if gguf is not None:
        kind = gguf.GGMLQuantizationType[name.upper()]
        decode["gguf GB/s"] = rate(lambda: gguf.dequantize(octets, kind))
        if name == "q4_0":  # the package encodes no K-quants
            encode["gguf GB/s"] = rate(lambda: gguf.quantize(x.numpy(), kind))
            decode["limit"], encode["limit"] = 4 * decode["gguf GB/s"], 2 * encode["gguf GB/s"]
    return decode, encode


def cuda_rows(device: CudaDevice, names: list[str]) -> list[report.Row]:
    """Time every CUDA kernel whose name holds one of ``names``."""
    result = []
    for op in CUDA_OPS:
        for shape in op.sizes if any(name in op.name for name in names) else ():
            try:
                row = report.Row(op=op.name, shape=shape, samples=measure_cuda(device, op, shape))
            except (BackendUnavailable, torch.OutOfMemoryError) as error:
                row = report.Row(op=op.name, shape=shape, samples=None, reason=str(error).splitlines()[0])
            torch.cuda.empty_cache()
            result.append(row)
            if row.samples is None:
                print(f"{op.name:<24} {report.shape_text(shape):<60} {row.reason}", flush=True)
                continue
            s = row.samples
            rates = f"{s.gigabytes_per_second():7.0f} GB/s {s.teraoperations_per_second():7.1f} T"
            print(f"{op.name:<24} {report.shape_text(shape):<60} {s.median():9.1f} us {rates}", flush=True)
    return result


def cuda_tables(names: list[str]) -> Row:
    """Measure the device and every kernel, and write the tables into RESULTS.md."""
    device = CudaDevice()
    compile_all(device, SOURCES, lambda fraction, what: print(f"{fraction:4.0%} {what}", flush=True))
    before, limits = ceilings.clocks(), ceilings.measure(device)
    print(f"\n{device.name}; copy {limits.copy:.0f} GB/s; products {limits.products}")
    rows = cuda_rows(device, names)
    facts = before | {f"{name} after": value for name, value in ceilings.clocks().items() if "clocks" in name}
    made = report.table(rows, limits, device.name, datetime.date.today().isoformat(), facts)
    if names == [""]:
        RESULTS.write_text(report.with_table(RESULTS.read_text(encoding="utf-8"), made), encoding="utf-8")
    print(made)
    samples = [
        {"op": row.op, "shape": report.shape_text(row.shape), "reason": row.reason} if row.samples is None else
        {"op": row.op, "shape": report.shape_text(row.shape), "microseconds": row.samples.microseconds.tolist(),
         "baselines": {name: times.tolist() for name, times in row.samples.baselines.items()}}
        for row in rows
    ]  # fmt: skip
    return {"device": device.name, "facts": facts, "copy GB/s": limits.copy, "rows": samples}


def named(name: str) -> CudaOp:
    """Return the op of that very name."""
    result = [op for op in CUDA_OPS if op.name == name]
    if not result:
        raise SystemExit(f"no op is called {name!r}; there are: {', '.join(sorted(op.name for op in CUDA_OPS))}")
    return result[0]


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--ops", nargs="+", default=[""], help="parts of the names of CUDA kernels")
    parser.add_argument("--no-cpu", action="store_true", help="leave the CPU's tables out")
    parser.add_argument("--ncu", metavar="OP", help="print the command that profiles an op, and end")
    parser.add_argument("--profile", metavar="OP", help="launch an op a few times for a profiler, and end")
    return parser.parse_args()


def main() -> None:
    """Print the tables and the JSON line."""
    options = parsed()
    if options.ncu:
        print(ncu_command(named(options.ncu)))
        return
    if options.profile:
        op = named(options.profile)
        profile(CudaDevice(), op, op.sizes[0])
        return
    result: Row = {"cpu": cpu_name()}
    if not options.no_cpu:
        table = cpu_table(options.rows, options.columns, options.batches, options.repeats)
        result |= {"cpu_rows": table, "choices": choices(table, options.rows, options.columns, options.batches)}
        try:
            result["formats"] = format_table(options.rows, options.columns, 3)
        except ImportError as error:  # kernels need neither numba nor what else the workbench needs
            result["formats"] = str(error)
            print(f"\nnumber formats: {error}")
    reason = cuda_reason()
    if reason:
        print(f"\nCUDA: {reason}")
    result["cuda"] = reason or cuda_tables(options.ops)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
