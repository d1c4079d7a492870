"""The largest tokens of float32 values, compiled.  Importing this imports numba: only ``walk`` does so.

Magnitudes are compared as whole numbers, their bits without the sign: these order as the floats do, and such loops run
in the processor's lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

MAGNITUDE = np.int32(0x7FFFFFFF)
"""The bits of a float32 number without its sign."""

FIRST_BIN = (127 - 32) * 8
"""The first bin of the tokens' magnitudes: sign, exponent and three bits of the float32 number ``2 ** -32``."""


@compiled
def peak(bits: np.ndarray) -> Any:
    """Return the largest magnitude's bits."""
    largest = np.int32(0)
    for k in range(bits.size):
        each = np.int32(bits[k] & MAGNITUDE)
        largest = each if each > largest else largest
    return largest


@compiled
def raise_tokens(values: np.ndarray, place: tuple[int, int, int, int], peaks: np.ndarray) -> None:
    """Raise ``peaks``, the bits of every token's largest magnitude, to what a tile holds whose channels lie last.

    The tile is the rows and columns ``place`` (top, bottom, left, right) of ``values`` float32.
    """
    top, bottom, left, right = place
    tokens = peaks.size // values.shape[0]
    channels = values.shape[1] // tokens
    for r in range(top, bottom):
        bits = values[r].view(np.int32)
        j = left
        while j < right:
            token, run = r * tokens + j // channels, min(right - j, channels - j % channels)
            peaks[token] = max(peaks[token], peak(bits[j : j + run]))
            j += run


@compiled
def insert_token(token: int, channel: int, value: Any, indices: np.ndarray, values: np.ndarray) -> None:
    """Insert a token if it is among the largest; one that is there already stays once, by its larger value.

    ``indices`` int64 ``[2, k]``: tokens and channels, -1 where there is none yet; ``values`` float32 ``[k]``, 0 there.
    They are in order: by falling magnitude, then rising token; of equal magnitudes in a token the first channel counts.
    """
    where, channels, size, last = indices[0], indices[1], abs(value), values.size - 1
    for k in range(values.size):
        if where[k] == token:
            if size < abs(values[k]) or (size == abs(values[k]) and channel >= channels[k]):
                return
            last = k  # it moves up from there
            break
    if last == values.size - 1 and where[last] != token and not _before(size, token, values[last], where[last]):
        return
    while last > 0 and _before(size, token, values[last - 1], where[last - 1]):
        where[last], channels[last], values[last] = where[last - 1], channels[last - 1], values[last - 1]
        last -= 1
    where[last], channels[last], values[last] = token, channel, value


@compiled
def _before(size: Any, token: int, value: Any, other: int) -> bool:
    """Tell whether a token of magnitude ``size`` comes before the ``other`` one with ``value``."""
    return bool(size > abs(value) or (size == abs(value) and (token < other or other < 0)))


@compiled
def seek_tokens(
    values: np.ndarray, place: tuple[int, int, int, int], inner: int, channels: int, first: int, indices: np.ndarray,
    largest: np.ndarray,
) -> None:  # fmt: skip
    """Look through a tile for the largest tokens, without counting all; see :func:`insert_token`.

    Column ``j`` of a row holds channel ``j // inner % channels`` of the token ``j // (channels * inner) * inner + j %
    inner`` of that row; ``first`` is the number of the first row's first token.
    """
    top, bottom, left, right = place
    wide = values.shape[1] // channels
    for r in range(top, bottom):
        row = values[r, left:right]
        start, least = first + r * wide, abs(largest[-1])
        most = np.int32(peak(row.view(np.int32)))
        if most == 0 or most < np.float32(least).view(np.int32):
            continue
        if most == np.float32(least).view(np.int32) and start > indices[0, -1] >= 0:
            continue  # as large as the last of them, and later
        for k in range(row.size):
            if abs(row[k]) >= abs(largest[-1]) and row[k] != 0:
                j = left + k
                token = start + j // (channels * inner) * inner + j % inner
                insert_token(token, j // inner % channels, row[k], indices, largest)


@compiled
def join_tokens(indices: np.ndarray, largest: np.ndarray) -> None:
    """Merge the tokens of all parts, ``[parts, 2, k]`` and ``[parts, k]``, into those of the first part."""
    for part in range(1, len(indices)):
        for k in range(largest.shape[1]):
            if indices[part, 0, k] >= 0:
                insert_token(indices[part, 0, k], indices[part, 1, k], largest[part, k], indices[0], largest[0])


@compiled
def rank_tokens(values: np.ndarray, peaks: np.ndarray, counts: np.ndarray, indices: np.ndarray, largest: Any) -> None:
    """Count all tokens by their peaks and find the largest; ``indices`` and ``largest`` as in :func:`insert_token`.

    ``values`` float32 ``[tokens, channels]``; ``peaks`` int32 ``[tokens]``, the bits of their magnitudes; ``counts``
    int64 (bins of an eighth of an octave, see :mod:`workbench.numerics.statistics.outliers`) is added to.
    """
    even, odd = np.zeros(counts.size, np.int32), np.zeros(counts.size, np.int32)  # so that equal neighbours do not wait
    least = np.int32(0)
    for t in range(peaks.size):
        bin_number = min(max((peaks[t] >> 20) - FIRST_BIN, 0), counts.size - 1)
        if t % 2:
            odd[bin_number] += 1
        else:
            even[bin_number] += 1
        if peaks[t] > least:
            insert_token(t, 0, peaks[t : t + 1].view(np.float32)[0], indices, largest)
            least = largest[-1:].view(np.int32)[0]
    for k in range(counts.size):
        counts[k] += even[k] + odd[k]
    for k in range(largest.size):
        if indices[0, k] >= 0:
            row = values[indices[0, k]]
            for channel in range(row.size):
                if abs(row[channel]) == largest[k]:
                    indices[1, k] = channel
                    break
            largest[k] = row[indices[1, k]]
