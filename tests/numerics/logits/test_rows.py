"""Compiled rows of logits against float64: sums, divergences, answers, codes; odd sizes, far rows, NaN and infinity."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.measurement.divergence import compare_logits
from workbench.numerics.logits.rows import (
    LEAST_ENTRIES,
    compare_rows,
    decode_rows,
    encode_rows,
    gini_impurities,
    serves,
)


def pair(entries: int, spread: float, apart: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    one = spread * torch.randn(2, 5, entries, generator=generator) + 11.0
    return one, one + apart * torch.randn(2, 5, entries, generator=generator) - 40.0


def exact(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The divergence in float64, which keeps its digits where it is not small."""
    p, q = (each.double().log_softmax(-1) for each in (one, other))
    shift = q - p
    return (p.exp() * (torch.expm1(shift) - shift)).sum(-1)  # sums of q and p are 1


@pytest.mark.parametrize("entries", [1024, 1500, 3001, 20_000])
@pytest.mark.parametrize(("spread", "apart"), [(3.0, 1e-3), (3.0, 0.3), (8.0, 2.0), (0.1, 0.5), (30.0, 4.0)])
def test_divergences_sums_and_answers_are_those_of_float64(entries: int, spread: float, apart: float) -> None:
    one, other = pair(entries, spread, apart)
    assert serves(one, other)
    found = compare_logits(one, other)
    torch.testing.assert_close(found.divergence, exact(one, other), rtol=1e-6, atol=1e-12)
    for each, log_sums, answers in zip((one, other), found.log_sums, found.answers, strict=True):
        torch.testing.assert_close(log_sums, each.double().logsumexp(-1), rtol=0, atol=5e-7)
        assert torch.equal(answers, each.argmax(-1))


def test_the_mean_error_is_below_a_millionth_part() -> None:
    one, other = pair(49_152, 3.0, 0.02)
    found, expected = compare_logits(one, other).divergence, exact(one, other)
    assert float((found.sum() / expected.sum() - 1).abs()) < 1e-7


def test_far_masked_and_non_finite_rows_are_those_of_torch() -> None:
    one, other = pair(2000, 3.0, 0.1)
    other[0, 0, 7] += 500.0
    one[0, 1, 100:], other[0, 1, 100:] = -1e30, -1e30
    other[1, 0, 3], other[1, 1, 4], other[1, 2, 5] = torch.nan, torch.inf, -torch.inf
    found = compare_logits(one, other)
    p, q = (each.double().log_softmax(-1) for each in (one, other))
    torch.testing.assert_close(found.divergence[0], (p.exp() * (p - q)).sum(-1)[0], rtol=1e-6, atol=0)
    assert found.divergence[1, 0].isnan() and not found.divergence[1, 2].isfinite()
    assert not found.divergence[1, 1].isfinite() and bool(found.divergence[1, 3:].isfinite().all())


def test_equal_logits_are_no_distance_apart_and_ties_go_to_the_first() -> None:
    one = torch.zeros(3, LEAST_ENTRIES)
    one[1, [600, 40, 900]] = 2.0
    found = compare_logits(one, one + 5.0)
    assert found.divergence.tolist() == [0.0, 0.0, 0.0] and found.answers[0].tolist() == [0, 40, 0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_logits_are_compared_as_what_they_stand_for(dtype: torch.dtype) -> None:
    one, other = (each.to(dtype) for each in pair(1024, 2.0, 0.2))
    found, wide = compare_logits(one, other), compare_logits(one.float(), other.float())
    assert torch.equal(found.divergence, wide.divergence) and torch.equal(found.log_sums[1], wide.log_sums[1])


def test_rows_do_not_depend_on_threads_or_neighbours() -> None:
    one, other = pair(70_000, 3.0, 0.3)
    whole, threads = compare_logits(one, other).divergence, torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(compare_logits(one, other).divergence, whole)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(compare_logits(one[1:, 2:3], other[1:, 2:3]).divergence, whole[1:, 2:3])
    assert torch.equal(compare_logits(one[:, ::2], other[:, ::2]).divergence, whole[:, ::2])


@pytest.mark.parametrize("entries", [10, 5000])
def test_gini_impurity_is_one_minus_the_sum_of_squared_probabilities(entries: int) -> None:
    one, _ = pair(entries, 3.0, 0.0)
    p = one.double().softmax(-1)
    torch.testing.assert_close(gini_impurities(one), (p * (1 - p)).sum(-1), rtol=1e-6, atol=1e-6)
    one[1, 2, 3] = torch.nan
    assert gini_impurities(one).isnan().sum() == 1


@pytest.mark.parametrize("size", [1e-4, 1.0, 100.0, 1e5])
def test_codes_are_numpys_float16_and_their_sums_are_exact(size: float) -> None:
    one = size * torch.randn(4, 3000, generator=torch.Generator().manual_seed(3))
    distances, top, shift = encode_rows(one)
    own = (one - one.amax(-1, keepdim=True)).clamp(min=-65504.0).numpy()
    assert np.array_equal(distances.astype(np.float32), own.astype(np.float16).astype(np.float32))
    assert np.array_equal(top, one.amax(-1).numpy())
    values = distances.astype(np.float32)
    expected = np.where(values == 0, 0, values + shift[:, None]) + top[:, None]
    decoded = decode_rows(distances, top, shift)
    assert np.array_equal(decoded.numpy(), expected.astype(np.float32))
    torch.testing.assert_close(decoded.double().logsumexp(-1), one.double().logsumexp(-1), rtol=1e-7, atol=1e-6)


def test_rows_of_two_shapes_are_refused_before_the_compiled_code_reads_beyond_them() -> None:
    wide, short = torch.randn(8, 4096), torch.randn(2, 2048)
    for pair in ((wide, short), (short, wide), (wide, wide[:3]), (wide, wide[:, :2048])):
        with pytest.raises(ValueError, match="cannot be compared"):
            compare_rows(*pair)
    distances, top, shift = encode_rows(wide)
    with pytest.raises(ValueError, match="8 rows of distances come with 3 tops"):
        decode_rows(distances, top[:3], shift)
