"""Dynamic programming against HiGHS and against enumeration; hulls against a slow one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.planning.search import solve as module
from workbench.planning.search.hull import padded, walk
from workbench.planning.search.solve import Problem, solve


def random_problem(groups: int, choices: int, seed: int, correlated: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return values that fall with costs."""
    rng = np.random.default_rng(seed)
    cost = np.sort(rng.integers(1, 100_000, (groups, choices)), axis=1).astype(float)
    value = np.sort(rng.lognormal(0, 2, (groups, choices)), axis=1)[:, ::-1].copy()
    if correlated:
        value = 2e5 - cost + rng.integers(0, 50, cost.shape)
    return value, cost


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_dynamic_programming_and_highs_agree(seed: int, correlated: bool, monkeypatch: pytest.MonkeyPatch):
    value, cost = random_problem(7 if correlated else 40, 5, seed, correlated)
    limit = math.floor(0.4 * cost.max(axis=1).sum() + 0.6 * cost.min(axis=1).sum())
    problem = Problem(value=value, costs=(cost,), limits=(limit,))
    ours = solve(problem)
    monkeypatch.setattr(module, "settle", lambda *_: None)
    monkeypatch.setattr(module, "SECONDS", 600.0)  # a busy machine is no reason for another answer
    theirs = solve(problem)
    assert ours is not None and theirs is not None and problem.fits(ours.picks) and ours.proven and theirs.proven
    assert problem.total(ours.picks) <= problem.total(theirs.picks)  # HiGHS stops within its tolerance
    assert problem.total(ours.picks) == pytest.approx(problem.total(theirs.picks), rel=1e-6)


def test_a_choice_that_there_was_no_time_to_prove_says_so(monkeypatch: pytest.MonkeyPatch):
    value, cost = random_problem(200, 8, 1, correlated=True)
    limit = math.floor(0.4 * cost.max(axis=1).sum() + 0.6 * cost.min(axis=1).sum())
    problem = Problem(value=value, costs=(cost, cost[::-1].copy()), limits=(limit, limit))
    monkeypatch.setattr(module, "SECONDS", 0.0)
    hasty = solve(problem)
    assert hasty is not None and problem.fits(hasty.picks) and not hasty.proven


MENU = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(MENU, min_size=1, max_size=5),
    st.integers(0, 120),
    st.one_of(st.none(), st.integers(0, 120)),
)
def test_every_small_problem_is_solved(groups: list[list[tuple[int, int]]], limit: int, second: int | None):
    value = padded([np.array([v for v, _ in group], float) for group in groups])
    cost = padded([np.array([c for _, c in group], float) for group in groups])
    other = padded([np.array([(7 * v + 3 * c) % 31 for v, c in group], float) for group in groups])
    costs, limits = ((cost,), (float(limit),)) if second is None else ((cost, other), (float(limit), float(second)))
    problem = Problem(value=value, costs=costs, limits=limits)
    plans = (np.array(picks) for picks in itertools.product(*(range(len(group)) for group in groups)))
    best = min((problem.total(picks) for picks in plans if problem.fits(picks)), default=None)
    result = solve(problem)
    if best is None:
        assert result is None
    else:
        assert result is not None and problem.fits(result.picks) and problem.total(result.picks) == best


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12))
def test_the_hull_is_the_one_that_no_chord_undercuts(points: list[tuple[int, int]]):
    cost, value = (padded([np.array([point[axis] for point in points], float)]) for axis in (0, 1))
    moves = walk(cost, value)
    places = [int(moves.start[0]), *moves.choice.tolist()]
    corners = [points[place] for place in places]
    assert corners[0] == min(points) and corners[-1][1] == min(v for _, v in points)
    assert (np.diff(moves.price) < 0).all() and (moves.more > 0).all() and (moves.less > 0).all()
    for c, v in points:
        for (c0, v0), (c1, v1) in itertools.pairwise(corners):
            if c0 <= c <= c1:
                assert (v - v0) * (c1 - c0) >= (v1 - v0) * (c - c0)


def test_nothing_to_choose():
    empty = Problem(value=np.zeros((0, 0)), costs=(np.zeros((0, 0)),), limits=(0.0,))
    result = solve(empty)
    assert result is not None and result.picks.size == 0
    assert solve(Problem(value=np.zeros((0, 0)), costs=(np.zeros((0, 0)),), limits=(-1.0,))) is None
