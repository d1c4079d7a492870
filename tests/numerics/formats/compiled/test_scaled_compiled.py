"""The compiled kernels against the readable version: the same parameters, values and bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from workbench.errors import NonFiniteError
from workbench.numerics.formats import parse_scheme, scaled
from workbench.numerics.quantized_tensor import QuantizedTensor
from workbench.numerics.scheme import Parameters

NAMES = (
    *(f"int{bits}-g32" for bits in range(2, 9)),
    *(f"int{bits}-g64-asym" for bits in range(2, 9)),
    "int4-g7-asym",
    "int4-g100-asym-zfp16",
    "int3-channel-asym-zbf16",
    "int4-channel",
    "int8-channel-asym",
    "int4-tensor",
    "int5-tensor-asym-zfp32",
    "int4-b48x20",
    "int3-b5x300-asym",
    "mxfp4",
    "nvfp4",
    "fp8-e4m3-b16x16",
    "mxfp8-e5m2",
    "mxint8",
    "fp6-e3m2-g32",
    "fp8-e4m3fnuz-tensor",
    "fp4-e2m1-channel",
    "fp8-e4m3-channel",
    "fp8-e5m2-g32",
    "fp8-e5m2fnuz-g33-sbf16",
    "fp6-e2m3-channel-sfp16",
    "mxfp6-e2m3",
    "nf4-b64",
    "nf4-b64-dq",
    "fp4-bnb-b7",
    "kmeans3-channel",
    "kmeans2-g100",
    "kmeans4-tensor-sfp32",
)

Answers = tuple[Parameters, torch.Tensor, QuantizedTensor, torch.Tensor]


def answers(name: str, weight: torch.Tensor) -> Answers:
    scheme = parse_scheme(name)
    parameters = scheme.fit(weight)
    stored = scheme.encode(weight, parameters)
    return parameters, scheme.round(weight, parameters), stored, scheme.decode(stored)


def matrices() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(61, 333, generator=generator)
    ties = torch.randint(-32, 33, (61, 333), generator=generator) / 4
    spread = weight * 10.0 ** torch.linspace(-44, 37, 61).unsqueeze(1)
    rough = weight.clone()
    rough[3], rough[4], rough[5, ::2] = 0.0, -0.0, -0.0
    rough[6], rough[7] = 3.25, -3.25
    return {
        "normal": weight,
        "bfloat16": weight.to(torch.bfloat16),
        "float16": weight.half(),
        "float64": weight.double(),
        "transposed": torch.randn(333, 61, generator=generator).T,
        "ties": ties,
        "magnitudes": spread.clamp(-3e38, 3e38),
        "zeros": rough,
    }


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    return matrices()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", list(matrices()))
def test_they_give_the_same_bytes(
    name: str, kind: str, weights: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = []
    for threshold in (0, 1 << 60):
        monkeypatch.setattr(scaled, "COMPILED_FROM", threshold)
        result.append(answers(name, weights[kind]))
    fast, plain = result
    for member in ("scale", "zero_point", "offset", "shared", "codebook"):
        a, b = getattr(fast[0], member, None), getattr(plain[0], member, None)
        assert (a is None) == (b is None)
        assert a is None or a.numpy().tobytes() == b.numpy().tobytes(), member
    for index in (1, 3):
        a, b = fast[index], plain[index]
        assert isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        assert a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes()
    assert fast[2].arrays.keys() == plain[2].arrays.keys()
    for key, array in fast[2].arrays.items():
        assert array.dtype == plain[2].arrays[key].dtype and array.tobytes() == plain[2].arrays[key].tobytes(), key


@pytest.mark.parametrize(
    "name",
    [
        "int4-g32",
        "int4-channel-asym",
        "int4-g64-asym-zfp16",
        "int8-tensor",
        "nf4-b64",
        "mxfp4",
        "fp8-e4m3-g128",
        "mxint8",
        "kmeans3-g64",
    ],
)
def test_weights_outside_the_fitted_range(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPTQ rounds what it never fitted: far beyond, infinite, or NaN, which round keeps and encode refuses."""
    scheme = parse_scheme(name)
    weight = torch.randn(8, 256, generator=torch.Generator().manual_seed(1))
    parameters = scheme.fit(weight)
    wild = weight * 10.0 ** torch.linspace(0, 38, 8).unsqueeze(1)
    wild[0, 3], wild[1, 5] = math.inf, -math.inf
    results = []
    for threshold in (0, 1 << 60):
        monkeypatch.setattr(scaled, "COMPILED_FROM", threshold)
        bad = wild.clone()
        bad[2, 7] = math.nan
        with pytest.raises(NonFiniteError, match="8 x 256"):
            scheme.encode(bad, parameters)
        rounded = scheme.round(bad, parameters)
        assert int(rounded.isnan().sum()) == 1
        results.append((scheme.encode(wild, parameters).arrays["codes"].tobytes(), rounded.nan_to_num(9e9)))
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][1].numpy(), results[1][1].numpy())


def test_non_finite_weights_are_refused_by_the_compiled_extremes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaled, "COMPILED_FROM", 0)
    for bad in (math.nan, -math.nan, math.inf, -math.inf):
        weight = torch.ones(4, 96)
        weight[3, 95] = bad
        with pytest.raises(NonFiniteError, match="1 of 384"):
            parse_scheme("int4-g32").fit(weight)


@pytest.mark.parametrize(
    "name", ["int4-g32", "int4-g32-asym-zfp16", "fp4-e2m1-g32", "fp8-e4m3-channel", "kmeans4-channel"]
)
def test_parameters_of_another_matrix_are_refused_before_compiled_code_reads_beyond_them(name: str) -> None:
    scheme = parse_scheme(name)
    matrix, small = torch.randn(512, 512), torch.randn(64, 512)
    parameters = scheme.fit(small)
    for use in (scheme.round, scheme.encode):
        with pytest.raises(ValueError, match="do not belong to a matrix of 512 x 512"):
            use(matrix, parameters)
    stored = scheme.encode(matrix, scheme.fit(matrix))
    for part, array in stored.arrays.items():
        cut = QuantizedTensor(scheme=name, shape=stored.shape, arrays={**stored.arrays, part: array[: len(array) // 2]})
        with pytest.raises(ValueError, match=f"it has {part} of"):
            scheme.decode(cut)
