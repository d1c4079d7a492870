"""The one implementation of scaled formats, against its own promises and against independent references."""

from __future__ import annotations

import math

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import dequantize, quantize
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import NonFiniteError, RangeError, SchemeError
from workbench.numerics.formats import activation_schemes, parse_scheme, standard_schemes
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.scheme import Scheme

EXTRA = (
    "int2-tensor",
    "int3-channel",
    "int5-b4x7-asym-sbf16",
    "int7-b3x5",
    "int7-tensor-asym",
    "int6-g5",
    "fp8-e5m2-b3x5",
    "fp8-e4m3-g7",
    "fp32",
)
SCHEMES = tuple(standard_schemes()) + tuple(activation_schemes()) + tuple(parse_scheme(name) for name in EXTRA)
SCALED = tuple(scheme for scheme in SCHEMES if isinstance(scheme, ScaledScheme))
by_name = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
PRECISE = tuple(scheme for scheme in SCALED if scheme.family in ("integer", "floating"))
precise_by_name = pytest.mark.parametrize("scheme", PRECISE, ids=lambda scheme: scheme.name)
scaled_by_name = pytest.mark.parametrize("scheme", SCALED, ids=lambda scheme: scheme.name)


def matrix(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def sqnr(weight: torch.Tensor, rounded: torch.Tensor) -> float:
    """Return the signal-to-quantization-noise ratio in dB."""
    noise = (rounded.double() - weight.double()).square().sum()
    return 10 * math.log10(float(weight.double().square().sum() / noise))


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype == torch.float32 and torch.equal(a.view(torch.int32), b.view(torch.int32))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    scheme=st.sampled_from(SCHEMES),
    rows=st.integers(0, 9),
    columns=st.integers(0, 70),
    seed=st.integers(0, 99),
    clip=st.booleans(),
    exponent=st.integers(-44, 38),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]),
)
def test_decode_of_encode_is_round_and_bits_are_bytes(
    scheme: Scheme, rows: int, columns: int, seed: int, clip: bool, exponent: int, dtype: torch.dtype
) -> None:
    weight = (matrix(rows, columns, seed).clamp(-3, 3).double() * 10.0**exponent).to(torch.float32).to(dtype)
    weight = weight.nan_to_num(0.0, 1.0, -1.0)
    parameters = scheme.fit(weight, clip_search=clip)
    rounded = scheme.round(weight, parameters)
    stored = scheme.encode(weight, parameters)
    assert rounded.shape == weight.shape
    assert bool(rounded.isfinite().all())
    assert same_bits(scheme.decode(stored), rounded)
    assert scheme.bits((rows, columns)) == 8 * stored.nbytes
    assert stored.scheme == scheme.name


@by_name
def test_rounding_twice_changes_nothing(scheme: Scheme) -> None:
    weight = matrix(6, 172)
    parameters = scheme.fit(weight)
    once = scheme.round(weight, parameters)
    assert same_bits(scheme.round(once, parameters), once)


@scaled_by_name
def test_round_takes_the_nearest_grid_value(scheme: ScaledScheme) -> None:
    """Brute force: the distance to the result is the least over the whole grid of each element's scale."""
    weight = matrix(6, 40) * 3
    parameters = scheme.fit(weight)
    rounded = scheme.round(weight, parameters)
    values = torch.from_numpy(scheme.values())
    group = torch.arange(40) // parameters.width
    for row in range(6):
        for column in range(40):
            at = (row % parameters.scale.shape[0], int(group[column]))
            shift = 0.0 if parameters.zero_point is None else float(parameters.zero_point[at])
            grid = float(parameters.scale[at]) * (values.double() - shift)
            exact = float(weight[row, column])
            assert abs(float(rounded[row, column]) - exact) <= float((grid - exact).abs().min()) + 2e-6


@by_name
def test_zeros_stay_exact_zeros(scheme: Scheme) -> None:
    weight = torch.zeros(5, 37)
    assert same_bits(scheme.quantize(weight), weight)
    assert same_bits(scheme.quantize(weight, clip_search=True), weight)


@by_name
def test_zero_is_always_representable_beside_other_values(scheme: Scheme) -> None:
    weight = matrix(5, 64).abs() + 1
    weight[:, ::3] = 0
    assert bool((scheme.quantize(weight)[:, ::3] == 0).all())


@precise_by_name
@pytest.mark.parametrize("value", [3.25, -3.25])
def test_a_constant_comes_back(scheme: ScaledScheme, value: float) -> None:
    weight = torch.full((4, 32), value)
    assert torch.allclose(scheme.quantize(weight), weight, rtol=2e-3 if scheme.scale_format.name != "bf16" else 5e-3)


@scaled_by_name
@pytest.mark.parametrize("value", [1e-45, 1e-40, 1e-30, 1e-7, 7e4, 1e7, 1e38, 3.4028234e38])
def test_the_extremes_of_float32_stay_finite(scheme: ScaledScheme, value: float) -> None:
    weight = matrix(4, 32).clamp(-1, 1) * value
    weight[0] = 0
    for clip in (False, True):
        rounded = scheme.quantize(weight, clip_search=clip)
        assert bool(rounded.isfinite().all())
        assert bool((rounded[0] == 0).all())
        assert (
            float(rounded.abs().max()) <= value * 1.4 + 2.0**-23
        )  # a rounded zero point moves int2's range by half a step


