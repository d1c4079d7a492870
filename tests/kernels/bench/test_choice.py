"""The kernel for a shape is chosen by measurement, and the choice shows its figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from workbench_kernels.bench.choice import fastest
from workbench_kernels.catalog import SAME_SCHEME
from workbench_kernels.cpu import matmul_nbits, onednn
from workbench_kernels.cpu.linear import FP32, INT8
from workbench_kernels.errors import BackendUnavailable
from workbench_kernels.op import Case


def slowed(case: Case) -> Case:
    def launch() -> torch.Tensor:
        for _ in range(200):
            case.launch()
        return case.launch()

    return Case(launch=launch, reference=case.reference)


SLOW = replace(FP32, name="slow", prepare=lambda *shape: slowed(FP32.prepare(*shape)))
ABSENT = replace(FP32, name="absent", available=lambda: "it is not installed")
NARROW = replace(FP32, name="narrow", refuses=lambda rows, columns: f"{columns} columns are too many")


def test_the_fastest_is_taken_and_the_others_are_named():
    chosen = fastest((SLOW, ABSENT, FP32, NARROW), 64, 64, 2, repeats=3)
    assert chosen.op is FP32 and set(chosen.microseconds) == {"slow", FP32.name}
    assert chosen.microseconds["slow"] > 10 * chosen.microseconds[FP32.name]
    assert chosen.refused == {"absent": "it is not installed", "narrow": "64 columns are too many"}
    assert chosen.text().startswith(f"{FP32.name} ") and "(slower: slow " in chosen.text()
    assert "absent: it is not installed" in chosen.text()


def test_a_shape_that_no_kernel_takes_has_all_the_reasons():
    with pytest.raises(BackendUnavailable, match="takes 8 x 16: absent: it is not installed; narrow: 16 columns"):
        fastest((ABSENT, NARROW), 8, 16, 1)


def test_a_kernel_with_a_wrong_result_is_refused_however_fast():
    def wrong(*shape: int) -> Case:
        case = FP32.prepare(*shape)
        return Case(launch=lambda: torch.zeros(2, 64), reference=case.reference)

    broken = replace(FP32, name="broken", prepare=wrong)
    chosen = fastest((broken, FP32), 64, 64, 2, repeats=3)
    assert chosen.op is FP32 and "broken is off by 1.00e+00" in chosen.refused["broken"]
    assert "broken is off by" in chosen.text()
    with pytest.raises(BackendUnavailable, match="broken is off by"):
        fastest((broken,), 64, 64, 2)


def test_kernels_of_the_same_scheme_are_each_from_another_library():
    assert all(len({op.name.split()[0] for op in ops}) == len(ops) > 1 for ops in SAME_SCHEME)


def test_onnxruntime_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(matmul_nbits.importlib.util, "find_spec", lambda name: None)
    assert matmul_nbits.missing() == "not installed: onnx and onnxruntime (pip install onnx onnxruntime)"


@pytest.mark.skipif(onednn.missing() is not None, reason=str(onednn.missing()))
def test_packing_for_onednn_leaves_torchs_engine_alone():
    before = torch.backends.quantized.engine
    onednn.prepare(16, 32, 1, 0)
    assert torch.backends.quantized.engine == before


def test_quantized_activations_cost_little_accuracy():
    for op in (onednn.INT8, INT8):
        if op.available():
            continue
        case = op.prepare(64, 256, 4, 5)
        generator = torch.Generator().manual_seed(5)
        weight, x = torch.randn(64, 256, generator=generator), torch.randn(4, 256, generator=generator)
        exact = x.double() @ weight.double().T
        assert (case.launch().double() - exact).norm() / exact.norm() < 0.03
