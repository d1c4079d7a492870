"""What a plan is made of: the stored layers added up by scheme, and after an edit only the layers that changed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from workbench.insight import schemes
from workbench.insight.changes import Assignments, changed_layers
from workbench.models.layer import Layer
from workbench.planning.plan import KEEP
from workbench.planning.totals import layer_bits
from workbench.sensitivity.table import Sensitivity
from workbench.session.workspace import State

Cost = tuple[int, int, float]
"""Weights, bits and loss of one layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The layers of one scheme: how many, their weights, bits, and loss."""

    scheme: str
    layers: int
    weights: int
    bits: int
    loss: float


class Parts:
    """Adds up the stored layers by scheme; another model or table starts from nothing."""

    def __init__(self) -> None:
        self._of: tuple[object, object] = (None, None)
        self._held: Assignments = {}
        self._groups: dict[str, dict[str, Cost]] = {}
        self._parts: dict[str, Part] = {}

    def of(self, state: State) -> tuple[Part, ...]:
        """Return the parts of the state's plan, fewest bits first."""
        session = state.session
        assert session is not None
        table = session.table(state.metric)
        known = self._of[0] is session.model and self._of[1] is table
        changed = changed_layers(self._held, state.assignments) if known else None
        if changed is None:
            self._groups = {}
            changed = list(state.assignments)
        before, self._held, self._of = self._held, state.assignments, (session.model, table)
        touched = set()
        for name in changed:
            layer = session.model.by_name[name]
            if layer.tied_to is not None:
                continue
            scheme = state.assignments[name].weights
            if name in before:
                self._groups.get(before[name].weights, {}).pop(name, None)
                touched.add(before[name].weights)
            self._groups.setdefault(scheme, {})[name] = _cost(layer, scheme, table)
            touched.add(scheme)
        self._groups = {scheme: held for scheme, held in self._groups.items() if held}
        kept = {scheme: part for scheme, part in self._parts.items() if scheme not in touched}
        self._parts = {scheme: kept.get(scheme) or _part(scheme, held) for scheme, held in self._groups.items()}
        return tuple(self._parts[name] for name in sorted(self._parts, key=schemes.reference_bits))


def _cost(layer: Layer, scheme: str, table: Sensitivity | None) -> Cost:
    loss = 0.0 if scheme == KEEP else table.of(layer.name, scheme) if table is not None else math.nan
    return layer.parameters, layer_bits(layer, scheme), loss


def _part(scheme: str, held: dict[str, Cost]) -> Part:
    costs = held.values()
    return Part(
        scheme=scheme, layers=len(held), weights=sum(cost[0] for cost in costs), bits=sum(cost[1] for cost in costs),
        loss=math.fsum(cost[2] for cost in costs),
    )  # fmt: skip
