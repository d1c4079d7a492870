"""What a plan is made of: layers added up by scheme, and by their type before and after.

A tied layer is counted, as in the list of layers; the tensor that it shares counts once, with the layer that owns it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter

from workbench.insight import schemes
from workbench.insight.layer_facts import weight_loss
from workbench.models.layer import Layer
from workbench.models.summary import ModelSummary
from workbench.planning.latest import Assignments, changed_layers
from workbench.planning.plan import KEEP
from workbench.planning.totals import layer_bits
from workbench.session.workspace import State

LAYERS_TIP = "As the list of layers counts them; the tensor of a tied layer counts once, with the layer that owns it"
"""What the number of layers in a part of a plan means."""

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
    """Adds up the layers by scheme, after an edit only those that changed; another model or table starts from
    nothing."""

    def __init__(self) -> None:
        self._of: tuple[object, object] = (None, None)
        self._assignments: Assignments = {}
        self._costs: dict[str, dict[str, Cost]] = {}
        """By scheme and layer."""
        self._parts: dict[str, Part] = {}

    def of(self, state: State) -> tuple[Part, ...]:
        """Return the parts of the state's plan, fewest bits first."""
        session = state.session
        assert session is not None
        table = session.table(state.metric)
        known = self._of[0] is session.model and self._of[1] is table
        changed = changed_layers(self._assignments, state.assignments) if known else None
        before = self._assignments if changed is not None else {}
        if changed is None:
            self._costs, self._parts, changed = {}, {}, list(state.assignments)
        self._assignments, self._of = state.assignments, (session.model, table)
        for name in changed:
            layer, scheme = session.model.by_name[name], state.assignments[name].weights
            if name in before:
                self._costs[before[name].weights].pop(name)
                self._parts.pop(before[name].weights, None)
            self._parts.pop(scheme, None)
            self._costs.setdefault(scheme, {})[name] = (
                (0, 0, 0.0) if layer.tied_to is not None else
                (layer.parameters, layer_bits(layer, scheme), weight_loss(table, name, scheme))
            )  # fmt: skip
        names = sorted((scheme for scheme, costs in self._costs.items() if costs), key=schemes.reference_bits)
        self._parts = {name: self._parts.get(name) or _part(name, self._costs[name]) for name in names}
        return tuple(self._parts.values())


def _part(scheme: str, costs: dict[str, Cost]) -> Part:
    weights, bits, losses = (map(itemgetter(place), costs.values()) for place in range(3))
    return Part(scheme=scheme, layers=len(costs), weights=sum(weights), bits=sum(bits), loss=math.fsum(losses))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """``layers`` layers stored as ``before`` become ``after``; bytes of all their tensors, before and after."""

    before: str
    after: str
    layers: int
    weights: int
    nbytes: tuple[float, float]


def transitions(summary: ModelSummary, assignments: Assignments) -> tuple[Transition, ...]:
    """Return every pair of stored type and scheme that occurs, fewest bits after first."""
    layers: dict[tuple[str, str], list[Layer]] = {}
    for layer in summary.layers:
        scheme = assignments[layer.name].weights if layer.name in assignments else KEEP
        layers.setdefault((layer.dtype, scheme), []).append(layer)
    order = sorted(layers, key=lambda pair: (pair[0], schemes.reference_bits(pair[1])))
    return tuple(_transition(*pair, layers[pair]) for pair in order)


def _transition(dtype: str, scheme: str, layers: list[Layer]) -> Transition:
    owned = [layer for layer in layers if layer.tied_to is None]
    nbytes = [sum(layer_bits(layer, weights) for layer in owned) / 8 for weights in (KEEP, scheme)]
    return Transition(
        before=dtype, after=dtype if scheme == KEEP else scheme, layers=len(layers),
        weights=sum(layer.parameters for layer in owned), nbytes=(nbytes[0], nbytes[1]),
    )  # fmt: skip
