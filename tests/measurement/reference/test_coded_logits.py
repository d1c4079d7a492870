"""Coded logits against exact ones: sums of exponentials, likely entries, divergences, files of odd numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.measurement.divergence import logit_divergence
from workbench.measurement.reference.coded_logits import decoded, encoded


@pytest.mark.parametrize("size", [0.0, 0.1, 3.0, 30.0, 1e4])
def test_divergence_from_the_exact_ones_is_tiny(size: float) -> None:
    generator = torch.Generator().manual_seed(1)
    exact = size * torch.randn(2, 5, 3000, generator=generator) + 7.0
    coded = decoded(encoded(exact))
    assert float(logit_divergence(exact, coded).max()) < 1e-6
    assert torch.equal(exact.argmax(-1), coded.argmax(-1))
    assert torch.equal(exact.amax(-1), coded.amax(-1))
    whole = exact.double().logsumexp(-1)
    assert torch.allclose(coded.double().logsumexp(-1), whole, rtol=1e-7, atol=2e-6)


def test_the_listed_entry_is_exact_and_the_divergence_of_a_third_hardly_moves() -> None:
    generator = torch.Generator().manual_seed(2)
    exact = 4 * torch.randn(3, 6, 2000, generator=generator)
    other = exact + 0.05 * torch.randn(3, 6, 2000, generator=generator)
    ids = torch.randint(2000, (3, 6), generator=generator)
    coded = decoded(encoded(exact, ids))
    assert torch.allclose(coded.gather(-1, ids[..., None]), exact.gather(-1, ids[..., None]), rtol=0, atol=4e-6)
    means = [float(logit_divergence(each, other).mean()) for each in (exact, coded)]
    assert means[1] == pytest.approx(means[0], rel=1e-3)


def test_ties_masked_entries_and_one_entry() -> None:
    tied = torch.tensor([[[1.0, 5.0, 5.0, -1e30]]])
    coded = decoded(encoded(tied))
    assert coded[0, 0, 1] == coded[0, 0, 2] == 5.0 and int(coded.argmax()) == 1 and coded[0, 0, 3] < -6e4
    assert torch.equal(decoded(encoded(torch.full((1, 2, 1), 3.0))), torch.full((1, 2, 1), 3.0))


def test_arrays_that_do_not_fit_are_refused() -> None:
    arrays = encoded(torch.randn(1, 2, 8))
    with pytest.raises(ValueError, match="coded logits"):
        decoded({**arrays, "top": np.zeros((2, 2), np.float32)})
