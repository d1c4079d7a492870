"""Predicted loss against sums written out, and against a model whose loss is known exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from workbench.numerics.curvature import Curvature, predicted_loss, predicted_loss_full


def curvature(rows: int, columns: int, seed: int = 0, count: int = 10) -> Curvature:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(50, columns)).astype(np.float32)
    full = inputs.T @ inputs / 50
    return Curvature(rows=rng.random(rows), columns=np.diag(full).astype(np.float64), full=full, count=count)


def test_predicted_loss_is_the_written_out_sum() -> None:
    known = curvature(7, 5)
    difference = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    d = difference.numpy().astype(np.float64)
    expected = 0.5 * (known.rows[:, None] * known.columns[None] * d**2).sum()
    assert predicted_loss(difference, known) == pytest.approx(expected, rel=1e-6)
    assert known.full is not None
    full = 0.5 * sum(known.rows[i] * d[i] @ known.full.astype(np.float64) @ d[i] for i in range(7))
    assert predicted_loss_full(difference, known) == pytest.approx(full, rel=1e-5)


def test_large_matrices_are_summed_in_tiles() -> None:
    known = curvature(900, 700)
    difference = torch.randn(900, 700, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    d = difference.double().numpy()
    expected = 0.5 * float(known.rows @ d**2 @ known.columns)
    assert predicted_loss(difference, known) == pytest.approx(expected, rel=1e-5)


def test_the_divergence_of_a_perturbed_classifier_is_predicted() -> None:
    """Softmax of W x with independent inputs: the true KL against 1/2 sum G A D**2 with the exact Fisher."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(4000, 6, generator=generator, dtype=torch.float64)
    weight = 0.3 * torch.randn(5, 6, generator=generator, dtype=torch.float64)
    difference = 0.02 * torch.randn(5, 6, generator=generator, dtype=torch.float64)
    probability = (inputs @ weight.T).softmax(-1)
    fisher = (probability * (1 - probability)).mean(0)
    known = Curvature(
        rows=fisher.numpy(),
        columns=inputs.square().mean(0).numpy(),
        full=(inputs.T @ inputs / 4000).float().numpy(),
        count=4000,
    )
    moved = (inputs @ (weight + difference).T).log_softmax(-1)
    divergence = float((probability * (probability.log() - moved)).sum(-1).mean())
    for loss in (predicted_loss(difference, known), predicted_loss_full(difference, known)):
        assert 0.6 * divergence < loss < 1.6 * divergence


def test_a_token_of_huge_inputs_that_matters_little_does_not_decide_what_other_columns_cost() -> None:
    """The first token of a language model: by the inputs alone the errors of all other columns passed for nothing."""
    rng = np.random.default_rng(0)
    inputs, gradients = rng.normal(size=(500, 6)), rng.normal(size=(500, 4))
    inputs[0, 2], gradients[0] = 1000.0, 0.01 * gradients[0]
    exact = (gradients**2).T @ inputs**2 / 500
    columns, by_loss = (inputs**2).mean(axis=0), (inputs**2).T @ (gradients**2).sum(axis=1)
    full = (inputs * (gradients**2).sum(axis=1, keepdims=True)).T @ inputs * (columns.sum() / by_loss.sum())
    known = Curvature(
        rows=exact.sum(axis=1) / columns.sum(), columns=columns, full=full.astype(np.float32),
        count=500, by_loss=by_loss * columns.sum() / by_loss.sum(),
    )  # fmt: skip
    difference = rng.normal(size=(4, 6))
    difference[:, 2] = 0.0  # what rounds this column well
    cost = 0.5 * float((exact * difference**2).sum())
    errors = torch.from_numpy(difference)
    assert predicted_loss(errors, known) == pytest.approx(cost, rel=0.15)
    assert predicted_loss_full(errors, known) == pytest.approx(cost, rel=0.3)
    assert predicted_loss(errors, replace(known, by_loss=None)) < 0.01 * cost
    np.testing.assert_allclose(known.importance(), known.by_loss[None].astype(np.float32))
    with pytest.raises(ValueError, match="by_loss"):
        replace(known, by_loss=np.ones(5))


def test_shapes_are_checked() -> None:
    known = curvature(3, 4)
    with pytest.raises(ValueError, match=r"\(3, 4\)"):
        predicted_loss(torch.zeros(4, 3), known)
    with pytest.raises(ValueError, match="not collected"):
        predicted_loss_full(torch.zeros(3, 4), Curvature(rows=known.rows, columns=known.columns, full=None, count=1))
    with pytest.raises(ValueError, match="square"):
        Curvature(rows=np.zeros(2), columns=np.zeros(3), full=np.zeros((2, 2), np.float32), count=1)
    with pytest.raises(ValueError, match="vectors"):
        Curvature(rows=np.zeros((2, 1)), columns=np.zeros(3), full=None, count=1)


def test_no_curvature_no_loss() -> None:
    known = Curvature(rows=np.zeros(3), columns=np.zeros(4), full=None, count=0)
    assert predicted_loss(torch.ones(3, 4), known) == 0
