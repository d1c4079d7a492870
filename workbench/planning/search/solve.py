"""The multiple-choice knapsack with one or more limits, exactly: bound, reduce, settle what is left.

Multipliers of the relaxation price the limits.  With a feasible plan at hand they prove of most choices that they are
no part of any better one (Dyer, Kayal and Walker, 1984).  What is left is settled by dynamic programming where there is
one limit, by HiGHS where there are several.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from workbench.errors import BudgetError
from workbench.planning.search.hull import walk
from workbench.planning.search.states import settle

SECONDS = 30.0
"""The longest that HiGHS may take; what it has found by then stands, but is not proven to be the best."""

TIMED_OUT = 1
"""The status that scipy gives a programme whose time was up."""

ENOUGH = 20_000
"""The largest number of combinations that are tried to round the relaxation's few split groups."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """Minimise the sum of ``value`` (float64 ``[groups, choices]``, infinite where there is no choice), one choice for
    each group, with each of ``costs`` (same shape) summing to at most the limit of the same place."""

    value: np.ndarray
    costs: tuple[np.ndarray, ...]
    limits: tuple[float, ...]

    def total(self, picks: np.ndarray) -> float:
        """Return the value of a choice for each group."""
        return math.fsum(self.value[np.arange(len(picks)), picks])

    def spent(self, picks: np.ndarray, which: int) -> float:
        """Return what ``picks`` take of the limit ``which``."""
        return math.fsum(self.costs[which][np.arange(len(picks)), picks])

    def fits(self, picks: np.ndarray) -> bool:
        """Return whether ``picks`` keep every limit."""
        return all(self.spent(picks, which) <= limit for which, limit in enumerate(self.limits))


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The choice of every group (int64); ``proven`` unless HiGHS ran out of time, so that a better one may exist."""

    picks: np.ndarray
    proven: bool = True


def solve(problem: Problem) -> Solution | None:
    """Return the choice of least value within the limits; None if nothing fits.

    Raises BudgetError where none was found in time.
    """
    if not len(problem.value):
        return Solution(np.zeros(0, np.int64)) if all(limit >= 0 for limit in problem.limits) else None
    if any(math.fsum(c.min(axis=1)) > limit for c, limit in zip(problem.costs, problem.limits, strict=True)):
        return None
    free = _without_limits(problem)
    if problem.fits(free):
        return Solution(free)
    if len(problem.costs) == 1:
        picks, price, gap = _walked(problem)
        return Solution(picks) if gap <= 0 else _settle(problem, picks, np.array([price]), gap)
    relaxed = _relaxed(problem)
    if relaxed is None:
        return None
    rounded, prices, bound = relaxed
    gap = math.inf if rounded is None else problem.total(rounded) - bound
    return _settle(problem, rounded, prices, gap)


def _without_limits(problem: Problem) -> np.ndarray:
    """Return the least value of every group, the one that takes least where several are equal."""
    best = problem.value == problem.value.min(axis=1, keepdims=True)
    spent = np.where(best, problem.costs[0] if problem.costs else 0.0, np.inf)
    picks: np.ndarray = spent.argmin(axis=1).astype(np.int64)
    return picks


def _walked(problem: Problem) -> tuple[np.ndarray, float, float]:
    """Walk the hull as far as the limit allows: a feasible choice, the price there, and how much better could be."""
    cost, limit = problem.costs[0], problem.limits[0]
    moves = walk(cost, problem.value)
    picks = moves.start.copy()
    spent = math.fsum(cost[np.arange(len(picks)), picks])
    price = slack = 0.0
    blocked: set[int] = set()
    later = 0.0
    for group, choice, more, less, each in zip(
        moves.group.tolist(), moves.choice.tolist(), moves.more.tolist(), moves.less.tolist(), moves.price.tolist(),
        strict=True,
    ):  # fmt: skip
        if group in blocked:
            continue
        if spent + more > limit:
            if not price:
                price, slack = each, limit - spent
            blocked.add(group)
            continue
        picks[group] = choice
        spent += more
        later += less if price else 0.0
    return picks, price, slack * price * (1 + 1e-9) - later


