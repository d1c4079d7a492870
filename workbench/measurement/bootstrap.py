"""Confidence intervals by resampling whole samples (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

RESAMPLES = 2000

OUTSIDE = (1.0 - 0.95) / 2.0
"""The share of the resampled figures below a 95 % interval, and above it."""

_CELLS = 1 << 22

Transform = Callable[[np.ndarray], np.ndarray]
"""Maps means over units to a figure."""


def identity(mean: np.ndarray) -> np.ndarray:
    """Return the mean as it is."""
    return mean


def resampled_means(columns: tuple[np.ndarray, ...], weights: np.ndarray, seed: int) -> list[np.ndarray]:
    """Return weighted means of each of ``columns`` (float64 ``[samples]``) over the same RESAMPLES random samples."""
    rng, count = np.random.default_rng(seed), weights.size
    part = max(_CELLS // max(count, 1), 1)
    means: list[list[np.ndarray]] = [[] for _ in columns]
    for start in range(0, RESAMPLES, part):
        size = min(part, RESAMPLES - start)
        draws = rng.multinomial(count, np.full(count, 1.0 / count), size=size).astype(np.float64)
        for values, column in zip(means, columns, strict=True):
            values.append(draws @ (column * weights) / (draws @ weights))
    return [np.concatenate(values) for values in means]


BLOCKS = 500
"""Parts of the samples that are left out in turn; more samples than these are left out several at a time."""


def pseudo_values(samples: np.ndarray, statistic: Callable[[np.ndarray], float]) -> np.ndarray:
    """Return the jackknife pseudo-values (float64 ``[samples]``) of a statistic of samples, shifted to its value.

    Their mean is the statistic, and resampling them scatters as it does (Efron and Tibshirani, "An Introduction to the
    Bootstrap", chapter 11).
    """
    value, count = statistic(samples), len(samples)
    blocks = np.array_split(np.arange(count), min(count, BLOCKS))
    values = np.full(count, value, dtype=np.float64)
    if len(blocks) > 1:
        for block in blocks:
            left = statistic(np.delete(samples, block, axis=0))
            values[block] = value + (len(blocks) - 1) * (value - left)
        values += value - values.mean()
    return values


def bounds(values: np.ndarray) -> tuple[float, float]:
    """Return the interval that holds 95 % of the resampled ``values``."""
    low, high = np.quantile(values, [OUTSIDE, 1.0 - OUTSIDE])
    return float(low), float(high)


def interval(
    values: np.ndarray, weights: np.ndarray, *, seed: int, transform: Transform = identity
) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of ``transform(weighted mean)`` over samples.

    A sample (a window of tokens, an image) is drawn whole, since what is inside it is correlated.  The same seed gives
    the same interval; NaN values give NaN bounds.
    """
    return bounds(transform(resampled_means((values,), weights, seed)[0]))
