"""Statistics of a run of pieces of a float32 tensor, all in compiled code.  Importing this imports numba."""

from __future__ import annotations

import numpy as np

from workbench.numerics.jit import compiled
from workbench.numerics.statistics.compiled import BINS, NOT_FINITE, grow, observe_piece
from workbench.numerics.statistics.tokens_compiled import peak

OFFSET, WIDE, ROWS, LEFT, RIGHT, TOKEN, TOKENS, RUN = range(8)
"""Columns of the table of pieces: the first row's first element, the rows' length and number, the columns that are
meant, the first row's first token and the number of all rows' tokens, and the run: pieces of one run hold the same
rows, and no channel lies in two of them."""

PLACES, SAMPLED = 32, 64
"""At so many places so many elements tell the range with which histograms begin."""


@compiled
def first_exponent(flat: np.ndarray, lowest: int) -> int:
    """Return the histogram's exponent for some elements of ``flat``, or for all where those are zeros."""
    step, bits, largest = max(flat.size // PLACES, 1), flat.view(np.int32), np.int32(0)
    for start in range(0, flat.size, step):
        largest = max(largest, peak(bits[start : start + min(SAMPLED, step)]))
    largest = largest if largest else peak(bits)
    exponent = int(largest >> 23) - 126
    return max(exponent, lowest) if exponent <= 128 else lowest  # above only where not finite


@compiled
def observe_pieces(
    flat: np.ndarray, pieces: np.ndarray, inner: int, lowest: int, extremes: np.ndarray, sums: np.ndarray,
    histogram: np.ndarray, peaks: np.ndarray, indices: np.ndarray, largest: np.ndarray,
) -> bool:  # fmt: skip
    """Add ``pieces`` of ``flat`` float32 ``[n]``; return whether everything is finite.

    ``pieces`` int64 ``[pieces, 8]``, see OFFSET; ``inner`` elements of a channel lie together; ``lowest`` is the
    histogram's least exponent.  Other threads write other channels and runs of ``extremes`` float32 ``[2, runs,
    channels]`` and ``sums`` (of values and of squares) float64 ``[2, runs, channels]``, both overwritten, and other
    tokens of ``peaks`` int32 ``[tokens]``.  ``histogram`` int64 ``[2049]`` (counts, then how often the range was
    doubled from the lowest), ``indices`` and ``largest`` belong to the caller alone; see ``observe_piece``.
    """
    exponent = first_exponent(flat, lowest)
    counts = np.zeros((4, BINS), np.uint32)
    for number in range(len(pieces)):
        offset, wide, rows, left, right, token, tokens, run = pieces[number]
        channelwise = (extremes[0, run], extremes[1, run], sums[0, run], sums[1, run])
        _start(channelwise, left // inner, -(-right // inner))
        exponent = observe_piece(
            flat[offset : offset + rows * wide].reshape(rows, wide), left, right, inner, exponent, channelwise,
            counts, (peaks[token : token + tokens], indices, largest), token,
        )  # fmt: skip
        if exponent == NOT_FINITE:
            return False
    for h in range(4):
        for i in range(BINS):
            histogram[i] += np.int64(counts[h, i])
    histogram[BINS] = exponent - lowest
    return True


@compiled
def _start(channelwise: tuple[np.ndarray, ...], first: int, last: int) -> None:
    """Set the channels of a piece to what is known before: nothing.  No other piece has the same run and channels."""
    channelwise[0][first:last] = np.inf
    channelwise[1][first:last] = -np.inf
    channelwise[2][first:last] = 0
    channelwise[3][first:last] = 0


@compiled
def conclude(
    extremes: np.ndarray, sums: np.ndarray, histograms: np.ndarray, channels: np.ndarray, squares: np.ndarray,
    counts: np.ndarray,
) -> tuple[int, float, float, float, float]:  # fmt: skip
    """Bring together what ``observe_pieces`` wrote: return doublings, least and greatest value, sum, sum of squares.

    ``channels`` float32 ``[3, channels]`` (least, greatest, largest magnitude), ``squares`` float64 ``[channels]`` and
    ``counts`` int64 ``[2048]`` are filled; ``histograms`` ``[parts, 2049]`` grow to the largest range.  Runs are added
    in order, so the sums do not depend on the threads.
    """
    total, total_squares = 0.0, 0.0
    channels[0], channels[1], squares[:] = extremes[0, 0], extremes[1, 0], sums[1, 0]
    added = sums[0, 0]
    for run in range(1, sums.shape[1]):
        for c in range(squares.size):
            channels[0, c] = min(channels[0, c], extremes[0, run, c])
            channels[1, c] = max(channels[1, c], extremes[1, run, c])
            added[c] += sums[0, run, c]
            squares[c] += sums[1, run, c]
    for c in range(squares.size):
        channels[2, c] = max(channels[1, c], -channels[0, c])
        total += added[c]
        total_squares += squares[c]
    doublings = np.max(histograms[:, BINS])
    counts[:] = 0
    for part in range(len(histograms)):
        grow(histograms[part, :BINS], doublings - histograms[part, BINS])
        counts += histograms[part, :BINS]
    return doublings, np.min(channels[0]), np.max(channels[1]), total, total_squares
