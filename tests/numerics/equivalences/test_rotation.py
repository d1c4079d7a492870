"""Hadamard matrices by their definition, and what rotation is for: outliers become ordinary."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from workbench.numerics.equivalences.rotation import hadamard_matrix, rotation_matrix
from workbench.numerics.formats import parse_scheme


@pytest.mark.parametrize("size", [1, 2, 4, 8, 12, 20, 24, 28, 36, 40, 64, 76, 96, 108, 160, 576, 768, 896])
def test_hadamard_by_definition(size):
    result = hadamard_matrix(size)
    assert result is not None and set(np.unique(result)) <= {-1.0, 1.0}
    assert np.array_equal(result @ result.T, size * np.eye(size))


def test_powers_of_two_are_sylvesters():
    assert np.array_equal(hadamard_matrix(16), scipy.linalg.hadamard(16))


@pytest.mark.parametrize("size", [3, 6, 92, 172])
def test_other_sizes_get_a_random_rotation(size):
    assert hadamard_matrix(size) is None
    result = rotation_matrix(size, 0)
    np.testing.assert_allclose(result @ result.T, np.eye(size), atol=1e-12)


def test_the_seed_decides_the_signs():
    assert np.array_equal(rotation_matrix(64, 3), rotation_matrix(64, 3))
    assert not np.array_equal(rotation_matrix(64, 3), rotation_matrix(64, 4))
    np.testing.assert_allclose(rotation_matrix(64, 3) @ rotation_matrix(64, 3).T, np.eye(64), atol=1e-12)


def test_outliers_are_flattened_and_four_bits_lose_a_tenth():
    import torch

    generator = np.random.default_rng(0)
    weight = generator.standard_normal((32, 64))
    weight[:, 7] *= 50
    q = rotation_matrix(64, 0)
    turned = weight @ q
    assert np.abs(turned).max() / np.abs(turned).std() < 5 < 20 < np.abs(weight).max() / np.median(np.abs(weight))
    scheme = parse_scheme("int4-channel")
    plain = scheme.quantize(torch.from_numpy(weight)).numpy() - weight
    back = scheme.quantize(torch.from_numpy(turned)).numpy() @ q.T - weight
    ordinary = np.arange(64) != 7
    assert np.square(back[:, ordinary]).mean() < 0.9 * np.square(plain[:, ordinary]).mean()
