"""The largest tokens, beside a stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.numerics.statistics.concluding import rank


@pytest.mark.parametrize("tokens", [0, 1, 3, 8, 9, 500])
@pytest.mark.parametrize("distinct", [1, 4, 1 << 23])
def test_ranks_the_largest_tokens_first_and_the_earlier_of_equal_ones(tokens: int, distinct: int) -> None:
    rng = np.random.default_rng(tokens)
    magnitudes = rng.integers(0, distinct, tokens).astype(np.float32) * np.float32(2.0**-10)
    where = np.full(8, -1)
    found = rank(magnitudes.view(np.int32), np.zeros(0, np.int64), 0, where)
    order = np.argsort(-magnitudes, kind="stable")
    expected = order[magnitudes[order] > 0.0][:8]  # a token of zeros is no large one
    assert found == len(expected)
    np.testing.assert_array_equal(where[:found], expected)


def test_ranking_adds_to_the_counts_of_magnitudes_and_puts_what_lies_beyond_them_at_their_ends() -> None:
    magnitudes = np.array([0.0, 1.0, 1.125, 1.5, 2.0, 1e30], np.float32)
    counts = np.array([10, 0, 0, 0])
    first = int(np.float32(1.0).view(np.int32)) >> 20  # eight bins to a factor of two
    rank(magnitudes.view(np.int32), counts, first, np.zeros(2, np.int64))
    assert counts.tolist() == [10 + 2, 1, 0, 3]