def test_a_scale_below_float16_is_raised_and_above_it_saturates() -> None:
    scheme = parse_scheme("int8-g32-asym")
    small = torch.linspace(0, 3e-7, 32)[None]
    assert float(scheme.fit(small).scale) == 2.0**-24
    assert float((scheme.quantize(small) - small).abs().max()) <= 2.0**-25
    huge = torch.linspace(-1e30, 1e30, 32)[None]
    assert float(scheme.fit(huge).scale) == 65504.0


@by_name
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_weights_are_refused(scheme: Scheme, bad: float) -> None:
    weight = matrix(300, 40)
    weight[299, 39] = bad
    with pytest.raises(NonFiniteError):
        scheme.fit(weight)


@by_name
def test_only_floating_matrices_are_taken(scheme: Scheme) -> None:
    with pytest.raises(SchemeError, match="floating-point matrix"):
        scheme.fit(torch.zeros(3))
    with pytest.raises(SchemeError, match="int64"):
        scheme.fit(torch.zeros(3, 3, dtype=torch.int64))


@by_name
@pytest.mark.parametrize("weighted", [False, True])
def test_clip_search_never_raises_the_weighted_error(scheme: Scheme, weighted: bool) -> None:
    weight = matrix(12, 96) ** 3
    importance = matrix(1, 96, 5).square() + 0.01 if weighted else None
    weights = torch.ones(1, 96) if importance is None else importance
    full = ((scheme.quantize(weight, importance) - weight).square() * weights).sum(dtype=torch.float64)
    best = ((scheme.quantize(weight, importance, clip_search=True) - weight).square() * weights).sum(
        dtype=torch.float64
    )
    assert float(best) <= float(full) * (1 + 1e-6)
    if scheme.name in ("int2-g32-asym", "int2-tensor", "int3-channel"):
        assert float(best) < 0.97 * float(full)


def test_clip_search_is_the_best_of_its_candidates_for_every_group() -> None:
    from workbench.numerics.formats.scaled import SHRINK_FACTORS

    scheme = parse_scheme("int3-g16-asym")
    weight = matrix(8, 48) ** 3
    result = (scheme.quantize(weight, clip_search=True) - weight).square().reshape(8, 3, 16).sum(-1)
    groups = weight.reshape(-1, 16)
    low, high = groups.amin(1).clamp(max=0), groups.amax(1).clamp(min=0)
    errors = []
    for factor in SHRINK_FACTORS:
        step = ((high - low) * factor / 7).half().float()
        shift = (-low * factor / step).round().clamp(0, 7)
        code = ((groups / step[:, None]).round() + shift[:, None]).clamp(0, 7)
        errors.append(((code - shift[:, None]) * step[:, None] - groups).square().sum(1))
    assert torch.allclose(result.reshape(-1), torch.stack(errors).amin(0), rtol=1e-4)


def test_importance_moves_the_search_toward_what_matters() -> None:
    scheme = parse_scheme("int3-channel")
    weight = matrix(1, 64)
    weight[0, 0] = 8.0
    outlier = torch.full((1, 64), 1e-6)
    outlier[0, 0] = 1e6
    quantized = scheme.quantize(weight, outlier, clip_search=True)
    clipped = scheme.quantize(weight, torch.ones(1, 64), clip_search=True)
    assert abs(float(quantized[0, 0]) - 8) < 0.01
    assert float(clipped[0, 0]) < 7


def test_columns_of_parameters_round_like_the_whole() -> None:
    weight = matrix(6, 172)
    for name in ("int4-g32-asym", "int4-g32", "int8-channel", "int4-tensor", "int5-b4x32"):
        scheme = parse_scheme(name)
        parameters = scheme.fit(weight)
        whole = scheme.round(weight, parameters)
        for start, stop in ((0, 32), (32, 96), (160, 172), (40, 41), (171, 172)):
            part = scheme.round(weight[:, start:stop], parameters.columns(start, stop))
            assert same_bits(part, whole[:, start:stop].contiguous())


def test_large_matrices_cut_into_tiles_equal_their_rows_one_by_one() -> None:
    weight = matrix(300, 1000).to(torch.bfloat16)
    for name in ("int4-g64-asym", "fp8-e4m3-channel"):
        scheme = parse_scheme(name)
        whole = scheme.quantize(weight)
        assert same_bits(scheme.quantize(weight[265:275]), whole[265:275])
    blocks = parse_scheme("int4-b48x100")
    assert same_bits(blocks.quantize(weight)[192:240], blocks.quantize(weight[192:240]))
    clipped = blocks.quantize(weight, clip_search=True)
    assert same_bits(clipped[192:240], blocks.quantize(weight[192:240], clip_search=True))


