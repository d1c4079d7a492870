"""Simple rules that people use instead of a search, by name, to compare the search with.

``threshold``: a layer whose sensitivity is below 0.1 gets INT4, below 0.3 INT8, any other stays in floating point.
``top-k``: the k most sensitive layers get the better scheme, all others the smaller one.
With a budget in bytes or bits per weight the rule's one free number is set so that the plan fits.  A scheme that the
table lacks stands for the first one there of as many levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from workbench.errors import BudgetError, PlanError, SchemeError, nearest
from workbench.models.summary import ModelSummary
from workbench.numerics.formats import parse_scheme
from workbench.planning.budgets import Budgets, Times
from workbench.planning.candidates import Group, Option
from workbench.planning.constraints import Constraints, SearchSpace, search_space
from workbench.planning.plan import KEEP, Plan
from workbench.planning.search.search import assignments_of, plan_of, search
from workbench.planning.totals import Totals, totals
from workbench.sensitivity.table import Sensitivity


class Strategy(Protocol):
    """One way to come to a plan."""

    @property
    def name(self) -> str:
        """What ``--strategy`` is given."""
        ...

    def plan(
        self, summary: ModelSummary, table: Sensitivity, base: Plan, budgets: Budgets,
        constraints: Constraints, times: Times | None = None,
    ) -> Plan:  # fmt: skip
        """Return the plan; what the constraints lock and forbid holds for every strategy."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimal:
    """The search: nothing within the budgets is better.  ``inputs`` and ``cache`` are tables of activation losses."""

    name: str = "optimal"
    minimise: str = "loss"
    inputs: Sensitivity | None = None
    cache: Sensitivity | None = None

    def plan(
        self, summary: ModelSummary, table: Sensitivity, base: Plan, budgets: Budgets,
        constraints: Constraints, times: Times | None = None,
    ) -> Plan:  # fmt: skip
        """Search; see :func:`workbench.planning.search.search.search`."""
        return search(
            summary, table, base=base, budgets=budgets, constraints=constraints, times=times, minimise=self.minimise,
            inputs=self.inputs, cache=self.cache,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Schemes by sensitivity: ``steps`` are (limit, scheme), from the most sensitive scheme on; ``otherwise`` the rest.

    The sensitivity of a layer is its score under ``probe`` (default: the first step's scheme) over the largest of all
    layers where ``relative``.  With a budget all limits are multiplied by the smallest number that makes the plan fit.
    """

    name: str = "threshold"
    steps: tuple[tuple[float, str], ...] = ((0.1, "int4-g32-asym"), (0.3, "int8-channel"))
    otherwise: str = KEEP
    probe: str | None = None
    relative: bool = True

    def plan(
        self, summary: ModelSummary, table: Sensitivity, base: Plan, budgets: Budgets,
        constraints: Constraints, times: Times | None = None,
    ) -> Plan:  # fmt: skip
        """Return the plan of this rule; BudgetError if even the first step everywhere is too large."""
        space = search_space(summary, table, base, constraints=constraints)
        steps = [(limit, _scored(table, scheme)) for limit, scheme in self.steps]
        scores = _scores(space, table, self.probe or steps[0][1], self.relative)
        limits = sorted({limit for limit, _ in steps})
        factors = [1.0] if not budgets else sorted(
            {1.0, *(float(score) / limit * (1 + 1e-9) for score in scores for limit in limits if score > 0)}
        )  # fmt: skip

        def picks(factor: float) -> np.ndarray:
            schemes = [
                next((scheme for limit, scheme in steps if score < limit * factor), self.otherwise)
                for score in scores
            ]
            return _picks(space, schemes)

        return _first_that_fits(space, table, [partial(picks, factor) for factor in factors], budgets, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """The ``count`` most sensitive groups of layers get ``better``, all others ``smaller``.

    With a budget ``count`` is the largest that fits.
    """

    name: str = "top-k"
    count: int = 8
    better: str = "int8-channel"
    smaller: str = "int4-g32-asym"

    def plan(
        self, summary: ModelSummary, table: Sensitivity, base: Plan, budgets: Budgets,
        constraints: Constraints, times: Times | None = None,
    ) -> Plan:  # fmt: skip
        """Return the plan of this rule; BudgetError if even ``smaller`` everywhere is too large."""
        space = search_space(summary, table, base, constraints=constraints)
        better, smaller = _scored(table, self.better), _scored(table, self.smaller)
        order = np.argsort(-_scores(space, table, smaller, False), kind="stable")

        def picks(count: int) -> np.ndarray:
            chosen = set(order[:count].tolist())
            return _picks(space, [better if n in chosen else smaller for n in range(len(space.groups))])

        counts = [self.count] if not budgets else range(len(space.groups), -1, -1)
        return _first_that_fits(space, table, [partial(picks, count) for count in counts], budgets, self.name)


STRATEGIES: tuple[Strategy, ...] = (Optimal(), Threshold(), TopK())


def strategy(name: str) -> Strategy:
    """Return the strategy called ``name``; PlanError that names all."""
    for member in STRATEGIES:
        if member.name == name:
            return member
    known = [member.name for member in STRATEGIES]
    raise PlanError(f"there is no strategy {name!r}{nearest(name, known)}; there are {', '.join(known)}")


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


def _picks(space: SearchSpace, schemes: Sequence[str]) -> np.ndarray:
    """Return every group's option for a scheme; the next larger one that is left where that is none of its options."""
    return np.array([_pick(group, scheme) for group, scheme in zip(space.groups, schemes, strict=True)], np.int64)


def _pick(group: Group, scheme: str) -> int:
    schemes = group.schemes
    if scheme in schemes:
        return schemes.index(scheme)
    return len(schemes) - 1 if scheme == KEEP else _closest(group.options, scheme)


def _closest(options: Sequence[Option], scheme: str) -> int:
    """Return the smallest option of at least as many levels as ``scheme``, the largest if there is none."""
    def levels(name: str) -> float:
        return math.inf if name == KEEP else float(parse_scheme(name).values().size)

    needed = levels(scheme)
    return next((k for k, option in enumerate(options) if levels(option.weights) >= needed), len(options) - 1)


def _first_that_fits(
    space: SearchSpace, table: Sensitivity, candidates: Sequence[Callable[[], np.ndarray]], budgets: Budgets, name: str
) -> Plan:
    """Return the first candidate within the budgets, by bisection: each takes at most what the one before takes."""
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(_sums(space, table, candidates[middle]()), budgets) else (middle + 1, high)
    picks = candidates[low]()
    sums = _sums(space, table, picks)
    if not _fits(sums, budgets):
        raise BudgetError(
            f"no plan of the strategy {name} fits into {budgets}: the smallest takes {sums.nbytes} bytes, "
            f"{sums.bits_per_weight:.4f} bits per weight; raise the budget or use the strategy optimal"
        )
    return plan_of(space, picks, f"{name} within {budgets}" if budgets else name)


def _sums(space: SearchSpace, table: Sensitivity, picks: np.ndarray) -> Totals:
    return totals(space.summary, assignments_of(space, picks), table)


def _fits(sums: Totals, budgets: Budgets) -> bool:
    if budgets.microseconds is not None or budgets.loss is not None:
        raise PlanError("this strategy takes budgets of bytes or bits per weight only; use the strategy optimal")
    small = budgets.nbytes is None or sums.nbytes <= budgets.nbytes
    return small and (budgets.bits_per_weight is None or sums.bits_per_weight <= budgets.bits_per_weight)
