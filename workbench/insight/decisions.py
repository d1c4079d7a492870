"""Which layer to decide next: where more bits save most loss for what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.insight import quantities
from workbench.insight.layer_facts import LayerFacts, PlanFacts
from workbench.models.layer import Layer
from workbench.planning.latest import Latest
from workbench.planning.plan import KEEP
from workbench.planning.totals import layer_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A layer's best way to more bits, ``scheme`` to ``better``: ``saved`` in the table's unit, ``cost`` in bytes."""

    layer: str
    scheme: str
    better: str
    saved: float
    cost: float

    @property
    def rate(self) -> float:
        """Loss saved for each byte."""
        return self.saved / self.cost

    def sentence(self, unit: str) -> str:
        """Describe what the change costs and saves."""
        return (
            f"{self.layer}: {self.scheme} to {self.better} saves {quantities.number(self.saved)} {unit} "
            f"for {quantities.data_size(self.cost)}"
        )


def decision(facts: LayerFacts) -> Decision | None:
    """Return the decision of a layer, None where it has none."""
    best = _best(facts.plan)
    row = best.rows.get(facts.layer.name) if best else None
    return best.of(row) if best and row is not None else None


def decisions(plan: PlanFacts) -> list[Decision]:
    """Return the changes of layers to a larger scheme of the table, or to ``keep``, that save most loss for each byte,
    the one that saves most first.

    Tied and locked layers have none, nor those that the table does not know, or of which nothing larger loses less.
    """
    best = _best(plan)
    return [best.of(row) for row in best.rows.values()] if best else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Best:
    """The best change of each free layer, as arrays ``[layers]``: a record for each of 10,000 takes a frame.

    ``rows`` has the places in them of the layers that have a decision, the one that saves most first.
    """

    layers: list[Layer]
    own: list[str]
    schemes: list[str]
    column: np.ndarray
    saved: np.ndarray
    cost: np.ndarray
    rows: dict[str, int]

    def of(self, row: int) -> Decision:
        """Return the decision of a layer by its place."""
        return Decision(layer=self.layers[row].name, scheme=self.own[row], better=self.schemes[self.column[row]],
                        saved=float(self.saved[row]), cost=float(self.cost[row]))  # fmt: skip


@Latest
def _best(plan: PlanFacts) -> _Best | None:
    table, session, assigned = plan.table, plan.session, plan.assignments
    if table is None or session is None:
        return None
    rows, locked = table.row, session.locked
    free = [each for each in session.model.layers if not each.tied_to and each.name in rows and each.name not in locked]
    if not free:
        return None
    names, schemes = [layer.name for layer in free], [*table.schemes, KEEP]
    own = [assigned[name].weights if name in assigned else KEEP for name in names]
    loss = np.where([name == KEEP for name in own], 0.0, table.gathered(zip(names, own, strict=True))[0])
    saved = loss[:, None] - np.pad(table.score[[rows[name] for name in names]], ((0, 0), (0, 1)))
    present = np.array([layer_bits(layer, name) for layer, name in zip(free, own, strict=True)])
    cost = (bits_of_schemes(table.schemes, free) - present[:, None]) / 8
    rate = np.divide(saved, cost, out=np.full(saved.shape, -np.inf), where=(saved > 0) & (cost > 0))
    column, top = rate.argmax(axis=1), rate.max(axis=1)
    every = np.arange(len(free))
    return _Best(
        layers=free, own=own, schemes=schemes, column=column, saved=saved[every, column], cost=cost[every, column],
        rows={names[row]: row for row in np.argsort(-top, kind="stable").tolist() if top[row] > 0},
    )  # fmt: skip


def bits_of_schemes(schemes: Sequence[str], layers: Sequence[Layer]) -> np.ndarray:
    """Return the bits of each layer's weight under each of ``schemes``, then those that it has as stored.

    int64 ``[layers, schemes + 1]``; layers of one shape and dtype are worked out once.
    """
    kinds: dict[tuple[object, ...], int] = {}
    places = [kinds.setdefault((layer.viewed, layer.axes, layer.row_axes, layer.dtype), len(kinds)) for layer in layers]
    first = dict(zip(reversed(places), reversed(layers), strict=True))
    bits = [[layer_bits(first[place], name) for name in (*schemes, KEEP)] for place in range(len(kinds))]
    return np.array(bits, np.int64).reshape(len(kinds), len(schemes) + 1)[places]
