"""What choices cost together: the interaction of all layers, along a front and for a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.planning.candidates import Candidate
from workbench.planning.constraints import SearchSpace
from workbench.planning.search.hull import Walk
from workbench.sensitivity.interaction import interaction, interactions
from workbench.sensitivity.table import Sensitivity

BLOCK = 512
"""So many moves of a walk are added up at once."""

Cell = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """The sum of the slopes of some cells and of their squares, int64 ``[draws]``."""

    sums: np.ndarray
    squares: np.ndarray

    def __add__(self, other: Slopes) -> Slopes:
        return Slopes(self.sums + other.sums, self.squares + other.squares)

    def __sub__(self, other: Slopes) -> Slopes:
        return Slopes(self.sums - other.sums, self.squares - other.squares)


@dataclass(slots=True, kw_only=True, eq=False)
class Joint:
    """The slopes of every option of ``space``, by the table of its algorithm; ``fixed`` those of what is decided."""

    space: SearchSpace
    tables: dict[str, Sensitivity]
    plain: Sensitivity
    draws: int
    fixed: Slopes
    _known: dict[Cell, Slopes] = field(default_factory=dict)

    @staticmethod
    def of(space: SearchSpace, table: Sensitivity, algorithms: Sequence[Sensitivity] = ()) -> Joint | None:
        """Return the slopes behind ``space``; None where no table has any."""
        tables = {losses.algorithm: losses for losses in reversed((table, *algorithms))}
        known = [losses.directions for losses in tables.values() if losses.directions is not None]
        if not known:
            return None
        draws = known[0].values.shape[-1]
        searched = {name for group in space.groups for name in group.layers}
        rest = [layer.name for layer in space.summary.stored if layer.name not in searched]
        fixed = _added(((table, name, space.base[name].weights) for name in rest), draws)
        return Joint(space=space, tables=tables, plain=table, draws=draws, fixed=fixed)

    def option(self, group: int, choice: int) -> Slopes:
        """Return the slopes of an option."""
        cell = (group, choice)
        if cell not in self._known:
            members, option = self.space.groups[group], self.space.groups[group].candidates[choice]
            owned = [name for name in members.layers if self.space.summary.by_name[name].tied_to is None]
            table = self._table(option)
            self._known[cell] = _added(((table, name, option.weights) for name in owned), self.draws)
        return self._known[cell]

    def _table(self, option: Candidate) -> Sensitivity:
        algorithm = dict(option.others).get("algorithm")
        return self.plain if algorithm is None else self.tables[algorithm]

    def whole(self, picks: np.ndarray) -> Slopes:
        """Return the slopes of everything when the groups take ``picks`` (int64)."""
        return sum((self.option(group, choice) for group, choice in enumerate(picks.tolist())), self.fixed)

    def interaction(self, picks: np.ndarray) -> float:
        """Return the interaction in nats when the groups take ``picks``."""
        whole = self.whole(picks)
        return interaction(whole.sums, whole.squares)

    def along(self, moves: Walk) -> np.ndarray:
        """Return the interaction in nats (float64) at the start of a walk and after each of its moves."""
        now = self.whole(moves.start)
        parts_of_walk = [np.array([interaction(now.sums, now.squares)])]
        cells = zip(moves.group.tolist(), moves.origin.tolist(), moves.choice.tolist(), strict=True)
        steps = [self.option(group, after) - self.option(group, before) for group, before, after in cells]
        for first in range(0, len(steps), BLOCK):
            part = steps[first : first + BLOCK]
            sums = now.sums + np.cumsum([step.sums for step in part], axis=0)
            squares = now.squares + np.cumsum([step.squares for step in part], axis=0)
            parts_of_walk.append(interactions(sums, squares))
            now = Slopes(sums[-1], squares[-1])
        return np.concatenate(parts_of_walk)


def joined(loss: np.ndarray, moves: Walk, joint: Joint | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the losses along a walk with their interaction, and the steps (int64) that no earlier one beats.

    ``loss`` (float64) is the sum of the layers' own at the start and after each move.
    """
    if joint is None:
        return loss, np.arange(loss.size)
    whole = np.maximum(loss + joint.along(moves), 0.0)
    before = np.minimum.accumulate(np.concatenate([[np.inf], whole[:-1]]))
    return whole, np.flatnonzero(whole < before)


def _added(cells: Iterable[tuple[Sensitivity, str, str]], draws: int) -> Slopes:
    """Return the slopes of cells (table, layer, scheme) together."""
    total = Slopes(np.zeros(draws, np.int64), np.zeros(draws, np.int64))
    for table, name, scheme in cells:
        slopes = table.slopes(name, scheme)
        if slopes is not None and slopes.size == draws:
            total = total + Slopes(slopes, slopes * slopes)
    return total
