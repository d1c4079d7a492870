"""CUDA kernels on a device (-m gpu), and what a machine without one says."""

from __future__ import annotations

import sys

import pytest
import torch
from workbench_kernels import catalog, device
from workbench_kernels.catalog import CUDA_OPS, cuda_reason
from workbench_kernels.cuda_bench import check_results, measure
from workbench_kernels.device import CudaDevice
from workbench_kernels.errors import BackendUnavailable

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
def test_fragment_layouts_of_shim_and_device_agree():
    """First of all: if this fails, so does every product below."""
    from workbench_kernels import gemm8, w4a16

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
