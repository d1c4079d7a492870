"""The torch references against independent ones: the gguf package, ml_dtypes, numpy and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from workbench_kernels.gpu.attention import decode_attention
from workbench_kernels.gpu.gemm import w4a16
from workbench_kernels.gpu.quantize import gguf_blocks, group_quantize, k_quants, norm_quantize, statistics

GGML = {"q4_0": "Q4_0", "q8_0": "Q8_0", "q4_k": "Q4_K", "q3_k": "Q3_K", "q6_k": "Q6_K"}


@pytest.mark.parametrize("name", gguf_blocks.FORMATS)
def test_gguf_blocks_decode_as_the_gguf_package_decodes_them(name):
    gguf = pytest.importorskip("gguf")
    kind = gguf.GGMLQuantizationType[GGML[name]]
    form = gguf_blocks.FORMATS[name]
    assert gguf.GGML_QUANT_SIZES[kind] == (form.values, form.size)
    blocks = gguf_blocks.random_blocks(4, 64, 4 * form.values, name)
    expected = gguf.dequantize(blocks.numpy(), kind)
    assert np.array_equal(gguf_blocks.reference_dequantize(blocks, name, torch.float32).numpy(), expected)


@pytest.mark.parametrize("name", gguf_blocks.ENCODED)
def test_gguf_blocks_encode_as_the_gguf_package_encodes_them(name):
    gguf = pytest.importorskip("gguf")
    x = torch.randn(64, 256, generator=torch.Generator().manual_seed(8))
    x[0, :32], x[1, 3], x[1, 9] = 0, 7.0, -7.0
    expected = gguf.quantize(x.numpy(), gguf.GGMLQuantizationType[GGML[name]])
    assert np.array_equal(gguf_blocks.reference_quantize(x, name).numpy(), expected)


@pytest.mark.parametrize(("code", "kind"), [("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2")])
def test_fp8_codes_are_those_of_ml_dtypes(code, kind):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    q = group_quantize.reference_quantize(x, code, 16)
    largest = float(ml_dtypes.finfo(getattr(ml_dtypes, kind)).max)
    grouped = x.numpy().reshape(8, 4, 16)
    scale = (np.abs(grouped).max(2) / np.float32(largest)).astype(np.float32)
    scaled = grouped * (np.float32(1) / scale)[..., None]
    expected = np.clip(scaled, -largest, largest).astype(getattr(ml_dtypes, kind))
    assert np.array_equal(q.scales.numpy(), scale)
    assert np.array_equal(q.codes.view(torch.uint8).numpy(), expected.view(np.uint8).reshape(8, 64))
    values = expected.astype(np.float32) * scale[..., None]
    assert np.array_equal(group_quantize.reference_dequantize(q, torch.float32).numpy(), values.reshape(8, 64))


@pytest.mark.parametrize("code", ["int8", "int8_asym", "int4", "int4_asym"])
def test_integer_codes_are_the_nearest_ones(code):
    """By exhaustion: no code of the group's grid is nearer to the value than the one that was chosen."""
    kind = group_quantize.CODES[code]
    x = torch.randn(4, 32, generator=torch.Generator().manual_seed(2)) + 0.3
    q = group_quantize.reference_quantize(x, code, 16)
    decoded = group_quantize.reference_dequantize(q, torch.float32).double()
    zero = torch.zeros(4, 2) if q.zeros is None else q.zeros.double()
    grid = torch.arange(kind.low, kind.high + 1).double()
    values = (grid - zero[..., None]) * q.scales.double()[..., None]
    nearest = (x.double().reshape(4, 2, 16, 1) - values[:, :, None]).abs().amin(3).reshape(4, 32)
    assert ((x.double() - decoded).abs() <= nearest + 1e-6).all()
    assert (decoded.abs().amax() - x.abs().amax()).abs() <= q.scales.max()


def test_statistics_are_those_of_numpy():
    x = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32)
    result = statistics.reference(torch.from_numpy(x), histogram=True)
    assert np.array_equal(result.low.numpy(), x.min(1)) and np.array_equal(result.high.numpy(), x.max(1))
    np.testing.assert_allclose(result.sum.numpy(), x.sum(1, dtype=np.float64))
    np.testing.assert_allclose(result.squares.numpy(), np.square(x, dtype=np.float64).sum(1))
    mantissa, exponent = np.frexp(np.abs(x))
    bins = (exponent + 126) * 8 + np.floor((2 * mantissa - 1) * 8).astype(int)
    assert np.array_equal(result.histogram.numpy(), np.bincount(bins.ravel(), minlength=statistics.BINS))


def test_packed_words_hold_every_code_where_the_kernel_looks():
    rows, columns = 128, 64
    codes = torch.randint(0, 16, (rows, columns), generator=torch.Generator().manual_seed(3), dtype=torch.uint8)
    packed = w4a16.pack(codes, torch.ones(rows, 1).half(), None)
    words = packed.words.numpy().view(np.uint32)
    for k in range(0, columns, 5):
        for n in range(0, rows, 3):
            inside, column = k % 16, n % 16
            lane = column % 8 * 4 + inside % 8 // 2
            nibble = column // 8 * 2 + inside // 8 + inside % 2 * 4
            assert words[k // 16, n // 32, lane, n % 32 // 16] >> 4 * nibble & 15 == codes[n, k]


@pytest.mark.parametrize("codes", norm_quantize.CODES)
def test_normalized_codes_are_near_torchs_own_normalization(codes):
    x = torch.randn(4, 256, generator=torch.Generator().manual_seed(9)).half()
    weight = torch.linspace(-2, 2, 256).half()
    made, scales = norm_quantize.reference(x, weight, codes, 1e-5)
    assert scales is not None
    exact = torch.nn.functional.rms_norm(x.double(), (256,), weight.double(), 1e-5)
    error = (made.double() * scales[:, None] - exact).abs()
    bound = scales[:, None] * 0.51 if codes == torch.int8 else exact.abs() / 15 + scales[:, None] * 2**-9
    assert (error <= bound).all()


def test_attention_is_torchs_own():
    generator = torch.Generator().manual_seed(5)
    keys, values = (torch.randint(-127, 128, (9, 2, 64), generator=generator).to(torch.int8) for _ in range(2))
    scales = torch.rand(9, 2, generator=generator) / 50
    query = torch.randn(4, 64, generator=generator).half()
    cache = decode_attention.Cache(keys=keys, values=values, key_scales=scales, value_scales=scales)
    k, v = ((codes * scales[..., None]).double().transpose(0, 1) for codes in (keys, values))
    expected = torch.nn.functional.scaled_dot_product_attention(
        query.double()[:, None], k.repeat_interleave(2, 0), v.repeat_interleave(2, 0)
    )
    torch.testing.assert_close(decode_attention.reference(query, cache), expected[:, 0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", k_quants.LANES)
def test_k_quants_are_near_what_they_stand_for(name):
    gguf = pytest.importorskip("gguf")
    x = torch.randn(16, 512, generator=torch.Generator().manual_seed(3)) * torch.logspace(-3, 3, 16)[:, None]
    blocks = k_quants.reference(x, name)
    decoded = torch.from_numpy(gguf.dequantize(blocks.numpy(), gguf.GGMLQuantizationType[GGML[name]]))
    error = ((decoded - x).square().mean(1) / x.square().mean(1)).sqrt()
    assert (error < {"q4_k": 0.08, "q3_k": 0.2, "q6_k": 0.025}[name]).all()
