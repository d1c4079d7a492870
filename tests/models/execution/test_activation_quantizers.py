"""Keys and values in the cache, against the arithmetic written out."""

from __future__ import annotations

import pytest
import torch

from tests.models.networks import decoder
from workbench.models.execution.activation_quantizers import cache_quantizer


def asymmetric(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Values on ``2 ** bits`` levels from the least to the greatest of each column, 0 among them."""
    low, high = values.amin(dim=0).clamp_max(0), values.amax(dim=0).clamp_min(0)
    scale = (high - low) / (2**bits - 1)
    zero = (-low / scale).round()
    return ((values / scale + zero).round().clamp(0, 2**bits - 1) - zero) * scale


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("tokens", [64, 20, 50])
def test_keys_have_a_scale_for_each_channel_and_group_of_tokens_and_values_for_each_token(
    bits: int, tokens: int
) -> None:
    layer = decoder(0).summary.by_name["value"]
    x = torch.randn(3, tokens, 8, generator=torch.Generator().manual_seed(0))
    keys, values = (cache_quantizer(layer, f"int{bits}-{kind}-asym") for kind in ("b32x1", "token"))
    expected = torch.stack([torch.cat([asymmetric(part, bits) for part in each.split(32)]) for each in x])
    torch.testing.assert_close(keys(x), expected)
    torch.testing.assert_close(values(x), torch.stack([asymmetric(each.T, bits).T for each in x]))


def kivi(values: torch.Tensor, bits: int) -> torch.Tensor:
    """KIVI's levels from the least to the greatest of each column, with the least as it is."""
    low, high = values.amin(dim=0), values.amax(dim=0)
    scale = (high - low) / (2**bits - 1)
    return ((values - low) / scale).round() * scale + low


@pytest.mark.parametrize("bits", [2, 4])
def test_floating_zero_points_are_those_of_kivi(bits: int) -> None:
    layer = decoder(0).summary.by_name["value"]
    x = torch.randn(2, 70, 8, generator=torch.Generator().manual_seed(0)) + torch.arange(8)
    keys, values = (cache_quantizer(layer, f"int{bits}-{kind}-asym-zfp32-sfp32") for kind in ("b32x1", "g4"))
    expected = torch.stack([torch.cat([kivi(part, bits) for part in each.split(32)]) for each in x])
    torch.testing.assert_close(keys(x), expected)
    torch.testing.assert_close(values(x), kivi(x.reshape(-1, 4).T, bits).T.reshape(x.shape))
    integers = cache_quantizer(layer, f"int{bits}-b32x1-asym")(x)
    assert (keys(x) - x).square().sum() < 0.7 * (integers - x).square().sum()


def test_what_a_sample_is_rounded_to_does_not_depend_on_the_others() -> None:
    quantizer = cache_quantizer(decoder(0).summary.by_name["value"], "int4-b32x1-asym")
    x = torch.randn(4, 20, 8, generator=torch.Generator().manual_seed(1))
    assert torch.equal(quantizer(x), torch.cat([quantizer(each[None]) for each in x]))
