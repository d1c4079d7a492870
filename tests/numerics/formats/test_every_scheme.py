"""The contract of a number format, held by every listed scheme of every family."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch

from workbench.errors import NonFiniteError, RangeError, SchemeError
from workbench.numerics.formats import all_schemes, parse_scheme, standard_schemes
from workbench.numerics.granularity import PerBlock, PerGroup
from workbench.numerics.scheme import Scheme

MORE = (
    "int3-g7-asym",
    "int5-b4x7-asym-sbf16",
    "int4-g96-asym-zfp16",
    "int4-channel-asym-zbf16-sfp16",
    "int3-b5x3-asym-zfp32",
    "int2-tensor",
    "fp4-e2m1-b128x128",
    "fp6-e3m2-g7",
    "fp6-e2m3-tensor",
    "fp8-e5m2fnuz-g33-sbf16",
    "nf4-b7",
    "nf4-b128-sfp16",
    "fp4-bnb-b5-dq",
    "kmeans2-g5",
    "kmeans4-tensor",
    "kmeans3-g33-sfp32",
    "kmeans4-channel-sbf16",
)
SCHEMES = tuple(dict.fromkeys((*all_schemes(), *map(parse_scheme, MORE))))
SHAPES = ((0, 0), (0, 9), (3, 0), (1, 1), (5, 37), (2, 256), (3, 333), (130, 40), (2, 600))
VALUES = (0.0, -0.0, 1e-45, 1e-40, -1e-30, 3.25, -7e4, 1e30, 3.4028234e38)

by_name = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)


def matrix(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype == torch.float32 and torch.equal(a.view(torch.int32), b.view(torch.int32))


def held(scheme: Scheme, weight: torch.Tensor, *, clip: bool = False) -> torch.Tensor:
    """Check what must hold for any matrix and return the rounded one."""
    parameters = scheme.fit(weight, clip_search=clip)
    rounded = scheme.round(weight, parameters)
    stored = scheme.encode(weight, parameters)
    assert rounded.shape == weight.shape
    assert bool(rounded.isfinite().all())
    assert same_bits(scheme.decode(stored), rounded)
    assert scheme.bits((weight.shape[0], weight.shape[1])) == 8 * stored.nbytes
    assert stored.scheme == scheme.name
    assert all(array.flags.c_contiguous for array in stored.arrays.values())
    return rounded


@by_name
def test_its_name_is_itself_and_it_travels_between_processes(scheme: Scheme) -> None:
    assert parse_scheme(scheme.name) == scheme
    assert parse_scheme(scheme.name.upper()) == scheme
    assert pickle.loads(pickle.dumps(scheme)) == scheme
    assert hash(parse_scheme(scheme.name)) == hash(scheme)
    assert scheme.family
    assert np.all(np.diff(scheme.values()) > 0)


@by_name
def test_what_is_written_decodes_to_what_was_rounded(scheme: Scheme) -> None:
    for shape in SHAPES:
        held(scheme, matrix(*shape))


@by_name
def test_every_input_type_rounds_like_its_float32_values(scheme: Scheme) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        weight = matrix(4, 300, 1).to(dtype)
        assert same_bits(held(scheme, weight), held(scheme, weight.to(torch.float32))), dtype


@by_name
def test_zero_constant_denormal_and_huge_blocks(scheme: Scheme) -> None:
    for value in VALUES:
        held(scheme, torch.full((3, 300), value))
        mixed = matrix(4, 300).clamp(-1, 1) * abs(value)
        mixed[0] = 0
        mixed[:, 32:64] = value
        for clip in (False, True):
            rounded = held(scheme, mixed, clip=clip)
            assert float(rounded.abs().max()) <= abs(value) * 2 + 2.0**-23, value


@by_name
def test_a_block_of_zeros_is_exact(scheme: Scheme) -> None:
    weight = torch.zeros(3, 300)
    weight[1, :] = -0.0
    assert bool((held(scheme, weight) == 0).all())
    if not scheme.family.startswith(("cast", "gguf")):  # a cast keeps the sign; GGUF blocks may give -0, as llama.cpp
        assert not bool(held(scheme, weight).signbit().any())


@by_name
def test_what_is_not_finite_is_refused(scheme: Scheme) -> None:
    for bad in (math.inf, -math.inf, math.nan):
        weight = matrix(3, 300)
        weight[2, 299] = bad
        with pytest.raises(NonFiniteError):
            scheme.fit(weight)
    if scheme.family != "cast":
        with pytest.raises(NonFiniteError):
            scheme.encode(weight, scheme.fit(matrix(3, 300)))


@by_name
def test_only_floating_matrices_are_taken(scheme: Scheme) -> None:
    for wrong in (torch.zeros(3), torch.zeros(3, 3, dtype=torch.int64)):
        with pytest.raises(SchemeError, match="floating-point matrix"):
            scheme.fit(wrong)


@by_name
def test_rounding_by_columns_is_rounding_the_whole(scheme: Scheme) -> None:
    """What GPTQ does: one column at a time, and several that end where groups end."""
    weight = matrix(5, 300)
    parameters = scheme.fit(weight)
    whole = scheme.round(weight, parameters)
    if scheme.family == "gguf-lattice":
        with pytest.raises(SchemeError, match="rounds whole vectors"):
            parameters.columns(0, 1)
        return
    for column in (0, 1, 15, 16, 31, 32, 63, 255, 256, 288, 299):
        part = scheme.round(weight[:, column : column + 1], parameters.columns(column, column + 1))
        assert same_bits(part, whole[:, column : column + 1].contiguous()), column
    edge = min(parameters.width, 300)
    assert same_bits(scheme.round(weight[:, :edge], parameters.columns(0, edge)), whole[:, :edge].contiguous())


@by_name
def test_the_importance_of_weights_is_taken_in_any_shape(scheme: Scheme) -> None:
    weight = matrix(4, 300) ** 3
    for importance in (matrix(1, 300, 5).square(), torch.tensor(1.0), torch.zeros(4, 300)):
        for clip in (False, True):
            assert bool(scheme.quantize(weight, importance, clip_search=clip).isfinite().all())


@by_name
def test_clip_search_lowers_the_error(scheme: Scheme) -> None:
    weight = matrix(12, 512) ** 3
    plain = (scheme.quantize(weight) - weight).double().square().sum()
    best = (scheme.quantize(weight, clip_search=True) - weight).double().square().sum()
    assert float(best) <= float(plain) * (1 + 1e-6)


@by_name
@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.0), (0.0, 6.0), (-2.5, 0.0), (0.0, 0.0)])
def test_a_static_range_rounds_to_its_grid(scheme: Scheme, low: float, high: float) -> None:
    try:
        parameters = scheme.fit_range(low, high)
    except SchemeError:
        return
    probe = torch.linspace(2 * low - 1, 2 * high + 1, 512)[None]
    rounded = scheme.round(probe, parameters).numpy().astype(np.float64)
    grid = scheme.grid(low, high)
    if grid.size:
        assert float(np.abs(rounded.reshape(-1, 1) - grid).min(axis=1).max()) <= 1e-6 * max(abs(low), abs(high))
    stored = scheme.encode(probe, parameters)
    assert same_bits(scheme.decode(stored), torch.from_numpy(rounded.astype(np.float32)))
    for wrong in ((1.0, -1.0), (math.nan, 1.0)):
        with pytest.raises(RangeError):
            scheme.fit_range(*wrong)


LOCAL = tuple(
    scheme
    for scheme in SCHEMES
    if isinstance(scheme.granularity, PerGroup | PerBlock) and scheme.name != "nvfp4" and "-dq" not in scheme.name
)


@pytest.mark.parametrize("scheme", LOCAL, ids=lambda scheme: scheme.name)
def test_rows_and_blocks_do_not_touch_each_other(scheme: Scheme) -> None:
    """Large matrices are worked off in bands; a band alone gives the same."""
    height = scheme.granularity.rows if isinstance(scheme.granularity, PerBlock) else 1
    first, last = 7 * height, 9 * height
    weight = matrix(10 * height, 40000 // height)
    assert same_bits(scheme.quantize(weight)[first:last], scheme.quantize(weight[first:last].clone()))


def test_candidates_are_many_and_listed() -> None:
    names = [scheme.name for scheme in all_schemes()]
    assert len(names) == len(set(names))
    assert {scheme.name for scheme in standard_schemes()} <= set(names)
    assert {scheme.family for scheme in all_schemes()} >= {
        "cast", "integer", "floating", "microscaling", "codebook",
    }  # fmt: skip
