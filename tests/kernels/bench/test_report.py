"""The tables of RESULTS.md, and what the benchmark does without a device.  Figures here are made up, and stay here."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from workbench_kernels import catalog
from workbench_kernels.bench import cuda as cuda_bench
from workbench_kernels.bench import cuda_layers as cuda_linear
from workbench_kernels.bench import report
from workbench_kernels.bench.ceilings import Ceilings, clocks
from workbench_kernels.bench.cuda import COLD_BYTES, LAUNCHES, CudaSamples, copies
from workbench_kernels.bench.cuda_layers import OPS as CUDA_LINEAR
from workbench_kernels.build.occupancy import Occupancy
from workbench_kernels.catalog import CUDA_OPS, OPS, candidates, cuda_reason
from workbench_kernels.gpu.gemm import w4a16
from workbench_kernels.gpu.recording import KernelUse

from .. import ahead

ROOT = Path(__file__).parent.parent.parent.parent
LIMITS = Ceilings(copy=1000.0, read=800.0, products={"bf16": 100.0}, refused={"fp8": "not on this device"})
SAMPLES = CudaSamples(
    microseconds=np.array([12.0, 10.0, 8.0]), moved=5_000_000, operations=10**9, device="made up",
    baselines={"torch fp16": np.array([30.0, 31.0, 29.0])}, refused={"torch fp32": "no room"}, variant="few16 2",
    kernels=(KernelUse(entry="k", grid=(1, 1, 1), block=512, registers=108,
                       occupancy=Occupancy(warps=16, most=64, limit="registers")),),
)  # fmt: skip
SHAPE = {"m": 1, "rows": 8192, "columns": 8192, "zeros": False}
ROW = report.Row(op="w4a16 linear", shape=SHAPE, samples=SAMPLES)


def test_a_row_has_every_figure_and_its_verdict():
    cells = [cell.strip() for cell in report.line(ROW, LIMITS).split("|")[1:-1]]
    assert len(cells) == report.HEAD.count("|") - 1
    assert cells[:8] == ["w4a16 linear [few16 2]", "m=1 rows=8192 columns=8192 zeros=False", "10.00", "8.00", "500",
                         "50.0%", "100.0", "25% (registers)"]  # fmt: skip
    assert cells[8] == "torch fp16 3.00x; torch fp32: no room"
    assert cells[9] == "us at most 10 of 12: reached; FP16 x 3 of 2.5: reached"


def test_what_was_missed_or_not_measured_says_so():
    slow = replace(ROW, samples=replace(SAMPLES, microseconds=np.array([20.0]), baselines={}))
    assert report.line(slow, LIMITS).endswith("us at most 20 of 12: missed; FP16 x 2.5: not measured |")
    absent = report.Row(op="fp8 gemm", shape={"m": 8192}, samples=None, reason="needs compute capability 8.9")
    assert "| needs compute capability 8.9 |" in report.line(absent, LIMITS)
    assert report.line(absent, LIMITS).count("|") == report.HEAD.count("|")


def test_targets_belong_to_ops_at_sizes_that_are_timed():
    by_name = {op.name: op for op in CUDA_OPS}
    for target in report.TARGETS:
        assert any(target.fits(shape) for shape in by_name[target.op].sizes), (target.op, target.what)


def test_tables_replace_earlier_ones_and_nothing_else():
    text = f"head\n{report.BEGIN}\nold\n{report.END}\ntail\n"
    made = report.table([ROW], LIMITS, "made up", "2000-01-01", {"driver_version": "1"})
    once = report.with_table(text, made)
    assert once.startswith("head\n") and once.endswith("\ntail\n") and "old" not in once and "### made up" in once
    assert report.with_table(once, made) == once
    with pytest.raises(ValueError, match="no place for tables"):
        report.with_table("head", made)
    assert report.with_table((ROOT / "kernels" / "RESULTS.md").read_text(encoding="utf-8"), made)


def test_the_measured_table_has_every_op_at_every_size():
    text = (ROOT / "kernels" / "RESULTS.md").read_text(encoding="utf-8")
    lines = text.split(report.BEGIN)[1].split(report.END)[0].splitlines()
    rows = [line.removeprefix("| ").split(" | ") for line in lines if line.count(" | ") > 2]
    measured = {(op.partition(" [")[0], shape) for op, shape, *_ in rows}
    timed = {(op.name, report.shape_text(size)) for op in CUDA_OPS for size in op.sizes}
    assert timed <= measured


def test_rotated_problems_exceed_the_cache_together():
    assert copies(COLD_BYTES) == 1 and copies(COLD_BYTES - 1) == 2 and copies(1) == LAUNCHES


def test_what_is_launched_is_noted():
    class Nothing:
        device, processors = torch.device("cpu"), 3

        def empty(self, shape, dtype):
            return torch.zeros(*shape, dtype=dtype)

        def run(self, source, launch):
            pass

    on = cuda_bench.Recorder(Nothing())
    w4a16.prepare(on, 0, m=1, rows=128, columns=512, kernel="few8", splits=2).launch()
    assert [launch.entry for _, launch in on.launches] == ["w4a16_few8", "w4a16_sum"]


def test_variants_to_tune_are_keywords_of_the_op():
    for op in CUDA_OPS:
        if op.tunables is None:
            continue
        for shape in op.sizes:
            result = op.tunables(132, **shape)
            assert len(result) == len({str(v) for v in result}) > 1 and not set(result[0]) & set(shape)


def test_schemes_have_kernels_of_one_device():
    for scheme in ("bf16", "int8", "int4 group 32", "int4 group 128"):
        result = candidates(scheme)
        assert result and {op.device for op in result} == {"cpu" if cuda_reason() else "cuda"}
    assert candidates("int3") == ()
    assert {op.device for op in CUDA_LINEAR} == {"cuda"} and {op.device for op in OPS} == {"cpu"}


def test_shapes_that_the_cuda_layers_refuse_have_a_reason():
    by_name = {op.name: op for op in CUDA_LINEAR}
    assert "a multiple of 64 columns, the layer has 96" in str(by_name["cuda w4a16 group 32 linear"].refuses(64, 96))
    assert by_name["cuda w4a16 group 128 linear"].refuses(30, 256) is None
    assert "multiple of 16 columns" in str(by_name["cuda w8a8 int8 linear"].refuses(64, 24))
    assert "multiple of 128 columns, the layer has 192" in str(by_name["cuda fp8 wgmma linear"].refuses(64, 192))


@pytest.mark.parametrize("op", [cuda_linear.INT8_WGMMA, cuda_linear.FP8_WGMMA], ids=lambda op: op.name)
def test_the_hopper_kernels_are_launched_with_what_they_take(op, monkeypatch):
    class Noted:
        device, processors, launches = torch.device("cpu"), 4, []

        def empty(self, shape, dtype):
            return torch.zeros(*shape, dtype=dtype)

        def run(self, source, launch):
            self.launches.append((source, launch))

    monkeypatch.setattr(cuda_linear, "device", Noted)
    case = op.prepare(256, 384, 130, 3)
    out = case.launch()
    (_, quantize), (source, product) = Noted.launches
    assert {source.file for source, _ in Noted.launches} == {source.file for source in op.sources}
    assert quantize.entry.startswith("quantize_") and product.entry == source.entries[0]
    assert product.grid == (2, 2, 1) and (out.shape, out.dtype) == ((130, 256), torch.bfloat16)
    assert case.reference().shape == (130, 256) and case.read == 256 * 384 + 4 * 256


def test_the_hopper_kernels_are_candidates_on_hopper_only(monkeypatch):
    device = SimpleNamespace(capability=(9, 0))
    monkeypatch.setattr(cuda_linear, "unavailable", lambda: None)
    monkeypatch.setattr(cuda_linear, "device", lambda: device)
    assert [cuda_linear.INT8_WGMMA.available(), cuda_linear.FP8_WGMMA.available()] == [None, None]
    device.capability = (10, 0)
    assert cuda_linear.FP8_WGMMA.available() == "wgmma needs compute capability 9.0, the device has 10.0"
    monkeypatch.setattr(catalog, "cuda_reason", lambda: None)
    assert candidates("fp8") == (cuda_linear.FP8, cuda_linear.FP8_WGMMA)


@pytest.mark.skipif(cuda_reason() is None, reason="there is a device")
def test_without_a_device_each_of_its_layers_says_why():
    assert {op.available() for op in CUDA_LINEAR} == {cuda_reason()}


def test_clocks_are_facts_or_a_reason():
    facts = clocks()
    assert facts and all(isinstance(value, str) and value for value in facts.values())


def benchmark(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tests/benchmarks/kernels.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_the_format_table_needs_no_gguf_package(monkeypatch, capsys):
    place = importlib.util.spec_from_file_location("kernels_benchmark", ROOT / "tests" / "benchmarks" / "kernels.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    whole = module.format_table(2, 256, 1)
    monkeypatch.setitem(sys.modules, "gguf", None)
    bare = module.format_table(2, 256, 1)
    assert [row["format"] for row in bare] == [row["format"] for row in whole]
    assert all(row["GB/s"] > 0 for row in bare) and not any("gguf GB/s" in row for row in bare)
    limits = [(row["limit"], "gguf GB/s" in row) for row in whole]
    assert limits == [(4 * whole[0]["gguf GB/s"], True), (2 * whole[1]["gguf GB/s"], True), (5.0, True), (0.15, False)]
    assert "no figures of the gguf package" in capsys.readouterr().out


@pytest.mark.ahead(benchmark, "--ncu", "w4a16 linear")
def test_the_profiler_command_names_the_op():
    done = ahead.result(benchmark, "--ncu", "w4a16 linear")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('ncu --nvtx --nvtx-include "w4a16 linear/"') and '--profile "w4a16' in done.stdout
