"""Scheme names: grammar, canonical spelling, defaults, errors."""

from __future__ import annotations

import pickle

import pytest

from workbench.errors import SchemeError
from workbench.numerics.formats import FAMILIES, activation_schemes, parse_scheme, standard_schemes
from workbench.numerics.granularity import PerBlock, PerChannel, PerGroup, PerTensor, PerToken


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("int4", "int4-channel"),
        ("INT4-G64-ASYM", "int4-g64-asym"),
        (" int8-tensor ", "int8-tensor"),
        ("int8-channel-sfp32", "int8-channel"),
        ("int8-channel-sfp16", "int8-channel-sfp16"),
        ("int4-g32-sfp16", "int4-g32"),
        ("int4-g32-asym-sbf16", "int4-g32-asym-sbf16"),
        ("int4-asym", "int4-channel-asym"),
        ("fp8-e4m3", "fp8-e4m3-channel"),
        ("fp8-e4m3-b128x64", "fp8-e4m3-b128x64"),
        ("BF16", "bf16"),
    ],
)
def test_names_become_canonical_and_round_trip(written: str, canonical: str) -> None:
    scheme = parse_scheme(written)
    assert scheme.name == canonical
    assert parse_scheme(canonical) == scheme
    assert hash(parse_scheme(canonical)) == hash(scheme)
    assert pickle.loads(pickle.dumps(scheme)) == scheme


@pytest.mark.parametrize(
    ("name", "granularity"),
    [
        ("int4-tensor", PerTensor()),
        ("int4", PerChannel()),
        ("int4-token", PerToken()),
        ("int4-g7", PerGroup(7)),
        ("int4-b3x5", PerBlock(3, 5)),
    ],
)
def test_granularity_is_read_from_the_name(name: str, granularity: object) -> None:
    assert parse_scheme(name).granularity == granularity


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("int4-g32-asim", "'-asim' in 'int4-g32-asim' is not understood.*the closest are int4-g32-asym"),
        ("itn4-g32", "closest are int4-g32"),
        ("int9", "no number format"),
        ("int4-g0", "a group of 0"),
        ("int4-b0x4", "a block of 0 x 4"),
        ("fp8-e4m3-asym", "takes no zero point"),
        ("int4-asym-g32", "not understood"),
        ("int4-g32-sfp8", "not understood"),
        ("int4-", "not understood"),
        ("", "no number format"),
        ("bf16-g32", "no number format"),
    ],
)
def test_a_wrong_name_is_told_with_its_nearest(name: str, message: str) -> None:
    with pytest.raises(SchemeError, match=message):
        parse_scheme(name)


def test_every_example_parses_to_itself_within_its_family() -> None:
    for family in FAMILIES:
        for example in family.examples:
            scheme = parse_scheme(example)
            assert scheme.name == example
            assert scheme.family == family.name


def test_standard_schemes_rise_in_bits_from_two_to_sixteen() -> None:
    bits = [scheme.bits((4096, 4096)) / 4096**2 for scheme in standard_schemes()]
    assert bits == sorted(bits)
    assert bits[0] < 2.6
    assert bits[-1] == 16
    gaps = [b / a for a, b in zip(bits[:-2], bits[1:-2], strict=False)]
    assert max(gaps) < 1.35
    assert len(activation_schemes()) == 6
    assert all(isinstance(s.granularity, PerToken | PerTensor) for s in activation_schemes())


@pytest.mark.parametrize(
    ("name", "shape", "per_weight"),
    [
        ("int4-g64-asym", (128, 64), 4.3125),
        ("int4-g64-asym", (6, 192), 4.3125),
        ("int4-g32-asym", (4, 128), 4.625),
        ("int4-g32", (4, 128), 4.5),
        ("int8-g32", (4, 128), 8.5),
        ("int8-channel", (16, 64), 8.5),
        ("fp8-e4m3-b128x128", (256, 256), 8 + 32 / 128**2),
        ("fp16", (3, 5), 16),
        ("fp32", (3, 5), 32),
    ],
)
def test_bits_per_weight(name: str, shape: tuple[int, int], per_weight: float) -> None:
    assert parse_scheme(name).bits(shape) == per_weight * shape[0] * shape[1]


def test_a_short_last_group_adds_a_scale_but_no_codes() -> None:
    assert parse_scheme("int4-g32").bits((10, 172)) == 10 * (172 * 4 + 6 * 16)
