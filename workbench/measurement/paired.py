"""Differences between two candidates on the same samples, and whether the samples resolve them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.errors import DataError
from workbench.measurement.bootstrap import Transform, bounds, identity, resampled_means
from workbench.measurement.evaluation import Metric
from workbench.measurement.metrics import BY_NAME, transform_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``value = first - second`` of one metric, with the 95 % bootstrap interval over ``samples`` paired samples.

    ``needed`` estimates how many samples like these would resolve a difference of this size: the interval narrows with
    the square root of their number.  Infinite where there is no difference at all.
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    samples: int
    needed: float

    @property
    def resolved(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0.0 or self.high < 0.0

    def sentence(self) -> str:
        """Return the difference in words."""
        unit = f" {self.unit}" if self.unit else ""
        figures = f"{self.name}: {self.value:+.4g}{unit} (95 % between {self.low:+.4g} and {self.high:+.4g}); "
        if self.resolved:
            return f"{figures}this difference is resolved with {self.samples} samples"
        sentence = f"{figures}this difference is not resolved with {self.samples} samples"
        if math.isfinite(self.needed) and self.needed > self.samples:
            return f"{sentence}; about {math.ceil(self.needed)} would be needed"
        return sentence


def paired_difference(
    first: np.ndarray, second: np.ndarray, *, name: str, unit: str = "", weights: np.ndarray | None = None,
    seed: int = 0, transform: Transform = identity,
) -> Difference:  # fmt: skip
    """Return ``transform(mean of first) - transform(mean of second)``, both over the same random samples.

    ``first`` and ``second`` float64 ``[samples]``, one value for each sample; ``weights`` what each counts (tokens).
    Raises DataError where the samples do not pair.
    """
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise DataError(f"{name}: the samples do not pair; got {first.shape} and {second.shape}")
    weights = np.ones(first.size) if weights is None else weights.astype(np.float64)
    figures = [float(transform(np.array(values @ weights / weights.sum()))) for values in (first, second)]
    value = figures[0] - figures[1]
    means = resampled_means((first, second), weights, seed)
    low, high = bounds(transform(means[0]) - transform(means[1]))
    half = (high - low) / 2.0
    needed = first.size * (half / abs(value)) ** 2 if value else math.inf
    return Difference(name=name, unit=unit, value=value, low=low, high=high, samples=first.size, needed=needed)


def between(first: Metric, second: Metric, seed: int = 0) -> Difference:
    """Return the difference of one metric between two evaluations on the same samples; DataError for other metrics."""
    if first.name != second.name:
        raise DataError(f"{first.name} and {second.name} are different metrics")
    return _difference(first, second.per_sample, seed)


def against_baseline(metric: Metric, seed: int = 0) -> Difference | None:
    """Return what quantization changed of a metric, sample by sample against floating point.

    None where the baseline says nothing: it is a constant (a divergence from itself), or an old file lacks it.
    """
    baseline, record = metric.baseline_per_sample, BY_NAME.get(metric.name)
    if baseline is None or baseline.size != metric.per_sample.size or (record is not None and record.compares_models):
        return None
    return _difference(metric, baseline, seed)


def _difference(metric: Metric, other: np.ndarray, seed: int) -> Difference:
    return paired_difference(
        metric.per_sample, other, name=metric.name, unit=metric.unit, weights=metric.weights, seed=seed,
        transform=transform_of(metric.name),
    )  # fmt: skip
