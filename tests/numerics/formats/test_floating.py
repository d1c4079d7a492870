"""Small floats against ml_dtypes, on every code and on every value between."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from workbench.numerics.formats.floating import FP8_E4M3, FP8_E5M2, FloatElement

FP6_E3M2 = FloatElement("fp6-e3m2", exponent_bits=3, mantissa_bits=2, bias=3, specials=0)
FP6_E2M3 = FloatElement("fp6-e2m3", exponent_bits=2, mantissa_bits=3, bias=1, specials=0)
FP4_E2M1 = FloatElement("fp4-e2m1", exponent_bits=2, mantissa_bits=1, bias=1, specials=0)

PAIRS = [
    (FP8_E4M3, ml_dtypes.float8_e4m3fn),
    (FP8_E5M2, ml_dtypes.float8_e5m2),
    (FP6_E3M2, ml_dtypes.float6_e3m2fn),
    (FP6_E2M3, ml_dtypes.float6_e2m3fn),
    (FP4_E2M1, ml_dtypes.float4_e2m1fn),
]
against = pytest.mark.parametrize(("element", "reference"), PAIRS, ids=lambda item: getattr(item, "name", ""))


@against
def test_every_code_has_the_reference_value(element: FloatElement, reference: type) -> None:
    codes = np.arange(2**element.bits, dtype=np.uint8)
    theirs = codes.view(reference).astype(np.float32)
    finite = np.isfinite(theirs)
    ours = element.table()
    assert np.array_equal(np.isfinite(ours), finite)
    assert np.array_equal(ours[finite], theirs[finite])
    assert element.highest == theirs[finite].max() == float(ml_dtypes.finfo(reference).max)
    decoded = element.decode(torch.from_numpy(codes), None).numpy()
    assert np.array_equal(decoded[finite], theirs[finite])


@against
def test_every_value_comes_back_as_its_code(element: FloatElement, reference: type) -> None:
    values = torch.from_numpy(element.values())
    snapped = element.snap_(values.clone(), None)
    assert torch.equal(snapped, values)
    codes = element.codes(snapped, None).numpy()
    assert np.array_equal(codes, values.numpy().astype(reference).view(np.uint8))


@against
def test_rounding_is_the_reference_cast(element: FloatElement, reference: type) -> None:
    """On ties, one float32 step beside them, subnormals, and random values: nearest even, saturating."""
    values = element.values()
    ties = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    random = np.random.default_rng(0).normal(0, element.highest / 3, 20000).astype(np.float32)
    small = np.random.default_rng(1).normal(0, element.smallest_normal, 20000).astype(np.float32)
    probes = np.concatenate(
        [ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf)), random, small]
    )
    probes = np.clip(probes, element.lowest, element.highest)
    snapped = element.snap_(torch.from_numpy(probes.copy()), None)
    assert np.array_equal(snapped.numpy(), probes.astype(reference).astype(np.float32))
    codes = element.codes(snapped, None)
    assert torch.equal(element.decode(codes, None), snapped)


@against
def test_beyond_the_range_it_saturates(element: FloatElement, reference: type) -> None:
    snapped = element.snap_(torch.tensor([1e9, -1e9, torch.inf, -torch.inf]), None)
    assert snapped.tolist() == [element.highest, element.lowest, element.highest, element.lowest]


def test_zeros_are_positive() -> None:
    snapped = FP8_E4M3.snap_(torch.tensor([-0.0, -1e-9, 1e-9]), None)
    assert not bool(snapped.signbit().any())
