"""What choices cost together: the interaction of all layers, along a front and for a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.planning.candidates import Option
from workbench.planning.constraints import Choices
from workbench.planning.directions import UNIT, loss_of
from workbench.planning.hull import Walk
from workbench.planning.sensitivity import Sensitivity

BLOCK = 512
"""So many moves of a walk are added up at once."""

Cell = tuple[int, int]


@dataclass(slots=True, kw_only=True, eq=False)
class Joint:
    """The slopes of every option of ``space``, by the table of its algorithm; ``fixed`` those of what is decided."""

    space: Choices
    tables: dict[str, Sensitivity]
    plain: Sensitivity
    draws: int
    fixed: np.ndarray
    fixed_own: float
    _known: dict[Cell, tuple[np.ndarray, float]] = field(default_factory=dict)

    @staticmethod
    def of(space: Choices, table: Sensitivity, algorithms: Sequence[Sensitivity] = ()) -> Joint | None:
        """Return the slopes behind ``space``; None where no table has any."""
        tables = {one.algorithm: one for one in reversed((table, *algorithms))}
        known = [one.directions for one in tables.values() if one.directions is not None]
        if not known:
            return None
        draws = known[0].values.shape[-1]
        searched = {name for group in space.groups for name in group.layers}
        rest = [layer.name for layer in space.summary.stored if layer.name not in searched]
        fixed, own = _added(((table, name, space.base[name].weights) for name in rest), draws)
        return Joint(
            space=space, tables=tables, plain=table, draws=draws, fixed=fixed, fixed_own=own
        )  # fmt: skip

    def option(self, group: int, choice: int) -> tuple[np.ndarray, float]:
        """Return the slopes of an option (int64 ``[draws]``) and the sum of its layers' own losses in nats."""
        cell = (group, choice)
        if cell not in self._known:
            members, option = self.space.groups[group], self.space.groups[group].options[choice]
            owned = [name for name in members.layers if self.space.summary.by_name[name].tied_to is None]
            table = self._table(option)
            self._known[cell] = _added(((table, name, option.weights) for name in owned), self.draws)
        return self._known[cell]

    def _table(self, option: Option) -> Sensitivity:
        algorithm = dict(option.others).get("algorithm")
        return self.plain if algorithm is None else self.tables[algorithm]

    def interaction(self, picks: np.ndarray) -> float:
        """Return the interaction in nats when the groups take ``picks`` (int64)."""
        chosen = [self.option(group, choice) for group, choice in enumerate(picks.tolist())]
        slopes = self.fixed + sum((one for one, _ in chosen), np.zeros(self.draws, np.int64))
        return loss_of(slopes) - self.fixed_own - sum(loss for _, loss in chosen)

    def along(self, moves: Walk) -> np.ndarray:
        """Return the interaction in nats (float64) at the start of a walk and after each of its moves."""
        chosen = [self.option(group, choice) for group, choice in enumerate(moves.start.tolist())]
        slopes = self.fixed + sum((one for one, _ in chosen), np.zeros(self.draws, np.int64))
        own = self.fixed_own + sum(loss for _, loss in chosen)
        found = [np.array([loss_of(slopes) - own])]
        cells = zip(moves.group.tolist(), moves.origin.tolist(), moves.choice.tolist(), strict=True)
        steps = [(self.option(group, before), self.option(group, after)) for group, before, after in cells]
        for first in range(0, len(steps), BLOCK):
            part = steps[first : first + BLOCK]
            walked = slopes + np.cumsum([after[0] - before[0] for before, after in part], axis=0)
            alone = own + np.cumsum([after[1] - before[1] for before, after in part])
            found.append(0.5 * UNIT * UNIT * np.square(walked.astype(np.float64)).sum(axis=1) - alone)
            slopes, own = walked[-1], float(alone[-1])
        return np.concatenate(found)


def joined(loss: np.ndarray, moves: Walk, joint: Joint | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the losses along a walk with their interaction, and the steps (int64) that no earlier one beats.

    ``loss`` (float64) is the sum of the layers' own at the start and after each move.
    """
    if joint is None:
        return loss, np.arange(loss.size)
    whole = np.maximum(loss + joint.along(moves), 0.0)
    before = np.minimum.accumulate(np.concatenate([[np.inf], whole[:-1]]))
    return whole, np.flatnonzero(whole < before)


def _added(cells: Iterable[tuple[Sensitivity, str, str]], draws: int) -> tuple[np.ndarray, float]:
    """Return the sum of the slopes of cells (table, layer, scheme) and of their own losses."""
    total, own = np.zeros(draws, np.int64), 0.0
    for table, name, scheme in cells:
        slopes = table.slopes(name, scheme)
        if slopes is not None and slopes.size == draws:
            total, own = total + slopes, own + loss_of(slopes)
    return total, own
