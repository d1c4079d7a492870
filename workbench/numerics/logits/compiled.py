"""Rows of float32 logits in one walk over memory.  Importing this imports numba: only ``rows`` does so.

Exponentials are float32 (Cody and Waite's reduction, then Cephes' polynomial; relative error below 2e-7, 3e-8 in the
root of its mean square), their sums float64: each place of a tile adds up along the row, and at the end the places are
added.
"""

from __future__ import annotations

import math

import numpy as np

from workbench.numerics.jit import compiled

TILE = 512
"""Entries that are worked on at once; what is kept of them stays in a core's nearest cache."""

LARGEST_SHIFT = 30.0
"""Differences of logits that lie further than this from their mean are left to the caller."""

FACTS = 5
"""Numbers of a row that :func:`compare` writes."""

_LOG2E, _LN2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ZERO, _HALF, _ONE, _LEAST = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(-87.0)
_BIAS, _MANTISSA = np.int32(127), np.int32(23)
_C2, _C3, _C4 = np.float32(5.0000001201e-1), np.float32(1.6666665459e-1), np.float32(4.1665795894e-2)
_C5, _C6, _C7 = np.float32(8.3334519073e-3), np.float32(1.3981999507e-3), np.float32(1.9875691500e-4)
_REACH = np.float32(LARGEST_SHIFT)
_GREATEST16, _BITS_OF_HALF, _NORMAL16 = np.float32(65504.0), np.int32(0x3F000000), np.int32(0x38800000)
_REBIAS16, _SIGN16, _REST16, _WIDEN16 = np.int32(0x38000000), np.int32(0x8000), np.int32(0x7FFF), np.float32(2.0**112)
_ROUND16, _DROPPED16, _ONE_BIT = np.int32(0x0FFF), np.int32(13), np.int32(1)


@compiled
def _exponentials(values: np.ndarray, top: np.float32, out: np.ndarray, bits: np.ndarray) -> None:
    """Write ``exp(values - top)`` of at most a tile; none of the values is greater than ``top``."""
    n = values.size
    for i in range(n):
        x = values[i] - top
        x = x if x > _LEAST else _LEAST
        whole = np.floor(x * _LOG2E + _HALF)
        r = x - whole * _LN2_HIGH - whole * _LN2_LOW
        tail = _C2 + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7))))
        out[i] = tail * r * r + r + _ONE
        bits[i] = (np.int32(whole) + _BIAS) << _MANTISSA
    powers = bits.view(np.float32)
    for i in range(n):
        out[i] *= powers[i]


@compiled
def _excesses(a: np.ndarray, b: np.ndarray, mean: float, work: np.ndarray, out: np.ndarray, far: np.ndarray) -> None:
    """Write ``exp(s) - 1 - s`` of ``s = b - a - mean`` of at most a tile, and raise ``far`` to the sizes of ``s``.

    With ``s = n ln 2 + r`` that is ``2**n (exp(r) - 1 - r) + (2**n - 1) r + (2**n - 1 - n ln 2)``: small where s is.
    """
    n = a.size
    wholes, rests, bits = work[0], work[1], work[2].view(np.int32)
    for i in range(n):
        s = np.float32(np.float64(b[i]) - np.float64(a[i]) - mean)
        size = np.abs(s)
        far[i] = size if size > far[i] else far[i]
        s = s if s > -_REACH else -_REACH
        s = s if s < _REACH else _REACH
        whole = np.floor(s * _LOG2E + _HALF)
        wholes[i], rests[i] = whole, s - whole * _LN2_HIGH - whole * _LN2_LOW
        bits[i] = (np.int32(whole) + _BIAS) << _MANTISSA
    powers = work[2]
    for i in range(n):
        r, less = rests[i], powers[i] - _ONE
        tail = _C2 + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7))))
        out[i] = powers[i] * (tail * r * r) + (less * r + (less - wholes[i] * _LN2))


@compiled
def _greatest(values: np.ndarray, lanes: np.ndarray) -> tuple[np.float32, int]:
    """Return the greatest of a row's values and its first place."""
    lanes[:] = -np.inf
    for start in range(0, values.size, lanes.size):
        part = values[start : start + lanes.size]
        for i in range(part.size):
            lanes[i] = part[i] if part[i] > lanes[i] else lanes[i]
    top = lanes[0]
    for i in range(1, lanes.size):
        top = lanes[i] if lanes[i] > top else top
    for start in range(0, values.size, lanes.size):
        part = values[start : start + lanes.size]
        there = np.int32(0)
        for i in range(part.size):
            there += np.int32(part[i] == top)
        if there:
            for i in range(part.size):
                if part[i] == top:
                    return top, start + i
    return top, 0


