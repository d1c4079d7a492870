"""Budgets to plans: the exact multiple-choice knapsack, and the whole Pareto front.

Minimise the sum of losses (or bytes, or microseconds) over groups of layers, one choice for each group, within budgets
(Sinha and Zoltners, "The multiple-choice knapsack problem", 1979).  The front is the lower convex hull of the problem's
Lagrangian relaxation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.errors import BudgetError, MissingResultError, PlanError
from workbench.memory import uncollected
from workbench.models.summary import ModelSummary
from workbench.planning.budgets import GOALS, TITLES, Budgets, Times
from workbench.planning.compact import compact_plan
from workbench.planning.constraints import Constraints, SearchSpace, search_space
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.search.exchange import exchanged
from workbench.planning.search.hull import Walk, padded, walk
from workbench.planning.search.infeasible import as_stored, infeasible
from workbench.planning.search.joint import Joint, joined
from workbench.planning.search.limits import limits_of, matrix_of, problem_of
from workbench.planning.search.solve import Problem, Solution, solve
from workbench.planning.totals import layer_bits
from workbench.readable import few
from workbench.sensitivity.table import Sensitivity

TRIES = 40
"""So often a search for a budget of loss is tightened where the interaction of layers exceeds it."""

UNPROVEN = "(not proven to be the best: the time was up)"
UNIFORM = "(uniform: no mixed one is known to be better)"
"""What the name of a plan ends with where the solver had no time to prove it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Front:
    """The plans that no other plan on the convex hull beats, smallest (or, with ``microseconds``, fastest) first.

    ``nbytes`` (int64) of the whole model, ``bits_per_weight`` (float64) and predicted ``loss`` (float64) of plan ``i``,
    which comes of the first ``steps[i]`` (int64) of ``moves`` (costs in bits, or in microseconds).  ``microseconds``
    (float64) are those of all timed layers one after another, None for a front of size.  ``loss`` is what plans are
    predicted to cost by the measured ones, the moves' is of the second order.  Plan 0 gives every group its
    cheapest choice.  The moves are those of the layers' own losses; where their interaction is known the loss counts
    it, and a plan that is worse for it than a cheaper one is left out.  What a target's own rounding of inputs costs
    decides about moves and is left out of ``loss``, as of every plan's prediction.
    """

    nbytes: np.ndarray
    bits_per_weight: np.ndarray
    loss: np.ndarray
    base: Plan
    space: SearchSpace
    moves: Walk
    steps: np.ndarray
    microseconds: np.ndarray | None = None

    def __len__(self) -> int:
        """Return the number of plans."""
        return int(self.nbytes.size)

    def index_within(self, limit: float) -> int:
        """Return the index of the best plan of at most ``limit`` bytes (or microseconds), 0 if there is none."""
        if self.microseconds is None:
            return max(int(np.searchsorted(self.nbytes, limit, side="right")) - 1, 0)
        slack = 1e-9 * abs(limit)
        return max(int(np.searchsorted(self.microseconds, limit + slack, side="right")) - 1, 0)

    def price(self, limit: float) -> float:
        """Return the shadow price at that limit, the second-order loss that the next byte (or microsecond) avoids.

        0.0 if nothing is left to buy.
        """
        step = self.step_within(limit)
        return 0.0 if step is None else float(self.moves.price[step]) * (8 if self.microseconds is None else 1)

    def step_within(self, limit: float) -> int | None:
        """Return the index of the move that comes next at that limit; None if nothing is left to buy."""
        step = int(self.steps[self.index_within(limit)])
        return step if step < len(self.moves.price) else None

    def choices(self, index: int) -> dict[str, str]:
        """Return the scheme of every layer that the search decides, in plan ``index``."""
        chosen = zip(self.space.groups, self.picks(index).tolist(), strict=True)
        return {layer: group.candidates[pick].weights for group, pick in chosen for layer in group.layers}

    def plan(self, index: int) -> Plan:
        """Return plan ``index`` as rules."""
        picks = self.picks(index)
        size = f"{self.bits_per_weight[index]:.3f} bits per weight"
        name = size if self.microseconds is None else f"{self.microseconds[index]:.4g} microseconds"
        return plan_of(self.space, picks, name)

    def on(self, base: Plan) -> Front:
        """Return the front for a plan that differs from the front's in nothing that a search looks at: in algorithms,
        range methods, the schemes of layers that it decides."""
        layers = self.space.summary.layers
        before, now = resolve(self.base, layers), resolve(base, layers)
        for name in self.space.fixed:
            if now[name].weights == before[name].weights:
                now[name] = replace(now[name], weights=self.space.base[name].weights)
        return replace(self, base=base, space=replace(self.space, base=now, transforms=base.transforms))

    def picks(self, index: int) -> np.ndarray:
        """Return the candidate of every group (int64) in plan ``index``."""
        if not 0 <= index < len(self):
            raise PlanError(f"the front has {len(self)} plans, numbered from 0; got {index}")
        return self.moves.after(int(self.steps[index]))


