"""Weight SQNR."""

from __future__ import annotations

import math

import pytest
import torch

from workbench.numerics.weight_error import weight_sqnr


def test_sqnr_is_the_written_out_ratio() -> None:
    weight = torch.randn(900, 700, generator=torch.Generator().manual_seed(0))
    noisy = weight + 0.01
    expected = 10 * math.log10(float(weight.double().square().sum()) / (0.01**2 * weight.numel()))
    assert weight_sqnr(weight, noisy) == pytest.approx(expected, abs=1e-3)
    assert weight_sqnr(weight, weight) == math.inf
    assert weight_sqnr(torch.zeros(2, 2), torch.ones(2, 2)) == -math.inf
    with pytest.raises(ValueError, match="equal shapes"):
        weight_sqnr(torch.zeros(2, 2), torch.zeros(2, 3))
