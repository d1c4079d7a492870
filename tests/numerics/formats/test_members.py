"""Every combination that the families promise exists by name, rounds, and takes the bits that it says."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from workbench.errors import SchemeError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.scheme import Scheme

SHARING = ("tensor", "channel", "g16", "g32", "g64", "g128", "g256", "g48", "b16x16", "b128x128")
SCALES = ("-sfp16", "-sbf16", "-sfp32")
SHIFTS = ("", "-asym", "-asym-zfp16", "-asym-zbf16", "-asym-zfp32")
FLOATS = ("fp8-e4m3", "fp8-e5m2", "fp8-e4m3fnuz", "fp8-e5m2fnuz", "fp6-e2m3", "fp6-e3m2", "fp4-e2m1")
NAMED = (
    "fp32", "fp16", "bf16", "mxfp8-e4m3", "mxfp8-e5m2", "mxfp6-e2m3", "mxfp6-e3m2", "mxfp4", "mxint8", "nvfp4",
    "nf4-b64", "nf4-b64-dq", "fp4-bnb-b64", "iq4_nl", "kmeans2-channel", "kmeans3-channel", "kmeans4-channel",
    "kmeans2-g64", "kmeans3-g64", "kmeans4-g64", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k",
    "q5_k", "q6_k", "mxfp4-gguf", "tq1_0", "tq2_0",
)  # fmt: skip

WEIGHT = torch.randn(20, 288, generator=torch.Generator().manual_seed(0))


def checked(name: str) -> tuple[Scheme, torch.Tensor]:
    """Return the scheme and its errors on normal weights, having compared bytes and values."""
    scheme = parse_scheme(name)
    parameters = scheme.fit(WEIGHT)
    rounded = scheme.round(WEIGHT, parameters)
    stored = scheme.encode(WEIGHT, parameters)
    assert torch.equal(scheme.decode(stored), rounded), name
    assert scheme.bits((20, 288)) == 8 * stored.nbytes, name
    assert stored.scheme == scheme.name
    return scheme, rounded - WEIGHT


def share(error: torch.Tensor) -> float:
    """Return the squared error as a share of the squared weights."""
    return float(error.square().sum() / WEIGHT.square().sum())


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_integers_of_every_width_sharing_scale_and_zero_point(bits: int) -> None:
    """No error exceeds one step of a grid over the whole range: half a step, and one more where an end saturates."""
    step = 2 * float(WEIGHT.abs().max()) / (2**bits - 2)
    for sharing, shift, scale in product(SHARING, SHIFTS, SCALES):
        _, error = checked(f"int{bits}-{sharing}{shift}{scale}")
        assert float(error.abs().max()) < step, (sharing, shift, scale)


@pytest.mark.parametrize("element", FLOATS)
def test_small_floats_of_every_sharing_and_scale(element: str) -> None:
    bound = {"fp8-e4m3": 0.001, "fp8-e5m2": 0.004, "fp6-e2m3": 0.002, "fp6-e3m2": 0.004, "fp4-e2m1": 0.05}
    for sharing, scale in product(SHARING, SCALES):
        _, error = checked(f"{element}-{sharing}{scale}")
        assert share(error) < bound[element.removesuffix("fnuz")], (sharing, scale)


@pytest.mark.parametrize("name", NAMED)
def test_formats_with_a_name_of_their_own(name: str) -> None:
    scheme, error = checked(name)
    assert scheme.name == name
    bits = scheme.bits((4096, 4096)) // 4096**2
    assert share(error) < (1.0 if "tq" in name else 8 * 4.0 ** -min(bits, 4))


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("q4_kk", "q4_k"), ("nf5-b64", "nf4-b64"), ("mxfp5", "mxfp4"), ("int7g32", "int"), ("fp8-e4m4", "fp8-e4m3")],
)
def test_a_name_that_does_not_exist_is_answered_with_the_nearest(wrong: str, nearest: str) -> None:
    with pytest.raises(SchemeError, match=f"closest.*{nearest}"):
        parse_scheme(wrong)
