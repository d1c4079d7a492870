"""What SmoothQuant is for: 8-bit static activations with channels far larger than the rest."""

from __future__ import annotations

import pytest
import torch

from workbench.numerics.equivalences.smoothquant import Consumer, choose_smoothing, smoothing_scale
from workbench.numerics.formats import parse_scheme


def consumer(weight, inputs):
    scheme = parse_scheme("int8-tensor")

    def quantize_inputs(rows, factor):
        whole = inputs / factor
        return scheme.round(rows, scheme.fit_range(float(whole.min()), float(whole.max())))

    return Consumer(
        weight=weight, inputs=inputs[:128], channels=torch.arange(weight.shape[1]), importance=torch.ones(len(weight)),
        quantize=parse_scheme("int8-channel").quantize, quantize_inputs=quantize_inputs,
    )  # fmt: skip


def sample(outliers):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(512, 64, generator=generator)
    inputs[:, [5, 50]] *= outliers
    return torch.randn(32, 64, generator=generator), inputs


def test_static_w8a8_with_outliers_is_ten_times_as_exact():
    weight, inputs = sample(80.0)
    choice = choose_smoothing([consumer(weight, inputs)], inputs.abs().amax(0), torch.ones(64, dtype=torch.bool))
    assert choice.alpha is not None and choice.after < choice.before / 10
    smooth, rough = (inputs / choice.scale).abs().amax(0), inputs.abs().amax(0)
    assert float(smooth.max() / smooth.median()) < 0.2 * float(rough.max() / rough.median())
    exact = inputs @ weight.T
    torch.testing.assert_close((inputs / choice.scale) @ (weight * choice.scale).T, exact, rtol=1e-4, atol=1e-3)


def test_where_nothing_is_gained_everything_stays():
    weight, inputs = torch.ones(4, 8), torch.ones(16, 8)
    choice = choose_smoothing([consumer(weight, inputs)], inputs.abs().amax(0), torch.ones(8, dtype=torch.bool))
    assert choice.alpha is None and torch.equal(choice.scale, torch.ones(8)) and choice.after == choice.before


def test_the_papers_scale():
    free = torch.tensor([True, True, False, True])
    scale = smoothing_scale(torch.tensor([16.0, 4.0, 9.0, 0.0]), torch.tensor([4.0, 1.0, 1.0, 2.0]), free, 0.5)
    assert scale.tolist() == pytest.approx([2.0, 2.0, 1.0, 1.0])
    assert smoothing_scale(torch.tensor([8.0]), torch.tensor([2.0]), free[:1], 1.0).item() == pytest.approx(8.0)
