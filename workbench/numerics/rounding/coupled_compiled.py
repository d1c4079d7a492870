"""One block of columns of the coupled coordinate descent, compiled.  Importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.numerics.jit import compiled

SAME = 1e-4
"""A move of less than this share of the scale is none: the value is that code already."""


@compiled
def nearest(table: np.ndarray, value: float, step: float) -> float:
    """Return the entry of the ascending ``table`` that is closest to ``value``, the lower of two.

    ``step`` is the distance of entries that are whole numbers in line, 0 for other tables.
    """
    if step > 0.0:
        place = np.ceil(value / step - 0.5) - table[0] / step
        if place >= table.size:
            return float(table[table.size - 1])
        return float(table[int(place)]) if place > 0.0 else float(table[0])
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
    values: np.ndarray, pulls: np.ndarray, slopes: np.ndarray, inputs: np.ndarray, outputs: np.ndarray,
    scale: np.ndarray, base: np.ndarray, table: np.ndarray, step: float,
) -> int:  # fmt: skip
    """Move every weight of some columns to its best value given all others; return how many moved.

    All float32, ``values``, ``pulls`` and ``slopes`` changed in place: ``values`` ``[columns, rows]``; of the same
    shape ``pulls``, ``(D G)^T`` at those columns, and ``slopes``, ``(G D A)^T``; ``inputs`` their block of A,
    ``[columns, columns]``; ``outputs`` G, ``[rows, rows]``; ``scale`` and ``base`` ``[columns, rows]``: a weight can be
    ``scale * entry + base`` for any entry of the ascending ``table``; ``step`` as in :func:`nearest`.
    """
    columns, rows = values.shape
    moved = 0
    for j in range(columns):
        change = np.zeros(rows, dtype=np.float32)
        before = moved
        for i in range(rows):
            unit = scale[j, i]
            if unit == 0.0:
                continue
            slope = slopes[j, i] + change[i] * inputs[j, j]
            target = values[j, i] - slope / (outputs[i, i] * inputs[j, j])
            best = np.float32(nearest(table, (target - base[j, i]) / unit, step) * unit + base[j, i])
            move = best - values[j, i]
            if abs(move) <= SAME * abs(unit):
                continue
            values[j, i] = best
            moved += 1
            _add(change, outputs[i], move)
        if moved == before:
            continue
        _add(pulls[j], change, np.float32(1))
        for later in range(j + 1, columns):
            _add(slopes[later], change, inputs[j, later])
    return moved
