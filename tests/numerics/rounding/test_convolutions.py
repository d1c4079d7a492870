"""Bias correction, cross-layer equalization and batch-norm folding, against torch's own layers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from workbench.numerics.equivalences.bias_correction import corrected_bias, corrected_mean
from workbench.numerics.equivalences.equalization import equalizing_scales
from workbench.numerics.equivalences.folding import BatchNorm, folded

SEED = torch.Generator().manual_seed(0)


def test_a_corrected_bias_gives_the_old_mean_output() -> None:
    weight, x = torch.randn(6, 10, generator=SEED), torch.rand(400, 10, generator=SEED) + 1
    rounded, bias = weight.round(), torch.randn(6, generator=SEED)
    fixed = corrected_bias(bias, rounded - weight, x.mean(dim=0))
    assert torch.allclose((x @ rounded.T + fixed).mean(0), (x @ weight.T + bias).mean(0), atol=1e-5)
    assert not torch.allclose((x @ rounded.T + bias).mean(0), (x @ weight.T + bias).mean(0), atol=0.1)
    mean = corrected_mean(torch.zeros(6), rounded - weight, x.mean(dim=0))
    assert torch.allclose(mean, bias - fixed, atol=1e-6)


def test_equalized_layers_compute_the_same_with_equal_ranges() -> None:
    first, bias = torch.randn(8, 5, generator=SEED) * torch.logspace(-3, 3, 8)[:, None], torch.randn(8, generator=SEED)
    second, x = torch.randn(4, 8, generator=SEED), torch.randn(50, 5, generator=SEED)
    scales = equalizing_scales(first, second)
    equalized = first / scales[:, None], bias / scales, second * scales
    before = functional.linear(functional.linear(x, first, bias).relu(), second)
    after = functional.linear(functional.linear(x, *equalized[:2]).relu(), equalized[2])
    assert torch.allclose(before, after, rtol=1e-4, atol=1e-3)
    assert torch.allclose(equalized[0].abs().amax(1), equalized[2].abs().amax(0), rtol=1e-4)


def test_a_folded_convolution_is_the_convolution_and_its_norm() -> None:
    layer, norm = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6).eval()
    assert norm.running_mean is not None and norm.running_var is not None
    norm.running_mean.uniform_(-1, 1, generator=SEED)
    norm.running_var.uniform_(0.2, 3, generator=SEED)
    with torch.no_grad():
        norm.weight.uniform_(-2, 2, generator=SEED)
        norm.bias.uniform_(-1, 1, generator=SEED)
        x = torch.randn(2, 3, 8, 8, generator=SEED)
        facts = BatchNorm(
            mean=norm.running_mean, variance=norm.running_var, gamma=norm.weight, beta=norm.bias, epsilon=norm.eps
        )
        weight, bias = folded(layer.weight, layer.bias, facts)
        assert torch.allclose(functional.conv2d(x, weight, bias), norm(layer(x)), atol=1e-5)
