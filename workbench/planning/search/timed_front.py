"""The Pareto front of time against predicted loss: the walk of ``search.py``, over microseconds."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from workbench.models.summary import ModelSummary
from workbench.planning.budgets import Times
from workbench.planning.constraints import Choices, Constraints, choices
from workbench.planning.plan import Plan
from workbench.planning.search.hull import Walk, padded, walk
from workbench.planning.search.joint import Joint, joined
from workbench.planning.search.search import plan_of
from workbench.sensitivity.table import Sensitivity


@dataclass(frozen=True, kw_only=True, eq=False)
class TimedFront:
    """The plans that no other plan on the convex hull beats, fastest first.

    ``microseconds`` of all timed layers one after another, ``loss``, ``bits_per_weight`` (float64) and ``nbytes``
    (int64) of plan ``i``, which comes of the first ``steps[i]`` (int64) of ``moves`` (costs in microseconds).  The loss
    counts the interaction of layers as :class:`workbench.planning.search.search.Front` does.
    """

    microseconds: np.ndarray
    nbytes: np.ndarray
    bits_per_weight: np.ndarray
    loss: np.ndarray
    space: Choices
    moves: Walk
    steps: np.ndarray

    def __len__(self) -> int:
        """Return the number of plans."""
        return int(self.microseconds.size)

    def index_within(self, microseconds: float) -> int:
        """Return the index of the best plan of at most so many microseconds, 0 if there is none."""
        slack = 1e-9 * abs(microseconds)
        return max(int(np.searchsorted(self.microseconds, microseconds + slack, side="right")) - 1, 0)

    def picks(self, index: int) -> np.ndarray:
        """Return the option of every group (int64) in plan ``index``."""
        return self.moves.after(int(self.steps[index]))

    def plan(self, index: int) -> Plan:
        """Return plan ``index`` as rules."""
        return plan_of(self.space, self.picks(index), f"{self.microseconds[index]:.4g} microseconds")


def timed_front(
    summary: ModelSummary, table: Sensitivity, base: Plan, times: Times, locked: Collection[str] = frozenset(), *,
    constraints: Constraints | None = None, inputs: Sensitivity | None = None, cache: Sensitivity | None = None,
) -> TimedFront:  # fmt: skip
    """Return the convex front of time against predicted loss.

    A scheme whose time at a layer's shape is not known is no candidate there; a layer of which no time is known (no
    matrix product) counts nothing, and takes the choice of least loss.  Raises what :func:`choices` raises.
    """
    space = choices(summary, table, base, locked, times=times, constraints=constraints, inputs=inputs, cache=cache)
    spent = padded([group.microseconds for group in space.groups])
    loss = padded([group.loss for group in space.groups])
    bits = padded([group.bits for group in space.groups])
    moves = walk(spent, loss)
    everybody = np.arange(len(spent))
    last = moves.start.copy()
    last[moves.group] = moves.choice
    first_bits = int(bits[everybody, moves.start].sum()) if len(bits) else 0
    grown = bits[moves.group, moves.choice] - bits[moves.group, moves.origin] if len(bits) else np.zeros(0)
    taken = first_bits + np.concatenate([[0.0], np.cumsum(grown)]).astype(np.int64)
    first = math.fsum(spent[everybody, moves.start]) + space.fixed_microseconds if len(spent) else 0.0
    rest = math.fsum(loss[everybody, last]) + space.fixed_loss if len(loss) else space.fixed_loss
    avoided = np.concatenate([np.cumsum(moves.less[::-1])[::-1], [0.0]])
    weights = space.counted_weights
    losses, steps = joined(rest + avoided, moves, Joint.of(space, table))
    bits_per_weight = (space.counted_bits + taken) / weights if weights else np.zeros(taken.size)
    return TimedFront(
        microseconds=(first + np.concatenate([[0.0], np.cumsum(moves.more)]))[steps],
        nbytes=((space.all_bits + taken) // 8 + summary.kept_nbytes)[steps], bits_per_weight=bits_per_weight[steps],
        loss=losses[steps], space=space, moves=moves, steps=steps,
    )  # fmt: skip
