"""What holds for every input that a contract allows: drawn shapes and values, on the emulated kernels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbench_kernels.bench.cuda import check_results
from workbench_kernels.gpu.attention import decode_attention
from workbench_kernels.gpu.gemm import gemm8, w4a16
from workbench_kernels.gpu.quantize import (
    gate_quantize,
    gguf_blocks,
    group_quantize,
    k_quants,
    norm_quantize,
    statistics,
)

from .shim.emulator import ORDERS, Emulator, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
few = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
dtypes = st.sampled_from([torch.float32, torch.float16, torch.bfloat16])
seeds = st.integers(0, 2**31)
on = st.builds(Emulator, order=st.sampled_from(ORDERS), seed=st.integers(0, 99), processors=st.integers(1, 9))
sizes = st.sampled_from([0.0, 1e-42, 1e-30, 1e-3, 1.0, 1e4])


def drawn(seed: int, rows: int, columns: int, dtype: torch.dtype, size: float) -> torch.Tensor:
    values = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * size
    return values.clamp(-6e4, 6e4).to(dtype)


@few
@given(on=on, seed=seeds, rows=st.integers(1, 9), columns=st.integers(1, 700), dtype=dtypes, size=sizes)
def test_statistics(on, seed, rows, columns, dtype, size):
    x = drawn(seed, rows, columns, dtype, size)
    result = statistics.statistics(x, histogram=True, on=on)
    assert torch.equal(result.low, x.double().amin(1)) and torch.equal(result.high, x.double().amax(1))
    assert int(result.histogram.sum()) == x.numel() and not result.not_finite.any()
    torch.testing.assert_close(result.squares, x.double().square().sum(1), rtol=1e-5, atol=1e-37)


@few
@given(on=on, seed=seeds, rows=st.integers(1, 5), groups=st.integers(1, 4), eights=st.integers(1, 40), dtype=dtypes,
       size=sizes, code=st.sampled_from(sorted(group_quantize.CODES)))  # fmt: skip
def test_groups(on, seed, rows, groups, eights, dtype, size, code):
    group = 8 * eights
    x = drawn(seed, rows, groups * group, dtype, size)
    q = group_quantize.quantize(x, code, group, on=on)
    expected = group_quantize.reference_quantize(x, code, group)
    assert all(map(torch.equal, q.tensors(), expected.tensors()))
    decoded = group_quantize.dequantize(q, torch.float32, on=on)
    assert torch.equal(decoded, group_quantize.reference_dequantize(q, torch.float32))
    assert torch.equal(group_quantize.fake_quantize(x, code, group, on=on), decoded.to(dtype))
    spread = torch.where(q.scales > 0, q.scales, torch.finfo(torch.float32).tiny * 65536)
    largest = {"e4m3": 16.01, "e5m2": 4096.01}.get(code, 0.51 if "asym" not in code else 1.01)
    assert ((decoded - x.float()).abs().reshape(rows, groups, group) <= spread[..., None] * largest).all()


@few
@given(on=on, seed=seeds, rows=st.integers(1, 6), blocks=st.integers(1, 9), size=sizes,
       name=st.sampled_from(gguf_blocks.ENCODED))  # fmt: skip
def test_gguf_blocks(on, seed, rows, blocks, size, name):
    x = drawn(seed, rows, 32 * blocks, torch.float32, min(size, 1.0))
    stored = gguf_blocks.quantize(x, name, on=on)
    assert torch.equal(stored, gguf_blocks.reference_quantize(x, name))
    decoded = gguf_blocks.dequantize(stored, name, torch.float32, on=on)
    assert torch.equal(decoded, gguf_blocks.reference_dequantize(stored, name, torch.float32))


@few
@given(on=on, seed=seeds, m=st.integers(1, 40), rows=st.integers(1, 140), spans=st.integers(1, 5),
       group=st.sampled_from([16, 32, 64, 128]), zeros=st.booleans(), bias=st.booleans(),
       which=st.integers(0, 99))  # fmt: skip
def test_w4a16_in_every_variant(on, seed, m, rows, spans, group, zeros, bias, which):
    op, shape = w4a16.OP, {"m": m, "rows": rows, "columns": max(64, group) * spans, "group": group}
    variants = op.tunables(on.processors, **shape)
    chosen = variants[which % len(variants)]
    problem = op.prepare(on, seed, **shape, **chosen, zeros=zeros, bias=bias)
    check_results(op, problem.launch(), problem.reference())


@few
@given(on=on, seed=seeds, rows=st.integers(1, 6), blocks=st.integers(1, 3), size=sizes,
       name=st.sampled_from(sorted(k_quants.LANES)))  # fmt: skip
def test_k_quants(on, seed, rows, blocks, size, name):
    x = drawn(seed, rows, 256 * blocks, torch.float32, size)
    stored = k_quants.quantize(x, name, on=on)
    assert torch.equal(stored, k_quants.reference(x, name))
    decoded = gguf_blocks.dequantize(stored, name, torch.float32, on=on)
    peaks = x.abs().reshape(rows, blocks, 256).amax(2, keepdim=True).expand(rows, blocks, 256).flatten(1)
    assert ((decoded - x).abs() <= 0.6 * peaks + 1e-6).all()


@few
@given(on=on, seed=seeds, tokens=st.integers(1, 4), eights=st.integers(1, 300), size=sizes, delta=st.booleans(),
       codes=st.sampled_from([None, torch.int8, torch.float8_e4m3fn]),
       dtype=st.sampled_from([torch.float16, torch.bfloat16]))  # fmt: skip
def test_norms_and_gates(on, seed, tokens, eights, size, delta, codes, dtype):
    x = drawn(seed, tokens, 8 * eights, dtype, min(size, 1e2))
    added = drawn(seed + 1, tokens, 8 * eights, dtype, 1.0) if delta else None
    rows, total = norm_quantize.norm_quantize(x, torch.ones(8 * eights, dtype=dtype), codes, delta=added, on=on)
    assert torch.equal(total, x if added is None else (x.float() + added.float()).to(dtype))
    exact = norm_quantize.exact_norm(total, torch.ones(8 * eights), 1e-5)
    half_step = {None: 2**-8, torch.int8: 0.505 / 127, torch.float8_e4m3fn: 16.2 / 448}[codes]
    worst = exact.abs().amax(1, keepdim=True)
    assert ((rows.decoded() - exact).abs() <= half_step * worst + 1e-7).all()
    gated = gate_quantize.gate_quantize(x, total, codes, on=on).decoded()
    product = gate_quantize.reference(x, total)
    assert ((gated - product).abs() <= half_step * product.abs().amax(1, keepdim=True) + 1e-7).all()


@few
@given(on=on, seed=seeds, m=st.integers(1, 70), n=st.integers(1, 70), sixteens=st.integers(1, 20),
       out=st.sampled_from([torch.float16, torch.bfloat16]), bias=st.booleans())  # fmt: skip
def test_int8_products(on, seed, m, n, sixteens, out, bias):
    op = gemm8.INT8_OP
    problem = op.prepare(on, seed, m=m, n=n, k=16 * sixteens, dtype=torch.int8, out=out, bias=bias)
    check_results(op, problem.launch(), problem.reference())


@few
@given(on=on, seed=seeds, groups=st.integers(1, 3), each=st.integers(1, 3), tokens=st.integers(1, 300),
       size=st.sampled_from([64, 128]), dtype=st.sampled_from([torch.int8, torch.float8_e4m3fn]))  # fmt: skip
def test_decode_attention(on, seed, groups, each, tokens, size, dtype):
    op = decode_attention.OP
    problem = op.prepare(on, seed, heads=groups * each, groups=groups, tokens=tokens, size=size, dtype=dtype)
    check_results(op, problem.launch(), problem.reference())


def test_the_weight_of_a_token_does_not_depend_on_the_number_of_splits():
    results = []
    for processors in (1, 3, 9):
        problem = decode_attention.prepare(
            Emulator(processors=processors), 1, heads=2, groups=1, tokens=577, size=64, dtype=torch.int8
        )
        results.append(problem.launch()[0].float())
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=2e-3, atol=1e-3)
