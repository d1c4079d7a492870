"""Paired differences: coverage against the normal theory, what pairing gains, the sentence, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.errors import DataError
from workbench.measurement.evaluation import Metric
from workbench.measurement.paired import between, paired_difference


def test_the_interval_is_that_of_the_normal_theory() -> None:
    rng = np.random.default_rng(1)
    common, change = rng.normal(0, 10, 400), rng.normal(0.5, 1, 400)
    result = paired_difference(common + change, common, name="kl")
    half = 1.96 * change.std() / math.sqrt(400)
    assert result.value == pytest.approx(change.mean())
    assert result.low == pytest.approx(change.mean() - half, abs=0.02)
    assert result.high == pytest.approx(change.mean() + half, abs=0.02)
    assert result.resolved, "unpaired, samples that scatter by 10 would hide a difference of 0.5"


def test_nothing_is_resolved_by_noise_and_the_sentence_says_how_many_samples_it_takes() -> None:
    rng = np.random.default_rng(2)
    first = rng.normal(0, 1, 50)
    result = paired_difference(first + 0.05 + rng.normal(0, 1, 50), first, name="accuracy", unit="%")
    assert not result.resolved
    assert "is not resolved with 50 samples" in result.sentence() and "would be needed" in result.sentence()
    assert result.needed > 50
    same = paired_difference(first, first, name="kl")
    assert (same.value, same.low, same.high, same.needed) == (0, 0, 0, math.inf)
    assert same.sentence().endswith("not resolved with 50 samples")
    sure = paired_difference(first + 1, first, name="kl")
    assert sure.resolved and sure.sentence().endswith("is resolved with 50 samples")


def test_samples_count_by_their_weight() -> None:
    first, second, weights = np.array([1.0, 3.0]), np.zeros(2), np.array([3.0, 1.0])
    assert paired_difference(first, second, name="kl", weights=weights).value == 1.5


def metric(name: str, values: np.ndarray) -> Metric:
    return Metric(
        name=name, unit="", value=0.0, baseline=0.0, low=0.0, high=0.0, samples=values.size, higher_is_better=False,
        per_sample=values,
    )  # fmt: skip


def test_perplexity_is_compared_after_the_exponential() -> None:
    first, second = np.log([4.0, 4.0]), np.log([2.0, 2.0])
    assert between(metric("perplexity", first), metric("perplexity", second)).value == pytest.approx(2.0)


def test_what_does_not_pair_is_refused() -> None:
    with pytest.raises(DataError, match="do not pair"):
        paired_difference(np.zeros(3), np.zeros(4), name="kl")
    with pytest.raises(DataError, match="different metrics"):
        between(metric("kl", np.zeros(2)), metric("cosine", np.zeros(2)))
