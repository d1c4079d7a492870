"""The GGUF schemes: against the gguf package's decoder and encoders, llama.cpp's error bounds, odd blocks."""

from __future__ import annotations

from typing import Any

import gguf
import numpy as np
import pytest
import torch

from workbench.errors import NonFiniteError, SchemeError
from workbench.numerics.formats.gguf.blocks import BLOCKS
from workbench.numerics.formats.gguf.family import FAMILY, GgufParameters, GgufScheme
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import Scheme

NAMES = tuple(block.name for block in BLOCKS)
ENCODED_BY_GGUF = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "mxfp4-gguf", "tq1_0", "tq2_0")
K_QUANTS = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k")
SEARCHED = ("q4_0", "q4_1", "q5_0", "q5_1", *K_QUANTS, "iq4_nl", "iq4_xs")


def scheme(name: str) -> GgufScheme:
    result = FAMILY.parse(name)
    assert isinstance(result, GgufScheme)
    return result


def kind(name: str) -> Any:
    return gguf.GGMLQuantizationType[scheme(name).ggml_type]


def stored(form: Scheme, weight: torch.Tensor) -> np.ndarray:
    return form.encode(weight, form.fit(weight)).arrays["blocks"]


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.view(torch.int32), right.view(torch.int32))


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def decibels(weight: torch.Tensor, rounded: torch.Tensor) -> float:
    exact = weight.double()
    return float(10 * torch.log10(exact.square().sum() / (exact - rounded.double()).square().sum()))


def adversarial() -> torch.Tensor:
    """Rows of 512: ties on every grid, one outlier, all negative, all positive, tiny, steps, alternating signs."""
    steps = torch.arange(512, dtype=torch.float32)
    outlier = normal(512, seed=3) * 0.01
    outlier[77] = -30.0
    rows = [
        (steps % 33 - 16) / 2,
        outlier,
        -normal(512, seed=4).abs() - 1,
        normal(512, seed=5).abs() + 1,
        normal(512, seed=6) * 1e-6,
        (steps // 32) * 0.25 - 2,
        torch.where(steps % 2 == 0, 1.0, -1.0),
        torch.sin(steps) * torch.exp(steps / 64 - 4),
    ]
    return torch.stack(rows)


@pytest.mark.parametrize("name", NAMES)
def test_decoding_equals_the_gguf_package_on_own_and_on_random_bytes(name: str) -> None:
    form, weight = scheme(name), normal(8, 1024)
    own = stored(form, weight)
    noise = np.random.default_rng(1).integers(0, 256, own.shape, dtype=np.uint8)
    for blocks in (own, noise):
        with np.errstate(all="ignore"):
            expected = gguf.dequantize(blocks, kind(name))
        result = form.decode(QuantizedTensor(scheme=name, shape=(8, 1024), arrays={"blocks": blocks})).numpy()
        equal = (result.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(result) & np.isnan(expected))
        assert equal.all()


@pytest.mark.parametrize("name", ENCODED_BY_GGUF)
def test_a_plain_fit_encodes_to_the_bytes_of_the_gguf_package(name: str) -> None:
    for weight in (normal(16, 1024), adversarial(), torch.full((2, 256), -0.75), torch.zeros(1, 256)):
        with np.errstate(all="ignore"):
            expected = gguf.quantize(weight.numpy(), kind(name))
        np.testing.assert_array_equal(stored(scheme(name), weight), expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["plain", "importance", "clip"])
def test_rounding_equals_decoding_what_was_encoded_bit_for_bit(name: str, mode: str) -> None:
    form = scheme(name)
    for weight in (normal(32, 768, seed=8), adversarial()):
        importance = torch.rand(weight.shape[1], generator=torch.Generator().manual_seed(0)) + 0.01
        parameters = form.fit(weight, None if mode == "plain" else importance, clip_search=mode == "clip")
        decoded = form.decode(form.encode(weight, parameters))
        assert same_bits(decoded, form.round(weight, parameters))
        assert same_bits(decoded, form.round_plainly(weight, parameters))


@pytest.mark.parametrize("name", NAMES)
def test_the_error_stays_under_the_bounds_of_llama_cpps_own_tests(name: str) -> None:
    """Ternary blocks store 1.7 and 2.1 bits a weight; their own quantizer, whose bytes ours are, leaves 0.0087."""
    bound = {"q2_k": 0.0075, "q3_k": 0.0040, "tq1_0": 0.0087, "tq2_0": 0.0087}.get(name, 0.002)
    weight = (0.1 + 2 * np.cos(np.arange(4096))).astype(np.float32)
    form = scheme(name)
    decoded = gguf.dequantize(stored(form, torch.from_numpy(weight)[None]), kind(name))[0]
    error = np.sqrt(np.square(decoded - weight, dtype=np.float64).sum()) / 4096
    assert error < bound
    if name.startswith("tq"):
        reference = gguf.dequantize(gguf.quantize(weight[None], kind(name)), kind(name))[0]
        assert error == np.sqrt(np.square(reference - weight, dtype=np.float64).sum()) / 4096


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("q4_0", 21.30), ("q4_1", 22.13), ("q5_0", 27.36), ("q5_1", 28.42), ("q8_0", 45.41), ("mxfp4-gguf", 18.79),
        ("q2_k", 10.55), ("q3_k", 16.43), ("q4_k", 22.92), ("q5_k", 28.83), ("q6_k", 35.01), ("iq4_nl", 22.36),
        ("iq4_xs", 22.29),
    ],
)  # fmt: skip
def test_the_signal_to_noise_ratio_on_normal_weights_is_llama_cpps(name: str, expected: float) -> None:
    """Expected: llama.cpp's own C quantizer on the same array (2 % of the error is 0.17 dB; its bytes are equal)."""
    weight = normal(64, 4096)
    assert decibels(weight, scheme(name).quantize(weight)) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("name", SEARCHED)
