"""CUDA kernels on a device (-m gpu), and what a machine without one says."""

from __future__ import annotations

import sys

import pytest
import torch
from workbench_kernels import catalog
from workbench_kernels.bench import ceilings, choice, tuning
from workbench_kernels.bench import cuda_layers as cuda_linear
from workbench_kernels.bench.cuda import check_results, measure
from workbench_kernels.bench.measure import check
from workbench_kernels.catalog import CUDA_OPS, cuda_reason
from workbench_kernels.errors import BackendUnavailable, OutOfDeviceMemory
from workbench_kernels.gpu import device
from workbench_kernels.gpu import thread as gpu_thread
from workbench_kernels.gpu.attention import block
from workbench_kernels.gpu.device import CudaDevice
from workbench_kernels.gpu.gemm import w4a16

REASON = cuda_reason()
on_a_device = [pytest.mark.gpu, pytest.mark.skipif(REASON is not None, reason=str(REASON))]
"""Applied to what needs a device."""


def marked(function):
    for mark in on_a_device:
        function = mark(function)
    return function


def prepared(op, shape):
    try:
        return op.prepare(CudaDevice(), 3, **shape)
    except BackendUnavailable as error:
        pytest.skip(str(error))


@marked
def test_products_on_tensor_cores_agree_first_of_all():
    """If this fails, so does every product below; ``test_fragments.py`` says then which instruction is at fault."""
    from workbench_kernels.gpu.gemm import gemm8, w4a16

    for op, shape in ((w4a16.OP, w4a16.OP.variants[0]), (gemm8.INT8_OP, gemm8.INT8_OP.variants[1])):
        problem = prepared(op, shape)
        check_results(op, problem.launch(), problem.reference())


@marked
@pytest.mark.parametrize(
    ("op", "shape"),
    [
        pytest.param(op, shape, id=f"{op.name}-{'-'.join(map(str, shape.values()))}")
        for op in CUDA_OPS
        for shape in (*op.variants, *op.sizes)
    ],
)
def test_a_kernel_agrees_with_its_reference_on_the_device(op, shape):
    problem = prepared(op, shape)
    try:
        results = problem.launch()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    torch.cuda.synchronize()
    check_results(op, results, problem.reference())


@marked
def test_a_kernel_is_timed_cold():
    op = catalog.statistics.OP
    samples = measure(CudaDevice(), op, {"rows": 1, "columns": 2**24}, samples=5)
    assert samples.microseconds.shape == (5,) and (samples.microseconds > 0).all()
    assert 10 < samples.gigabytes_per_second() < 20000


@marked
def test_timing_keeps_baselines_variants_and_occupancy(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_KERNEL_CACHE", str(tmp_path / "cubins"))
    on = CudaDevice()
    samples = measure(on, w4a16.OP, {"m": 1, "rows": 1024, "columns": 1024}, samples=5)
    assert set(samples.baselines) | set(samples.refused) == {"torch fp32", "torch fp16", "torch bf16"}
    assert samples.variant and all(0 < use.occupancy.fraction <= 1 for use in samples.kernels)
    (file,) = (tmp_path / "tuning").glob("*.json")
    assert samples.variant in next(iter(tuning.read(file).values())).microseconds


@marked
@pytest.mark.parametrize("plan", ["plain", "w4a16", "int8", "fp8", "mixed"])
def test_a_recorded_block_serves_a_growing_cache(plan):
    on = CudaDevice()
    try:
        made, plain = block.drawn_block(on, 2, plan=plan, **block.SMALL)
        length = torch.ones(1, dtype=torch.int32, device=on.device)
        x = torch.zeros(1, 128, dtype=torch.float16, device=on.device)
        replay = made.record(x, length)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    cache = made.cache
    for place in range(70):
        x.copy_(torch.randn(1, 128, generator=torch.Generator().manual_seed(place)))
        length.fill_(place + 1)
        expected, cache = plain.step(x, place, cache)
        result = replay()
        torch.cuda.synchronize()
        assert (result.float() - expected.float()).abs().max() <= 2e-2 * expected.abs().max()


@marked
@pytest.mark.parametrize(
    ("op", "shape"),
    [pytest.param(op, shape, id=f"{op.name}-{shape}") for op in cuda_linear.OPS for shape in op.variants],
)
def test_a_linear_layer_agrees_with_its_reference(op, shape):
    rows, columns, batch = shape
    if reason := op.available() or op.refuses(rows, columns):
        pytest.skip(reason)
    check(op, op.prepare(rows, columns, batch, 7))


@marked
def test_the_fastest_layer_of_a_scheme_is_chosen_on_the_device():
    chosen = choice.fastest(catalog.candidates("int4 group 128"), 1024, 1024, 1)
    assert chosen.op.device == "cuda" and all(us > 0 for us in chosen.microseconds.values())


@marked
def test_the_gpu_thread_runs_kernels_on_its_own_stream():
    thread = gpu_thread.GpuThread()

    def job(on, report):
        origins = gpu_thread.compile_all(on, (catalog.gguf_blocks.SOURCE,), report)
        made = catalog.gguf_blocks.quantize(torch.ones(4, 32, device=on.device), "q8_0", on=on)
        return origins, torch.cuda.current_stream() != torch.cuda.default_stream(), made.cpu()

    origins, own, made = thread.submit("job", job).result()
    with pytest.raises(OutOfDeviceMemory, match="all of it needs more memory"):
        thread.submit("all of it", lambda on, report: torch.empty(2**44, device=on.device)).result()
    thread.close()
    assert set(origins) == {"gguf_blocks.cu"} and own
    assert torch.equal(made, catalog.gguf_blocks.reference_quantize(torch.ones(4, 32), "q8_0"))


@marked
def test_ceilings_are_plausible():
    result = ceilings.measure(CudaDevice())
    assert 50 < result.copy < 20000 and set(result.products) | set(result.refused) == {"bf16", "int8", "fp8"}


@pytest.mark.skipif(REASON is None, reason="there is a device")
def test_without_a_device_the_reason_is_named_and_cupy_is_not_loaded():
    before = "cupy" in sys.modules
    with pytest.raises(BackendUnavailable, match="no CUDA device"):
        CudaDevice()
    assert ("cupy" in sys.modules) == before


def test_a_device_without_cupy_says_what_to_install(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "pip install cupy-cuda13x" in str(device.unavailable())


def test_an_older_driver_is_named(monkeypatch):
    class Runtime:
        @staticmethod
        def driverGetVersion():  # noqa: N802
            return 12080

    fake = type(sys)("cupy")
    fake.cuda = type("cuda", (), {"runtime": Runtime})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    assert device.unavailable() == "the driver is for CUDA 12.8; 13.0 or newer is needed"
