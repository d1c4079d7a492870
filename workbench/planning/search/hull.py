"""The lower convex hull of every group's (cost, value) and the moves along it, all groups at once.

A move takes one group from one choice to the next on its hull; taken in order of their price they walk the convex front
of the whole problem (the Lagrangian relaxation of the multiple-choice knapsack).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walk:
    """``start`` (int64 ``[groups]``) is the cheapest choice of every group; move ``i`` takes ``group[i]`` from
    ``origin[i]`` to ``choice[i]`` (int64) for ``more[i]`` cost and ``less[i]`` value, at a falling ``price[i]`` of
    ``less / more``."""

    start: np.ndarray
    group: np.ndarray
    origin: np.ndarray
    choice: np.ndarray
    more: np.ndarray
    less: np.ndarray
    price: np.ndarray

    def after(self, steps: int) -> np.ndarray:
        """Return every group's choice (int64 ``[groups]``) after the first ``steps`` moves."""
        picks = self.start.copy()
        picks[self.group[:steps]] = self.choice[:steps]
        return picks


def padded(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays of many lengths as one float64 matrix, padded with infinity."""
    width = max((array.size for array in arrays), default=0)
    sizes = np.array([array.size for array in arrays], np.int64)
    matrix = np.full((len(arrays), width), np.inf)
    if arrays:
        matrix[np.arange(width) < sizes[:, None]] = np.concatenate(arrays)
    return matrix


def walk(cost: np.ndarray, value: np.ndarray) -> Walk:
    """Return the moves of ``cost`` and ``value`` (float64 ``[groups, choices]``, infinite where there is none)."""
    start = _cheapest(cost, value)
    active, current = np.arange(len(cost)), start.copy()
    last = np.full(len(cost), np.inf)
    steps: list[tuple[np.ndarray, ...]] = []
    while active.size:
        rows = np.arange(active.size)
        more = cost[active] - cost[active, current, None]
        less = value[active, current, None] - value[active]
        with np.errstate(invalid="ignore", divide="ignore"):
            price = np.where((more > 0) & (less > 0) & np.isfinite(more), less / more, 0.0)
        best = price.max(axis=1)
        ahead = best > 0
        choice = np.where(price >= best[:, None] * (1 - 1e-14), more, -1.0).argmax(axis=1)
        falling = np.minimum(best, last)
        parts = (active, current, choice, more[rows, choice], less[rows, choice], falling)
        steps.append(tuple(part[ahead] for part in parts))
        active, current, last = active[ahead], choice[ahead], falling[ahead]
    group, origin, choice, more, less, price = (
        np.concatenate([step[index] for step in steps]) if steps else np.empty(0) for index in range(6)
    )
    number = np.repeat(np.arange(len(steps)), [step[0].size for step in steps])
    order = np.lexsort((number, group, -price))
    return Walk(
        start=start, group=group[order].astype(np.int64), origin=origin[order].astype(np.int64),
        choice=choice[order].astype(np.int64), more=more[order], less=less[order], price=price[order],
    )  # fmt: skip


def _cheapest(cost: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return every group's choice of least cost, of least value among equals."""
    if not cost.size:
        return np.zeros(len(cost), np.int64)
    least = cost == cost.min(axis=1, keepdims=True)
    cheapest: np.ndarray = np.where(least, value, np.inf).argmin(axis=1)
    return cheapest
