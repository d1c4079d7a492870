"""The thread that owns the device: order, streams, progress, and every failure with its reason."""

from __future__ import annotations

import threading

import pytest
import torch
from workbench_kernels.build import source
from workbench_kernels.build.source import Image
from workbench_kernels.errors import BackendUnavailable, DeviceFault, OutOfDeviceMemory
from workbench_kernels.gpu.device import CudaDevice
from workbench_kernels.gpu.quantize import gguf_blocks
from workbench_kernels.gpu.thread import GpuThread, compile_all

from ..shim.emulator import Emulator, missing


class Shim(Emulator):
    """The emulator as a device: what it runs is real, its faults are set by the test."""

    name = "shim"
    capability = (9, 0)
    fault: list[Exception] = []
    streams: list[int] = []

    def own_stream(self):
        self.streams.append(threading.get_ident())

    def synchronize(self):
        if self.fault:
            raise self.fault.pop()


@pytest.fixture
def thread():
    Shim.fault, Shim.streams = [], []
    made = GpuThread(Shim)
    yield made
    made.close()


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_jobs_run_in_turn_on_one_thread_with_one_stream(thread):
    received: list[tuple[float, str]] = []

    def job(on, report):
        report(0.5, "half")
        blocks = gguf_blocks.quantize(torch.ones(1, 32), "q8_0", on=on)
        return threading.get_ident(), gguf_blocks.dequantize(blocks, "q8_0", torch.float32, on=on)

    results = [thread.submit("job", job, lambda *what: received.append(what)) for _ in range(3)]
    owners = {result.result()[0] for result in results}
    assert len(owners) == 1 and threading.get_ident() not in owners
    assert Shim.streams == list(owners) and received == [(0.5, "half")] * 3
    torch.testing.assert_close(results[0].result()[1], torch.ones(1, 32), rtol=1e-3, atol=0)


def raising(error: Exception):
    def job(on, report):
        raise error

    return job


def test_out_of_memory_ends_its_job_alone(thread):
    failed = thread.submit("timing", raising(torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB\nmore")))
    with pytest.raises(OutOfDeviceMemory, match=r"timing needs more .*Tried 2 GiB\). Choose a smaller batch"):
        failed.result()
    assert thread.submit("next", lambda on, report: 7).result() == 7


@pytest.mark.parametrize(
    "error", [RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with"),
              DeviceFault("k could not be launched on shim: too many resources")])  # fmt: skip
def test_after_a_fault_no_job_runs_and_each_says_why(thread, error):
    with pytest.raises(DeviceFault, match="first ended with a fault of the device .*its state is lost"):
        thread.submit("first", raising(error)).result()
    with pytest.raises(DeviceFault, match="second cannot run: first ended .* can be used again from a new process"):
        thread.submit("second", lambda on, report: 7).result()


def test_a_fault_that_shows_at_the_end_belongs_to_its_job(thread):
    Shim.fault.append(RuntimeError("CUDA error: unspecified launch failure"))
    with pytest.raises(DeviceFault, match="job ended with a fault .*unspecified launch failure"):
        thread.submit("job", lambda on, report: 7).result()


def test_other_errors_pass_unchanged_and_the_device_lives_on(thread):
    with pytest.raises(ZeroDivisionError):
        thread.submit("job", raising(ZeroDivisionError())).result()
    assert thread.submit("next", lambda on, report: on.name).result() == "shim"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_without_a_device_every_job_ends_with_the_reason():
    thread = GpuThread(CudaDevice)
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match="no CUDA device"):
            thread.submit("job", lambda on, report: 7).result()
    thread.close()


def test_compiling_shows_its_progress_and_what_a_device_lacks(monkeypatch):
    def image(item, capability):
        if item.file == "gemm_fp8.cu":
            raise BackendUnavailable("gemm_fp8.cu needs compute capability 8.9 or newer, the device has 8.0")
        return Image(data=b"", kind="cubin", origin="cache", architecture="sm_90")

    monkeypatch.setattr(source, "image", image)
    from workbench_kernels.gpu.gemm import gemm8

    received: list[tuple[float, str]] = []
    result = compile_all(Shim(), (gguf_blocks.SOURCE, gemm8.FP8), lambda *what: received.append(what))
    assert result["gguf_blocks.cu"] == "cache" and "needs compute capability 8.9" in result["gemm_fp8.cu"]
    assert received == [(0.0, "compiling gguf_blocks.cu"), (0.5, "compiling gemm_fp8.cu"), (1.0, "compiled")]
