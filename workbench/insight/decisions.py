"""Which layer to decide next: where more bits save most loss for what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workbench.insight import quantities
from workbench.insight.layer_facts import LayerFacts
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
    """Return the change to a larger scheme of the table, or to ``keep``, that saves most loss for each byte.

    None for tied and locked layers, where the table does not know the layer, and where nothing larger loses less.
    """
    layer, table, session = facts.layer, facts.plan.table, facts.plan.session
    if table is None or session is None or layer.tied_to or layer.name in session.locked or math.isnan(facts.loss):
        return None
    if layer.name not in table.row:
        return None
    saved = facts.loss - np.append(table.score[table.row[layer.name]], 0.0)
    cost = (bits_of_schemes(table.schemes, layer.matrix, layer_bits(layer, KEEP)) - facts.bits) / 8
    better = (saved > 0) & (cost > 0)
    if not better.any():
        return None
    best = int(np.divide(saved, cost, out=np.full(saved.shape, -np.inf), where=better).argmax())
    name = KEEP if best == len(table.schemes) else table.schemes[best]
    return Decision(
        layer=layer.name, scheme=facts.scheme, better=name, saved=float(saved[best]), cost=float(cost[best])
    )


@lru_cache(maxsize=1024)
def bits_of_schemes(schemes: tuple[str, ...], matrix: tuple[int, int], stored_bits: int) -> np.ndarray:
    """Return the bits of a matrix under each of ``schemes``, then those that it has as stored; int64."""
    return np.array([*(scheme_bits(name, matrix) for name in schemes), stored_bits])


def decisions(layers: Iterable[LayerFacts]) -> list[Decision]:
    """Return the decisions of all layers, the one that saves most for each byte first."""
    return sorted(filter(None, map(decision, layers)), key=lambda each: -each.rate)
