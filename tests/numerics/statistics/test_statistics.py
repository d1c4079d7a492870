"""Statistics against numpy, merging in every order, and degenerate tensors."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.numerics.statistics.same import same
from workbench.numerics.statistics import walk
from workbench.numerics.statistics.layer_statistics import BINS, LOWEST_EXPONENT, LayerStatistics, histogram_exponent
from workbench.numerics.statistics.observe import observe, observe_tokens


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((4, 33, 20), -1), ((4, 20, 7, 9), 1), ((20, 300), 0), ((20,), 0), ((1, 20), 1), ((300, 600), 1), ((300, 600), 0)],
)
def test_everything_is_what_numpy_says(shape: tuple[int, ...], axis: int, dtype: torch.dtype) -> None:
    tensor = (draw(*shape) * 3).to(dtype)
    observed = observe(tensor, axis)
    exact = tensor.to(torch.float32).numpy().astype(np.float64)
    rows = np.moveaxis(exact, axis, 0).reshape(exact.shape[axis], -1)
    assert observed.count == exact.size
    assert observed.non_finite == 0
    assert (observed.minimum, observed.maximum) == (exact.min(), exact.max())
    assert observed.mean == pytest.approx(exact.mean(), abs=1e-6)
    assert observed.variance == pytest.approx(exact.var(), rel=1e-6)
    assert observed.absmax == np.abs(exact).max()
    assert np.array_equal(observed.channel_minimum, rows.min(1).astype(np.float32))
    assert np.array_equal(observed.channel_maximum, rows.max(1).astype(np.float32))
    assert np.array_equal(observed.channel_absmax, np.abs(rows).max(1).astype(np.float32))
    assert 2.0**observed.exponent > observed.absmax >= 2.0 ** (observed.exponent - 1)
    assert np.array_equal(observed.counts, np.histogram(exact, observed.edges)[0])


@pytest.mark.parametrize("scale", [1e-37, 1e-20, 1.0, 1e4, 1e30, 1e37])
def test_bins_are_exact_at_every_magnitude(scale: float) -> None:
    tensor = torch.cat([draw(500) * scale, torch.tensor([-1e-45, 1e-45, -0.0, 0.0, -1e-38])])
    observed = observe(tensor.reshape(1, -1), 1)
    assert np.array_equal(observed.counts, np.histogram(tensor.numpy().astype(np.float64), observed.edges)[0])
    assert math.isfinite(observed.total_squares)
    assert observed.total_squares == pytest.approx((tensor.double() ** 2).sum().item(), rel=1e-5)


def test_values_on_edges_fall_into_the_upper_bin() -> None:
    tensor = torch.tensor([[-1.0, 1.0, 0.0, 0.5, -0.5, 1 / 512, -1 / 512]])
    observed = observe(tensor, 1)
    assert observed.exponent == 1
    assert np.array_equal(observed.counts, np.histogram(tensor.numpy().astype(np.float64), observed.edges)[0])


def test_merging_in_any_order_gives_the_very_histogram_of_the_whole() -> None:
    tensor = draw(4, 50, 8) * torch.tensor([1e-3, 1.0, 40.0, 1e3]).reshape(4, 1, 1)
    parts = [observe(part, -1) for part in tensor]
    whole = observe(tensor, -1)
    for order in itertools.permutations(parts):
        merged = LayerStatistics.empty(8)
        for part in order:
            merged = merged.merge(part)
        assert merged.exponent == whole.exponent
        assert np.array_equal(merged.counts, whole.counts)
        assert merged.count == whole.count
        assert (merged.minimum, merged.maximum) == (whole.minimum, whole.maximum)
        for name in ("channel_minimum", "channel_maximum", "channel_absmax"):
            assert np.array_equal(getattr(merged, name), getattr(whole, name))
        assert merged.total == pytest.approx(whole.total, rel=1e-6)
        assert merged.total_squares == pytest.approx(whole.total_squares, rel=1e-6)


def test_growing_over_the_whole_span_of_exponents_keeps_signs() -> None:
    tiny, huge = observe(torch.tensor([[-1e-35, 1e-35, 0.0]]), 1), observe(torch.full((1, 3), 3e38), 1)
    merged = tiny.merge(huge)
    assert merged.exponent == 128
    assert merged.counts[BINS // 2 - 1] == 1
    assert merged.counts[BINS // 2] == 2
    assert merged.counts.sum() == 6


def test_empty_is_neutral() -> None:
    observed = observe(draw(5, 3), 1)
    nothing = observe(torch.zeros(0, 3), 1)
    assert same(nothing, LayerStatistics.empty(3))
    assert same(observed.merge(nothing), observed)
    assert same(nothing.merge(observed), observed)
    assert (nothing.mean, nothing.variance, nothing.absmax) == (0, 0, 0)
    assert nothing.trimmed()[1].size == 0
    assert nothing.display(10)[1].size == 0


def test_zeros_are_seen_as_zeros() -> None:
    observed = observe(torch.zeros(2, 3), 1)
    assert (observed.count, observed.minimum, observed.maximum, observed.variance) == (6, 0, 0, 0)
    assert observed.exponent == LOWEST_EXPONENT
    assert observed.counts[BINS // 2] == 6


def test_non_finite_values_are_counted_and_left_out() -> None:
    tensor = draw(6, 4)
    tensor[0, 0], tensor[1, 1], tensor[2, 1] = math.nan, math.inf, -math.inf
    tensor[:, 3] = math.nan
    observed = observe(tensor, 1)
    finite = tensor[tensor.isfinite()].numpy().astype(np.float64)
    assert (observed.count, observed.non_finite) == (15, 9)
    assert (observed.minimum, observed.maximum) == (finite.min(), finite.max())
    assert np.array_equal(observed.counts, np.histogram(finite, observed.edges)[0])
    assert observed.mean == pytest.approx(finite.mean())
    assert observed.channel_absmax[3] == 0
    assert observed.channel_minimum[3] == np.inf
    assert observed.channel_maximum[3] == -np.inf
    nothing = observe(torch.full((2, 2), math.nan), 1)
    assert (nothing.count, nothing.non_finite, nothing.absmax) == (0, 4, 0)


@pytest.mark.parametrize("shape", [(9, 6, 20, 30), (40, 3, 4, 5), (2, 70, 6, 7), (3, 4, 5, 6)])
def test_memory_order_does_not_matter(shape: tuple[int, ...]) -> None:
    """Channels last, as images are often stored; and what is no whole block of memory."""
    tensor = draw(*shape)
    plain = observe(tensor, 1)
    for other in (tensor.to(memory_format=torch.channels_last), torch.cat([tensor, tensor], dim=3)[..., : shape[3]]):
        observed = observe(other, 1)
        assert np.array_equal(observed.counts, plain.counts)
        for name in ("channel_minimum", "channel_maximum", "channel_absmax"):
            assert np.array_equal(getattr(observed, name), getattr(plain, name))
        assert (observed.minimum, observed.maximum, observed.count) == (plain.minimum, plain.maximum, plain.count)
        assert observed.total == pytest.approx(plain.total, abs=1e-3)
        assert observed.total_squares == pytest.approx(plain.total_squares, rel=1e-6)


@pytest.mark.parametrize(("shape", "axis"), [((1, 3, 600, 900), 1), ((700, 2000), 0), ((3000, 70), 1), ((5, 40000), 1)])
def test_pieces_on_several_threads_are_what_numpy_says(shape: tuple[int, ...], axis: int) -> None:
    tensor = draw(*shape) * 3
    observed = observe(tensor, axis)
    exact = tensor.numpy().astype(np.float64)
    rows = np.moveaxis(exact, axis, 0).reshape(shape[axis], -1)
    assert np.array_equal(observed.counts, np.histogram(exact, observed.edges)[0])
    assert np.array_equal(observed.channel_minimum, rows.min(1).astype(np.float32))
    assert np.array_equal(observed.channel_maximum, rows.max(1).astype(np.float32))
    assert observed.total == pytest.approx(exact.sum(), abs=0.1)
    assert observed.total_squares == pytest.approx((exact**2).sum(), rel=1e-6)
    assert same(observe(tensor, axis), observed)


@pytest.mark.parametrize(("shape", "axis"), [((128, 16, 32, 32), 1), ((3000, 172), 1), ((700, 2000), 0)])
def test_the_number_of_threads_changes_no_bit(shape: tuple[int, ...], axis: int) -> None:
    """Pieces of very different magnitude, so that what a thread saw before would show in a sum."""
    tensor = draw(*shape) * torch.logspace(-37, 30, shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = observe_tokens(tensor, axis)
        torch.set_num_threads(2)
        for _ in range(10):
            observed, squares, peaks = observe_tokens(tensor, axis)
            assert same(observed, alone[0]) and np.array_equal(squares, alone[1])
            assert peaks is not None and alone[2] is not None and np.array_equal(peaks.where, alone[2].where)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("rest", [0.0, 1e-30, -1e-45])
def test_few_large_values_among_nearly_nothing(rest: float) -> None:
    tensor = torch.full((300, 700), rest)
    tensor[17, 5], tensor[250, 699] = -3e20, 2.0
    observed = observe(tensor, 1)
    exact = tensor.numpy().astype(np.float64)
    assert np.array_equal(observed.counts, np.histogram(exact, observed.edges)[0])
    assert (observed.minimum, observed.channel_maximum[699], observed.non_finite) == (np.float32(-3e20), 2.0, 0)
    assert observed.total == pytest.approx(exact.sum()) and observed.total_squares == pytest.approx((exact**2).sum())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1500, 4199])
def test_one_bad_value_anywhere_is_counted(bad: float, place: int) -> None:
    tensor = draw(60, 70)
    tensor.view(-1)[place] = bad
    observed = observe(tensor, 1)
    finite = tensor[tensor.isfinite()].numpy().astype(np.float64)
    assert (observed.count, observed.non_finite) == (4199, 1)
    assert np.array_equal(observed.counts, np.histogram(finite, observed.edges)[0])


@pytest.mark.parametrize("bad", [None, math.nan])
@pytest.mark.parametrize("shape", [(400, 50), (64, 3, 50)])
def test_the_variance_of_values_far_from_zero_does_not_cancel(shape: tuple[int, ...], bad: float | None) -> None:
    """Mean 10, standard deviation 1e-3; with a NaN torch's operations do the work."""
    tensor = 10 + 1e-3 * draw(*shape)
    exact = float(tensor.double().var(unbiased=False))
    if bad is not None:
        tensor.view(-1)[7] = bad
    assert observe(tensor, -1).variance == pytest.approx(exact, rel=0.01)
    halves = [observe(part, -1) for part in tensor.chunk(2)]
    assert halves[0].merge(halves[1]).variance == pytest.approx(exact, rel=0.01)