def pareto(
    summary: ModelSummary, table: Sensitivity, base: Plan, *, constraints: Constraints | None = None,
    algorithms: Sequence[Sensitivity] = (), inputs: Sensitivity | None = None, cache: Sensitivity | None = None,
    times: Times | None = None,
) -> Front:  # fmt: skip
    """Return the convex front of size (of time, where there are ``times``) against predicted loss.

    numpy only, milliseconds for hundreds of layers.  A scheme whose time at a layer's shape is not known is no
    candidate there; a layer of which no time is known (no matrix product) counts nothing, and takes the candidate of
    least loss.  Raises what :func:`search_space` raises.
    """
    with uncollected():
        space = search_space(
            summary, table, base, constraints, times=times, algorithms=algorithms, inputs=inputs, cache=cache
        )
        front = front_of(space, base, Joint.of(space, table, algorithms), timed=times is not None)
    return front if table.checks is None else replace(front, loss=table.checks.wholes(front.loss))


def front_of(space: SearchSpace, base: Plan, joint: Joint | None = None, *, timed: bool = False) -> Front:
    """Return the front of what is open in ``space``; ``joint`` knows the interaction of its options.

    Losses are those of the second order.
    """
    bits, loss = (padded([getattr(group, name) for group in space.groups]) for name in ("bits", "loss"))
    costs = padded([group.microseconds for group in space.groups]) if timed else bits
    moves = walk(costs, loss)
    rows = np.arange(len(bits))
    first = int(bits[rows, moves.start].sum()) if len(bits) else 0
    grown = bits[moves.group, moves.choice] - bits[moves.group, moves.origin] if len(bits) else np.zeros(0)
    used = first + np.concatenate([[0.0], np.cumsum(grown)]).astype(np.int64)
    last = moves.start.copy()
    last[moves.group] = moves.choice
    least = math.fsum(loss[rows, last]) + space.fixed_loss if len(loss) else space.fixed_loss
    avoided = np.concatenate([np.cumsum(moves.less[::-1])[::-1], [0.0]])
    losses, steps = joined(least + avoided, moves, joint)
    own = losses - _along(padded([group.rounded for group in space.groups]), moves, last)
    losses = np.maximum(own, np.minimum(losses, 0.0))  # an interaction was cut at 0
    out, out_weights = _kept_embeddings(space, moves)
    weights = space.counted_weights - out_weights
    bits_per_weight = (space.counted_bits + used - out) / np.maximum(weights, 1) * (weights > 0)
    fastest = math.fsum(costs[rows, moves.start]) + space.fixed_microseconds if timed and len(costs) else 0.0
    return Front(
        nbytes=((space.all_bits + used) // 8 + space.summary.other_nbytes)[steps],
        bits_per_weight=bits_per_weight[steps], loss=losses[steps], base=base, space=space, moves=moves, steps=steps,
        microseconds=(fastest + np.concatenate([[0.0], np.cumsum(moves.more)]))[steps] if timed else None,
    )  # fmt: skip


def _along(costs: np.ndarray, moves: Walk, last: np.ndarray) -> np.ndarray:
    """Return what the choices cost together (float64) at the start of a walk and after each of its moves to ``last``,
    there exactly."""
    if not len(costs):
        return np.zeros(1)
    grown = costs[moves.group, moves.choice] - costs[moves.group, moves.origin]
    return math.fsum(costs[np.arange(len(costs)), last]) - np.append(np.cumsum(grown[::-1])[::-1], 0.0)


def _kept_embeddings(space: SearchSpace, moves: Walk) -> np.ndarray:
    """Return the bits and the weights (int64 ``[2, moves + 1]``) of embeddings that each step of the walk keeps."""
    total, tables = np.zeros((2, len(moves.group) + 1), np.int64), space.summary.embeddings
    for index, group in enumerate(space.groups):
        if group.layers[0] in tables and KEEP in group.schemes:
            owned = (space.summary.by_name[name] for name in group.layers)
            weights = sum(layer.parameters for layer in owned if layer.tied_to is None)
            floating = np.array([scheme == KEEP for scheme in group.schemes])
            amounts = np.stack([group.bits * floating, weights * floating])
            mine = np.flatnonzero(moves.group == index)
            total[:, 0] += amounts[:, moves.start[index]]
            total[:, mine + 1] += amounts[:, moves.choice[mine]] - amounts[:, moves.origin[mine]]
    return np.asarray(total.cumsum(axis=1))


def search(
    summary: ModelSummary, table: Sensitivity, *, base: Plan, budgets: Budgets, minimise: str = "loss",
    constraints: Constraints | None = None, times: Times | None = None, algorithms: Sequence[Sensitivity] = (),
    inputs: Sensitivity | None = None, cache: Sensitivity | None = None,
) -> Plan:  # fmt: skip
    """Return the plan that minimises ``minimise`` (one of GOALS) within ``budgets``.

    ``times`` serve microseconds.  What :func:`workbench.planning.totals.totals` says of the plan never exceeds the
    budget, nor do, where the constraints say them, the bytes of the target's own form.  The choice is exact for the sum
    of the layers' losses (the plan's name ends with UNPROVEN where the solver had no time to prove that); where their
    interaction is known (``table.directions``) exchanges improve it.  A uniform plan is taken instead, and its name
    says so, where measured plans of such a loss (``table.checks``) leave open which of both is better.  Raises
    BudgetError that tells the smallest possible value, PlanError without a budget or for contradictory locks,
    MissingResultError for microseconds without ``times``.
    """
    timed = minimise == "microseconds" or budgets.microseconds is not None
    _require_goal(minimise, budgets, timed and times is None)
    space = search_space(
        summary, table, base, constraints, times=times if timed else None, algorithms=algorithms, inputs=inputs,
        cache=cache,
    )  # fmt: skip
    require_scored(space, table)
    _require_loss(space, budgets)
    within = budgets if budgets.loss is None else replace(budgets, loss=table.second_order(budgets.loss))
    limits = limits_of(space, within)
    solution = solve(problem_of(space, minimise, limits))
    if solution is None:
        raise infeasible(space, budgets, limits, table, constraints)
    joint = Joint.of(space, table, algorithms)
    if joint is not None:
        solution = _together(space, joint, minimise, limits, budgets, table)
    picks = solution.picks
    if minimise == "loss" and budgets.loss is None:
        picks = _or_uniform(space, table, joint, problem_of(space, minimise, limits), picks)
    title = f"{'' if minimise == 'loss' else f'least {TITLES[minimise]} '}within {budgets}"
    notes = {UNPROVEN: not solution.proven, UNIFORM: picks is not solution.picks}
    return plan_of(space, picks, " ".join([title, *(note for note, holds in notes.items() if holds)]))


def _require_goal(minimise: str, budgets: Budgets, untimed: bool) -> None:
    """Raise PlanError without a goal or a budget, MissingResultError where times are needed and missing."""
    if minimise not in GOALS:
        raise PlanError(f"a search cannot minimise {minimise!r}; expected one of {', '.join(GOALS)}")
    if not budgets:
        raise PlanError("a search needs a budget: bytes, bits per weight, microseconds or loss, or several of them")
    if untimed:
        raise MissingResultError(
            "a search for microseconds needs kernel times; time the kernels first, or search by bytes or bits per "
            "weight",
            command="workbench bench S.qwb",
        )


def _together(
    space: SearchSpace, joint: Joint, minimise: str, limits: dict[str, float], budgets: Budgets, table: Sensitivity
) -> Solution:
    """Return a choice that counts the interaction of layers, in what it minimises and in a budget of loss.

    The knapsack is solved for a smaller and smaller sum of losses until the whole is within the budget.
    """
    loss, tight, least = matrix_of(space, "loss"), dict(limits), math.inf
    for _ in range(TRIES):
        problem = problem_of(space, minimise, tight)
        solution = solve(problem)
        if solution is None:
            break
        picks = solution.picks
        if minimise == "loss":
            picks = exchanged(joint, problem, picks, _uniform(space, problem))
        whole = math.fsum(loss[np.arange(len(picks)), picks]) + joint.interaction(picks)
        if "loss" not in limits or whole <= limits["loss"]:
            return Solution(picks, solution.proven)
        least = min(least, whole)
        tight["loss"] *= min(limits["loss"] / whole, 0.95)
    raise BudgetError(
        f"no plan was found within {budgets}: the errors of its layers cost more together than separately, "
        f"{table.whole(least + space.fixed_loss):.6g} at the least; raise the budget or allow larger schemes"
    )


def _or_uniform(
    space: SearchSpace, table: Sensitivity, joint: Joint | None, problem: Problem, picks: np.ndarray
) -> np.ndarray:
    """Return the uniform choice of the least loss where it differs from that of ``picks`` by less than plans of such a
    loss differ in what they cost beyond the second order; else ``picks``.

    Where many bits are taken away that is much: a few layers of two bits may cost more than all of three.
    """
    if table.checks is None or not (uniform := _uniform(space, problem)):
        return picks
    loss = matrix_of(space, "loss")

    def second_order(choice: np.ndarray) -> float:
        own = math.fsum(loss[np.arange(len(choice)), choice]) + space.fixed_loss
        return own if joint is None else own + joint.interaction(choice)

    losses = [second_order(choice) for choice in uniform]
    least, best = second_order(picks), min(losses)
    known = 0 < least < math.inf and 0 < best < math.inf
    alike = known and abs(math.log(best / least)) < table.checks.apart(best)
    return uniform[losses.index(best)] if alike else picks


def _uniform(space: SearchSpace, problem: Problem) -> list[np.ndarray]:
    """Return the choices within the limits that give all groups one scheme, or what costs no more and loses no more."""
    schemes = dict.fromkeys(scheme for group in space.groups for scheme in group.schemes if scheme != KEEP)
    choices = []
    for scheme in schemes:
        owned = [[space.summary.by_name[name] for name in group.layers] for group in space.groups]
        sizes = [sum(layer_bits(layer, scheme) for layer in layers if layer.tied_to is None) for layers in owned]
        groups = zip(space.groups, sizes, strict=True)
        picks = np.array([np.searchsorted(group.bits, size, "right") - 1 for group, size in groups], np.int64)
        if (picks >= 0).all() and problem.fits(picks):
            choices.append(picks)
    return choices


def plan_of(space: SearchSpace, picks: np.ndarray, name: str) -> Plan:
    """Return the candidates ``picks`` (int64, one for each group) as rules."""
    plan = compact_plan(
        assignments_of(space, picks), space.summary.layers, name=name, model=space.summary.name,
        fingerprint=space.summary.fingerprint,
    )  # fmt: skip
    return replace(plan, transforms=space.transforms)


def assignments_of(space: SearchSpace, picks: np.ndarray) -> dict[str, Assignment]:
    """Return every layer's assignment when the groups take ``picks``."""
    assignments = dict(space.base)
    for group, pick in zip(space.groups, picks.tolist(), strict=True):
        for layer in group.layers:
            assignments[layer] = group.candidates[pick].applied(assignments[layer])
    for facts in space.summary.layers:
        if facts.tied_to is not None and assignments[facts.tied_to].weights != KEEP:
            assignments[facts.name] = replace(assignments[facts.name], weights=assignments[facts.tied_to].weights)
    return assignments


def require_scored(space: SearchSpace, table: Sensitivity) -> None:
    """Refuse layers that can only stay as they are stored because nothing of theirs was scored: they eat the budget.

    Those whose weights hold NaN or infinity are named when the model is opened, and can only stay.
    """
    names = [name for name in as_stored(space) if np.isnan(table.cells([name], table.schemes)).all()]
    names = [name for name in names if name not in space.summary.non_finite]
    if not names:
        return
    raise MissingResultError(
        f"{few(names)}: not scored, though the output depends on it. Score it (with data that reach "
        "it), or lock what has no score, to keep what the plan gives it",
        command="workbench plan S.qwb --lock unscored ...",
    )


def _require_loss(space: SearchSpace, budgets: Budgets) -> None:
    """Refuse a budget of loss where part of the loss is not known."""
    if budgets.loss is None or not space.unscored:
        return
    what, name, scheme = space.unscored[0]
    count = sum(other == what for other, _, _ in space.unscored)
    more = f" and of {count - 1} more layers" if count > 1 else ""
    of_inputs = what == "inputs"
    counted, place = ("rounded inputs cost", "at the input") if of_inputs else ("the cache costs", "in the cache")
    raise MissingResultError(
        f"a budget of loss counts what {counted}, and {scheme} {place} of {name}{more} was not scored; score it first, "
        "or search by bytes or bits per weight",
        command=f"workbench sensitivity S.qwb --metric predicted_kl_{what} --schemes {scheme}",
    )
