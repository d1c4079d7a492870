"""How far answers lie apart: log-probabilities by their divergence, embeddings by their angle, numbers by their square.

Arrays are of float64.
"""

from __future__ import annotations

import numpy as np


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return log-probabilities along the last axis, float64."""
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def divergence(first: np.ndarray, second: np.ndarray, summed: int = 1) -> float:
    """Return the mean KL divergence of ``second`` from ``first``, log-probabilities ``[..., classes]``, in nats, times
    the ``summed`` positions of a sample."""
    finite = np.maximum(second, np.float32(-1e4))
    return summed * float((np.exp(first) * (np.maximum(first, -1e4) - finite)).sum(-1).mean())


def cosine_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean of 1 - cosine of embeddings ``[samples, features]``; of two that are 0 it is 0, of one 1."""
    lengths = np.linalg.norm(first, axis=-1), np.linalg.norm(second, axis=-1)
    norms, products = lengths[0] * lengths[1], (first * second).sum(-1)
    cosines = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    cosines[(lengths[0] == 0) & (lengths[1] == 0)] = 1
    return float((1 - cosines).mean())


def relative_squared_error(first: np.ndarray, second: np.ndarray) -> float:
    """Return the sum of the squared differences over that of ``first``: the cosine of single numbers is their sign."""
    size = float(np.square(first).sum())
    return float(np.square(second - first).sum()) / max(size, float(np.finfo(np.float64).tiny))
