"""Compiled searches for the scales of K-quants and IQ4_NL, 64 sub-blocks side by side.

Each follows the published reference search of llama.cpp (``ggml-quants.c``) operation by operation, so the results are
bit for bit its own when that is compiled without fused multiply-add; only the order of the loops differs: every
variable of the scalar algorithm is an array over ``LANES`` sub-blocks here, which is what vector units want.

``x`` and ``w`` are float32 ``[n, size]``; a tile of them is ``[size, LANES]``, the last one filled up with zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

Array = Any
Single = Any  # one float32

LANES = 64
GIVEN, SQUARE, MAGNITUDE, SPREAD = 0, 1, 2, 3  # weights: as given; x**2; |x|; rms of the sub-block + |x|

_MAGIC = np.float32(12582912)
_ZERO = np.float32(0)
_ONE = np.float32(1)
_TINY = np.float32(1e-15)  # below this a group counts as zero: a float16 scale would vanish


@compiled
def _lane() -> Any:
    return np.zeros(LANES, np.float32)


@compiled
def _tile(x: Array) -> Any:
    return np.empty((x.shape[1], LANES), np.float32)


@compiled
def _round(value: Any, low: Any, high: Any) -> Any:
    rounded = (value + _MAGIC) - _MAGIC
    rounded = rounded if rounded > low else low
    return rounded if rounded < high else high


@compiled
def _load(x: Array, first: int, tile: Array) -> None:
    for lane in range(LANES):
        if first + lane < x.shape[0]:
            for item in range(x.shape[1]):
                tile[item, lane] = x[first + lane, item]
        else:
            for item in range(x.shape[1]):
                tile[item, lane] = _ZERO


@compiled
def _weigh(x: Array, w: Array, first: int, kind: int, tile: Array, total: Array) -> None:
    """Fill the tile of weights; ``total`` is scratch."""
    size = x.shape[0]
    if kind == GIVEN:
        _load(w, first, tile)
        return
    total[:] = _ZERO
    for item in range(size):
        for lane in range(LANES):
            total[lane] += x[item, lane] * x[item, lane]
    for lane in range(LANES):
        total[lane] = np.sqrt(total[lane] / np.float32(size)) if kind == SPREAD else _ZERO
    for item in range(size):
        for lane in range(LANES):
            value = x[item, lane]
            tile[item, lane] = value * value if kind == SQUARE else total[lane] + abs(value)


@compiled
def _affine_start(x: Array, w: Array, low: Array, width: Array, total: Array, moment: Array) -> None:
    """Least value (at most 0), greatest value, sum of weights and of weighted values."""
    for lane in range(LANES):
        low[lane] = x[0, lane]
        width[lane] = x[0, lane]
        total[lane] = w[0, lane]
        moment[lane] = w[0, lane] * x[0, lane]
    for item in range(1, x.shape[0]):
        for lane in range(LANES):
            value, weight = x[item, lane], w[item, lane]
            low[lane] = value if value < low[lane] else low[lane]
            width[lane] = value if value > width[lane] else width[lane]
            total[lane] += weight
            moment[lane] += weight * value
    for lane in range(LANES):
        low[lane] = low[lane] if low[lane] < _ZERO else _ZERO


@compiled
def _affine_error(
    x: Array, w: Array, low: Array, inverse: Array, top: Single, scale: Array, shift: Array, absolute: bool, out: Array
) -> None:
    out[:] = _ZERO
    for item in range(x.shape[0]):
        for lane in range(LANES):
            code = _round(inverse[lane] * (x[item, lane] - low[lane]), _ZERO, top)
            error = scale[lane] * code + shift[lane] - x[item, lane]
            out[lane] += w[item, lane] * (abs(error) if absolute else error * error)


@compiled
def _affine_sums(x: Array, w: Array, low: Array, inverse: Array, top: Single, s1: Array, s2: Array, sx: Array) -> None:
    s1[:] = _ZERO
    s2[:] = _ZERO
    sx[:] = _ZERO
    for item in range(x.shape[0]):
        for lane in range(LANES):
            code = _round(inverse[lane] * (x[item, lane] - low[lane]), _ZERO, top)
            weighted = w[item, lane] * code
            s1[lane] += weighted
            s2[lane] += weighted * code
            sx[lane] += weighted * x[item, lane]


@compiled
def _affine_solve(total: Array, moment: Array, s1: Array, s2: Array, sx: Array, scale: Array, shift: Array) -> None:
    """Least squares for scale and offset, the offset held at or below 0; ``s1`` becomes the determinant."""
    for lane in range(LANES):
        determinant = total[lane] * s2[lane] - s1[lane] * s1[lane]
        slope = (total[lane] * sx[lane] - moment[lane] * s1[lane]) / determinant
        offset = (s2[lane] * moment[lane] - s1[lane] * sx[lane]) / determinant
        positive = offset > _ZERO
        scale[lane] = sx[lane] / s2[lane] if positive else slope
        shift[lane] = _ZERO if positive else offset
        s1[lane] = determinant


@compiled
def _affine_keep(
    error: Array, determinant: Array, try_scale: Array, try_low: Array, best: Array, scale: Array, low: Array
) -> None:
    for lane in range(LANES):
        better = (determinant[lane] > _ZERO) & (error[lane] < best[lane])
        best[lane] = error[lane] if better else best[lane]
        scale[lane] = try_scale[lane] if better else scale[lane]
        low[lane] = try_low[lane] if better else low[lane]


@compiled
def affine(
    x: Array, w: Array, kind: int, top: Single, first: Single, step: Single, steps: int, absolute: bool, scale: Array,
    minimum: Array,
) -> None:  # fmt: skip
    """Fit ``x ~ scale * code - minimum``, codes 0 to ``top``, ``minimum`` >= 0.

    Tries ``steps + 1`` inverse scales ``(top + first + step * i) / (high - low)``, solving for scale and minimum each
    time.  As in the reference an accepted ``low`` also changes what the following steps try.
    """
    tile = _tile(x)
    weight = _tile(x)
    low, high, total, moment = _lane(), _lane(), _lane(), _lane()
    inverse, best, fitted = _lane(), _lane(), _lane()
    s1, s2, sx = _lane(), _lane(), _lane()
    slope, shift, error = _lane(), _lane(), _lane()
    for start in range(0, x.shape[0], LANES):
        _load(x, start, tile)
        _weigh(tile, w, start, kind, weight, total)
        _affine_start(tile, weight, low, high, total, moment)
        for lane in range(LANES):
            inverse[lane] = top / (high[lane] - low[lane])
            fitted[lane] = _ONE / inverse[lane]
        _affine_error(tile, weight, low, inverse, top, fitted, low, absolute, best)
        for attempt in range(steps + 1):
            for lane in range(LANES):
                inverse[lane] = (first + step * np.float32(attempt) + top) / (high[lane] - low[lane])
            _affine_sums(tile, weight, low, inverse, top, s1, s2, sx)
            _affine_solve(total, moment, s1, s2, sx, slope, shift)
            _affine_error(tile, weight, low, inverse, top, slope, shift, absolute, error)
            _affine_keep(error, s1, slope, shift, best, fitted, low)
        for lane in range(min(LANES, x.shape[0] - start)):
            scale[start + lane] = fitted[lane]
            minimum[start + lane] = -low[lane]


@compiled
def _largest(x: Array, peak: Array, size: Array) -> None:
    """The value of largest magnitude, the first of equals, and its magnitude."""
    peak[:] = _ZERO
    size[:] = _ZERO
    for item in range(x.shape[0]):
        for lane in range(LANES):
            value = x[item, lane]
            larger = abs(value) > size[lane]
            peak[lane] = value if larger else peak[lane]
            size[lane] = abs(value) if larger else size[lane]


@compiled
def _symmetric_sums(x: Array, w: Array, inverse: Array, top: Single, sx: Array, s2: Array) -> None:
    sx[:] = _ZERO
    s2[:] = _ZERO
    for item in range(x.shape[0]):
        for lane in range(LANES):
            code = _round(inverse[lane] * x[item, lane], -top, top - _ONE)
            sx[lane] += w[item, lane] * x[item, lane] * code
            s2[lane] += w[item, lane] * code * code


@compiled
def symmetric(x: Array, w: Array, kind: int, top: Single, scale: Array, inverses: Array) -> None:
    """Fit ``x ~ scale * code``, codes ``-top`` to ``top - 1``: 19 inverse scales, each with its least-squares scale.

    ``inverses`` receives the inverse scale whose rounding won; both are 0 for a group without values.
    """
    tile = _tile(x)
    weight = _tile(x)
    peak, size, best, fitted = _lane(), _lane(), _lane(), _lane()
    inverse, winner = _lane(), _lane()
    sx, s2 = _lane(), _lane()
    for start in range(0, x.shape[0], LANES):
        _load(x, start, tile)
        _weigh(tile, w, start, kind, weight, best)
        _largest(tile, peak, size)
        best[:] = -_ONE
        for attempt in range(-10, 10):
            offset = np.float32(0.1) * np.float32(0 if attempt == -10 else attempt)
            if attempt == 0:
                continue
            for lane in range(LANES):
                inverse[lane] = -(top + offset) / peak[lane]
            _symmetric_sums(tile, weight, inverse, top, sx, s2)
            for lane in range(LANES):
                better = (s2[lane] > _ZERO) & (sx[lane] * sx[lane] > best[lane] * s2[lane])
                fitted[lane] = sx[lane] / s2[lane] if better else fitted[lane]
                best[lane] = fitted[lane] * sx[lane] if better else best[lane]
                winner[lane] = inverse[lane] if better else winner[lane]
        for lane in range(min(LANES, x.shape[0] - start)):
            empty = size[lane] < _TINY or best[lane] < _ZERO
            scale[start + lane] = _ZERO if empty else fitted[lane]
            inverses[start + lane] = _ZERO if empty else winner[lane]


@compiled
def _refine(x: Array, codes: Array, w: Array, low: Single, top: Single, sx: Array, s2: Array) -> int:
    """Move codes one after another where that brings the least-squares fit closer; return how many moved."""
    moved = 0
    for item in range(x.shape[0]):
        for lane in range(LANES):
            value, weight, code = x[item, lane], w[item, lane], codes[item, lane]
            rest_x = sx[lane] - weight * value * code
            rest_2 = s2[lane] - weight * code * code
            candidate = _round(value * rest_2 / rest_x, low, top)
            new_x = rest_x + weight * value * candidate
            new_2 = rest_2 + weight * candidate * candidate
            closer = new_x * new_x * s2[lane] > sx[lane] * sx[lane] * new_2
            better = (rest_x > _ZERO) & ((low < _ZERO) | (rest_2 > _ZERO)) & (new_2 > _ZERO) & closer
            better &= candidate != code
            codes[item, lane] = candidate if better else code
            sx[lane] = new_x if better else sx[lane]
            s2[lane] = new_2 if better else s2[lane]
            moved += better
    return moved


@compiled
def _codes_sums(
    x: Array, w: Array, inverse: Array, low: Single, top: Single, codes: Array, sx: Array, s2: Array
) -> None:
    sx[:] = _ZERO
    s2[:] = _ZERO
    for item in range(x.shape[0]):
        for lane in range(LANES):
            code = _round(inverse[lane] * x[item, lane], low, top)
            codes[item, lane] = code
            sx[lane] += w[item, lane] * x[item, lane] * code
            s2[lane] += w[item, lane] * code * code


@compiled
def refined(x: Array, top: Single, scale: Array) -> None:
    """Fit ``x ~ scale * code``, codes ``-top`` to ``top - 1``, weighted by ``x**2``: up to five rounds of moves."""
    tile = _tile(x)
    weight = _tile(x)
    codes = _tile(x)
    peak, size, inverse = _lane(), _lane(), _lane()
    sx, s2 = _lane(), _lane()
    for start in range(0, x.shape[0], LANES):
        _load(x, start, tile)
        _weigh(tile, tile, start, SQUARE, weight, size)
        _largest(tile, peak, size)
        for lane in range(LANES):
            inverse[lane] = -top / peak[lane]
        _codes_sums(tile, weight, inverse, -top, top - _ONE, codes, sx, s2)
        for _ in range(5):
            if _refine(tile, codes, weight, -top, top - _ONE, sx, s2) == 0:
                break
        for lane in range(min(LANES, x.shape[0] - start)):
            empty = size[lane] < _TINY or not s2[lane] > _ZERO
            scale[start + lane] = _ZERO if empty else sx[lane] / s2[lane]


@compiled
def _positive_error(x: Array, w: Array, inverse: Array, top: Single, out: Array) -> None:
    out[:] = _ZERO
    for item in range(x.shape[0]):
        for lane in range(LANES):
            code = _round(inverse[lane] * x[item, lane], _ZERO, top)
            error = x[item, lane] - _ONE / inverse[lane] * code
            out[lane] += w[item, lane] * error * error


@compiled
def positive(x: Array, w: Array, top: Single, scale: Array, codes: Array) -> None:
    """Fit ``x ~ scale * code`` for ``x >= 0``, codes 0 to ``top``: nine scales, then up to five rounds of moves.

    Used for the sub-block scales and minimums of a super-block; ``codes`` uint8 ``[n, size]``.
    """
    tile = _tile(x)
    weight = _tile(x)
    chosen = _tile(x)
    peak, size, inverse, winner = _lane(), _lane(), _lane(), _lane()
    best, error = _lane(), _lane()
    for start in range(0, x.shape[0], LANES):
        _load(x, start, tile)
        _load(w, start, weight)
        _largest(tile, peak, size)
        best[:] = np.float32(np.inf)
        for attempt in range(-5, 5):
            offset = np.float32(0.1) * np.float32(0 if attempt == -5 else attempt)
            if attempt == 0:
                continue
            for lane in range(LANES):
                inverse[lane] = (offset + top) / peak[lane]
            _positive_error(tile, weight, inverse, top, error)
            for lane in range(LANES):
                better = error[lane] < best[lane]
                best[lane] = error[lane] if better else best[lane]
                winner[lane] = inverse[lane] if better else winner[lane]
        _codes_sums(tile, weight, winner, _ZERO, top, chosen, error, best)
        for _ in range(5):
            if _refine(tile, chosen, weight, _ZERO, top, error, best) == 0:
                break
        for lane in range(min(LANES, x.shape[0] - start)):
            empty = peak[lane] < _TINY or not best[lane] > _ZERO
            scale[start + lane] = _ZERO if empty else error[lane] / best[lane]
            for item in range(x.shape[1]):
                codes[start + lane, item] = np.uint8(0) if empty else np.uint8(np.int32(chosen[item, lane]))


@compiled
def _table_sums(
    x: Array, w: Array, inverse: Array, levels: Array, edges: Array, q: Array, sx: Array, s2: Array
) -> None:
    sx[:] = _ZERO
    s2[:] = _ZERO
    for item in range(x.shape[0]):
        q[:] = levels[0]
        for edge in range(edges.shape[0]):
            limit, step = edges[edge], levels[edge + 1] - levels[edge]
            for lane in range(LANES):
                q[lane] += step if inverse[lane] * x[item, lane] >= limit else _ZERO
        for lane in range(LANES):
            weighted = w[item, lane] * q[lane]
            sx[lane] += weighted * x[item, lane]
            s2[lane] += weighted * q[lane]


@compiled
def table(x: Array, w: Array, kind: int, levels: Array, edges: Array, tries: int, scale: Array) -> None:
    """Fit ``x ~ scale * level`` with ascending ``levels`` (IQ4_NL): ``2 * tries + 2`` scales, each solved."""
    tile = _tile(x)
    weight = _tile(x)
    peak, size, best, fitted = _lane(), _lane(), _lane(), _lane()
    inverse, q = _lane(), _lane()
    sx, s2 = _lane(), _lane()
    for start in range(0, x.shape[0], LANES):
        _load(x, start, tile)
        _weigh(tile, w, start, kind, weight, best)
        _largest(tile, peak, size)
        best[:] = -_ONE
        for attempt in range(-tries - 1, tries + 1):
            for lane in range(LANES):
                first = _ONE / (-peak[lane] / levels[0])
                inverse[lane] = first if attempt < -tries else (np.float32(attempt) + levels[0]) / peak[lane]
            _table_sums(tile, weight, inverse, levels, edges, q, sx, s2)
            for lane in range(LANES):
                better = (s2[lane] > _ZERO) & (sx[lane] * sx[lane] > best[lane] * s2[lane])
                fitted[lane] = sx[lane] / s2[lane] if better else fitted[lane]
                best[lane] = fitted[lane] * sx[lane] if better else best[lane]
        for lane in range(min(LANES, x.shape[0] - start)):
            empty = size[lane] < _TINY or best[lane] < _ZERO
            scale[start + lane] = _ZERO if empty else fitted[lane]