def test_importance_moves_the_error_to_where_it_weighs_less(name: str) -> None:
    weight, form = normal(16, 1024, seed=9), scheme(name)
    importance = torch.where(torch.arange(1024) % 4 == 0, 20.0, 0.05)

    def weighted(parameters: GgufParameters) -> float:
        return float(((form.round(weight, parameters) - weight).square() * importance).sum())

    plain = weighted(form.fit(weight))
    assert weighted(form.fit(weight, importance)) < 0.95 * plain
    assert weighted(form.fit(weight, importance, clip_search=True)) < 0.95 * plain


@pytest.mark.parametrize("name", NAMES)
def test_the_clip_search_never_makes_a_block_worse(name: str) -> None:
    weight, form = torch.cat([normal(8, 512, seed=10), adversarial()]), scheme(name)

    def errors(rounded: torch.Tensor) -> torch.Tensor:
        return (rounded - weight).double().square().reshape(-1, form.block.width).sum(1)

    plain, searched = errors(form.quantize(weight)), errors(form.quantize(weight, clip_search=True))
    assert bool((searched <= plain * (1 + 1e-5)).all())
    assert name == "q8_0" or float(searched.sum()) < float(plain.sum())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", [1, 31, 172, 300])
def test_a_row_that_ends_inside_a_block_is_filled_up_counted_and_cut_again(name: str, columns: int) -> None:
    form, weight = scheme(name), normal(5, columns, seed=11)
    parameters = form.fit(weight)
    result = form.encode(weight, parameters)
    padded = torch.nn.functional.pad(weight, (0, -columns % form.block.width))
    np.testing.assert_array_equal(result.arrays["blocks"], stored(form, padded))
    assert form.bits((5, columns)) == 8 * result.nbytes == form.bits((5, padded.shape[1]))
    assert same_bits(form.decode(result), form.round(weight, parameters))
    assert form.decode(result).shape == weight.shape


def test_the_fallback_is_the_one_of_llama_cpps_quantizer() -> None:
    expected = {
        "q2_k": "iq4_nl", "q3_k": "iq4_nl", "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0", "tq1_0": "q4_0",
        "tq2_0": "q4_0", "iq4_xs": "iq4_nl",
    }  # fmt: skip
    for name in NAMES:
        assert scheme(name).fallback((3, 512)) == scheme(name)
        assert scheme(name).fallback((3, 160)).name == expected.get(name, name)
        assert scheme(name).fallback((3, 172)).name == "fp16"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_stored_as_their_float32_values(name: str, dtype: torch.dtype) -> None:
    weight = normal(4, 512, seed=12).to(dtype)
    np.testing.assert_array_equal(stored(scheme(name), weight), stored(scheme(name), weight.float()))


@pytest.mark.parametrize("name", NAMES)
def test_transposed_and_empty_matrices(name: str) -> None:
    form, weight = scheme(name), normal(256, 64, seed=13).T
    np.testing.assert_array_equal(stored(form, weight), stored(form, weight.contiguous()))
    for shape in ((0, 256), (3, 0)):
        empty = torch.zeros(shape)
        result = form.encode(empty, form.fit(empty))
        assert form.bits(shape) == 0 == result.nbytes
        assert form.decode(result).shape == shape == form.round(empty, form.fit(empty)).shape


