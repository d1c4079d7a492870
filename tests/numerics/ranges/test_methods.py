"""Every range method against an independent reference, and the promises all of them keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import entropy as scipy_entropy

from workbench.errors import RangeError
from workbench.numerics.formats import parse_scheme
from workbench.numerics.range_error import histogram_error
from workbench.numerics.ranges import (
    METHODS,
    BatchMean,
    Entropy,
    Loss,
    MinMax,
    Mse,
    Percentile,
    RangeMethod,
    range_method,
)
from workbench.numerics.ranges.compiled import divergences
from workbench.numerics.statistics.layer_statistics import LayerStatistics
from workbench.numerics.statistics.observe import observe

NORMAL = torch.randn(100, 500, generator=torch.Generator().manual_seed(0))
OUTLIER = NORMAL.clone()
OUTLIER[0, 0] = 30.0
SAMPLES = {
    "normal": NORMAL,
    "outlier": OUTLIER,
    "relu": NORMAL.clamp(min=0),
    "negative": -NORMAL.abs(),
    "heavy": NORMAL**3,
    "shifted": NORMAL + 3,
}
SCHEMES = ("int8-tensor", "int8-tensor-asym", "int4-tensor", "int4-tensor-asym", "fp8-e4m3-tensor", "fp16", "fp32")


def seen(values: torch.Tensor) -> LayerStatistics:
    """Return statistics with which every method can do: a squared error of each value costs the same."""
    observed = observe(values, 1)
    return replace(observed, costs=observed.counts.astype(np.float64))


every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


@every_method
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", SCHEMES)
def test_promises(method: RangeMethod, sample: str, name: str) -> None:
    observed, scheme = seen(SAMPLES[sample]), parse_scheme(name)
    result = method.range(observed, scheme)
    assert result.method == method.name
    assert result.low <= 0 <= result.high
    assert result.low < result.high
    assert -observed.absmax <= result.low
    assert result.high <= observed.absmax
    if not scheme.name.endswith("asym") and scheme.values().size:
        assert result.low == -result.high
    outside = (SAMPLES[sample] < result.low) | (SAMPLES[sample] > result.high)
    assert result.clipped == pytest.approx(float(outside.double().mean()), abs=0.003)
    scheme.fit_range(result.low, result.high)


@every_method
@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("value", [0.0, 2.5, -2.5, 1e-42, 3e38])
def test_constants(method: RangeMethod, name: str, value: float) -> None:
    observed, scheme = seen(torch.full((3, 4), value)), parse_scheme(name)
    result = method.range(observed, scheme)
    assert result.low <= 0 <= result.high
    quality = histogram_error(observed, scheme, result.low, result.high)
    if 1e-30 < abs(value) < 1e30:
        assert quality.mean_squared_error <= (0.01 * value) ** 2


@every_method
def test_nothing_observed_is_told(method: RangeMethod) -> None:
    with pytest.raises(RangeError, match="calibrate first"):
        method.range(LayerStatistics.empty(2), parse_scheme("int8-tensor"))


def test_min_max_is_the_observed_range() -> None:
    observed = observe(NORMAL, 1)
    assert MinMax().range(observed, parse_scheme("int8-tensor-asym")).low == float(NORMAL.min())
    assert MinMax().range(observed, parse_scheme("int8-tensor-asym")).high == float(NORMAL.max())
    assert MinMax().range(observed, parse_scheme("int8-tensor")).high == float(NORMAL.abs().max())


def test_moving_average_is_the_mean_of_the_batches_extremes_in_any_order() -> None:
    batches = NORMAL.split(10)
    wide, narrow = parse_scheme("int8-tensor-asym"), parse_scheme("int8-tensor")
    observed = [observe(batch, 1) for batch in batches]
    for order in (range(10), reversed(range(10))):
        merged = LayerStatistics.empty(500)
        for index in order:
            merged = merged.merge(observed[index])
        result = BatchMean().range(merged, wide)
        low = np.mean([float(batch.min()) for batch in batches])
        high = np.mean([float(batch.max()) for batch in batches])
        assert result.low == pytest.approx(low, rel=1e-12)
        assert result.high == pytest.approx(high, rel=1e-12)
        assert BatchMean().range(merged, narrow).high == pytest.approx(max(-low, high), rel=1e-12)
        assert MinMax().range(merged, wide).high > result.high
    assert merged.batches == 10


def test_moving_average_skips_batches_without_a_finite_value_and_serves_old_statistics() -> None:
    scheme = parse_scheme("int8-tensor-asym")
    observed = observe(torch.full((2, 3), torch.nan), 1).merge(observe(torch.tensor([[1.0, -2.0, 4.0]]), 1))
    assert observed.batches == 1
    assert (BatchMean().range(observed, scheme).low, BatchMean().range(observed, scheme).high) == (-2.0, 4.0)
    old = replace(observed, batches=0, minimum_total=0.0, maximum_total=0.0)
    assert BatchMean().range(old, scheme).high == 4.0


@pytest.mark.parametrize("percentile", [50.0, 90.0, 99.0, 99.9, 100.0])
@pytest.mark.parametrize("sample", ["normal", "heavy", "outlier"])
def test_percentile_is_numpys(percentile: float, sample: str) -> None:
    observed, values = observe(SAMPLES[sample], 1), SAMPLES[sample].numpy().astype(np.float64)
    mirrored = Percentile(percentile=percentile).range(observed, parse_scheme("int8-tensor"))
    assert mirrored.high == pytest.approx(np.percentile(np.abs(values), percentile), abs=1.5 * observed.bin_width)
    skewed = Percentile(percentile=percentile).range(observed, parse_scheme("int8-tensor-asym"))
    rest = (100 - percentile) / 2
    assert skewed.low == pytest.approx(np.percentile(values, rest), abs=1.5 * observed.bin_width)
    assert skewed.high == pytest.approx(np.percentile(values, 100 - rest), abs=1.5 * observed.bin_width)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", ["int8-tensor", "int4-tensor", "int2-tensor", "int4-tensor-asym", "fp8-e4m3-tensor"])
def test_mse_is_as_good_as_a_brute_force_over_the_values(sample: str, name: str) -> None:
    values, scheme = SAMPLES[sample][:40], parse_scheme(name)
    observed = observe(values, 1)

    def measured(low: float, high: float) -> float:
        rounded = scheme.round(values, scheme.fit_range(low, high))
        return float((rounded - values).square().mean(dtype=torch.float64))

    result = Mse().range(observed, scheme)
    low, high = min(observed.minimum, 0.0), max(observed.maximum, 0.0)
    if not name.endswith("asym"):
        low, high = -observed.absmax, observed.absmax
    brute = min(measured(low * share, high * share) for share in np.linspace(0.02, 1, 60))
    assert measured(result.low, result.high) <= 1.02 * brute


def test_mse_beats_the_full_range_on_an_outlier_and_never_loses() -> None:
    for sample in SAMPLES.values():
        observed = observe(sample, 1)
        for name in ("int8-tensor", "int4-tensor-asym"):
            scheme = parse_scheme(name)
            full, best = MinMax().range(observed, scheme), Mse().range(observed, scheme)
            error = [histogram_error(observed, scheme, r.low, r.high).mean_squared_error for r in (full, best)]
            assert error[1] <= error[0]
    observed = observe(OUTLIER, 1)
    assert Mse().range(observed, parse_scheme("int4-tensor")).high < 5


def divergence_of(counts: list[int] | np.ndarray, first: int, last: int, starts: list[int]) -> float:
    """Return the divergence of a range whose levels begin at the bins ``starts`` and at its first one."""
    borders = np.array([starts], np.float64).reshape(1, -1) - len(counts) // 2
    ends = np.array([first]), np.array([last])
    return float(divergences(np.asarray(counts, np.float64), *ends, borders, 1.0)[0])


@pytest.mark.parametrize("seed", range(20))
def test_divergence_is_scipys_on_the_written_out_distributions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.choice([0.3, 3, 300]), 64).astype(np.int64)
    counts[20:26] = 0
    first, last = int(rng.integers(0, 20)), int(rng.integers(26, 65))
    starts = sorted(rng.choice(np.arange(64), 8, replace=False).tolist())
    level = np.searchsorted(np.array(starts), np.arange(first, last), side="right")
    reference = counts[first:last].astype(np.float64)
    expanded = np.zeros_like(reference)
    reference[0] += counts[:first].sum()
    reference[-1] += counts[last:].sum()
    for group in set(level.tolist()):
        own = (level == group) & (reference > 0)
        expanded[own] = (counts[first:last][level == group].sum() or 0.5 * own.sum()) / max(own.sum(), 1)
    keep = reference > 0
    expected = scipy_entropy(reference[keep], expanded[keep]) if counts[first:last].any() else np.inf
    assert divergence_of(counts, first, last, starts) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_divergence_is_zero_only_where_nothing_is_lost() -> None:
    counts = [0, 4, 4, 2, 2, 0]
    assert divergence_of(counts, 1, 5, [3]) == pytest.approx(0, abs=1e-12)
    assert divergence_of(counts, 1, 5, [2]) > 0.01
    assert divergence_of(counts, 2, 4, [3]) == pytest.approx(0, abs=0.02)
    assert divergence_of(counts, 0, 1, []) == np.inf


def test_entropy_cuts_an_outlier_and_keeps_a_uniform_range() -> None:
    result = Entropy().range(observe(OUTLIER, 1), parse_scheme("int4-tensor"))
    assert result.high < 8
    uniform = torch.linspace(-1, 1, 100_000).reshape(1, -1)
    assert Entropy().range(observe(uniform, 1), parse_scheme("int8-tensor")).high > 0.95


@pytest.mark.parametrize("name", ["int8-tensor", "int8-tensor-asym", "int4-tensor"])
def test_loss_serves_the_values_that_cost(name: str) -> None:
    values, scheme = OUTLIER[:10].double().numpy().ravel(), parse_scheme(name)
    observed, drawn = observe(OUTLIER[:10], 1), np.random.default_rng(0).exponential(size=values.size)
    bins = np.floor((values / observed.bin_width) + observed.counts.size / 2).astype(int)
    for costs in (1.0 * (np.abs(values) < 1), 1.0 * (np.abs(values) > 2), drawn):
        noted = replace(observed, costs=np.bincount(bins, costs, observed.counts.size))
        chosen = Loss(floor=0.0).range(noted, scheme)

        def loss(low: float, high: float, costs: np.ndarray = costs) -> float:
            grid = scheme.grid(low, high)
            nearest = grid[np.searchsorted((grid[1:] + grid[:-1]) / 2, values)]
            return float((costs * (values - nearest) ** 2).sum())

        ends = np.geomspace(30, 0.6, 60)
        pairs = [(low, high) for low in ends[::6] for high in ends] if "asym" in name else zip(ends, ends, strict=True)
        assert loss(chosen.low, chosen.high) <= 1.05 * min(loss(-low, high) for low, high in pairs)


def test_loss_leaves_no_rare_value_far_outside_for_a_slope_that_is_small_there() -> None:
    """A massive activation: few gradients tell of it, and of small errors only."""
    observed, scheme = observe(torch.cat([NORMAL.reshape(-1), torch.full((3,), 40.0)]).reshape(1, -1), 1), "int8-tensor"
    noted = replace(observed, costs=np.where(np.abs(observed.edges[:-1]) < 20, observed.counts / 4, 0.0))
    assert Loss(floor=0.0).range(noted, parse_scheme(scheme)).high < 8
    assert Loss().range(noted, parse_scheme(scheme)).high > 12


def test_loss_is_mse_where_all_costs_the_same_or_nothing_or_no_costs_are_known() -> None:
    observed, scheme = observe(OUTLIER, 1), parse_scheme("int8-tensor-asym")
    expected = replace(Mse().range(observed, scheme), method="loss")
    for costs in (observed.counts * 0.25, np.zeros(observed.counts.size)):
        assert Loss().range(replace(observed, costs=costs), scheme) == expected
    assert Loss().range(observed, scheme) == Mse().range(observed, scheme)


def test_names_and_options() -> None:
    assert [method.name for method in METHODS] == ["min-max", "moving-average", "percentile", "entropy", "mse", "loss"]
    assert range_method("MSE") == Mse()
    with pytest.raises(RangeError, match="closest are entropy"):
        range_method("entropie")
    for build in (lambda: Percentile(percentile=0), lambda: Mse(candidates=1), lambda: Entropy(candidates=1)):
        with pytest.raises(RangeError):
            build()
