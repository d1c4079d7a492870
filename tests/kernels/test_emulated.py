"""Every kernel (but wgmma) on the CPU against its reference: odd shapes, four lane orders, and under sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from workbench_kernels.catalog import CUDA_OPS
from workbench_kernels.cuda_bench import check_results

from .shim.emulator import ORDERS, Emulator, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
CASES = [
    pytest.param(op, shape, id=f"{op.name}-{'-'.join(map(str, shape.values()))}")
    for op in CUDA_OPS
    for shape in op.variants
]
ROOT = Path(__file__).parent.parent.parent
QUICK = ("gemm_int8.cu",)
"""Sources that the main run checks under sanitizers; -m slow checks all."""


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


def libraries() -> str:
    found = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return " ".join(found) if all(os.path.isabs(name) for name in found) else ""


def test_no_barrier_shows_under_the_thread_sanitizer():
    """The kernels themselves are run so by hand: see ``sanitized.py``."""
    found = subprocess.run(["g++", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    if not os.path.isabs(found.stdout.strip()) or shutil.which("setarch") is None:
        pytest.skip("g++ has no ThreadSanitizer library here, or there is no setarch")
    environment = {
        **os.environ, "QW_SANITIZE": "thread", "LD_PRELOAD": found.stdout.strip(), "OMP_NUM_THREADS": "1",
        "TSAN_OPTIONS": "halt_on_error=1",
    }  # fmt: skip
    command = ["setarch", "-R", sys.executable, "-m", "tests.kernels.shim.sanitized", "--faulty"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not start on this kernel")
    assert done.returncode != 0 and "data race" in done.stderr and "no_barrier" in done.stderr


def run_sanitized(*arguments: str) -> subprocess.CompletedProcess[str]:
    if not libraries():
        pytest.skip("g++ has no AddressSanitizer library here")
    environment = {
        **os.environ, "QW_SANITIZE": "1", "LD_PRELOAD": libraries(), "ASAN_OPTIONS": "detect_leaks=0",
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.kernels.shim.sanitized", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)


FILES = sorted({op.source.file for op in CUDA_OPS if op.variants})


@pytest.mark.parametrize("file", [pytest.param(f, marks=() if f in QUICK else pytest.mark.slow) for f in FILES])
def test_no_sanitizer_complains(file):
    done = run_sanitized(file)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert "checked" in done.stdout
