"""One block of columns of the coupled coordinate descent, compiled.  Importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

SAME = 1e-4
"""A move of less than this share of the scale is none: the value is that code already."""


@compiled
def nearest(table: np.ndarray, value: float) -> float:
    """Return the entry of the ascending ``table`` that is closest to ``value``."""
    low, high = 0, table.size - 1
    while low < high:
        middle = (low + high) // 2
        if table[middle] < value:
            low = middle + 1
        else:
            high = middle
    if low > 0 and value - table[low - 1] <= table[low] - value:
        low -= 1
    return float(table[low])


@compiled
def _add(row: np.ndarray, other: np.ndarray, factor: Any) -> None:
    """Add ``factor`` times the ``other`` to ``row``."""
    for k in range(row.size):
        row[k] += other[k] * factor


@compiled
def move_block(
    values: np.ndarray, slopes: np.ndarray, inputs: np.ndarray, outputs: np.ndarray, scale: np.ndarray,
    base: np.ndarray, table: np.ndarray,
) -> int:  # fmt: skip
    """Move every weight of some columns to its best value given all others; return how many moved.

    All float32, ``values`` and ``slopes`` changed in place: ``values`` ``[columns, rows]``; ``slopes`` of the same
    shape, ``(G D A)^T`` at those columns; ``inputs`` their block of A, ``[columns, columns]``; ``outputs`` G, ``[rows,
    rows]``; ``scale`` and ``base`` ``[columns, rows]``: a weight can be ``scale * entry + base`` for any entry of the
    ascending ``table``.
    """
    columns, rows = values.shape
    moved = 0
    for j in range(columns):
        change = np.zeros(rows, dtype=np.float32)
        for i in range(rows):
            unit = scale[j, i]
            if unit == 0.0:
                continue
            slope = slopes[j, i] + change[i] * inputs[j, j]
            target = values[j, i] - slope / (outputs[i, i] * inputs[j, j])
            best = np.float32(nearest(table, (target - base[j, i]) / unit) * unit + base[j, i])
            step = best - values[j, i]
            if abs(step) <= SAME * abs(unit):
                continue
            values[j, i] = best
            moved += 1
            _add(change, outputs[i], step)
        for later in range(j + 1, columns):
            _add(slopes[later], change, inputs[j, later])
    return moved
