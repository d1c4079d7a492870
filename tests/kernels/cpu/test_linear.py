"""Every kernel against its reference; timing only what was checked."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import workbench_kernels
from workbench_kernels.bench.measure import check, cpu_name, measure
from workbench_kernels.catalog import OPS
from workbench_kernels.cpu.linear import FP32, INT4, INT8
from workbench_kernels.errors import WrongResultError
from workbench_kernels.gpu.device import cuda_reason
from workbench_kernels.op import Case

CASES = [(op, shape) for op in OPS for shape in op.variants]


@pytest.mark.parametrize(("op", "shape"), CASES, ids=[f"{op.name}-{'x'.join(map(str, shape))}" for op, shape in CASES])
def test_a_kernel_agrees_with_its_reference(op, shape):
    rows, columns, batch = shape
    if op.available():
        pytest.skip(op.available())
    assert op.refuses(rows, columns) is None
    case = op.prepare(rows, columns, batch, 7)
    assert case.launch().shape == case.reference().shape == (batch, rows)
    check(op, case)


@pytest.mark.parametrize("op", [INT8, *INT4.values()], ids=lambda op: op.name)
def test_quantized_references_are_near_the_exact_product(op):
    generator = torch.Generator().manual_seed(3)
    weight, x = torch.randn(64, 128, generator=generator), torch.randn(5, 128, generator=generator)
    exact = x.double() @ weight.double().T
    error = (op.prepare(64, 128, 5, 3).reference() - exact).norm() / exact.norm()
    assert error < (0.02 if op is INT8 else 0.15)


def test_a_wrong_kernel_is_not_timed():
    wrong = replace(FP32, prepare=lambda *shape: _twice(FP32.prepare(*shape)))
    with pytest.raises(WrongResultError, match="torch fp32 linear is off by"):
        measure(16, 32, 1, wrong, FP32)


def _twice(case: Case) -> Case:
    return Case(launch=lambda: 2 * case.launch(), reference=case.reference)


def test_every_repeat_is_kept():
    samples = measure(32, 64, 2, INT8, FP32, repeats=5)
    assert samples.kernel.shape == samples.baseline.shape == (5,)
    assert (samples.kernel > 0).all() and (samples.baseline > 0).all()
    assert samples.device == cpu_name() and samples.device.startswith("CPU ")


def test_shapes_that_do_not_fit_have_a_reason():
    assert "multiple of 16 rows" in str(INT4[32].refuses(30, 64))
    assert "multiple of 64 columns" in str(INT4[64].refuses(32, 96))


def test_a_machine_without_cuda_says_so():
    reason = cuda_reason()
    assert (reason is None) == torch.cuda.is_available()
    assert reason is None or reason.startswith("no CUDA device")


def test_kernels_import_nothing_of_the_workbench():
    for path in Path(workbench_kernels.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "workbench" for name in names), path
