"""Statistics of a whole float32 tensor by pieces that threads take in turn, all in compiled code.

What depends on order (sums) is kept for each run of pieces and added up in order; the rest comes out the same in any
order.  So the result does not depend on which thread took what.  Importing this imports numba.
"""

from __future__ import annotations

import numpy as np

from workbench.numerics.statistics.compiled import BINS, NOT_FINITE, grow, observe_piece
from workbench.numerics.statistics.threads_compiled import next_turn, raise_counter
from workbench.numerics.statistics.tokens_compiled import compiled as _compiled
from workbench.numerics.statistics.tokens_compiled import join_tokens, peak, rank_tokens

OFFSET, WIDE, ROWS, LEFT, RIGHT, TOKEN, TOKENS, RUN = range(8)
"""Columns of the table of pieces: the first row's first element, the rows' length and number, the columns that are
meant, the first row's first token and the number of all rows' tokens, and the run: pieces of one run hold the same
rows, and no channel lies in two of them."""

NEXT, DONE, BAD = range(3)
"""Counters that the threads share: the next piece, those whose thread has handed in everything, those with NaN or
infinity."""

PLACES, SAMPLED = 32, 64
"""At so many places so many elements tell the range with which histograms begin, and the unit of sums."""


@_compiled
def first_exponent(flat: np.ndarray, lowest: int) -> int:
    """Return the histogram's exponent for some elements of ``flat``, or for all where those are zeros."""
    step, bits, largest = max(flat.size // PLACES, 1), flat.view(np.int32), np.int32(0)
    for start in range(0, flat.size, step):
        largest = max(largest, peak(bits[start : start + min(SAMPLED, step)]))
    largest = largest if largest else peak(bits)
    exponent = int(largest >> 23) - 126
    return max(exponent, lowest) if exponent <= 128 else lowest  # above only where not finite


@_compiled
def _flush(counts: np.ndarray, doublings: int, histogram: np.ndarray) -> None:
    """Add ``counts`` uint32 ``[4, 2048]`` to ``histogram`` (int64 ``[2049]``, its doublings last)."""
    reached = max(doublings, histogram[BINS])
    grow(histogram[:BINS], reached - histogram[BINS])
    for h in range(4):
        grow(counts[h], reached - doublings)
        for i in range(BINS):
            histogram[i] += np.int64(counts[h, i])
    histogram[BINS] = reached


@_compiled
def observe_pieces(
    flat: np.ndarray, pieces: np.ndarray, inner: int, lowest: int, counters: np.ndarray, extremes: np.ndarray,
    sums: np.ndarray, histogram: np.ndarray, peaks: np.ndarray, found: np.ndarray, largest: np.ndarray,
) -> None:  # fmt: skip
    """Take up pieces of ``flat`` float32 ``[n]`` until none are left: what each of the threads runs.

    ``pieces`` int64 ``[pieces, 8]``, see OFFSET; ``inner`` elements of a channel lie together; ``lowest`` is the
    histogram's least exponent; ``counters`` int64 ``[3]``, see NEXT.  Shared by all threads are ``extremes`` float32
    ``[2, runs, channels]``, ``sums`` (of values and of squares) float64 ``[2, runs, channels]``, both overwritten, and
    ``peaks`` int32 ``[tokens]``; this one's own are ``histogram`` int64 ``[2049]`` (counts, then how often the range
    was doubled from the lowest, zeros before), ``found`` and ``largest``.  For the last three see ``observe_piece``.
    """
    exponent = first_exponent(flat, lowest)
    unit = np.float32(2.0 ** (10 - exponent))  # the same for all threads, as the sums must not depend on them
    counts, mine = np.zeros((4, BINS), np.uint32), 0
    number = next_turn(counters, NEXT)
    while number < len(pieces):
        offset, wide, rows, left, right, token, tokens, run = pieces[number]
        channelwise = (extremes[0, run], extremes[1, run], sums[0, run], sums[1, run])
        _start(channelwise, left // inner, -(-right // inner))
        reached = observe_piece(
            flat[offset : offset + rows * wide].reshape(rows, wide), left, right, inner, exponent, unit, channelwise,
            counts, (peaks[token : token + tokens], found, largest), token,
        )  # fmt: skip
        if reached == NOT_FINITE:
            raise_counter(counters, BAD, 1)
        exponent = max(exponent, reached)
        mine += 1
        number = next_turn(counters, NEXT)
    if mine:
        _flush(counts, exponent - lowest, histogram)
        raise_counter(counters, DONE, mine)


@_compiled
def _start(channelwise: tuple[np.ndarray, ...], first: int, last: int) -> None:
    """Set the channels of a piece to what is known before: nothing.  No other piece has the same run and channels."""
    channelwise[0][first:last] = np.inf
    channelwise[1][first:last] = -np.inf
    channelwise[2][first:last] = 0
    channelwise[3][first:last] = 0


@_compiled
def conclude(
    extremes: np.ndarray, sums: np.ndarray, histograms: np.ndarray, channels: np.ndarray, squares: np.ndarray,
    counts: np.ndarray,
) -> tuple[int, float, float, float, float]:  # fmt: skip
    """Bring together what ``observe_pieces`` found: return doublings, least and greatest value, sum, sum of squares.

    ``channels`` float32 ``[3, channels]`` (least, greatest, largest magnitude), ``squares`` float64 ``[channels]`` and
    ``counts`` int64 ``[2048]`` are filled; ``histograms`` ``[threads, 2049]`` grow to the largest range.
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
    for thread in range(len(histograms)):
        grow(histograms[thread, :BINS], doublings - histograms[thread, BINS])
    counts[:] = histograms[0, :BINS]
    for thread in range(1, len(histograms)):
        counts += histograms[thread, :BINS]
    return doublings, np.min(channels[0]), np.max(channels[1]), total, total_squares


@_compiled
def conclude_tokens(
    flat: np.ndarray, peaks: np.ndarray, found: np.ndarray, largest: np.ndarray, counts: np.ndarray
) -> int:
    """Bring the largest tokens to the first thread's place and return their number; fill their ``counts`` from peaks.

    Arguments as in ``observe_pieces``, ``found`` and ``largest`` those of all threads; ``counts`` int64 ``[512]`` of
    zeros stay so where there are no peaks.
    """
    if peaks.size:
        rank_tokens(flat.reshape(peaks.size, flat.size // peaks.size), peaks, counts, found[0], largest[0])
    else:
        join_tokens(found, largest)
    kept = 0
    while kept < largest.shape[1] and found[0, 0, kept] >= 0:
        kept += 1
    return kept
