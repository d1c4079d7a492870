"""Every kernel (but wgmma) on the CPU against its reference: odd shapes, four lane orders, and under sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from workbench_kernels.bench.cuda import check_results
from workbench_kernels.catalog import CUDA_OPS

from . import ahead
from .shim.emulator import ORDERS, Emulator, missing
from .shim.marks import built

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
CASES = [
    pytest.param(op, shape, id=f"{op.name}-{'-'.join(map(str, shape.values()))}", marks=built(op.source))
    for op in CUDA_OPS
    for shape in op.variants
]
ROOT = Path(__file__).parent.parent.parent
QUICK = ("gemm_int8.cu",)
"""Sources that the main run checks under sanitizers; -m slow, which CI runs too, checks all others."""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("op", "shape"), CASES)
def test_a_kernel_agrees_with_its_reference(op, shape, order):
    problem = op.prepare(Emulator(order=order, seed=5), 11, **shape)
    results = problem.launch()
    assert all(tensor.dtype == torch.float64 or tensor.numel() for tensor in results)
    check_results(op, results, problem.reference())
    assert problem.read > 0 and problem.written > 0 and problem.operations > 0


def test_only_wgmma_is_not_emulated():
    assert [op.name for op in CUDA_OPS if not op.variants] == ["w8a8 int8 gemm wgmma", "fp8 gemm wgmma"]


def library(name: str) -> str:
    """Return where g++ keeps a sanitizer's library, an empty string if it has none."""
    command = ["g++", f"-print-file-name={name}"]
    result = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return result if os.path.isabs(result) else ""


def run_sanitized(*arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run ``sanitized.py`` under AddressSanitizer and UndefinedBehaviorSanitizer; None if g++ has no such libraries."""
    result = [library("libasan.so"), library("libubsan.so")]
    if not all(result):
        return None
    return _run((), *arguments, QW_SANITIZE="1", LD_PRELOAD=" ".join(result), ASAN_OPTIONS="detect_leaks=0")


def run_thread_sanitized(*arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run ``sanitized.py`` under ThreadSanitizer; None if there is no library for it, or no setarch."""
    result = library("libtsan.so")
    if not result or shutil.which("setarch") is None:
        return None
    settings = {"QW_SANITIZE": "thread", "LD_PRELOAD": result, "TSAN_OPTIONS": "halt_on_error=1"}
    return _run(("setarch", "-R"), *arguments, **settings)


def _run(before: tuple[str, ...], *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "tests.kernels.shim.sanitized", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.ahead(run_thread_sanitized, "--faulty")
def test_no_barrier_shows_under_the_thread_sanitizer():
    """The kernels themselves are run so by hand: see ``sanitized.py``."""
    done = ahead.result(run_thread_sanitized, "--faulty")
    if done is None:
        pytest.skip("g++ has no ThreadSanitizer library here, or there is no setarch")
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not start on this kernel")
    assert done.returncode != 0 and "data race" in done.stderr and "no_barrier" in done.stderr


@pytest.mark.ahead(run_sanitized, "--faulty")
def test_the_address_sanitizer_sees_a_write_beyond_the_end():
    done = ahead.result(run_sanitized, "--faulty")
    if done is None:
        pytest.skip("g++ has no AddressSanitizer library here")
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


def files() -> list[object]:
    """Every source that is emulated, with the work that its test waits for."""
    return [
        pytest.param(
            file, marks=[pytest.mark.ahead(run_sanitized, file)] + ([] if file in QUICK else [pytest.mark.slow])
        )
        for file in sorted({op.source.file for op in CUDA_OPS if op.variants})
    ]  # fmt: skip


@pytest.mark.parametrize("file", files())
def test_no_sanitizer_complains(file):
    done = ahead.result(run_sanitized, file)
    if done is None:
        pytest.skip("g++ has no AddressSanitizer library here")
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    problems = len(ORDERS) * sum(len(op.variants) for op in CUDA_OPS if op.source.file == file)
    assert f"checked {problems} problems of {file}\n" in done.stdout
