"""What AWQ's scaling is for: a few input channels that are ten times as large."""

from __future__ import annotations

import torch

from workbench.numerics.equivalences.scaling import Consumer, awq_scales, choose_scale
from workbench.numerics.formats import parse_scheme


def consumer(weight, inputs, scheme="int4-g32", channels=None):
    moment = inputs.T @ inputs / len(inputs)

    def loss(rounded, factor):
        difference = rounded / factor - weight
        return float(((difference @ moment) * difference).sum())

    return Consumer(
        weight=weight, channels=torch.arange(weight.shape[1]) if channels is None else channels,
        quantize=parse_scheme(scheme).quantize, loss=loss,
    )  # fmt: skip


def sample(outliers=10.0, rows=48, columns=64):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(512, columns, generator=generator)
    inputs[:, [3, 17, 40]] *= outliers
    return torch.randn(rows, columns, generator=generator), inputs


def test_the_output_error_falls_to_less_than_half_with_three_large_channels():
    weight, inputs = sample()
    free = torch.ones(64, dtype=torch.bool)
    choice = choose_scale([consumer(weight, inputs)], awq_scales(inputs.square().mean(0).sqrt(), free))
    scheme = parse_scheme("int4-g32")
    plain = inputs @ (scheme.quantize(weight) - weight).T
    scaled = (inputs / choice.scale) @ scheme.quantize(weight * choice.scale).T - inputs @ weight.T
    assert float(scaled.square().mean()) < 0.5 * float(plain.square().mean())
    assert 0 < choice.alpha <= 1 and choice.after < 0.5 * choice.before
    assert choice.scale[[3, 17, 40]].min() > 1.8 * choice.scale[[0, 1, 2]].max()


def test_it_is_never_worse_than_plain_rounding_on_its_own_measure():
    for outliers in (0.0, 1.0, 3.0):
        weight, inputs = sample(outliers)
        free = torch.ones(64, dtype=torch.bool)
        choice = choose_scale([consumer(weight, inputs)], awq_scales(inputs.square().mean(0).sqrt(), free))
        assert choice.after <= choice.before and bool((choice.scale > 0).all()) and bool(choice.scale.isfinite().all())


def test_channels_that_are_not_free_keep_their_size():
    weight, inputs = sample()
    free = torch.ones(64, dtype=torch.bool)
    free[17] = False
    choice = choose_scale([consumer(weight, inputs)], awq_scales(inputs.square().mean(0).sqrt(), free))
    assert choice.alpha > 0 and choice.scale[17] == 1


def test_columns_follow_their_channel():
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(8, 6, generator=generator)
    received = []
    layer = Consumer(
        weight=weight, channels=torch.tensor([0, 1, 0, 1, -1, 2]), loss=lambda rounded, factor: 0.0,
        quantize=lambda w: received.append(w / weight) or w,
    )  # fmt: skip
    choose_scale([layer], awq_scales(torch.tensor([1.0, 4.0, 2.0]), torch.ones(3, dtype=torch.bool), (0.0, 1.0)))
    expected = torch.tensor([1.0, 4.0, 2.0]) / 2
    torch.testing.assert_close(received[-1][0], torch.cat([expected[[0, 1, 0, 1]], torch.ones(1), expected[2:]]))


def test_the_scale_is_centred_and_unused_channels_count_as_the_smallest():
    scale = awq_scales(torch.tensor([0.0, 4.0, 16.0]), torch.ones(3, dtype=torch.bool), [0.5])[0.5]
    torch.testing.assert_close(scale, torch.tensor([2.0, 2.0, 4.0]) / 8**0.5)
    assert torch.equal(awq_scales(torch.zeros(3), torch.ones(3, dtype=torch.bool), [0.5])[0.5], torch.ones(3))
