"""What SmoothQuant is for: 8-bit static activations with channels far larger than the rest."""

from __future__ import annotations

import pytest
import torch

from workbench.numerics.equivalences.scaling import Consumer, choose_scale, smoothing_scales
from workbench.numerics.formats import parse_scheme


def consumer(weight, inputs):
    scheme, rows = parse_scheme("int8-tensor"), inputs[:128]

    def output_error(rounded, factor):
        whole = inputs / factor
        quantized = scheme.round(rows / factor, scheme.fit_range(float(whole.min()), float(whole.max())))
        return float((quantized @ rounded.T - rows @ weight.T).square().mean(0).double().sum())

    return Consumer(
        weight=weight, channels=torch.arange(weight.shape[1]), quantize=parse_scheme("int8-channel").quantize,
        loss=output_error,
    )  # fmt: skip


def chosen(weight, inputs):
    free = torch.ones(weight.shape[1], dtype=torch.bool)
    scales = smoothing_scales(inputs.abs().amax(0), weight.abs().amax(0), free)
    return choose_scale([consumer(weight, inputs)], scales)


def sample(outliers):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(512, 64, generator=generator)
    inputs[:, [5, 50]] *= outliers
    return torch.randn(32, 64, generator=generator), inputs


def test_static_w8a8_with_outliers_is_ten_times_as_exact():
    weight, inputs = sample(80.0)
    choice = chosen(weight, inputs)
    assert choice.alpha is not None and choice.after < choice.before / 10
    smooth, rough = (inputs / choice.scale).abs().amax(0), inputs.abs().amax(0)
    assert float(smooth.max() / smooth.median()) < 0.2 * float(rough.max() / rough.median())
    exact = inputs @ weight.T
    torch.testing.assert_close((inputs / choice.scale) @ (weight * choice.scale).T, exact, rtol=1e-4, atol=1e-3)


def test_where_nothing_is_gained_everything_stays():
    weight, inputs = torch.ones(4, 8), torch.ones(16, 8)
    choice = chosen(weight, inputs)
    assert choice.alpha is None and torch.equal(choice.scale, torch.ones(8)) and choice.after == choice.before


def test_the_papers_scale():
    free = torch.tensor([True, True, False, True])
    inputs, weights = torch.tensor([16.0, 4.0, 9.0, 0.0]), torch.tensor([4.0, 1.0, 1.0, 2.0])
    assert smoothing_scales(inputs, weights, free, [0.5])[0.5].tolist() == pytest.approx([2.0, 2.0, 1.0, 1.0])
    scale = smoothing_scales(torch.tensor([8.0]), torch.tensor([2.0]), free[:1], [1.0])[1.0]
    assert scale.item() == pytest.approx(8.0)
