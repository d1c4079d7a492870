"""What the bands of a tensor say together, and its largest tokens.  Importing this imports numba."""

from __future__ import annotations

import numpy as np

from workbench.numerics.jit import compiled
from workbench.numerics.statistics.compiled import grow

Bands = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Extremes float32 and sums float64 ``[2, bands, channels]``; exponents and counts int64 of parts, ``[n, 2048]``."""


@compiled
def conclude(bands: Bands, ends: np.ndarray, totals: np.ndarray, histogram: np.ndarray) -> tuple[float, float, int]:
    """Return the least and the greatest value and the histogram's exponent; the bands' counts are overwritten.

    Written are ``ends`` float32 and ``totals`` float64 ``[2, channels]``, bands in their order, and ``histogram``.
    """
    extremes, sums, exponents, counts = bands
    ends[:], totals[:], histogram[:] = extremes[:, 0], sums[:, 0], 0
    for band in range(1, extremes.shape[1]):
        for k in range(ends.shape[1]):
            low, high = extremes[0, band, k], extremes[1, band, k]
            ends[0, k] = low if low < ends[0, k] else ends[0, k]
            ends[1, k] = high if high > ends[1, k] else ends[1, k]
            totals[0, k] += sums[0, band, k]
            totals[1, k] += sums[1, band, k]
    for part in range(exponents.size):
        grow(counts[part], exponents.max() - exponents[part])
        histogram += counts[part]
    return float(ends[0].min()), float(ends[1].max()), int(exponents.max())


@compiled
def rank(bits: np.ndarray, counts: np.ndarray, first: int, where: np.ndarray) -> int:
    """Return how many tokens ``where`` (int64 ``[most]``) names, the largest ones by falling magnitude.

    ``bits`` int32 ``[tokens]`` are those of magnitudes; added to ``counts`` int64 (if any) from ``bits >> 20 = first``.
    """
    found, last, kept = 0, where.size - 1, np.zeros(where.size, np.int32)
    for token, own in enumerate(bits):
        if counts.size:
            counts[min(max((own >> 20) - first, 0), counts.size - 1)] += 1
        if own <= kept[last]:
            continue
        at = min(found, last)
        while at > 0 and kept[at - 1] < own:
            kept[at], where[at] = kept[at - 1], where[at - 1]
            at -= 1
        kept[at], where[at] = own, token
        found = min(found + 1, where.size)
    return found
