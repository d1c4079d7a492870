"""Sets of objects: the best matching, its divergence, and the second order of it."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch

from workbench.measurement.divergence import sample_divergence
from workbench.measurement.gradients import batch_generator, drawn_gradients
from workbench.models.summary import OutputKind
from workbench.numerics.detections import SCALE, detection_divergence, detection_root, matched, matched_objects


def objects(samples: int, count: int, labels: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(samples, count, labels, generator=generator)
    return torch.cat([logits, torch.rand(samples, count, 4, generator=generator)], dim=-1).double()


def apart(first: np.ndarray, other: np.ndarray) -> float:
    """The divergence of one object from another, by the definition."""
    p, q = (1 / (1 + np.exp(-each[:-4])) for each in (first, other))
    kl = (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).sum()
    return float(kl + p.max() * np.square(first[-4:] - other[-4:]).sum() / (2 * SCALE**2))


def test_a_set_is_compared_by_the_best_of_all_matchings() -> None:
    reference, candidate = objects(3, 4, 3), objects(3, 4, 3, seed=1)
    expected = [
        min(sum(apart(a, b) for a, b in zip(first, order, strict=True)) for order in permutations(other))
        for first, other in zip(reference.numpy(), candidate.numpy(), strict=True)
    ]
    torch.testing.assert_close(detection_divergence(reference, candidate), torch.tensor(expected).double())


def test_the_order_of_objects_costs_nothing() -> None:
    reference = objects(2, 6, 3)
    shuffled = reference[:, torch.tensor([3, 1, 5, 0, 2, 4])]
    assert float(detection_divergence(reference, shuffled).max()) == 0.0
    assert torch.equal(matched(reference, shuffled), reference)
    assert float(sample_divergence(reference, shuffled, {}, OutputKind.DETECTIONS).max()) == 0.0


def test_small_changes_cost_what_the_root_of_the_information_says() -> None:
    reference = objects(2, 5, 3)
    change = 1e-4 * torch.randn(reference.shape, generator=torch.Generator().manual_seed(2)).double()
    second = 0.5 * (detection_root(reference) * change).square().sum(dim=(1, 2))
    torch.testing.assert_close(detection_divergence(reference, reference + change), second, rtol=1e-3, atol=0.0)
    drawn = drawn_gradients(reference.float(), {}, OutputKind.DETECTIONS, [batch_generator(0, 0)], 400)
    squares = torch.stack([each.double().square() for each in drawn]).mean(dim=0)
    torch.testing.assert_close(squares, detection_root(reference).square(), rtol=0.5, atol=1e-3)


def test_words_that_are_not_there_cost_nothing() -> None:
    reference = objects(1, 2, 2)
    reference[..., 0] = -30.0
    assert bool(detection_divergence(reference, reference + 1e-3).isfinite().all())


def test_objects_are_found_by_label_probability_and_place() -> None:
    row = torch.tensor([3.0, -3.0, 0.5, 0.5, 0.2, 0.2])
    unsure, moved, renamed = row.clone(), row.clone(), row.clone()
    unsure[0] = -0.1
    moved[2:4] += 0.15
    renamed[:2] = renamed[:2].flip(0)
    near = row.clone()
    near[2] += 0.02
    for other, count in ((row, 1), (near, 1), (unsure, 0), (moved, 0), (renamed, 0)):
        both, there = matched_objects(row[None, None], other[None, None])
        assert (int(both), int(there)) == (count, 1)
