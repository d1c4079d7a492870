"""Simple rules that people use instead of a search, by name, to compare the search with.

``threshold``: a layer whose sensitivity is below 0.1 gets INT4, below 0.3 INT8, any other stays in floating point.
``top-k``: the k most sensitive layers get the better scheme, all others the smaller one.
With a budget in bytes or bits per weight the rule's one free number is set so that the plan fits.  A scheme that the
table lacks stands for the first one there of as many levels.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from workbench.errors import BudgetError, PlanError, SchemeError, nearest
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.planning.budgets import Budgets
from workbench.planning.candidates import Group
from workbench.planning.constraints import Constraints, SearchSpace, search_space
from workbench.planning.plan import KEEP, Plan
from workbench.planning.search.search import assignments_of, plan_of, require_scored
from workbench.planning.totals import Totals, totals
from workbench.sensitivity.table import Sensitivity

Attempt = Callable[[], Sequence[str]]
"""The scheme of every group, by a strategy and one value of its free number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Schemes by sensitivity: ``steps`` are (limit, scheme), from the most sensitive scheme on; ``otherwise`` above.

    The sensitivity of a layer is its score under ``probe`` (default: the first step's scheme) over the largest of all
    layers where ``relative``.  With a budget all limits are multiplied by the smallest number that makes the plan fit.
    """

    name: str = "threshold"
    steps: tuple[tuple[float, str], ...] = ((0.1, "int4-g32-asym"), (0.3, "int8-channel"))
    otherwise: str = KEEP
    probe: str | None = None
    relative: bool = True

    def attempts(self, space: SearchSpace, table: Sensitivity, budgets: Budgets) -> list[Attempt]:
        """Return the schemes for rising limits."""
        steps = [(limit, _scored(table, scheme)) for limit, scheme in self.steps]
        scores = _scores(space, table, self.probe or steps[0][1], self.relative)
        limits = sorted({limit for limit, _ in steps})
        tight = {float(score) / limit * (1 + 1e-9) for score in scores for limit in limits if score > 0}

        def schemes(factor: float) -> list[str]:
            return [next((name for limit, name in steps if score < limit * factor), self.otherwise) for score in scores]

        return [partial(schemes, factor) for factor in sorted({1.0, *(tight if budgets else ())})]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """The ``count`` most sensitive groups of layers get ``better``, all others ``smaller``.

    With a budget ``count`` is the largest that fits.
    """

    name: str = "top-k"
    count: int = 8
    better: str = "int8-channel"
    smaller: str = "int4-g32-asym"

    def attempts(self, space: SearchSpace, table: Sensitivity, budgets: Budgets) -> list[Attempt]:
        """Return the schemes for fewer and fewer groups of the better one."""
        better, smaller = _scored(table, self.better), _scored(table, self.smaller)
        rank = np.argsort(np.argsort(-_scores(space, table, smaller, False), kind="stable"))

        def schemes(count: int) -> list[str]:
            return np.where(rank < count, better, smaller).tolist()  # type: ignore[no-any-return]

        return [partial(schemes, count) for count in (range(len(rank), -1, -1) if budgets else [self.count])]


OPTIMAL = "optimal"
"""The name of the search itself, which no strategy beats within the budgets."""

Strategy = Threshold | TopK
STRATEGIES: tuple[Strategy, ...] = (Threshold(), TopK())
NAMES = (OPTIMAL, *(member.name for member in STRATEGIES))


def simple_plan(
    strategy: str | Strategy, summary: ModelSummary, table: Sensitivity, base: Plan, budgets: Budgets,
    constraints: Constraints | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a strategy, or of that name; what the constraints lock and forbid holds for it too.

    Raises PlanError that names all strategies, and BudgetError if even the smallest plan of the strategy is too large.
    """
    if isinstance(strategy, str):
        by_name = {member.name: member for member in STRATEGIES}
        if strategy not in by_name:
            hint = nearest(strategy, NAMES)
            raise PlanError(f"there is no strategy {strategy!r}{hint}; choose one of {', '.join(NAMES)}")
        strategy = by_name[strategy]
    if budgets.microseconds is not None or budgets.loss is not None:
        raise PlanError("this strategy takes budgets of bytes or bits per weight only; use the strategy optimal")
    space = search_space(summary, table, base, constraints)
    require_scored(space, table)
    return _first_that_fits(space, table, strategy.attempts(space, table, budgets), budgets, strategy.name)


def _scores(space: SearchSpace, table: Sensitivity, probe: str, relative: bool) -> np.ndarray:
    """Return the sum of the members' scores under ``probe`` for every group; infinite where one is missing."""
    if probe not in table.column:
        raise SchemeError(
            f"the {table.metric} table has no column for {probe!r}{nearest(probe, table.schemes)}; score that scheme "
            "first or choose another"
        )
    owned = {layer.name for layer in space.summary.stored}
    sums = [math.fsum(table.of(name, probe) for name in group.layers if name in owned) for group in space.groups]
    scores = np.array([math.inf if math.isnan(score) else score for score in sums])
    largest = scores[np.isfinite(scores)].max(initial=0.0)
    return scores / largest if relative and largest > 0 else scores


def _scored(table: Sensitivity, scheme: str) -> str:
    """Return ``scheme``, or the first of the table that has as many levels; SchemeError if there is none."""
    if scheme == KEEP or scheme in table.column:
        return scheme
    levels = parse_scheme(scheme).values().size
    for name in table.schemes:
        if parse_scheme(name).values().size == levels:
            return name
    raise SchemeError(
        f"the {table.metric} table has no scheme of {levels} levels, as {scheme} has; score {scheme} first"
    )


def _pick(group: Group, scheme: str) -> int:
    """Return the candidate of a scheme; where it is none, the smallest of at least as many levels, or the largest."""

    def levels(name: str) -> float:
        return math.inf if name == KEEP else float(parse_scheme(name).values().size)

    schemes, last = group.schemes, len(group.schemes) - 1
    if scheme in schemes or scheme == KEEP:
        return schemes.index(scheme) if scheme in schemes else last
    needed = levels(scheme)
    return next((index for index, name in enumerate(schemes) if levels(name) >= needed), last)


def _first_that_fits(
    space: SearchSpace, table: Sensitivity, attempts: Sequence[Attempt], budgets: Budgets, name: str
) -> Plan:
    """Return the first choice within the budgets, by bisection: each takes at most what the one before takes."""

    def sums_of(index: int) -> tuple[np.ndarray, Totals]:
        chosen = zip(space.groups, attempts[index](), strict=True)
        picks = np.array([_pick(group, scheme) for group, scheme in chosen], np.int64)
        return picks, totals(space.summary, assignments_of(space, picks), table)

    def fits(sums: Totals) -> bool:
        small = budgets.nbytes is None or sums.nbytes <= budgets.nbytes
        return small and (budgets.bits_per_weight is None or sums.bits_per_weight <= budgets.bits_per_weight)

    first = bisect_left(range(len(attempts) - 1), True, key=lambda index: fits(sums_of(index)[1]))
    picks, sums = sums_of(first)
    if not fits(sums):
        raise BudgetError(
            f"no plan of the strategy {name} fits into {budgets}: the smallest takes {sums.nbytes} bytes, "
            f"{sums.bits_per_weight:.4f} bits per weight; raise the budget or use the strategy optimal"
        )
    return plan_of(space, picks, f"{name} within {budgets}" if budgets else name)
