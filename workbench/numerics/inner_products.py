"""Inner products of rows in bfloat16 with rows in float32.  Importing this imports numba: only ``products`` does so.

A strip of each row is widened once for all that it meets.  Each of 256 sums is float32 within a call; the sums of a
call, and what several calls add, are float64.
"""

from __future__ import annotations

import numpy as np

from workbench.numerics.jit import compiled

LANES = 256
"""Sums that are kept side by side, which a core adds up a register at a time."""

STRIP = 8 * LANES
"""Cells that are widened at once."""


@compiled
def add_products(
    stored: np.ndarray, pitch: int, others: np.ndarray, first: int, last: int, sums: np.ndarray
) -> None:  # fmt: skip
    """Add ``sum_i row_s[i] other_n[i]`` over the cells from ``first`` to ``last`` to ``sums``, float64 ``[n, s]``.

    ``stored`` are the bits of bfloat16, uint16 ``[...]``; row s starts at ``pitch * s``.  ``others`` are float32
    ``[n, cells]``.
    """
    count, rows = sums.shape
    bits = np.zeros(STRIP, np.int32)
    wide = bits.view(np.float32)
    lanes = np.zeros((rows, count, LANES), np.float32)
    for start in range(first, last, STRIP):
        size = min(STRIP, last - start)
        for s in range(rows):
            part = stored[pitch * s + start : pitch * s + start + size]
            for i in range(size):
                bits[i] = np.int32(part[i]) << np.int32(16)
            for n in range(count):
                other = others[n, start : start + size]
                if size == STRIP:
                    _add_strip(wide, other, lanes[s, n])
                else:
                    for i in range(size):
                        sums[n, s] += wide[i] * other[i]
    for s in range(rows):
        for n in range(count):
            for i in range(LANES):
                sums[n, s] += lanes[s, n, i]


@compiled
def _add_strip(a: np.ndarray, b: np.ndarray, lanes: np.ndarray) -> None:
    """Add the products of a strip's cells to the ``lanes``: eight at once, so that each lane is written once."""
    for i in range(LANES):
        j, k, m = i + 2 * LANES, i + 4 * LANES, i + 6 * LANES
        near = (a[i] * b[i] + a[i + LANES] * b[i + LANES]) + (a[j] * b[j] + a[j + LANES] * b[j + LANES])
        far = (a[k] * b[k] + a[k + LANES] * b[k + LANES]) + (a[m] * b[m] + a[m + LANES] * b[m + LANES])
        lanes[i] += near + far
