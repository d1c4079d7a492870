"""What the bands of a tensor say together, and its largest tokens.  Importing this imports numba: only ``walk`` does so.

In numpy it took as long as the bands themselves where tensors are those of one sample.
"""

from __future__ import annotations

import numpy as np

from workbench.numerics.jit import compiled
from workbench.numerics.statistics.compiled import grow
from workbench.numerics.statistics.outliers import BINS, LARGEST, LOWEST, OCTAVE

_FIRST = (127 + LOWEST) * OCTAVE


@compiled
def conclude(
    extremes: np.ndarray, sums: np.ndarray, exponents: np.ndarray, counts: np.ndarray, ends: np.ndarray,
    totals: np.ndarray, histogram: np.ndarray,
) -> tuple[float, float, int]:  # fmt: skip
    """Return the least and the greatest value and the histogram's exponent; the first four are those of the bands.

    ``extremes`` float32 and ``sums`` float64 ``[2, bands, channels]``; ``exponents`` and ``counts`` int64 ``[parts]``
    and ``[parts, 2048]``, which are overwritten.  Written are ``ends`` float32 and ``totals`` float64 ``[2, channels]``
    and, zero before, ``histogram`` int64 ``[2048]``.  Bands are added in their order.
    """
    low, high = ends[0], ends[1]
    low[:], high[:], totals[:] = extremes[0, 0], extremes[1, 0], sums[:, 0]
    for band in range(1, extremes.shape[1]):
        lower, upper = extremes[0, band], extremes[1, band]
        for k in range(low.size):
            low[k] = lower[k] if lower[k] < low[k] else low[k]
            high[k] = upper[k] if upper[k] > high[k] else high[k]
        for each in range(2):
            own, more = totals[each], sums[each, band]
            for k in range(own.size):
                own[k] += more[k]
    exponent = exponents.max()
    for part in range(exponents.size):
        grow(counts[part], exponent - exponents[part])
        for k in range(histogram.size):
            histogram[k] += counts[part, k]
    return float(low.min()), float(high.max()), int(exponent)


@compiled
def rank(
    peaks: np.ndarray, values: np.ndarray, counted: bool, counts: np.ndarray, places: np.ndarray, largest: np.ndarray
) -> int:  # fmt: skip
    """Return how many tokens, at most LARGEST, are among the largest.

    ``peaks`` int32 ``[parts, outer, inner]`` are bits of tokens' magnitudes, of which the parts' largest count;
    ``values`` float32 ``[outer, channels, inner]``.  Written are, if ``counted``, ``counts`` int64 ``[512]``, zero
    before, and by falling magnitude ``places`` int64 ``[2, LARGEST]`` (token and channel) and ``largest`` float32.
    """
    inner, found = peaks.shape[2], 0
    kept = np.zeros(LARGEST, np.int32)
    for token in range(peaks.shape[1] * inner):
        bits = np.int32(0)
        for part in range(peaks.shape[0]):
            bits = max(bits, peaks[part, token // inner, token % inner])
        if counted:
            counts[min(max((bits >> 20) - _FIRST, 0), BINS - 1)] += 1
        if bits == 0 or (found == LARGEST and bits <= kept[LARGEST - 1]):
            continue
        at = min(found, LARGEST - 1)
        while at > 0 and kept[at - 1] < bits:
            kept[at], places[0, at] = kept[at - 1], places[0, at - 1]
            at -= 1
        kept[at], places[0, at] = bits, token
        found = min(found + 1, LARGEST)
    magnitudes = kept.view(np.float32)
    for n in range(found):
        row, column = places[0, n] // inner, places[0, n] % inner
        for channel in range(values.shape[1]):
            value = values[row, channel, column]
            if abs(value) == magnitudes[n]:
                places[1, n], largest[n] = channel, value
                break
    return found