def _relaxed(problem: Problem) -> tuple[np.ndarray | None, np.ndarray, float] | None:
    """Solve the relaxation: a rounded feasible choice (None if none is near), prices of the limits, the bound."""
    from scipy.optimize import linprog

    owner, index, matrix, one_each, value, scales = _flat(problem, None)
    limits = np.array(problem.limits) / scales
    unit = max(float(np.abs(value).max()), 1e-300)
    relaxation = linprog(
        value / unit, A_ub=matrix, b_ub=limits, A_eq=one_each, b_eq=np.ones(len(problem.value)), bounds=(0, 1),
        method="highs",
    )  # fmt: skip
    if relaxation.x is None:
        return None
    prices = np.maximum(-relaxation.ineqlin.marginals, 0.0) * unit / scales
    reduced = _reduced(problem, prices)
    bound = math.fsum(reduced.min(axis=1)) - float(prices @ np.array(problem.limits))
    return _rounded(problem, relaxation.x, owner, index), prices, bound


def _rounded(problem: Problem, share: np.ndarray, owner: np.ndarray, index: np.ndarray) -> np.ndarray | None:
    """Return the best feasible choice that agrees with the relaxation where it is whole."""
    picks = np.zeros(len(problem.value), np.int64)
    whole = share > 1 - 1e-7
    picks[owner[whole]] = index[whole]
    split = np.setdiff1d(np.arange(len(problem.value)), owner[whole])
    menus = [np.flatnonzero(np.isfinite(problem.value[group])) for group in split]
    if math.prod(len(menu) for menu in menus) > ENOUGH:
        menus = [index[(owner == group) & (share > 1e-7)] for group in split]
    if math.prod(len(menu) for menu in menus) > ENOUGH:
        return None
    best, least = None, math.inf
    for combination in itertools.product(*menus):
        picks[split] = combination
        if problem.total(picks) < least and problem.fits(picks):
            best, least = picks.copy(), problem.total(picks)
    return best


def _reduced(problem: Problem, prices: np.ndarray) -> np.ndarray:
    """Return value + price * cost of every choice."""
    reduced = problem.value.copy()
    real = np.isfinite(problem.value)
    for price, cost in zip(prices, problem.costs, strict=True):
        reduced[real] += price * cost[real]
    return reduced


def _settle(problem: Problem, picks: np.ndarray | None, prices: np.ndarray, gap: float) -> Solution | None:
    """Let HiGHS choose among what the prices cannot rule out."""
    reduced = _reduced(problem, prices)
    real = np.isfinite(problem.value)
    least = reduced.min(axis=1, keepdims=True)
    top = np.where(real, reduced, -np.inf).max(axis=1, keepdims=True)
    left = real & (reduced - least <= gap * (1 + 1e-9) + 1e-300 + 1e-12 * np.abs(top))
    result = left.argmax(axis=1).astype(np.int64)
    open_groups = np.flatnonzero(left.sum(axis=1) > 1)
    if len(problem.limits) == 1 and picks is not None:
        by_states = _by_states(problem, left, result, open_groups, picks, float(prices[0]))
        if by_states is not None:
            return Solution(by_states)
    limits, proven = np.array(problem.limits), True
    for _ in range(3):  # again only if the solver's tolerance let something slip over a limit
        settled, proven = _programme(problem, left, result, open_groups, limits)
        if settled is None:
            break
        over = np.array([problem.spent(settled, which) - limit for which, limit in enumerate(problem.limits)])
        if (over <= 0).all():
            better = picks is None or problem.total(settled) < problem.total(picks)
            return Solution(settled if better else picks, proven)  # type: ignore[arg-type]
        limits = limits - np.maximum(over, 0.0) * (1 + 1e-6)
    if picks is None and not proven:
        raise BudgetError(f"no plan within all budgets was found in {SECONDS:g} s, though there may be one; raise one")
    return None if picks is None else Solution(picks, proven)