@compiled
def compare(reference: np.ndarray, candidate: np.ndarray, facts: np.ndarray) -> None:
    """Write the ``facts`` float64 ``[rows, 5]`` of two sets of logits, float32 ``[rows, entries]``.

    They are the divergence ``KL(softmax(reference) || softmax(candidate))``, the logarithms of both sums of
    exponentials and the places of both greatest entries.  The divergence is NaN where something is not finite or a
    difference is too large.
    """
    entries = reference.shape[1]
    weights, sums, work = np.empty(entries, np.float32), np.empty((2, TILE)), np.empty((3, TILE), np.float32)
    out, far, bits = np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.empty(TILE, np.int32)
    for row in range(len(reference)):
        a, b, fact = reference[row], candidate[row], facts[row]
        top, fact[3] = _greatest(a, far)
        _, fact[4] = _greatest(b, far)
        sums[:] = 0.0
        for start in range(0, entries, TILE):
            own, other, weight = a[start : start + TILE], b[start : start + TILE], weights[start : start + TILE]
            _exponentials(own, top, weight, bits)
            for i in range(own.size):
                wide = np.float64(weight[i])
                sums[0, i] += wide
                sums[1, i] += wide * (np.float64(other[i]) - np.float64(own[i]))
        total = np.sum(sums[0])
        mean = np.sum(sums[1]) / total
        sums[0], far[:] = 0.0, 0.0
        for start in range(0, entries, TILE):
            own, other, weight = a[start : start + TILE], b[start : start + TILE], weights[start : start + TILE]
            _excesses(own, other, mean, work, out, far)
            for i in range(own.size):
                sums[0, i] += np.float64(weight[i]) * np.float64(out[i])
        divergence = max(math.log1p(np.sum(sums[0]) / total), 0.0)
        fact[1] = top + math.log(total)
        fact[2] = fact[1] + mean + divergence
        known = mean - mean == 0.0 and far.max() <= _REACH
        fact[0] = divergence if known else np.nan


@compiled
def gini_impurity(logits: np.ndarray, impurities: np.ndarray) -> None:
    """Write ``1 - sum p ** 2`` of the probabilities of each row, float64 ``[rows]``; NaN with NaN or infinity."""
    weights, bits, lanes = np.empty(TILE, np.float32), np.empty(TILE, np.int32), np.empty(TILE, np.float32)
    sums = np.empty((3, TILE))
    for row in range(len(logits)):
        values = logits[row]
        top, _ = _greatest(values, lanes)
        sums[:] = 0.0
        for start in range(0, values.size, TILE):
            own = values[start : start + TILE]
            _exponentials(own, top, weights, bits)
            for i in range(own.size):
                wide = np.float64(weights[i])
                sums[0, i] += wide
                sums[1, i] += wide * wide
                sums[2, i] += own[i]
        total, finite = np.sum(sums[0]), np.sum(sums[2])
        impurities[row] = 1.0 - np.sum(sums[1]) / (total * total) if finite - finite == 0.0 else np.nan


@compiled
def _narrowed(values: np.ndarray, top: np.float32, codes: np.ndarray, work: np.ndarray) -> None:
    """Write float16 codes of ``values - top`` of at most a tile, rounded to nearest, ties to even."""
    n = values.size
    sizes, halves = work[0], work[1]
    for i in range(n):
        size = top - values[i]
        size = size if size < _GREATEST16 else _GREATEST16
        sizes[i], halves[i] = size, size + _HALF
    wide, narrow = sizes.view(np.int32), halves.view(np.int32)
    for i in range(n):
        odd = (wide[i] >> _DROPPED16) & _ONE_BIT
        normal = (wide[i] + _ROUND16 + odd - _REBIAS16) >> _DROPPED16
        codes[i] = np.uint16((normal if wide[i] >= _NORMAL16 else narrow[i] - _BITS_OF_HALF) | _SIGN16)


@compiled
def _widened(codes: np.ndarray, bits: np.ndarray, out: np.ndarray) -> None:
    """Write the float32 numbers, 0 or less, of at most a tile of float16 codes."""
    for i in range(codes.size):
        bits[i] = (np.int32(codes[i]) & _REST16) << _DROPPED16
    exact = bits.view(np.float32)
    for i in range(codes.size):
        out[i] = -(exact[i] * _WIDEN16)


@compiled
def encode(logits: np.ndarray, codes: np.ndarray, facts: np.ndarray) -> None:
    """Write float16 ``codes`` (uint16 ``[rows, entries]``) of the distances of logits from their greatest.

    ``facts`` float32 ``[rows, 2]`` are that greatest entry, and what to add to the distances below 0 so that their
    exponentials sum to what they did.
    """
    entries = logits.shape[1]
    sums, work, bits = np.empty((2, TILE)), np.empty((4, TILE), np.float32), np.empty(TILE, np.int32)
    for row in range(len(logits)):
        values = logits[row]
        top, _ = _greatest(values, work[0])
        sums[:] = 0.0
        for start in range(0, entries, TILE):
            own, code = values[start : start + TILE], codes[row, start : start + TILE]
            _narrowed(own, top, code, work)
            _widened(code, bits, work[0])
            _exponentials(own, top, work[1], bits)
            _exponentials(work[0, : own.size], _ZERO, work[2], bits)
            for i in range(own.size):
                counts = np.float64(work[0, i] != _ZERO)
                sums[0, i] += counts * np.float64(work[1, i])
                sums[1, i] += counts * np.float64(work[2, i])
        true, coded = np.sum(sums[0]), np.sum(sums[1])
        shift = math.log(true / coded) if true > 0.0 and coded > 0.0 else 0.0
        facts[row, 0], facts[row, 1] = top, np.float32(shift if abs(shift) < 2.0**-8 else 0.0)


@compiled
def decode(codes: np.ndarray, top: np.ndarray, shift: np.ndarray, logits: np.ndarray) -> None:
    """Write the float32 ``logits`` ``[rows, entries]`` of what :func:`encode` wrote."""
    work, bits = np.empty(TILE, np.float32), np.empty(TILE, np.int32)
    for row in range(len(codes)):
        most, more = top[row], shift[row]
        for start in range(0, codes.shape[1], TILE):
            out = logits[row, start : start + TILE]
            _widened(codes[row, start : start + TILE], bits, work)
            for i in range(out.size):
                out[i] = (work[i] + more if work[i] != _ZERO else _ZERO) + most
