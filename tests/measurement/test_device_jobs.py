"""Kernels are timed on the GPU's one thread, and what fails there ends its job with the reason; the driver is fake."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from workbench_kernels import catalog
from workbench_kernels.bench import ceilings, choice
from workbench_kernels.bench import cuda_layers as cuda_linear
from workbench_kernels.bench import measure as bench
from workbench_kernels.bench.measure import Samples
from workbench_kernels.build import source
from workbench_kernels.build.occupancy import Occupancy
from workbench_kernels.errors import BackendUnavailable, DeviceFault, WrongResultError
from workbench_kernels.gpu import thread as gpu_thread
from workbench_kernels.gpu.recording import KernelUse

from tests.kernels.shim.emulator import Emulator, missing
from tests.planning.synthetic import linear, summary_of
from workbench.console.reports.timings import timed
from workbench.console.terminal import text_of
from workbench.engine.failure import portable
from workbench.errors import BackendUnavailableError, CancelledError, DeviceError, DeviceLostError
from workbench.measurement.timing import on_gpu, time_layers
from workbench.planning.plan import Assignment
from workbench.progress import silent
from workbench.steps.timing.ceilings import measure_ceilings
from workbench.steps.timing.sweep import usual_batches


class Device:
    """A device whose driver answers what the test sets; nothing is computed."""

    name = "made up"
    capability = (9, 0)
    device = torch.device("cpu")
    processors = 1

    def __init__(self):
        self.streams: list[int] = []
        self.faults: list[Exception] = []

    def own_stream(self):
        self.streams.append(threading.get_ident())

    def synchronize(self):
        if self.faults:
            raise self.faults.pop()


FULL = Occupancy(warps=48, most=64, limit="registers")
USE = KernelUse(entry="gemm", grid=(1, 1, 1), block=128, registers=37, occupancy=FULL)


@pytest.fixture
def device(monkeypatch):
    made = Device()
    thread = gpu_thread.GpuThread(lambda: made)
    monkeypatch.setattr(gpu_thread, "shared", lambda: thread)
    yield made
    thread.close()


@pytest.fixture
def measured(device, monkeypatch):
    """Pretend that its kernels can be had and timed; returns the threads that did it, and what they raise."""
    threads: list[int] = []
    errors: list[Exception] = []

    def measure(rows, columns, batch, op, baseline, *, repeats=30):
        threads.append(threading.get_ident())
        if errors:
            raise errors.pop()
        return Samples(
            kernel=np.full(repeats, 2.0), baseline=np.full(repeats, 5.0), device=device.name, read=rows * columns,
            uses=(USE,),
        )  # fmt: skip

    image = source.Image(data=b"", kind="cubin", origin="compiled", architecture="sm_90")
    monkeypatch.setattr(catalog, "cuda_reason", lambda: None)
    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(choice, "measure", measure)
    monkeypatch.setattr(source, "image", lambda item, capability: image)
    facts = {"clocks.sm": "1980", "clocks.mem": "2619", "power.draw": "300"}
    monkeypatch.setattr(ceilings, "clocks", lambda: facts)
    return threads, errors


LAYERS = summary_of(linear("a", 64, 128), linear("b", 64, 64))
PLAN = {"a": Assignment(weights="int8-channel"), "b": Assignment(weights="int4-g64-asym")}


def test_kernels_are_compiled_and_timed_on_the_devices_thread(device, measured):
    reports: list[tuple[float, str]] = []
    times = time_layers(LAYERS, PLAN, repeats=3, progress=lambda done, text, partial=None: reports.append((done, text)))
    threads, _ = measured
    assert set(threads) == set(device.streams) and threading.get_ident() not in threads
    assert [(t.layer, t.device, t.median, t.baseline_median) for t in times] == [
        ("a", "made up", 2.0, 5.0), ("b", "made up", 2.0, 5.0)
    ]  # fmt: skip
    assert [(t.occupancy, t.gigabytes_per_second) for t in times] == [
        ("gemm 75% (registers)", 64 * 128 / 2e3), ("gemm 75% (registers)", 64 * 64 / 2e3)
    ]  # fmt: skip
    assert times[0].teraoperations_per_second == pytest.approx(2 * 64 * 128 / 2e-6 / 1e12) and not times[0].no_occupancy
    assert all(timing.note.endswith("; clocks.sm 1980, clocks.mem 2619") for timing in times)
    compiled = [text.removeprefix("compiling ") for _, text in reports if text.startswith("compiling ")]
    ops = (cuda_linear.INT8, cuda_linear.INT8_WGMMA, cuda_linear.INT4[64])
    assert compiled == list(dict.fromkeys(s.file for op in ops for s in op.sources))
    assert [text for _, text in reports if text.startswith("timing ")] == [
        "timing int8-channel at 64 x 128", "timing int4-g64-asym at 64 x 64"
    ]  # fmt: skip
    assert [fraction for fraction, _ in reports] == sorted(fraction for fraction, _ in reports) and reports[-1][0] == 1


def test_rates_occupancy_and_the_command_that_profiles_are_told(device, measured):
    timings = time_layers(LAYERS, PLAN, batch=4, repeats=3)
    report = timed(timings, ncu=True)
    record = report.as_json()
    occupancies = [(row["occupancy"], row["occupancy_reason"]) for row in record["rows"]]
    assert occupancies == [("gemm 75% (registers)", None)] * 2
    assert record["rows"][0]["gigabytes_per_second"] == pytest.approx(64 * 128 / 2e3)
    lines = [
        f'ncu --nvtx --nvtx-include "{item.kernel}/" --set full --clock-control none --launch-count 8 '
        f"workbench bench --shape {shape} --schemes {scheme} --batch 4"
        for item, shape, scheme in zip(timings, ("64x128", "64x64"), ("int8-channel", "int4-g64-asym"), strict=True)
    ]  # fmt: skip
    assert record["ncu"] == lines
    text = text_of(report)
    assert "gemm 75% (registers)" in text and text.endswith("\n".join(["profile with Nsight Compute:", *lines]))


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_kernels_of_a_layer_are_known_after_it_ran(monkeypatch):
    class Shim(Emulator):
        capability = (8, 0)

        def resources(self, file, entry):
            return source.Resources(registers=37, stack=0, spills=0, shared=0)

    on = Shim()
    monkeypatch.setattr(cuda_linear, "device", lambda: on)
    case = cuda_linear.INT8.prepare(130, 256, 3, 0)
    assert case.uses() == ()
    for _ in range(2):
        bench.check(cuda_linear.INT8, case)
    quantized, product = case.uses()
    assert quantized.entry.startswith("quantize_") and product.entry.startswith("gemv")
    assert 0 < product.occupancy.fraction <= 1 and product.registers == 37


def test_a_device_without_memory_ends_one_job_and_serves_the_next(device, measured):
    measured[1].append(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"))
    with pytest.raises(DeviceError, match="timing kernels needs more memory .*Tried to allocate 9 GiB.* smaller batch"):
        time_layers(LAYERS, PLAN)
    assert len(time_layers(LAYERS, PLAN)) == 2


def test_after_a_fault_every_job_says_what_happened(device, measured):
    device.faults.append(RuntimeError("CUDA error: an illegal memory access was encountered"))
    fault = "timing kernels ended with a fault .*illegal memory access.*state is lost, and a new process is needed"
    with pytest.raises(DeviceLostError, match=fault):
        time_layers(LAYERS, PLAN)
    with pytest.raises(DeviceLostError, match="measuring the device cannot run: timing kernels ended with a fault"):
        measure_ceilings()


@pytest.mark.parametrize(
    ("raised", "known"),
    [(BackendUnavailable("the driver is for CUDA 12.4; 13.0 or newer is needed"), BackendUnavailableError),
     (WrongResultError("cuda fp8 linear is off by 1.00e+00 of the largest value"), DeviceError),
     (DeviceFault("w4a16_few8 could not be launched on made up: too many resources"), DeviceError)])  # fmt: skip
def test_what_the_window_gets_is_one_of_our_errors_without_a_traceback(device, measured, raised, known):
    measured[1].append(raised)
    with pytest.raises(known) as caught:
        time_layers(LAYERS, PLAN)
    failure = portable(caught.value, "Time the kernels")
    assert str(raised) in str(failure) and not hasattr(failure, "__notes__")
    assert isinstance(failure, known)


def test_a_cancelled_job_ends_at_its_next_report(device, measured):
    def cancelled(fraction, text, partial=None):
        raise CancelledError("timing: cancelled")

    with pytest.raises(CancelledError):
        time_layers(LAYERS, PLAN, progress=cancelled)
    assert not measured[0] and len(time_layers(LAYERS, PLAN)) == 2


def test_ceilings_are_those_of_the_device(device, measured, monkeypatch):
    where: list[int] = []

    def measure(on):
        where.append(threading.get_ident())
        return ceilings.Ceilings(copy=4000.0, read=3900.0, products={"bf16": 700.0})

    monkeypatch.setattr(ceilings, "measure", measure)
    limits = measure_ceilings()
    assert (limits.device, limits.bandwidth, limits.peak, limits.measured) == ("made up", 4000.0, 700e3, True)
    assert where == device.streams
    refused = ceilings.Ceilings(copy=1.0, read=1.0, refused={"bf16": "no room"})
    monkeypatch.setattr(ceilings, "measure", lambda on: refused)
    with pytest.raises(DeviceError, match="bfloat16 product of made up could not be measured: no room"):
        measure_ceilings()


def test_a_device_is_swept_to_larger_batches_than_a_processor(measured, monkeypatch):
    assert usual_batches() == (1, 4, 16, 128, 1024, 4096)
    monkeypatch.setattr(catalog, "cuda_reason", lambda: "no device")
    assert usual_batches() == (1, 4, 16, 128)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_without_a_device_the_reason_is_told():
    with pytest.raises(BackendUnavailableError, match="no CUDA device"):
        on_gpu("a job", lambda on, report: 7, silent)
