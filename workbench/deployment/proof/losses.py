"""How far answers lie apart: log-probabilities by their divergence, embeddings by their angle; arrays of float64."""

from __future__ import annotations

import numpy as np


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return log-probabilities along the last axis, float64."""
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def divergence(first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean KL divergence of ``second`` from ``first``, log-probabilities ``[..., classes]``, in nats."""
    finite = np.maximum(second, np.float32(-1e4))
    return float((np.exp(first) * (np.maximum(first, -1e4) - finite)).sum(-1).mean())


def cosine_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean of 1 - cosine of embeddings ``[samples, features]``."""
    norms = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    return float((1 - (first * second).sum(-1) / norms).mean())
