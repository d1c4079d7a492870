"""Coverage, saturation and distances on data whose answer is known; scipy's distance as the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import wasserstein_distance

from tests.models.networks import Rows
from workbench.measurement.data_quality import contents, coverage, distances, histogram_distance, saturation
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.observe import observe


def seen(values: torch.Tensor) -> LayerStatistics:
    return observe(values.reshape(-1, 1), -1)


def normal(count: int, seed: int, mean: float = 0.0, spread: float = 1.0) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(seed)) * spread + mean


def test_contents_count_what_is_real() -> None:
    data = Rows(
        input_ids=torch.tensor([[1, 2, 2], [5, 0, 0]]), attention_mask=torch.tensor([[1, 1, 1], [1, 0, 0]]),
        labels=torch.tensor([3, 3]),
    )  # fmt: skip
    result = contents(data.batches(1), vocabulary=4)
    assert result.tokens.tolist() == [0, 1, 2, 0, 0, 1]
    assert result.lengths.tolist() == [3, 1] and result.classes == {3: 2} and result.samples == 2


def test_coverage_is_the_share_of_the_other_data() -> None:
    mine = contents(Rows(input_ids=torch.tensor([[0, 1]]), labels=torch.tensor([0])).batches(1), 4)
    other = contents(Rows(input_ids=torch.tensor([[0, 1, 2], [0, 0, 0]]), labels=torch.tensor([0, 1])).batches(2), 4)
    result = coverage(mine, other)
    assert (result.vocabulary, result.tokens, result.classes, result.lengths) == (0.5, 5 / 6, 0.5, 0.0)
    images = contents(Rows(inputs=torch.zeros(2, 3)).batches(2))
    assert all(math.isnan(value) for value in (coverage(images, images).tokens, coverage(images, images).classes))


def test_ranges_that_stand_still_are_enough_and_ranges_that_grow_are_not() -> None:
    parts = [normal(20000, seed) for seed in range(4)]
    still, grows = [], []
    for count in (1, 2, 4):
        still.append((count, {("a", "input"): seen(torch.cat(parts[:count]))}))
        grows.append((count, {("a", "input"): seen(torch.cat(parts[:count]) * count)}))
    assert saturation(still).enough and "enough" in saturation(still).sentence()
    result = saturation(grows)
    assert not result.enough and result.unsettled == (("a", "input"),)
    assert result.moved[-1, 0] == pytest.approx(0.25, abs=0.02), "each end moves by half of half the width"
    assert "1 of 1 tensors moved" in result.sentence() and "not enough" in result.sentence()


def test_one_step_and_layers_seen_late_are_never_enough() -> None:
    calibration = {("a", "input"): seen(normal(100, 0))}
    assert not saturation([(5, calibration)]).enough and "too few" in saturation([(5, calibration)]).sentence()
    late = saturation([(5, {}), (10, calibration)])
    assert late.unsettled == (("a", "input"),)


@pytest.mark.parametrize(("mean", "spread"), [(0.0, 1.0), (1.0, 1.0), (0.0, 3.0), (-20.0, 0.1)])
def test_the_distance_is_scipys_in_standard_deviations(mean: float, spread: float) -> None:
    a, b = normal(20000, 1, mean, spread), normal(20000, 2)
    expected = wasserstein_distance(a.numpy(), b.numpy()) / float(b.std(correction=0))
    assert histogram_distance(seen(a), seen(b)) == pytest.approx(expected, rel=0.02, abs=0.02)


def test_the_farthest_tensor_comes_first() -> None:
    base = {("a", "input"): seen(normal(1000, 1)), ("b", "input"): seen(normal(1000, 2))}
    other = {("a", "input"): seen(normal(1000, 3)), ("b", "input"): seen(normal(1000, 4, 2.0))}
    other["c", "input"] = seen(normal(10, 5))
    result = distances(base, other)
    assert list(result) == [("b", "input"), ("a", "input")]
    assert np.isnan(histogram_distance(LayerStatistics.empty(1), base["a", "input"]))
