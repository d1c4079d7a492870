"""From weights to the headers of GGUF blocks, as llama.cpp chooses them.

``x`` is float32 ``[n, width]``, finite.  A plain fit equals llama.cpp's quantization without an importance matrix (the
``gguf`` package's, where that has one); searched fits of K-quants and IQ4_NL with ``imatrix_weights`` equal its
quantization with one.  Values beyond what a float16 scale reaches are clipped to it first, so a huge block saturates
and never becomes infinite.  That is the one difference: MXFP4 of values that round to ``2**128`` stays finite too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.numerics.formats.gguf import codes as kernels
from workbench.numerics.formats.gguf import search
from workbench.numerics.formats.gguf.blocks import Block
from workbench.numerics.formats.gguf.headers import (
    from_bounds,
    from_peaks,
    half_octets,
    write_iq4,
    write_k2,
    write_k3,
    write_k4,
    write_k6,
)

Array = Any
_HALF_MAX = np.float32(65504)
_TINY = np.float32(1e-15)
_TOP_EXPONENT = 252  # 12 * 2**(252 - 128), MXFP4's largest level, is still a finite float32

_SHRINK_FACTORS = tuple(1.0 - 0.04 * step for step in range(1, 23))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """``header`` uint8 ``[n, header_octets]``; ``origin`` and ``factor`` float32 ``[n]`` (IQ4_XS: ``[n, groups]``) as
    in GgufParameters."""

    header: Array
    origin: Array | None = None
    factor: Array | None = None


def inverse(scale: Array) -> Array:
    """Return ``1 / scale``; 0 where the scale is 0 or too small for a finite inverse."""
    with np.errstate(divide="ignore", over="ignore"):
        result = np.float32(1) / scale
    return np.where(np.isfinite(result), result, np.float32(0)).astype(np.float32)


def peaks(x: Array) -> tuple[Array, int]:
    """Return the value of largest magnitude of each block and the number of blocks with NaN or infinity."""
    out = np.empty(len(x), np.float32)
    return out, int(kernels.extremes(x.view(np.int32), out.view(np.int32)))


def plain(block: Block, x: Array, peak: Array, shrink: float = 1.0) -> Fit:
    """Return the fit without importance; ``shrink`` makes the range of the simple formats smaller."""
    return _PLAIN[block.fitting](block, x, peak, np.float32(shrink))


def searches(block: Block) -> bool:
    """Whether llama.cpp looks for better scales when it has an importance matrix."""
    return block.rounding != "away" and block.fitting != "e8m0"


def searched(block: Block, x: Array, weights: Array) -> Fit:
    """Return the fit for the error weights ``[n, width]``, for formats that ``searches``."""
    return _SEARCHED[block.fitting](block, _clipped(block, x), weights)


def imatrix_weights(block: Block, x: Array, importance: Array, row_blocks: int) -> Array:
    """Return llama.cpp's error weights for an importance matrix: ``importance * sqrt(sigma2 + x**2)``.

    ``sigma2`` is twice the mean square of the block, in Q2_K once, in Q4_0 to Q5_1 once that of the whole row of
    ``row_blocks`` blocks; Q6_K takes the importance as it is.
    """
    if block.fitting == "k6":
        return importance
    squares = np.square(_clipped(block, x))
    span = row_blocks if block.rounding == "up" else 1
    mean = np.add.accumulate(squares.reshape(-1, span * block.width), axis=1)[:, -1:]
    once = block.rounding == "up" or block.fitting == "k2"
    mean *= np.float32((1.0 if once else 2.0) / (span * block.width))
    return importance * np.sqrt(np.repeat(mean, span, axis=0) + squares)


def candidates(block: Block, x: Array, peak: Array, weights: Array) -> Iterator[Fit]:
    """Yield the plain fit and others, of which the one with the least weighted error is to be kept."""
    yield plain(block, x, peak)
    if searches(block):
        yield searched(block, x, weights)
        if block.rounding == "even":
            yield searched(block, x, imatrix_weights(block, x, weights, 1))
        return
    factors = (0.5, 2.0) if block.fitting == "e8m0" else _SHRINK_FACTORS
    for shrink in factors if len(block.levels) < 32 else factors[:5]:
        yield plain(block, x, peak, shrink)


def _clipped(block: Block, x: Array) -> Array:
    """Bound ``x`` to what float16 units times the largest sub-block scale and level reach."""
    units = {"k2": 15, "k3": 32, "k4": 63, "k6": 128, "iq4_units": 32}.get(block.fitting, 1)
    limit = np.float32(_HALF_MAX * np.float32(units * max(abs(block.levels[0]), abs(block.levels[-1]))))
    return x if np.abs(x).max(initial=0) <= limit else np.clip(x, -limit, limit)


def _absmax(block: Block, x: Array, peak: Array, shrink: np.float32) -> Fit:
    lowest = np.float32(block.levels[block.codes[0]])
    signed = block.rounding == "up"
    header, factor = np.empty((len(x), 2), np.uint8), np.empty(len(x), np.float32)
    from_peaks(peak, lowest if signed else -lowest, signed, shrink, header, factor)
    return Fit(header=header, factor=factor)


def _bounds(block: Block, x: Array, peak: Array, shrink: np.float32) -> Fit:
    low, high = np.empty(len(x), np.float32), np.empty(len(x), np.float32)
    kernels.bounds(x.view(np.int32), low.view(np.int32), high.view(np.int32))
    header, factor = np.empty((len(x), 4), np.uint8), np.empty(len(x), np.float32)
    from_bounds(low, high, np.float32(block.levels[-1]), shrink, header, factor)
    return Fit(header=header, origin=low, factor=factor)


def _absmax_search(block: Block, x: Array, weights: Array) -> Fit:
    scale = np.clip(_symmetric(block, x, weights, search.GIVEN)[:, 0], -_HALF_MAX, _HALF_MAX)
    header = half_octets(scale)
    return Fit(header=header, factor=inverse(_halves(header)))


def _bounds_search(block: Block, x: Array, weights: Array) -> Fit:
    scale, minimum = _affine(block, x, weights, search.GIVEN, -0.9, 0.05, 36)
    scale_header, low_header = half_octets(scale[:, 0]), half_octets(-minimum[:, 0])
    header = np.concatenate([scale_header, low_header], axis=1)
    return Fit(header=header, origin=_halves(low_header), factor=inverse(_halves(scale_header)))


def _halves(raw: Array) -> Array:
    return raw.view(np.float16)[:, 0].astype(np.float32)


def _e8m0(block: Block, x: Array, peak: Array, shrink: np.float32) -> Fit:
    """The exponent of the largest value, less that of the largest level; blocks below ``2**-124`` count as zero."""
    size = np.abs(peak)
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(size)) + np.float32(127 - 2 + np.log2(shrink))
    stored = np.clip(exponent, 0, _TOP_EXPONENT).astype(np.uint8)
    power = np.ldexp(np.float32(1), 128 - np.maximum(stored, 1).astype(np.int32))
    factor = np.where(stored > 0, power, np.float32(0)).astype(np.float32)
    return Fit(header=stored[:, None], factor=factor)


def _iq4(block: Block, x: Array, peak: Array, shrink: np.float32) -> Fit:
    return _iq4_search(block, _clipped(block, x), x, search.SQUARE)


def _iq4_search(block: Block, x: Array, weights: Array, kind: int = search.GIVEN) -> Fit:
    scale = np.empty(len(x), np.float32)
    edges, _ = block.ranked()
    search.table(x, weights, kind, block.used_levels(), edges, 7, scale)
    scale = np.clip(scale, -_HALF_MAX, _HALF_MAX)
    return Fit(header=half_octets(scale), factor=inverse(scale))


def _iq4_units(block: Block, x: Array, peak: Array, shrink: np.float32) -> Fit:
    return _iq4_units_search(block, _clipped(block, x), x, search.SQUARE)


def _iq4_units_search(block: Block, x: Array, weights: Array, kind: int = search.GIVEN) -> Fit:
    """The scales of IQ4_NL, then a unit that gives the largest of them the code -32."""
    scales = np.empty(len(x) * block.groups, np.float32)
    edges, _ = block.ranked()
    groups = np.ascontiguousarray(x).reshape(-1, block.group)
    search.table(groups, weights.reshape(-1, block.group), kind, block.used_levels(), edges, 7, scales)
    scale = scales.reshape(len(x), -1)
    most = np.take_along_axis(scale, np.abs(scale).argmax(axis=1)[:, None], axis=1)
    unit = most / np.float32(-32)
    codes = np.clip(np.rint(inverse(unit) * scale), -32, 31)
    return Fit(header=write_iq4(unit[:, 0], (codes + 32).astype(np.uint8)), factor=inverse(unit * codes))


def _affine(
    block: Block, x: Array, weights: Array, kind: int, first: float, step: float, steps: int
) -> tuple[Array, Array]:
    """Return the sub-block scales and minimums, float32 ``[n, groups]``."""
    groups = x.reshape(-1, block.group)
    scale, minimum = np.empty(len(groups), np.float32), np.empty(len(groups), np.float32)
    top, absolute = np.float32(block.levels[-1]), kind == search.MAGNITUDE
    search.affine(
        groups, weights.reshape(-1, block.group), kind, top, np.float32(first), np.float32(step), steps, absolute,
        scale, minimum,
    )  # fmt: skip
    return scale.reshape(len(x), -1), minimum.reshape(len(x), -1)


def _in_units(values: Array, top: int) -> tuple[Array, Array]:
    """Return the float16 unit and the whole multiples 0 to ``top`` of it for positive ``values [n, groups]``."""
    most = np.maximum(values.max(axis=1), np.float32(0))
    with np.errstate(divide="ignore", over="ignore"):
        per_unit = np.where(most > _TINY, np.float32(top) / most, np.float32(0)).astype(np.float32)
    codes = np.clip(np.rint(per_unit[:, None] * values), 0, top).astype(np.uint8)
    return most / np.float32(top), codes


def _k_affine(block: Block, x: Array, peak: Array, shrink: np.float32) -> Fit:
    kind, first, steps = {"q2_k": (search.MAGNITUDE, -0.5, 15), "q4_k": (search.SPREAD, -1.0, 20)}.get(
        block.name, (search.SPREAD, -0.5, 15)
    )
    x = _clipped(block, x)
    scale, minimum = _affine(block, x, x, kind, first, 0.1, steps)
    top = 15 if block.fitting == "k2" else 63
    write = write_k2 if block.fitting == "k2" else write_k4
    return Fit(header=write(*_in_units(scale, top), *_in_units(minimum, top)))


def _k_affine_search(block: Block, x: Array, weights: Array) -> Fit:
    scale, minimum = _affine(block, x, weights, search.GIVEN, -0.9, 0.05, 36)
    totals = _group_totals(block, weights)
    top, write = (15, write_k2) if block.fitting == "k2" else (63, write_k4)
    parts = []
    for values in (scale, minimum):
        unit, codes = np.empty(len(x), np.float32), np.empty(values.shape, np.uint8)
        search.positive(values, totals, np.float32(top), unit, codes)
        parts += [unit, codes]
    return Fit(header=write(*parts))


def _group_totals(block: Block, weights: Array) -> Array:
    grouped = weights.reshape(len(weights), block.groups, block.group)
    total: Array = np.add.accumulate(grouped, axis=2)[:, :, -1]
    return np.ascontiguousarray(total)


def _symmetric(block: Block, x: Array, weights: Array, kind: int) -> Array:
    groups = x.reshape(-1, block.group)
    scale, unused = np.empty(len(groups), np.float32), np.empty(len(groups), np.float32)
    top = np.float32(-block.levels[0])
    search.symmetric(groups, weights.reshape(-1, block.group), kind, top, scale, unused)
    return scale.reshape(len(x), -1)


def _in_signed_units(values: Array, top: int) -> tuple[Array, Array]:
    """Return the unit that gives the value of largest magnitude the code ``-top``, and all codes, float32."""
    farthest = np.abs(values).argmax(axis=1)
    most = np.take_along_axis(values, farthest[:, None], axis=1)[:, 0]
    with np.errstate(divide="ignore", over="ignore"):
        per_unit = np.where(np.abs(most) >= _TINY, np.float32(-top) / most, np.float32(0)).astype(np.float32)
    codes = np.clip(np.rint(per_unit[:, None] * values), -top, top - 1)
    return inverse(per_unit), codes


def _k3(block: Block, x: Array, peak: Array, shrink: np.float32) -> Fit:
    groups = _clipped(block, x).reshape(-1, block.group)
    scale = np.empty(len(groups), np.float32)
    search.refined(groups, np.float32(4), scale)
    unit, codes = _in_signed_units(scale.reshape(len(x), -1), 32)
    return Fit(header=write_k3(unit, np.where(unit[:, None] == 0, 0, codes + 32).astype(np.uint8)))


def _k3_search(block: Block, x: Array, weights: Array) -> Fit:
    scale = _symmetric(block, x, weights, search.GIVEN)
    unit, per_unit = np.empty(len(x), np.float32), np.empty(len(x), np.float32)
    search.symmetric(scale, _group_totals(block, weights), search.GIVEN, np.float32(32), unit, per_unit)
    codes = np.clip(np.rint(per_unit[:, None] * scale), -32, 31) + 32
    return Fit(header=write_k3(unit, np.where(unit[:, None] == 0, 0, codes).astype(np.uint8)))


def _k6(block: Block, x: Array, peak: Array, shrink: np.float32) -> Fit:
    return _k6_search(block, _clipped(block, x), x, search.SQUARE)


def _k6_search(block: Block, x: Array, weights: Array, kind: int = search.GIVEN) -> Fit:
    unit, codes = _in_signed_units(_symmetric(block, x, weights, kind), 128)
    return Fit(header=write_k6(unit, codes.astype(np.int8)))


_PLAIN: dict[str, Callable[[Block, Array, Array, np.float32], Fit]] = {
    "absmax": _absmax, "bounds": _bounds, "e8m0": _e8m0, "iq4": _iq4, "iq4_units": _iq4_units, "k2": _k_affine,
    "k3": _k3, "k4": _k_affine, "k6": _k6,
}  # fmt: skip
_SEARCHED: dict[str, Callable[[Block, Array, Array], Fit]] = {
    "absmax": _absmax_search, "bounds": _bounds_search, "iq4": _iq4_search, "iq4_units": _iq4_units_search,
    "k2": _k_affine_search, "k3": _k3_search, "k4": _k_affine_search, "k6": _k6_search,
}  # fmt: skip