def test_a_whole_tensor_search_over_several_tiles_is_the_best_of_all() -> None:
    scheme = parse_scheme("int4-tensor")
    weight = matrix(600, 1000) ** 3
    best = sqnr(weight, scheme.quantize(weight, clip_search=True))
    reach = float(weight.abs().max())
    rivals = [scheme.round(weight, scheme.fit_range(-reach * f, reach * f)) for f in (1.0, 0.8, 0.6, 0.4)]
    assert best >= max(sqnr(weight, rival) for rival in rivals) - 1e-6


@scaled_by_name
@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.0), (0.0, 6.0), (-2.5, 0.0), (0.5, 2.0), (0.0, 0.0)])
def test_the_numpy_grid_is_what_a_static_range_rounds_to(scheme: ScaledScheme, low: float, high: float) -> None:
    parameters = scheme.fit_range(low, high)
    assert parameters.scale.shape == (1, 1)
    reach = 2.3 * max(abs(low), abs(high)) + 1
    probe = torch.linspace(-reach, reach, 8001)[None]
    reached = np.unique(scheme.round(probe, parameters).numpy().astype(np.float64))
    grid = np.unique(scheme.grid(low, high))
    nearest = np.abs(reached[:, None] - grid[None]).min(axis=1)
    assert float(nearest.max()) <= 1e-6 * max(abs(low), abs(high))
    if scheme.element.bits <= 4 and low < high:
        assert reached.size == grid.size


@pytest.mark.parametrize(("low", "high"), [(1.0, -1.0), (math.nan, 1.0), (0.0, math.inf)])
def test_a_static_range_must_be_finite_and_ordered(low: float, high: float) -> None:
    for scheme in (parse_scheme("int8-tensor"), parse_scheme("fp16")):
        with pytest.raises(RangeError):
            scheme.fit_range(low, high)


def test_values_beyond_a_static_range_saturate() -> None:
    scheme = parse_scheme("int8-tensor-asym")
    rounded = scheme.round(torch.tensor([[-1e30, 1e30, math.inf]]), scheme.fit_range(-1.0, 2.0))
    assert torch.allclose(rounded, torch.tensor([[-1.0, 2.0, 2.0]]), atol=0.01)


def test_nan_has_no_code() -> None:
    scheme = parse_scheme("int8-tensor")
    with pytest.raises(NonFiniteError):
        scheme.encode(torch.tensor([[math.nan]]), scheme.fit_range(-1, 1))


def test_codes_and_zero_points_reproduce_the_equation() -> None:
    scheme = parse_scheme("int4-g32-asym")
    assert isinstance(scheme, ScaledScheme)
    weight = matrix(5, 172)
    stored = scheme.encode(weight, scheme.fit(weight))
    codes, scales, shifts = scheme.unpacked(stored)
    assert shifts is not None
    assert codes.shape == (5, 172)
    assert scales.shape == shifts.shape == (5, 6)
    assert int(codes.max()) <= 15
    group = torch.arange(172) // 32
    assert same_bits(scheme.decode(stored), scales[:, group] * (codes.float() - shifts[:, group]))


def test_a_symmetric_group_spends_its_extra_code_on_the_extreme() -> None:
    """Codes reach -2**(b-1), by a negative scale where the extreme is positive, as in Q4_0."""
    scheme = parse_scheme("int4-g4")
    assert isinstance(scheme, ScaledScheme)
    weight = torch.tensor([[8.0, -3.0, 1.0, 0.0, -8.0, 3.0, -1.0, 0.0]])
    parameters = scheme.fit(weight)
    assert parameters.scale.tolist() == [[-1.0, 1.0]]
    codes = scheme.unpacked(scheme.encode(weight, parameters))[0].to(torch.int64) - 8
    assert codes.tolist() == [[-8, 3, -1, 0, -8, 3, -1, 0]]
    assert bool((parse_scheme("int4-channel").fit(weight).scale > 0).all())


@pytest.mark.parametrize(
    ("name", "kind", "slack"),
    [("int4-g32", gguf.GGMLQuantizationType.Q4_0, 0.05), ("int8-g32", gguf.GGMLQuantizationType.Q8_0, 0.15)],
)
def test_errors_agree_with_the_gguf_formats_of_the_same_equation(
    name: str, kind: gguf.GGMLQuantizationType, slack: float
) -> None:
    weight = matrix(64, 256)
    scheme = parse_scheme(name)
    packed = quantize(weight.numpy(), kind)
    theirs = sqnr(weight, torch.from_numpy(dequantize(packed, kind)))
    ours = sqnr(weight, scheme.quantize(weight))
    assert packed.nbytes * 8 == scheme.bits((64, 256))
    assert abs(ours - theirs) < slack
    assert ours > theirs - 0.01


def test_sqnr_of_normal_weights_as_published_for_the_symmetric_rule() -> None:
    weight = matrix(512, 1024)
    measured = {b: sqnr(weight, parse_scheme(f"int{b}-g32").quantize(weight)) for b in (2, 3, 4, 8)}
    expected = {2: 8.8, 3: 15.2, 4: 21.3, 8: 45.5}
    assert measured == pytest.approx(expected, abs=0.1)
