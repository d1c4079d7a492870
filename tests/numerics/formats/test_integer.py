"""Integers: tables, ties, code ranges."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.numerics.formats import parse_scheme
from workbench.numerics.formats.integer import ELEMENTS, IntegerElement


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_every_code_is_its_value_and_comes_back(element: IntegerElement) -> None:
    values = np.arange(-(2 ** (element.bits - 1)), 2 ** (element.bits - 1), dtype=np.float32)
    assert np.array_equal(element.table(), values)
    assert np.array_equal(element.values(), values)
    codes = torch.arange(2**element.bits, dtype=torch.uint8)
    decoded = element.decode(codes, None)
    assert np.array_equal(decoded.numpy(), values)
    assert torch.equal(element.codes(decoded, None), codes)
    shift = torch.tensor(1.0)
    assert torch.equal(element.codes(element.decode(codes, shift), shift), codes)


def test_ties_go_to_even_and_zeros_are_positive() -> None:
    snapped = IntegerElement(4).snap_(torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -0.2, 9.0, -9.0]), None)
    assert snapped.tolist() == [0, 2, 2, 0, -2, 0, 7, -8]
    assert not bool(snapped[snapped == 0].signbit().any())


def test_asymmetric_values_start_at_zero() -> None:
    assert parse_scheme("int3-g32-asym").values().tolist() == list(range(8))
    assert parse_scheme("int3-g32").values().tolist() == list(range(-4, 4))


def test_an_asymmetric_range_touches_both_ends() -> None:
    weight = torch.tensor([[-1.0, 0.0, 14.0]])
    assert parse_scheme("int4-channel-asym").quantize(weight).tolist() == weight.tolist()
