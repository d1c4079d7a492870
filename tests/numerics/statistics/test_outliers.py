"""Outlier tokens against plain numpy, tied values, memory orders, and merging in every order."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.numerics.statistics.same import same
from workbench.numerics.statistics.observe import observe_channels, observe_tokens, peaks_by_torch
from workbench.numerics.statistics.outliers import LARGEST, TokenOutliers, edges, merged


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def by_hand(tensor: torch.Tensor, axis: int) -> tuple[list[int], list[int], list[float], np.ndarray]:
    """Return places, channels and values of the largest tokens and every token's magnitude, by sorting all."""
    rows = np.moveaxis(tensor.float().numpy(), axis, -1)
    rows = rows.reshape(-1, rows.shape[-1])
    magnitudes = np.abs(rows).max(axis=1)
    order = sorted(range(len(rows)), key=lambda n: (-magnitudes[n], n))[:LARGEST]
    order = [n for n in order if magnitudes[n] > 0]
    channels = [int(np.abs(rows[n]).argmax()) for n in order]
    return order, channels, [float(rows[n, c]) for n, c in zip(order, channels, strict=True)], magnitudes


SHAPES = [((4, 33, 20), -1), ((2048, 64), 1), ((7, 600), 1), ((3, 2, 1300), -1), ((9, 6, 20, 30), 1),
          ((40, 3, 4, 5), 1), ((2, 70, 6, 7), 1), ((64, 16, 64, 64), 1), ((1, 5), 1), ((3, 700, 5), 1),
          ((5000, 172), -1), ((300, 9000), 1)]  # fmt: skip


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_the_largest_tokens_are_what_sorting_all_says(shape: tuple[int, ...], axis: int, tied: bool) -> None:
    tensor = draw(*shape)
    if tied:
        tensor = tensor.round().clamp(-2, 2)
    observed, _, peaks = observe_tokens(tensor, axis)
    places, channels, values, magnitudes = by_hand(tensor, axis)
    assert same(observed, observe_channels(tensor, axis)[0])
    assert peaks is not None
    assert peaks.where.tolist() == places and peaks.channel.tolist() == channels and peaks.value.tolist() == values
    last = axis % len(shape) == len(shape) - 1
    expected = np.histogram(magnitudes, np.append(edges()[:-1], np.finfo(np.float64).max))[0]
    assert np.array_equal(peaks.counts, expected if last else np.zeros_like(expected))


def test_other_devices_and_memory_orders_find_the_same() -> None:
    tensor = draw(9, 6, 20, 30).round(decimals=1)
    plain = observe_tokens(tensor, 1)[2]
    others = (
        observe_tokens(tensor.to(memory_format=torch.channels_last), 1)[2],
        observe_tokens(tensor.permute(2, 1, 3, 0).contiguous().permute(3, 1, 0, 2), 1)[2], peaks_by_torch(tensor, 1),
    )  # fmt: skip
    for other in others:
        assert plain is not None and other is not None
        for name in ("counts", "where", "channel", "value"):
            assert np.array_equal(getattr(plain, name), getattr(other, name))


def test_the_extremes_of_float32_are_counted_in_the_outer_bins() -> None:
    peaks = observe_tokens(torch.tensor([[0.0, 0.0], [1e-45, 0.0], [-3e38, 1.0], [1.0, 0.5]]), 1)[2]
    assert peaks is not None and (peaks.counts[0], peaks.counts[-1], peaks.counts.sum()) == (2, 1, 4)
    assert peaks.where.tolist() == [2, 3, 1] and peaks.value[0] == np.float32(-3e38)


def test_nothing_is_said_of_a_tensor_with_nan() -> None:
    tensor = draw(5, 4)
    tensor[2, 1] = math.nan
    assert observe_tokens(tensor, 1)[2] is None
    nothing = observe_tokens(torch.zeros(0, 4), 1)[2]
    assert nothing is not None and nothing.where.size == 0 and nothing.counts.sum() == 0