@pytest.mark.parametrize("name", NAMES)
def test_odd_blocks_are_defined(name: str) -> None:
    form = scheme(name)
    assert not form.quantize(torch.zeros(2, 256)).any()
    for value in (0.5, -0.75, 3.0):
        constant = form.quantize(torch.full((1, 256), value))
        assert float((constant / value - 1).abs().max()) < 0.005
    for size in (1e-45, 1e-38, 1e-20, 1e-9):
        tiny = form.quantize(normal(2, 256, seed=14) * size)
        assert bool(tiny.isfinite().all())
        assert float(tiny.abs().max()) < 1e-5
    for size in (1e6, 1e12, 1e30, 1e38):
        huge = normal(4, 256, seed=15).clamp(-3, 3) * size
        result = form.quantize(huge)
        assert bool(result.isfinite().all())
        assert float((result * huge.sign()).mean()) > 1e4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_refused_by_name(name: str, bad: float) -> None:
    form, weight = scheme(name), normal(3, 300, seed=16)
    parameters = form.fit(weight)
    weight[1, 299] = bad
    with pytest.raises(NonFiniteError, match=name):
        form.fit(weight)
    with pytest.raises(NonFiniteError, match=name):
        form.encode(weight, parameters)


@pytest.mark.parametrize("name", NAMES)
def test_columns_round_one_by_one_and_joined_blocks_encode(name: str) -> None:
    """What GPTQ does: fit a block of columns, round one column after another, encode the whole at the end."""
    form, weight = scheme(name), normal(6, 512, seed=17)
    whole, width = form.fit(weight), form.block.width
    single = torch.cat([form.round(weight[:, c : c + 1], whole.columns(c, c + 1)) for c in range(512)], dim=1)
    assert same_bits(single, form.round(weight, whole))
    parts = [form.fit(weight[:, c : c + width]) for c in range(0, 512, width)]
    joined = parts[0].joined(parts[1:])
    result = form.encode(weight, joined)
    np.testing.assert_array_equal(result.arrays["blocks"], stored(form, weight))
    block = whole.columns(0, width)
    assert same_bits(form.decode(form.encode(weight[:, :width], block)), single[:, :width])
    with pytest.raises(SchemeError, match="headers"):
        form.encode(weight, block)
    if form.block.groups > 1:
        with pytest.raises(SchemeError, match="hold none"):
            form.encode(weight[:, :1], whole.columns(0, 1))


@pytest.mark.parametrize("name", NAMES)
def test_what_was_rounded_rounds_to_itself(name: str) -> None:
    form, weight = scheme(name), normal(4, 512, seed=18)
    parameters = form.fit(weight)
    once = form.round(weight, parameters)
    assert torch.equal(form.round(once, parameters), once)


def test_names_levels_grids_and_refusals() -> None:
    assert FAMILY.parse("int4-g32") is None
    for name in NAMES:
        form = scheme(name)
        assert form.name == name and form.family == "gguf" and FAMILY.ggml(form.ggml_type) == form
        assert form.block.nbytes == gguf.GGML_QUANT_SIZES[kind(name)][1]
        assert form.block.width == gguf.GGML_QUANT_SIZES[kind(name)][0]
        assert bool((np.diff(form.values()) > 0).all())
        grid = form.grid(-1.0, 0.5)
        assert bool((np.diff(grid) > 0).all()) and -1.0 <= grid[0] < 0 < grid[-1] <= 1.0
        with pytest.raises(SchemeError, match="activations"):
            form.fit_range(-1.0, 1.0)
        with pytest.raises(SchemeError, match="matrix"):
            form.fit(torch.zeros(4))
    with pytest.raises(SchemeError, match="Q4_K"):
        FAMILY.ggml("Q4_KM")
    with pytest.raises(SchemeError, match="takes 18 bytes"):
        scheme("q4_0").decode(
            QuantizedTensor(scheme="q4_0", shape=(1, 32), arrays={"blocks": np.zeros((1, 17), np.uint8)})
        )
    with pytest.raises(SchemeError, match="another scheme"):
        scheme("q4_0").round(torch.zeros(1, 256), scheme("q4_1").fit(torch.zeros(1, 256)))
