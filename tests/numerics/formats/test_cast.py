"""The plain formats against torch's own casts and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from workbench.numerics.formats import parse_scheme


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)]
)
def test_round_is_the_cast(name: str, dtype: torch.dtype) -> None:
    weight = torch.randn(300, 1000, generator=torch.Generator().manual_seed(0)) * 10
    assert torch.equal(parse_scheme(name).quantize(weight), weight.to(dtype).float())


@pytest.mark.parametrize(("name", "dtype"), [("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_values_are_all_finite_values_of_the_format(name: str, dtype: type) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float32)
    assert np.array_equal(parse_scheme(name).values(), np.unique(every[np.isfinite(every)]))


def test_bfloat16_is_stored_as_bit_patterns() -> None:
    stored = parse_scheme("bf16").encode(torch.tensor([[1.0, -2.0]]), parse_scheme("bf16").fit_range(-2, 1))
    assert stored.arrays["codes"].dtype == np.uint16
    assert stored.arrays["codes"].tolist() == [[0x3F80, 0xC000]]


def test_too_large_for_float16_saturates() -> None:
    assert parse_scheme("fp16").quantize(torch.tensor([[1e6, -1e6]])).tolist() == [[65504.0, -65504.0]]


def test_a_range_means_nothing_without_a_scale() -> None:
    assert parse_scheme("fp16").grid(-1, 1).size == 0
    assert parse_scheme("fp32").values().size == 0
