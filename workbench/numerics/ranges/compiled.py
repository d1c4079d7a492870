"""The divergence of a histogram from its rounded self, for many ranges.  Importing this imports numba: only
``entropy`` does so, when a range is searched."""

from __future__ import annotations

import numpy as np

from workbench.numerics.jit import compiled


@compiled
def divergences(
    counts: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, borders: np.ndarray, width: float
) -> np.ndarray:
    """Return :func:`divergence` of each range, float64 ``[ranges]``.

    A range has the bins ``firsts`` to ``lasts`` (exclusive) of ``counts`` (float64 ``[bins]``, each as wide as
    ``width``, zero in the middle), which round to the levels between ``borders`` ``[ranges, levels - 1]``, ascending.
    """
    scores, level = np.empty(firsts.size), np.empty(counts.size, np.int64)
    for number in range(firsts.size):
        reached = 0
        for bin_ in range(firsts[number], lasts[number]):
            centre = (bin_ - counts.size // 2 + 0.5) * width
            while reached < borders.shape[1] and borders[number, reached] < centre:
                reached += 1
            level[bin_ - firsts[number]] = reached
        scores[number] = divergence(counts, firsts[number], lasts[number], level)
    return scores


@compiled
def divergence(counts: np.ndarray, first: int, last: int, level: np.ndarray) -> float:
    """Return KL(reference || expanded) in nats of the bins ``first`` to ``last`` (exclusive) of float64 ``counts``.

    ``level`` int ``[last - first]``, ascending, is the level that each bin rounds to.  An edge bin that holds clipped
    mass, in a level without any of its own, would make the divergence infinite for one outlier; it counts as half a
    value.
    """
    reference = counts[first:last].copy()
    reference[0] += counts[:first].sum()
    reference[-1] += counts[last:].sum()
    expanded, size = np.zeros(last - first), last - first
    start = 0
    while start < size:
        end, mass, sharers = start, 0.0, 0
        while end < size and level[end] == level[start]:
            mass += counts[first + end]
            sharers += reference[end] > 0
            end += 1
        expanded[start:end] = mass / sharers if mass > 0 else 0.5
        start = end
    if not counts[first:last].any():
        return np.inf
    expanded *= reference > 0
    whole, total, score = reference.sum(), expanded.sum(), 0.0
    for i in range(size):
        if reference[i] > 0:
            score += reference[i] / whole * np.log(reference[i] / whole / (expanded[i] / total))
    return score
