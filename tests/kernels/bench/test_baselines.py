"""What the CUDA kernels are timed beside computes what its name says: checked on the CPU, where torch has the same."""

from __future__ import annotations

import pytest
import torch
from workbench_kernels.gpu import baselines
from workbench_kernels.gpu.attention import block
from workbench_kernels.gpu.gemm import gemm8, w4a16
from workbench_kernels.gpu.quantize import fp4_blocks, gguf_blocks, group_quantize

CPU = torch.device("cpu")


class Nowhere:
    """Where problems are drawn and nothing is launched."""

    device = CPU


def test_products_have_the_shape_and_bytes_of_the_kernels():
    result = {b.name: b for b in w4a16.OP.baselines(CPU, m=17, rows=64, columns=128, zeros=True)}
    assert set(result) == {"torch fp32", "torch fp16", "torch bf16"}
    assert result["torch fp16"].read == (17 + 64) * 128 * 2
    made = result["torch bf16"].make(3)()
    assert made.shape == (17, 64) and made.dtype == torch.bfloat16
    assert torch.equal(made, result["torch bf16"].make(3)()) and not torch.equal(made, result["torch bf16"].make(4)())


def test_int8_products_begin_where_torch_has_them():
    result = gemm8.INT8_OP.baselines(CPU, m=17, n=64, k=128, dtype=torch.int8, out=torch.bfloat16)
    assert [b.name for b in result] == ["torch._int_mm", "torch bf16"]
    assert result[0].make(0)().dtype == torch.int32
    assert [b.name for b in gemm8.INT8_OP.baselines(CPU, m=16, n=64, k=128, dtype=torch.int8)] == ["torch bf16"]


def test_a_block_of_torchs_own_operations_takes_the_shape_of_ours():
    sizes = {name: value for name, value in block.SMALL.items() if name != "group"}
    (result,) = block.OP.baselines(CPU, plan="w4a16", **block.SMALL)
    weights = (128 * (2 * 64 + 128) + 128 * 128 + 3 * 128 * 192) * 2
    assert result.read == weights + 2 * 2 * sizes["tokens"] * sizes["groups"] * sizes["size"]
    made = result.make(1)()
    assert made.shape == (1, 128) and made.isfinite().all()


def test_compiled_functions_are_those_of_the_reference(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)
    shape = {"rows": 4, "columns": 64, "group": 32, "code": "int4", "dtype": torch.float32}
    by_name = {op.name: op for op in group_quantize.OPS}
    actions = ("quantize", "fake-quantize", "dequantize")
    (quantize,), (fake,), (dequantize,) = (by_name[f"{action} int4"].baselines(CPU, **shape) for action in actions)
    x = baselines.drawn(CPU, 5, 4, 64)
    q = group_quantize.reference_quantize(x, "int4", 32)
    assert all(map(torch.equal, quantize.make(5)(), q.tensors()))
    assert torch.equal(fake.make(5)(), group_quantize.reference_dequantize(q, torch.float32))
    assert quantize.read == 4 * 64 * 4 and quantize.name == "torch.compile"
    assert torch.equal(dequantize.make(5)(), fake.make(5)())
    assert dequantize.read == sum(x.numel() * x.element_size() for x in q.tensors())


COMPILED = (*fp4_blocks.OPS, *(op for op in gguf_blocks.OPS if op.baselines))


@pytest.mark.parametrize("op", COMPILED, ids=lambda op: op.name)
def test_compiled_blocks_are_those_of_the_reference(op, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)
    shape = {"rows": 2, "columns": 512, "name": op.name.split()[1], "dtype": torch.bfloat16}
    (result,), problem = op.baselines(CPU, **shape), op.prepare(Nowhere(), 3, **shape)
    first, second = ([x] if isinstance(x, torch.Tensor) else x for x in (result.make(seed)() for seed in (3, 4)))
    assert [(x.shape, x.dtype) for x in first] == [(x.shape, x.dtype) for x in problem.reference()]
    assert not torch.equal(first[0], second[0]) and result.read == problem.read