def part(seed: int, tokens: int = 40) -> TokenOutliers:
    rng = np.random.default_rng(seed)
    value = rng.choice([-3.0, 3.0, 2.0, 1.0, -1.0], LARGEST).astype(np.float32)
    order = np.argsort(-np.abs(value), kind="stable")
    numbers = rng.permutation(1000)[: 2 * LARGEST]
    return TokenOutliers(
        counts=rng.integers(0, tokens, 512), value=value[order], channel=rng.integers(0, 9, LARGEST),
        sample=numbers[:LARGEST] + 1000 * seed, position=numbers[LARGEST:], width=np.zeros(LARGEST, np.int64),
        token=rng.integers(0, 99, LARGEST), text=tuple(map(str, range(LARGEST))),
    )  # fmt: skip


def test_parts_merge_to_the_same_in_every_order() -> None:
    parts = [part(seed) for seed in range(4)]
    whole = merged(parts)
    for order in itertools.permutations(parts):
        first, two, three, four = order
        assert same(first.merge(two).merge(three).merge(four), whole)
        assert same(first.merge(two).merge(three.merge(four)), whole)
    assert whole.count == sum(each.count for each in parts)
    magnitudes = sorted((abs(value) for each in parts for value in each.value), reverse=True)
    assert np.abs(whole.value).tolist() == magnitudes[:LARGEST]


def test_quantiles_and_counts_above_a_magnitude() -> None:
    rows = draw(3000, 7) * torch.linspace(0.1, 30, 3000)[:, None]
    magnitudes = rows.abs().amax(dim=1).numpy()
    peaks = observe_tokens(rows, 1)[2]
    assert peaks is not None
    result = TokenOutliers(
        counts=peaks.counts, value=peaks.value, channel=peaks.channel, sample=peaks.where, position=peaks.where,
        width=peaks.where * 0, token=peaks.where,
    )  # fmt: skip
    for share in (0.1, 0.5, 0.99):
        exact = float(np.quantile(magnitudes, share))
        assert exact <= result.quantile(share) <= exact * 1.13
    edge = float(edges()[np.searchsorted(edges(), 40.0)])
    assert result.above(40.0) == int((magnitudes >= edge).sum())
    assert result.above(0.0) == result.count == 3000
    assert result.times_median == pytest.approx(result.largest / result.quantile(0.5))


@pytest.mark.parametrize("name", ["counts", "channel", "sample", "position", "width", "token"])
def test_a_column_of_whole_numbers_holds_no_fractions(name: str) -> None:
    """A damaged session had NaN for the number of a sample."""
    with pytest.raises(ValueError, match=f"{name}: expected whole numbers, got float64"):
        replace(part(0), **{name: np.full(getattr(part(0), name).shape, np.nan)})


def test_columns_of_different_length_are_refused() -> None:
    good = part(0)
    with pytest.raises(ValueError, match="differ in length"):
        TokenOutliers(
            counts=good.counts, value=good.value[1:], channel=good.channel, sample=good.sample,
            position=good.position, width=good.width, token=good.token,
        )  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 16, 24), (4, 48, 16), (64, 128, 64)])
def test_a_transposed_view_gives_what_its_copy_gives(shape: tuple[int, int, int]) -> None:
    """A linear layer behind a transpose (MLP-Mixer, gMLP): channels last, though not in memory."""
    view = torch.randn(*shape, generator=torch.Generator().manual_seed(5)).transpose(1, 2)
    expected, squares, peaks = observe_tokens(view.contiguous(), -1)
    observed, view_squares, view_peaks = observe_tokens(view, -1)
    assert same(observed, expected) and np.array_equal(view_squares, squares)
    assert peaks is not None and view_peaks is not None
    for name in ("counts", "where", "channel", "value"):
        assert np.array_equal(getattr(view_peaks, name), getattr(peaks, name)), name
    assert view_peaks.counts.sum() == view.shape[0] * view.shape[1]
