"""Confidence intervals by resampling whole samples (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

RESAMPLES = 2000
_CELLS = 1 << 22


def resamples(count: int, seed: int) -> Iterator[np.ndarray]:
    """Yield how often each of ``count`` samples is drawn, float64 ``[resamples, count]``, RESAMPLES in all."""
    rng = np.random.default_rng(seed)
    part = max(_CELLS // max(count, 1), 1)
    for start in range(0, RESAMPLES, part):
        yield rng.multinomial(count, np.full(count, 1.0 / count), size=min(part, RESAMPLES - start)).astype(np.float64)


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean of ``values`` weighted by ``weights`` (both float64 ``[samples]``)."""
    return float(values @ weights / weights.sum())


def interval(
    values: np.ndarray,
    weights: np.ndarray,
    *,
    seed: int,
    transform: Callable[[np.ndarray], np.ndarray] = lambda mean: mean,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of ``transform(weighted mean)`` over samples.

    A sample (a window of tokens, an image) is drawn whole, since what is inside it is correlated.  The same seed gives
    the same interval; NaN values give NaN bounds.
    """
    means = [(draws @ (values * weights)) / (draws @ weights) for draws in resamples(values.size, seed)]
    outside = (1.0 - level) / 2.0
    low, high = np.quantile(transform(np.concatenate(means)), [outside, 1.0 - outside])
    return float(low), float(high)
