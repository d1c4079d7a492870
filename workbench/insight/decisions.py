"""Which layer to decide next: where more bits save most loss for what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workbench.insight import quantities
from workbench.insight.layer_facts import LayerFacts, PlanFacts
from workbench.planning.latest import Latest
from workbench.planning.plan import KEEP
from workbench.planning.totals import layer_bits, scheme_bits


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
    return _by_layer(facts.plan).get(facts.layer.name)


def decisions(plan: PlanFacts) -> list[Decision]:
    """Return the changes of layers to a larger scheme of the table, or to ``keep``, that save most loss for each byte,
    the one that saves most first.

    Tied and locked layers have none, nor those that the table does not know, or of which nothing larger loses less.
    """
    table, session = plan.table, plan.session
    if table is None or session is None:
        return []
    layers = [each for each in session.model.layers if not each.tied_to and each.name not in session.locked]
    free = [plan.of(layer) for layer in layers if layer.name in table.row]
    if not free:
        return []
    schemes = [*table.schemes, KEEP]
    loss = table.gathered((facts.layer.name, facts.scheme) for facts in free)[0]
    loss[[facts.scheme == KEEP for facts in free]] = 0
    score = table.score[[table.row[facts.layer.name] for facts in free]]
    saved = loss[:, None] - np.column_stack([score, np.zeros(len(free))])
    stored = [bits_of_schemes(table.schemes, each.layer.matrix, layer_bits(each.layer, KEEP)) for each in free]
    cost = (np.array(stored) - np.array([[facts.bits] for facts in free])) / 8
    rate = np.divide(saved, cost, out=np.full(saved.shape, -np.inf), where=(saved > 0) & (cost > 0))
    best, top = rate.argmax(axis=1), rate.max(axis=1)
    return [
        Decision(layer=free[row].layer.name, scheme=free[row].scheme, better=schemes[best[row]],
                 saved=float(saved[row, best[row]]), cost=float(cost[row, best[row]]))
        for row in map(int, np.argsort(-top, kind="stable")) if top[row] > 0
    ]  # fmt: skip


@Latest
def _by_layer(plan: PlanFacts) -> dict[str, Decision]:
    return {each.layer: each for each in decisions(plan)}


@lru_cache(maxsize=1024)
def bits_of_schemes(schemes: tuple[str, ...], matrix: tuple[int, int], stored_bits: int) -> np.ndarray:
    """Return the bits of a matrix under each of ``schemes``, then those that it has as stored; int64."""
    return np.array([*(scheme_bits(name, matrix) for name in schemes), stored_bits])
