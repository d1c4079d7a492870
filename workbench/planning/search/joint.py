"""What choices cost together: the interaction of all layers, along a front and for a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.planning.constraints import SearchSpace
from workbench.planning.search.hull import Walk
from workbench.sensitivity.interaction import interaction, interactions
from workbench.sensitivity.table import Sensitivity

BLOCK = 512
"""So many moves of a walk are added up at once."""

Cell = tuple[int, int]


@dataclass(slots=True, kw_only=True, eq=False)
class Joint:
    """The slopes of every candidate of ``space``, by the table of its algorithm; ``fixed`` those of what is decided.

    Slopes are int64 ``[2, draws]``: the sum over some cells, and the sum of their squares.
    """

    space: SearchSpace
    tables: dict[str, Sensitivity]
    plain: Sensitivity
    draws: int
    fixed: np.ndarray
    _known: dict[Cell, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def of(space: SearchSpace, table: Sensitivity, algorithms: Sequence[Sensitivity] = ()) -> Joint | None:
        """Return the slopes behind ``space``; None where no table has any."""
        tables = {losses.algorithm: losses for losses in reversed((table, *algorithms))}
        known = [losses.directions for losses in tables.values() if losses.directions is not None]
        if not known:
            return None
        draws = known[0].values.shape[-1]
        searched = {name for group in space.groups for name in group.layers}
        decided = [layer.name for layer in space.summary.stored if layer.name not in searched]
        fixed = _added(((table, name, space.base[name].weights) for name in decided), draws)
        return Joint(space=space, tables=tables, plain=table, draws=draws, fixed=fixed)

    def slopes(self, group: int, choice: int) -> np.ndarray:
        """Return the slopes of a candidate."""
        cell = (group, choice)
        if cell not in self._known:
            members = self.space.groups[group]
            candidate = members.candidates[choice]
            algorithm = dict(candidate.others).get("algorithm")
            table = self.plain if algorithm is None else self.tables[algorithm]
            owned = [name for name in members.layers if self.space.summary.by_name[name].tied_to is None]
            self._known[cell] = _added(((table, name, candidate.weights) for name in owned), self.draws)
        return self._known[cell]

    def whole(self, picks: np.ndarray) -> np.ndarray:
        """Return the slopes of everything when the groups take ``picks`` (int64)."""
        return sum((self.slopes(group, choice) for group, choice in enumerate(picks.tolist())), self.fixed)

    def interaction(self, picks: np.ndarray) -> float:
        """Return the interaction in nats when the groups take ``picks``."""
        return interaction(*self.whole(picks))

    def along(self, moves: Walk) -> np.ndarray:
        """Return the interaction in nats (float64) at the start of a walk and after each of its moves."""
        whole = self.whole(moves.start)
        parts_of_walk = [np.array([interaction(*whole)])]
        cells = zip(moves.group.tolist(), moves.origin.tolist(), moves.choice.tolist(), strict=True)
        steps = [self.slopes(group, after) - self.slopes(group, before) for group, before, after in cells]
        for first in range(0, len(steps), BLOCK):
            sums = whole + np.cumsum(steps[first : first + BLOCK], axis=0)
            parts_of_walk.append(interactions(sums[:, 0], sums[:, 1]))
            whole = sums[-1]
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


def _added(cells: Iterable[tuple[Sensitivity, str, str]], draws: int) -> np.ndarray:
    """Return the slopes of cells (table, layer, scheme) together."""
    total = np.zeros((2, draws), np.int64)
    for table, name, scheme in cells:
        slopes = table.slopes(name, scheme)
        if slopes is not None and slopes.size == draws:
            total += [slopes, slopes * slopes]
    return total
