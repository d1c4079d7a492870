"""Budgets to plans: the exact multiple-choice knapsack, and the whole Pareto front.

Minimise the sum of losses over groups of layers, one choice for each group, subject to bits (Sinha and Zoltners, "The
multiple-choice knapsack problem", 1979).  The front is the lower convex hull of the problem's Lagrangian relaxation.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from workbench.errors import BudgetError, PlanError
from workbench.models.summary import ModelSummary
from workbench.planning.compact import compact_plan
from workbench.planning.constraints import Choices, Group, choices
from workbench.planning.plan import KEEP, Plan
from workbench.planning.sensitivity import Sensitivity


@dataclass(frozen=True, kw_only=True, eq=False)
class Front:
    """The plans that no other plan on the convex hull beats, smallest first.

    ``nbytes`` (int64) of the whole model, ``bits_per_weight`` (float64) and predicted ``loss`` (float64) of plan ``i``.
    Plan 0 gives every group its smallest choice; plan ``i`` differs from plan ``i - 1`` in one group.
    """

    nbytes: np.ndarray
    bits_per_weight: np.ndarray
    loss: np.ndarray
    base: Plan
    space: Choices
    moved: np.ndarray
    moved_to: np.ndarray

    def __len__(self) -> int:
        """Return the number of plans."""
        return int(self.nbytes.size)

    def index_within(self, nbytes: int) -> int:
        """Return the index of the best plan of at most ``nbytes``, 0 if there is none."""
        return max(int(np.searchsorted(self.nbytes, nbytes, side="right")) - 1, 0)

    def choices(self, index: int) -> dict[str, str]:
        """Return the scheme of every layer that the search decides, in plan ``index``."""
        return _schemes(self.space.groups, self._picks(index))

    def plan(self, index: int) -> Plan:
        """Return plan ``index`` as rules."""
        return _plan(self.space, self._picks(index), self.base, f"{self.bits_per_weight[index]:.3f} bits per weight")

    def _picks(self, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise PlanError(f"the front has {len(self)} plans, numbered from 0; got {index}")
        picks = self._smallest.copy()
        picks[self.moved[:index]] = self.moved_to[:index]
        return picks

    @cached_property
    def _smallest(self) -> np.ndarray:
        return np.array([hull_of(group)[0] for group in self.space.groups], np.int64)


def pareto(
    summary: ModelSummary,
    table: Sensitivity,
    base: Plan,
    locked: Collection[str] = frozenset(),
    schemes: Sequence[str] | None = None,
) -> Front:
    """Return the convex front of size against predicted loss; numpy only, milliseconds for hundreds of layers."""
    space = choices(summary, table, base, locked, schemes)
    start_bits, start_loss, moves = _sweep(space.groups)
    bits = start_bits + np.concatenate([[0], np.cumsum([move[3] for move in moves], dtype=np.int64)]).astype(np.int64)
    gains = np.array([move[4] for move in moves])
    loss = (start_loss - np.concatenate([[0.0], np.cumsum(gains)])).clip(min=0.0)
    return Front(
        nbytes=np.array([space.nbytes(int(b)) for b in bits], np.int64),
        bits_per_weight=np.array([space.bits_per_weight(int(b)) for b in bits]),
        loss=loss + space.fixed_loss, base=base, space=space,
        moved=np.array([move[1] for move in moves], np.int64),
        moved_to=np.array([move[2] for move in moves], np.int64),
    )  # fmt: skip


def hull_of(group: Group) -> list[int]:
    """Return the indices of the choices on the lower convex hull of (bits, loss), by rising bits."""
    bits, loss = group.bits.tolist(), group.loss.tolist()
    hull: list[int] = []
    for k in range(len(bits)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (loss[a] - loss[b]) * (bits[k] - bits[b]) > (loss[b] - loss[k]) * (bits[b] - bits[a]):
                break
            hull.pop()
        hull.append(k)
    return hull


def _sweep(groups: Sequence[Group]) -> tuple[int, float, list[tuple[float, int, int, int, float]]]:
    """Return bits and loss of all smallest choices, and the moves (slope, group, choice, bits, loss avoided)."""
    moves: list[tuple[float, int, int, int, float]] = []
    bits, losses = 0, []
    for number, group in enumerate(groups):
        hull = hull_of(group)
        bits += int(group.bits[hull[0]])
        losses.append(float(group.loss[hull[0]]))
        for a, b in zip(hull, hull[1:], strict=False):
            more, less = int(group.bits[b] - group.bits[a]), float(group.loss[a] - group.loss[b])
            moves.append((-less / more, number, b, more, less))
    moves.sort(key=lambda move: move[:3])
    return bits, math.fsum(losses), moves


def search(
    summary: ModelSummary,
    table: Sensitivity,
    *,
    nbytes: int | None = None,
    bits_per_weight: float | None = None,
    base: Plan,
    locked: Collection[str] = frozenset(),
    schemes: Sequence[str] | None = None,
    name: str | None = None,
) -> Plan:
    """Return the plan of least predicted loss within ``nbytes`` (whole model) and ``bits_per_weight`` (either or both).

    What :func:`workbench.planning.totals.totals` says of the plan never exceeds the budget.  Raises BudgetError that
    tells the smallest possible size, PlanError without a budget or for contradictory locks.
    """
    if nbytes is None and bits_per_weight is None:
        raise PlanError("a search needs a budget: bytes, bits per weight, or both")
    space = choices(summary, table, base, locked, schemes)
    capacity = _capacity(space, nbytes, bits_per_weight)
    smallest = sum(int(group.bits[0]) for group in space.groups)
    if capacity < smallest:
        raise BudgetError(
            f"no plan fits into {_budget(nbytes, bits_per_weight)}: the smallest possible takes "
            f"{space.nbytes(smallest)} bytes, {space.bits_per_weight(smallest):.4f} bits per weight; "
            "raise the budget or allow smaller schemes"
        )
    picks = knapsack(space.groups, capacity)
    return _plan(space, picks, base, name or f"within {_budget(nbytes, bits_per_weight)}")


def _budget(nbytes: int | None, bits_per_weight: float | None) -> str:
    bits = [] if bits_per_weight is None else [f"{bits_per_weight:g} bits per weight"]
    return " and ".join(bits if nbytes is None else [*bits, f"{nbytes} bytes"])


def _capacity(space: Choices, nbytes: int | None, bits_per_weight: float | None) -> int:
    """Return how many bits the groups may take together, by exact arithmetic."""
    limits = []
    if nbytes is not None:
        limits.append((nbytes - space.summary.kept_nbytes) * 8 + 7 - space.all_bits)
    if bits_per_weight is not None:
        if not math.isfinite(bits_per_weight):
            raise PlanError(f"bits per weight must be a finite number; got {bits_per_weight}")
        bits = math.floor(Fraction(bits_per_weight) * space.counted_weights)
        if space.counted_weights and (bits + 1) / space.counted_weights <= bits_per_weight:
            bits += 1  # the asked number is the float nearest to this very quotient
        limits.append(bits - space.counted_bits)
    return min(limits)


def knapsack(groups: Sequence[Group], capacity: int) -> np.ndarray:
    """Return the index of each group's choice (int64) of least total loss within ``capacity`` bits.

    The Lagrangian sweep gives a feasible plan and a price for a bit; choices that this price proves to be no part of
    any better plan are dropped (Dyer, Kayal and Walker, 1984), and HiGHS settles the rest.
    """
    picks, price, slack = _greedy(groups, capacity)
    reduced = [group.loss + price * group.bits for group in groups]
    gap = slack * price * (1 + 1e-9) + 1e-300
    kept = [np.flatnonzero(cost - cost.min() <= gap + 1e-12 * cost.max()) for cost in reduced]
    open_groups = [number for number, indices in enumerate(kept) if len(indices) > 1]
    if slack == 0 or not open_groups:
        return picks
    fixed = sum(int(groups[n].bits[kept[n][0]]) for n in range(len(groups)) if len(kept[n]) == 1)
    result = np.array([indices[0] for indices in kept], np.int64)
    room = capacity - fixed
    for _ in range(3):  # a second time only if the solver's tolerance let a bit slip over the budget
        settled = _solve([(groups[n], kept[n]) for n in open_groups], room)
        if settled is None:
            break
        result[open_groups] = settled
        over = _bits(groups, result) - capacity
        if over <= 0:
            return result if _total(groups, result) < _total(groups, picks) else picks
        room -= over
    return picks


def _greedy(groups: Sequence[Group], capacity: int) -> tuple[np.ndarray, float, int]:
    """Return a feasible choice, the price of a bit (loss avoided by the first move that does not fit), and the bits
    left where that move would have gone."""
    bits, _, moves = _sweep(groups)
    picks = np.array([hull_of(group)[0] for group in groups], np.int64)
    price, slack = 0.0, 0
    for slope, number, choice, more, _ in moves:
        if bits + more > capacity:
            if not price:
                price, slack = -slope, capacity - bits
            continue
        if price and picks[number] != choice and _skipped(groups[number], int(picks[number]), choice):
            continue
        picks[number] = choice
        bits += more
    return picks, price, slack


def _skipped(group: Group, current: int, choice: int) -> bool:
    """Tell whether ``choice`` does not follow ``current`` on the hull: an earlier move of the group did not fit."""
    hull = hull_of(group)
    return hull.index(choice) != hull.index(current) + 1


def _solve(groups: Sequence[tuple[Group, np.ndarray]], capacity: int) -> np.ndarray | None:
    """Solve the remaining groups with HiGHS; None if it finds nothing (the greedy plan stands)."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    sizes = [len(kept) for _, kept in groups]
    owner = np.repeat(np.arange(len(groups)), sizes)
    bits = np.concatenate([group.bits[kept] - group.bits[kept].min() for group, kept in groups])
    room = capacity - sum(int(group.bits[kept].min()) for group, kept in groups)
    unit = int(np.gcd.reduce(bits)) or 1
    bits, room = bits // unit, room // unit
    loss = np.concatenate([group.loss[kept] - group.loss[kept].min() for group, kept in groups])
    scale = 1e4 / max(float(loss.max()), 1e-300)
    one_each = csr_array((np.ones(owner.size), (owner, np.arange(owner.size))), shape=(len(groups), owner.size))
    found = milp(
        loss * scale,
        constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(bits[None].astype(float), -np.inf, room)],
        integrality=np.ones(owner.size), bounds=Bounds(0, 1), options={"mip_rel_gap": 0.0},
    )  # fmt: skip
    if found.x is None:
        return None
    starts = np.concatenate([[0], np.cumsum(sizes)])
    picks = [int(np.argmax(found.x[a:b])) for a, b in zip(starts, starts[1:], strict=False)]
    return np.array([kept[pick] for (_, kept), pick in zip(groups, picks, strict=True)], np.int64)


def _total(groups: Sequence[Group], picks: np.ndarray) -> float:
    return math.fsum(float(group.loss[pick]) for group, pick in zip(groups, picks, strict=True))


def _bits(groups: Sequence[Group], picks: np.ndarray) -> int:
    return sum(int(group.bits[pick]) for group, pick in zip(groups, picks, strict=True))


def _schemes(groups: Sequence[Group], picks: np.ndarray) -> dict[str, str]:
    return {
        layer: group.schemes[pick] for group, pick in zip(groups, picks.tolist(), strict=True) for layer in group.layers
    }


def _plan(space: Choices, picks: np.ndarray, base: Plan, name: str) -> Plan:
    assignments = dict(space.base)
    for member, scheme in _schemes(space.groups, picks).items():
        assignments[member] = replace(assignments[member], weights=scheme)
    for layer in space.summary.layers:
        if layer.tied_to is not None and assignments[layer.tied_to].weights != KEEP:
            assignments[layer.name] = replace(assignments[layer.name], weights=assignments[layer.tied_to].weights)
    return compact_plan(
        assignments, space.summary.layers, name=name, model=space.summary.name, fingerprint=space.summary.fingerprint
    )