def test_channels_must_agree() -> None:
    with pytest.raises(ValueError, match="3 and of 4 channels"):
        LayerStatistics.empty(3).merge(LayerStatistics.empty(4))


def test_drawing_keeps_every_value() -> None:
    observed = observe(draw(100, 10), 1)
    edges, counts = observed.trimmed()
    assert counts[0] > 0
    assert counts[-1] > 0
    assert edges.size == counts.size + 1
    assert edges[0] <= observed.minimum
    assert edges[-1] > observed.maximum
    for bins in (1, 7, 64, 5000):
        shown_edges, shown = observed.display(bins)
        assert shown.size <= bins
        assert shown.sum() == observed.count
        assert shown_edges.size == shown.size + 1
        assert shown_edges[0] == edges[0]
        assert np.array_equal(shown, np.histogram(np.repeat((edges[1:] + edges[:-1]) / 2, counts), shown_edges)[0])


def test_the_exponent_is_the_least_power_of_two_above() -> None:
    assert [histogram_exponent(v) for v in (0.0, 0.5, 0.75, 1.0, 3.0, 4.0)] == [LOWEST_EXPONENT, 0, 0, 1, 2, 3]


def test_counts_must_match() -> None:
    empty = LayerStatistics.empty(1)
    with pytest.raises(ValueError, match="count says 3"):
        LayerStatistics(**{**{name: getattr(empty, name) for name in empty.__slots__}, "count": 3})


def test_observing_leaves_the_tensor_and_its_gradient_alone() -> None:
    tensor = draw(4, 4).requires_grad_()
    before = tensor.detach().clone()
    observe(tensor, 0)
    assert torch.equal(tensor.detach(), before)


@pytest.mark.parametrize("axis", [0, 1])
def test_halves_are_converted_a_band_at_a_time(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The widest layer of a mapped model took twice its file's bytes to be observed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(walk, "_own", SimpleNamespace())
    tensor = draw(4096, 2048).bfloat16()
    try:
        observed = observe(tensor, axis)
    finally:
        torch.set_num_threads(threads)
    assert same(observed, observe(tensor.float(), axis))
    assert 0 < walk._own.memory.numel() <= walk.LARGEST < tensor.numel()
