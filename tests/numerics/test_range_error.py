"""Errors read off a histogram against errors measured on the values themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from workbench.errors import RangeError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.range_error import decibels, histogram_error, histogram_loss, range_in_force
from workbench.numerics.statistics.histogram_moments import Moments
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.observe import observe

NORMAL = torch.randn(200, 500, generator=torch.Generator().manual_seed(0))
SAMPLES = {"normal": NORMAL, "skewed": NORMAL.exp(), "heavy": NORMAL**3}


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize(
    "name", ["int8-tensor", "int8-tensor-asym", "int4-tensor", "int3-tensor-asym", "fp8-e4m3-tensor"]
)
@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-0.5, 3.0), (-1e3, 1e3)])
def test_the_estimate_is_the_measured_error(sample: str, name: str, low: float, high: float) -> None:
    values, scheme = SAMPLES[sample], parse_scheme(name)
    quality = histogram_error(observe(values, 1), scheme, low, high)
    rounded = scheme.round(values, scheme.fit_range(low, high))
    error = float((rounded - values).square().mean(dtype=torch.float64))
    coarse = observe(values, 1).bin_width ** 2 / 12
    assert quality.mean_squared_error == pytest.approx(error, rel=0.02, abs=coarse)
    power = float(values.square().mean(dtype=torch.float64))
    assert quality.sqnr_db == pytest.approx(10 * math.log10(power / quality.mean_squared_error), abs=1e-4)
    reach = max(-low, high)
    inside = (low, high) if name.endswith("asym") else (-reach, reach)
    clipped = float(((values < inside[0]) | (values > inside[1])).double().mean())
    assert quality.clipped == pytest.approx(clipped, abs=0.004)


def test_weights_of_the_bins_weigh_the_errors() -> None:
    """Against every value's own error times its bin's weight."""
    seen, scheme = observe(NORMAL, 1), parse_scheme("int4-tensor-asym")
    weights = np.linspace(0.0, 3.0, seen.counts.size) * seen.counts
    rounded = scheme.round(NORMAL, scheme.fit_range(-2.0, 1.0)).double()
    place = ((NORMAL.double() + 2.0**seen.exponent) / seen.bin_width).floor().long().clamp(0, seen.counts.size - 1)
    each = torch.from_numpy(np.linspace(0.0, 3.0, seen.counts.size))[place]
    expected = float((each * (rounded - NORMAL).square()).sum())
    assert histogram_loss(seen, weights, scheme, -2.0, 1.0) == pytest.approx(expected, rel=0.01)
    alike = histogram_loss(seen, seen.counts.astype(float), scheme, -2.0, 1.0)
    assert alike / seen.count == pytest.approx(histogram_error(seen, scheme, -2.0, 1.0).mean_squared_error, rel=1e-12)


def test_a_symmetric_scheme_mirrors_the_range() -> None:
    assert range_in_force(parse_scheme("int8-tensor"), -1.0, 4.0) == (-4.0, 4.0)
    assert range_in_force(parse_scheme("int8-tensor-asym"), 0.5, 4.0) == (0.0, 4.0)


def test_moments_are_the_integrals_of_evenly_filled_bins() -> None:
    """Brute force: a thousand points in each occupied bin."""
    seen = observe(NORMAL[:2], 1)
    moments = Moments.of(seen)
    points, weights = [], []
    for low, high, count in zip(moments.edges[:-1], moments.edges[1:], moments.counts, strict=True):
        points.append(low + (high - low) * (np.arange(200) + 0.5) / 200)
        weights.append(np.full(200, count / 200))
    x, w = np.concatenate(points), np.concatenate(weights)
    for at in (-5.0, -0.3, 0.0, 0.7123, 9.0):
        below = x < at
        result = np.array([float(part) for part in moments.below(np.array(at))])
        want = np.array([w[below].sum(), (w * x)[below].sum(), (w * x * x)[below].sum()])
        assert result == pytest.approx(want, abs=0.05)
    grid = np.array([[-1.0, -0.2, 0.0, 0.3, 2.0], [-2.0, -1.0, 0.0, 1.0, 2.0]])
    nearest = (x[:, None, None] - grid[None]) ** 2
    want = (nearest.min(axis=2) * w[:, None]).sum(axis=0)
    assert moments.squared_error(grid) == pytest.approx(want, rel=1e-4)


def test_a_constant_on_the_grid_has_no_error() -> None:
    seen = observe(torch.full((1, 50), 1.0), 1)
    quality = histogram_error(seen, parse_scheme("int8-tensor-asym"), 0.0, 1.0)
    assert quality.mean_squared_error == pytest.approx(0, abs=1e-12)
    assert quality.clipped == 0


def test_a_range_of_zero_clips_everything() -> None:
    seen = observe(NORMAL, 1)
    quality = histogram_error(seen, parse_scheme("int8-tensor"), 0.0, 0.0)
    assert quality.mean_squared_error == pytest.approx(seen.total_squares / seen.count, rel=1e-4)
    assert quality.clipped == pytest.approx(1.0)
    assert quality.sqnr_db == pytest.approx(0.0, abs=1e-3)


def test_a_format_without_a_scale_clips_nothing() -> None:
    quality = histogram_error(observe(NORMAL, 1), parse_scheme("fp16"), -0.1, 0.1)
    assert (quality.clipped, quality.mean_squared_error, quality.sqnr_db) == (0, 0, math.inf)


def test_nothing_seen_and_impossible_ranges_are_told() -> None:
    with pytest.raises(RangeError, match="calibrate first"):
        histogram_error(LayerStatistics.empty(1), parse_scheme("int8-tensor"), 0, 1)
    for low, high in ((1, 0), (math.nan, 1), (0, math.inf)):
        with pytest.raises(RangeError, match="finite range"):
            histogram_error(observe(NORMAL, 1), parse_scheme("int8-tensor"), low, high)


def test_decibels() -> None:
    assert decibels(100, 1) == 20
    assert decibels(1, 0) == math.inf
    assert decibels(0, 1) == -math.inf
