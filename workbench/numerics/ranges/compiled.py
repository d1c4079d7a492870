"""The divergence of a histogram from its rounded self, for many ranges.  Importing this imports numba: only
``entropy`` does so, when a range is searched."""

from __future__ import annotations

import numpy as np

from workbench.numerics.jit import compiled


@compiled
def divergences(
    counts: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, borders: np.ndarray, width: float
) -> np.ndarray:
    """Return KL(reference || expanded) in nats of each range, float64 ``[ranges]``.

    A range has the bins ``firsts`` to ``lasts`` (exclusive) of ``counts`` (float64 ``[bins]``, each as wide as
    ``width``, zero in the middle), which round to the levels between ``borders`` ``[ranges, levels - 1]``, ascending.
    An edge bin that holds clipped mass, in a level without any of its own, would make the divergence infinite for one
    outlier; it counts as half a value.  Logarithms are of levels and of running sums: with one for each bin of each
    range, entropy took a tenth of a small language model's calibration.
    """
    scores, below, information = np.empty(firsts.size), np.zeros(counts.size + 1), np.zeros(counts.size + 1)
    for bin_ in range(counts.size):
        below[bin_ + 1] = below[bin_] + counts[bin_]
        information[bin_ + 1] = information[bin_] + _information(counts[bin_])
    for number in range(firsts.size):
        first, last, whole = firsts[number], lasts[number], below[-1]
        if below[last] == below[first]:
            scores[number] = np.inf
            continue
        own, cross, total = information[last] - information[first], 0.0, 0.0
        reached = np.searchsorted(borders[number], (first - counts.size // 2 + 0.5) * width)
        mass, reference, sharers = 0.0, 0.0, 0  # of the level that the bin rounds to
        for bin_ in range(first, last):
            clipped = (below[first] if bin_ == first else 0.0) + (whole - below[last] if bin_ == last - 1 else 0.0)
            if clipped > 0:
                own += _information(counts[bin_] + clipped) - _information(counts[bin_])
            mass, reference = mass + counts[bin_], reference + counts[bin_] + clipped
            sharers += counts[bin_] + clipped > 0
            following, is_last = (bin_ - counts.size // 2 + 1.5) * width, bin_ == last - 1
            while reached < borders.shape[1] and borders[number, reached] < following:
                reached, is_last = reached + 1, True
            if is_last:
                if sharers:
                    each = mass / sharers if mass > 0 else 0.5
                    cross, total = cross + reference * np.log(each), total + each * sharers
                mass, reference, sharers = 0.0, 0.0, 0
        scores[number] = (own - cross) / whole + np.log(total / whole)
    return scores


@compiled
def _information(count: float) -> float:
    """Return ``count * log(count)``, 0 for none."""
    return count * np.log(count) if count > 0 else 0.0
