"""The multiple-choice knapsack with one limit, exactly, by dynamic programming over the few states that matter.

Groups are taken one after another.  A state is what was chosen so far; it is dropped when another takes no more and is
no worse, or when the price of the limit proves that no completion beats the plan at hand (Pisinger, "A minimal
algorithm for the multiple-choice knapsack problem", 1995).
"""

from __future__ import annotations

import numpy as np

MOST = 150_000
"""With more states than that, an integer programme is faster."""


def settle(
    value: np.ndarray, cost: np.ndarray, left: np.ndarray, price: float, limit: float, best: float
) -> list[np.ndarray] | None:
    """Return choices (int64 ``[groups]``) of at most ``best`` within ``limit``, the best first; empty if there is none.

    ``value`` and ``cost`` are float64 ``[groups, choices]``; only choices in ``left`` (bool, same shape) are tried.
    None if there would be too many states.
    """
    reduced = np.where(left, value + price * np.where(left, cost, 0.0), np.inf)
    lowest = reduced.argmin(axis=1)
    groups = np.arange(len(value))
    cost_after = np.cumsum(cost[groups, lowest][::-1])[::-1]
    value_after = np.cumsum(value[groups, lowest][::-1])[::-1]
    bound = float(reduced[groups, lowest].sum()) - price * limit
    spent, gained, excess = np.zeros(1), np.zeros(1), np.zeros(1)
    trail: list[tuple[np.ndarray, np.ndarray]] = []
    for group in groups:
        menu = np.flatnonzero(left[group])
        spent = (spent[:, None] + cost[group, menu]).ravel()
        gained = (gained[:, None] + value[group, menu]).ravel()
        excess = (excess[:, None] + (reduced[group, menu] - reduced[group, lowest[group]])).ravel()
        after_cost, after_value = (
            (cost_after[group + 1], value_after[group + 1]) if group + 1 < len(value) else (0.0, 0.0)
        )
        fits = spent + after_cost <= limit
        if fits.any():
            best = min(best, float((gained[fits] + after_value).min()))
        slack = (best - bound) * (1 + 1e-9) + 1e-12 * abs(best)
        alive = _undominated(spent, gained, np.flatnonzero(excess <= slack))
        if alive.size > MOST:
            return None
        trail.append((alive // menu.size, menu[alive % menu.size]))
        spent, gained, excess = spent[alive], gained[alive], excess[alive]
    order = np.flatnonzero(spent <= limit)
    order = order[np.argsort(gained[order], kind="stable")][:8]
    return [_traced(trail, int(state)) for state in order]


def _undominated(spent: np.ndarray, gained: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the states that no other beats in what they take and in their value."""
    states = states[np.lexsort((gained[states], spent[states]))]
    if not states.size:
        return states
    values = gained[states]
    before = np.minimum.accumulate(np.concatenate([[np.inf], values[:-1]]))
    undominated: np.ndarray = states[values < before]
    return undominated


def _traced(trail: list[tuple[np.ndarray, np.ndarray]], state: int) -> np.ndarray:
    """Return the choices that led to a state."""
    picks = np.zeros(len(trail), np.int64)
    for group in range(len(trail) - 1, -1, -1):
        before, choice = trail[group]
        picks[group] = choice[state]
        state = int(before[state])
    return picks