def _by_states(
    problem: Problem, left: np.ndarray, result: np.ndarray, open_groups: np.ndarray, picks: np.ndarray, price: float
) -> np.ndarray | None:
    """Settle the open groups by dynamic programming; None if that would be too much."""
    closed = np.setdiff1d(np.arange(len(result)), open_groups)
    cost, value = problem.costs[0], problem.value
    total = math.fsum(cost[closed, result[closed]])
    best = problem.total(picks) - math.fsum(value[closed, result[closed]])
    by_doubt = open_groups[np.argsort(-left[open_groups].sum(axis=1), kind="stable")]
    states = settle(value[by_doubt], cost[by_doubt], left[by_doubt], price, problem.limits[0] - total, best)
    if states is None:
        return None
    for choice in states:
        settled = result.copy()
        settled[by_doubt] = choice
        if problem.fits(settled):
            return settled if problem.total(settled) < problem.total(picks) else picks
    return picks


def _programme(
    problem: Problem, left: np.ndarray, result: np.ndarray, open_groups: np.ndarray, limits: np.ndarray
) -> tuple[np.ndarray | None, bool]:
    """Solve for the open groups with HiGHS; None if it finds nothing.  Also whether it had the time to prove it."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not open_groups.size:
        return result, True
    part = Problem(
        value=np.where(left, problem.value, np.inf)[open_groups], costs=tuple(c[open_groups] for c in problem.costs),
        limits=(),
    )  # fmt: skip
    closed = np.setdiff1d(np.arange(len(problem.value)), open_groups)
    totals = [math.fsum(cost[closed, result[closed]]) for cost in problem.costs]
    bases = [np.where(np.isfinite(part.value), cost, np.inf).min(axis=1) for cost in part.costs]
    room = limits - np.array([r + math.fsum(b) for r, b in zip(totals, bases, strict=True)])
    moved = tuple(cost - base[:, None] for cost, base in zip(part.costs, bases, strict=True))
    lowest = part.value.min(axis=1, keepdims=True)
    shifted = Problem(value=part.value - lowest, costs=moved, limits=())
    owner, index, matrix, one_each, value, scales = _flat(shifted, room)
    unit = 1e4 / max(float(value.max()), 1e-300)
    room = np.where(np.all(matrix == np.floor(matrix), axis=1), np.floor(room / scales + 1e-9), room / scales)
    outcome = milp(
        value * unit,
        constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(matrix, -np.inf, room)],
        integrality=np.ones(value.size), bounds=Bounds(0, 1),
        # Without presolve HiGHS prints nothing; the problem was reduced before.
        options={"mip_rel_gap": 0.0, "time_limit": SECONDS, "presolve": False},
    )  # fmt: skip
    proven = outcome.status != TIMED_OUT
    if outcome.x is None:
        return None, proven
    settled = result.copy()
    chosen = outcome.x > 0.5
    settled[open_groups[owner[chosen]]] = index[chosen]
    return settled, proven


def _flat(
    problem: Problem, room: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, object, np.ndarray, np.ndarray]:
    """Return group and place of every choice, the scaled cost matrix ``[limits, choices]``, the one-each matrix, the
    values, and what each row of costs was divided by: the common unit of whole numbers, else the size of the room."""
    from scipy.sparse import csr_array

    owner, index = np.nonzero(np.isfinite(problem.value))
    rows, scales = [], []
    for which, cost in enumerate(problem.costs):
        row = cost[owner, index]
        unit = _unit(row)
        if not unit:
            largest = float(np.abs(row).max())
            unit = max(largest if room is None else abs(float(room[which])), largest * 1e-9, 1e-300) / 1e4
        rows.append(row / unit)
        scales.append(unit)
    one_each = csr_array((np.ones(owner.size), (owner, np.arange(owner.size))), shape=(len(problem.value), owner.size))
    return owner, index, np.array(rows), one_each, problem.value[owner, index], np.array(scales)


def _unit(row: np.ndarray) -> float:
    """Return the greatest common divisor of whole numbers, 0.0 for others."""
    if row.size and np.array_equal(row, np.floor(row)) and float(np.abs(row).max()) < 2**53:
        return float(np.gcd.reduce(row.astype(np.int64))) or 1.0
    return 0.0
