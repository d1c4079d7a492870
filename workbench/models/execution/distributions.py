"""Whether numbers are probabilities of classes, by their values: a softmax may be an exponential over its sum."""

from __future__ import annotations

import torch

NEAR = 1e-3
"""How far the sum of a softmax lies from 1."""


def are_distributions(values: torch.Tensor, near: float = NEAR) -> bool:
    """Return whether every row along the last axis is a distribution: nothing below 0, and its sum 1 within ``near``.

    Logits and vectors of several random samples are not, but by a chance of one in thousands for each row.
    """
    if values.ndim < 2 or values.shape[-1] < 2 or not values.numel() or not values.is_floating_point():
        return False
    rows = values.detach().double()
    return bool((rows >= 0).all()) and bool(((rows.sum(-1) - 1).abs() < near).all())
