"""Rotations that spread outliers evenly: randomised Hadamard matrices.

Ashkboos et al., "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs" (NeurIPS 2024).  For an orthogonal ``Q`` the
layer ``y = W x`` equals ``(W Q) (Q^T x)``.  With ``Q = diag(signs) H / sqrt(n)``, ``H`` a Hadamard matrix, every entry
of ``Q^T x`` is a signed mean of all entries of ``x``: one large channel becomes ``n`` ordinary ones, and a scale that
has to span the largest entry wastes fewer levels.  Rotations fold into the weights on both sides of a residual stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def rotation_matrix(size: int, seed: int) -> np.ndarray:
    """Return an orthogonal matrix, float64 ``[size, size]``: Hadamard with random signs of its rows by ``seed``.

    Sizes without a Hadamard matrix of these kinds get the orthogonal factor of a Gaussian matrix.
    """
    generator = np.random.default_rng([seed, size])
    hadamard = hadamard_matrix(size)
    if hadamard is not None:
        signs = generator.choice(np.array([-1.0, 1.0]), size=size)
        spread: np.ndarray = signs[:, None] * hadamard / np.sqrt(size)
        return spread
    factor, upper = np.linalg.qr(generator.standard_normal((size, size)))
    random: np.ndarray = factor * np.sign(np.diag(upper))
    return random


def online_block(width: int) -> int:
    """Return how many of ``width`` features are rotated together: the largest power of two that divides it."""
    return width & -width


@dataclass(frozen=True, slots=True)
class BlockRotation:
    """Multiplies every ``block`` neighbouring features of ``[..., features]`` by Sylvester's ``H / sqrt(block)``.

    It is its own inverse, and in float32, as compressed-tensors has it; the result has the dtype that came.
    """

    block: int

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        blocks = x.float().reshape(*x.shape[:-1], -1, self.block)
        return ((blocks @ _on_device(self.block, x.device)) / math.sqrt(self.block)).reshape(x.shape).to(x.dtype)


@lru_cache(maxsize=4)
def _on_device(size: int, device: torch.device) -> torch.Tensor:
    """Return :func:`hadamard_matrix` in float32 where it is used, once for all layers and batches."""
    import torch

    with torch.inference_mode(False):  # a network may use it, and gradients need what was made outside of it
        return torch.from_numpy(np.asarray(hadamard_matrix(size), np.float32)).to(device)


def hadamard_matrix(size: int) -> np.ndarray | None:
    """Return a matrix of +1 and -1 with ``H H^T = size I``, float64 ``[size, size]``; None where none is known here.

    Sylvester's doubling of one of Paley's matrices (R. Paley, "On orthogonal matrices", 1933), which exist for
    ``q + 1`` (q a prime, 3 modulo 4) and ``2 (q + 1)`` (q a prime, 1 modulo 4).  Of the usual widths all powers of
    two, 768 = 12 x 64, 896 = 28 x 32, 2560 = 20 x 128, 3584 = 28 x 128 and 5120 = 20 x 256 are covered; 172 is not.
    """
    powers = size.bit_length() - 1
    core, doublings = (1, powers) if size == 1 << powers else (size, 0)
    while True:
        base = _base(core)
        if base is not None:
            for _ in range(doublings):
                base = np.block([[base, base], [base, -base]])
            return base
        if core % 2 or core < 4:
            return None
        core, doublings = core // 2, doublings + 1


def _base(size: int) -> np.ndarray | None:
    if size in (1, 2):
        return np.array([[1.0]]) if size == 1 else np.array([[1.0, 1.0], [1.0, -1.0]])
    if size % 4:
        return None
    if _prime(size - 1):
        return _paley(size - 1)
    half = size // 2 - 1
    return _paley_double(half) if half % 4 == 1 and _prime(half) else None


def _prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _residues(prime: int) -> np.ndarray:
    """Return Jacobsthal's matrix: 1 where the difference of row and column is a square modulo ``prime``, else -1."""
    character = np.full(prime, -1.0)
    character[np.arange(1, prime, dtype=np.int64) ** 2 % prime] = 1
    character[0] = 0
    index = np.arange(prime)
    matrix: np.ndarray = character[(index[:, None] - index[None]) % prime]
    return matrix


def _paley(prime: int) -> np.ndarray:
    skew = np.zeros((prime + 1, prime + 1))
    skew[0, 1:], skew[1:, 0], skew[1:, 1:] = 1, -1, _residues(prime)
    matrix: np.ndarray = np.eye(prime + 1) + skew
    return matrix


def _paley_double(prime: int) -> np.ndarray:
    symmetric = np.ones((prime + 1, prime + 1))
    symmetric[0, 0], symmetric[1:, 1:] = 0, _residues(prime)
    off, on = np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([[1.0, -1.0], [-1.0, -1.0]])
    matrix: np.ndarray = np.kron(symmetric, off) + np.kron(np.eye(prime + 1), on)
    return matrix
