"""A better choice by exchanges, where the errors of layers interact.

The knapsack minimises the sum of the layers' own losses.  From its choice on, one option or two at a time are exchanged
as long as the loss with the interaction falls and the limits hold (2-opt local search).  Exchanges are chosen on one
half of the samples and judged on the other: a choice stays only if it gains there, beyond doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.planning.search.joint import Joint
from workbench.planning.search.solve import Problem
from workbench.sensitivity.interaction import FEWEST, UNIT, beyond_chance, halves, of_choosers

SHARES = (0.2, 0.5, 1.0)
"""Choices are made with so much of the interaction that the choosing samples show.  The one that is judged best is
taken, if it gains enough of its standard errors: so these only say what is tried."""

GAINED = 1.28
"""How many of its standard errors a gain must be (one-sided 90 %)."""

JUDGES = 64
"""So many samples judge an exchange at the least: of 40 a few carry the gain, which passes for more than it is."""

MOST = 2000
"""With more options than that only one is exchanged at a time."""

ROUNDS = 200


def exchanged(joint: Joint, problem: Problem, picks: np.ndarray, others: Sequence[np.ndarray] = ()) -> np.ndarray:
    """Return a choice (int64 ``[groups]``) within the limits of ``problem`` that is judged no worse than ``picks``.

    ``problem`` minimises the layers' own losses; ``others`` are choices to be judged too, such as the uniform ones.
    Where fewer than FEWEST samples can judge, ``picks`` stay, and where fewer than JUDGES can, nothing is exchanged.
    """
    judges = halves(joint.fixed[0].astype(np.float64))[1].size
    if judges < FEWEST:
        return picks
    choices = [_improved(joint, problem, picks, share) for share in SHARES] if judges >= JUDGES else []
    best, most, errors = picks, 0.0, beyond_chance(GAINED, judges)
    for choice in (*choices, *others):
        gain, error = _gain(joint, problem, picks, choice)
        if gain > max(errors * error, most):
            best, most = choice, gain
    return best


def _improved(joint: Joint, problem: Problem, picks: np.ndarray, share: float) -> np.ndarray:
    """Return ``picks`` after the exchanges that the choosing half of the samples asks for."""
    table, picks = _Table.of(joint, problem, share), picks.copy()
    for _ in range(ROUNDS):
        cells = table.best(picks)
        if not cells:
            break
        for cell in cells:
            picks[table.group[cell]] = cell - table.first[table.group[cell]]
    return picks


def _gain(joint: Joint, problem: Problem, start: np.ndarray, picks: np.ndarray) -> tuple[float, float]:
    """Return how much less ``picks`` lose than ``start`` by the judging half of the samples, and its standard error."""
    before, after = (
        0.5 * UNIT * UNIT * (np.square(sums.astype(np.float64)) - squares)
        for sums, squares in (joint.whole(start), joint.whole(picks))
    )
    gained = halves(before - after)[1]
    own = problem.total(start) - problem.total(picks)
    return own + float(gained.sum()), float(np.sqrt(gained.size * gained.var(ddof=1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """All options of all groups in one row.

    ``group`` (int64) and where each group's begin (``first``); ``loss`` without the believed share of what the slopes
    say; ``slopes`` ``[options, draws]`` and ``fixed`` ``[draws]`` in nats ** 0.5; ``costs`` ``[limits, options]``.
    """

    group: np.ndarray
    first: np.ndarray
    loss: np.ndarray
    slopes: np.ndarray
    fixed: np.ndarray
    costs: np.ndarray
    limits: np.ndarray

    @staticmethod
    def of(joint: Joint, problem: Problem, share: float) -> _Table:
        group, choice = np.nonzero(np.isfinite(problem.value))
        slopes = np.array([joint.slopes(*cell) for cell in zip(group.tolist(), choice.tolist(), strict=True)])
        chosen, fixed = of_choosers(slopes[:, 0]), of_choosers(joint.fixed[0])
        own = 0.5 * UNIT * UNIT * halves(slopes[:, 1].astype(np.float64))[0].sum(axis=1)
        scale = UNIT * np.sqrt(share)
        return _Table(
            group=group, first=np.searchsorted(group, np.arange(len(problem.value))),
            loss=problem.value[group, choice] - share * own, slopes=chosen * scale, fixed=fixed * scale,
            costs=np.array([cost[group, choice] for cost in problem.costs]).reshape(-1, group.size),
            limits=np.array(problem.limits),
        )  # fmt: skip

    def best(self, picks: np.ndarray) -> tuple[int, ...]:
        """Return the one or two options that lower the loss most when they are exchanged for what is chosen."""
        chosen = self.first + picks
        moved = self.slopes - self.slopes[chosen][self.group]
        whole = self.fixed + self.slopes[chosen].sum(axis=0)
        gain = moved @ whole + 0.5 * np.square(moved).sum(axis=1) + self.loss - self.loss[chosen][self.group]
        more = self.costs - self.costs[:, chosen][:, self.group]
        room = self.limits - self.costs[:, chosen].sum(axis=1)
        alone = np.where((more <= room[:, None]).all(axis=0), gain, np.inf)
        enough = -1e-9 * max(float(np.abs(self.loss[chosen]).sum()), 1e-300)
        single = int(alone.argmin())
        pair, least = self._pair(moved, gain, more, room) if gain.size <= MOST else ((), np.inf)
        if min(float(alone[single]), least) >= enough:
            return ()
        return (single,) if alone[single] <= least else pair

    def _pair(
        self, moved: np.ndarray, gain: np.ndarray, more: np.ndarray, room: np.ndarray
    ) -> tuple[tuple[int, ...], float]:
        """Return the best two options of different groups to exchange together, and what they add to the loss."""
        both = moved @ moved.T + gain[:, None] + gain
        fits = self.group[:, None] != self.group
        for each, most in zip(more, room, strict=True):
            fits &= each[:, None] + each <= most
        both[~fits] = np.inf
        first, second = np.unravel_index(int(both.argmin()), both.shape)
        return (int(first), int(second)), float(both[first, second])
