"""What a person can choose from, what the chosen target cannot run of the plan, and how to mend it.  No widgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from workbench.deployment.targets import Target, target
from workbench.errors import PlanError
from workbench.insight import schemes
from workbench.models.layer import Layer
from workbench.numerics.formats import activation_schemes, standard_schemes
from workbench.planning.groups import sharing_groups
from workbench.planning.kv_cache import cache_scheme
from workbench.planning.plan import KEEP, Assignment
from workbench.session.workspace import State

STORED_BITS = {"float64": 64.0, "float32": 32.0}
"""Bits of the dtypes in which a layer is stored, where they are not 16."""

LOADED = ("int4-g32", "int4-g64", "int4-g128", "int4-channel", "int8-g64", "int8-g128", "int8-channel", "int8-tensor")
"""What runtimes load most, besides the families' examples."""

Pair = tuple[str, str | None]
"""A weight scheme and an input scheme."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Layers that the target cannot run as the plan says, and why: one layer, or several that it joins."""

    layers: tuple[str, ...]
    reason: str


def violations(state: State) -> tuple[Violation, ...]:
    """Return what the state's target cannot run, in model order; nothing where no target is chosen."""
    if state.session is None or not state.target or not state.assignments:
        return ()
    chosen, held = target(state.target), state.assignments
    found = []
    for members in sharing_groups(state.session.model.layers, chosen.bonds(state.session.model.layers)):
        for layer in members:
            reason = chosen.legal(layer, held[layer.name].weights, held[layer.name].inputs)
            if reason:
                found.append(Violation(layers=(layer.name,), reason=reason))
        given = {_pair(held[layer.name]) for layer in members}
        if len(given) > 1 and not all(layer.tied_to or len(members) == 1 for layer in members[1:]):
            names = tuple(layer.name for layer in members)
            found.append(Violation(layers=names, reason="they run as one matrix and must share one scheme"))
    return tuple(found)


class Judge:
    """Says of single layers why the target cannot run them; looked up once for each plan and target."""

    def __init__(self) -> None:
        self._of = State()
        self._reasons: dict[str, str] = {}

    def reason(self, state: State, layer: str) -> str:
        """Return the target and what is wrong with the layer, as a sentence; empty where nothing is."""
        if not state.target:
            return ""
        if state.target != self._of.target or state.assignments is not self._of.assignments:
            self._of, self._reasons = state, {}
            for one in violations(state):
                for name in one.layers:
                    text = f"{target(state.target).title} cannot run it so: {one.reason}"
                    self._reasons[name] = f"{self._reasons[name]}; {one.reason}" if name in self._reasons else text
        return self._reasons.get(layer, "")


def repairs(state: State) -> dict[str, Pair]:
    """Return the schemes that the violating layers need: the nearest ones in bits that the target runs.

    Layers that must share get one pair together.  Layers that nothing fits are left out.
    """
    broken = {name for one in violations(state) for name in one.layers}
    if not broken or state.session is None:
        return {}
    chosen, held = target(state.target), state.assignments
    found: dict[str, Pair] = {}
    for members in sharing_groups(state.session.model.layers, chosen.bonds(state.session.model.layers)):
        if not any(layer.name in broken for layer in members):
            continue
        wanted = max((_pair(held[layer.name]) for layer in members), key=lambda pair: _bits(members[0], pair[0]))
        best = nearest_legal(members, wanted, chosen)
        if best is not None:
            found.update((layer.name, best) for layer in members if _pair(held[layer.name]) != best)
    return found


def nearest_legal(members: Sequence[Layer], wanted: Pair, chosen: Target) -> Pair | None:
    """Return the legal pair for all ``members`` that is nearest to ``wanted``, None where there is none.

    Near is: few bits of weights away (above 16 bits all count as 16), the same input scheme, the same family.
    """
    bits = _bits(members[0], wanted[0])
    legal = [pair for pair in _candidates(wanted) if all(chosen.legal(layer, *pair) is None for layer in members)]
    return min(
        legal,
        key=lambda pair: (
            round(abs(_bits(members[0], pair[0]) - bits), 3),
            pair[1] != wanted[1],
            (pair[1] is None) != (wanted[1] is None),
            _family(pair[0]) != _family(wanted[0]),
            pair,
        ),
        default=None,
    )


def weight_choices(state: State, layers: Iterable[str] = ()) -> tuple[str, ...]:
    """Return ``keep``, then the schemes of the shown table (or the standard ones), then what else the plan uses.

    With a target: of every family, what it can run for all ``layers``, whatever their inputs are.
    """
    table = state.session.table(state.metric) if state.session else None
    names = list(table.schemes) if table is not None else [scheme.name for scheme in standard_schemes()]
    names += sorted({held.weights for held in state.assignments.values()} - {*names, KEEP})
    facts = _facts(state, layers)
    if not state.target or not facts:
        return (KEEP, *names)
    chosen, inputs = target(state.target), (None, *_inputs())
    every = dict.fromkeys((KEEP, *names, *LOADED, *(name for _, held in schemes.families() for name in held)))
    return tuple(
        name for name in every
        if all(any(chosen.legal(layer, name, given) is None for given in inputs) for layer in facts)
    )  # fmt: skip


def input_choices(state: State, layers: Iterable[str] = ()) -> tuple[str | None, ...]:
    """Return the schemes for a layer's inputs, None first (floating point).

    With a target: what it runs for all ``layers`` with the weights they have.
    """
    names, facts, held = (None, *_inputs()), _facts(state, layers), state.assignments
    if not state.target or not facts:
        return names
    chosen = target(state.target)
    return tuple(
        name for name in names if all(chosen.legal(layer, held[layer.name].weights, name) is None for layer in facts)
    )


def cache_choices() -> tuple[str, ...]:
    """Return the schemes in which a key-value cache can be stored, token by token."""
    found = []
    for name in _inputs():
        with suppress(PlanError):
            found.append(cache_scheme(name).name)
    return tuple(found)


def _facts(state: State, layers: Iterable[str]) -> list[Layer]:
    """Return one layer of each kind, shape and assignment among ``layers``: the target sees no more of them."""
    if state.session is None or not state.assignments:
        return []
    by_name = state.session.model.by_name
    found: dict[tuple[object, ...], Layer] = {}
    for name in layers:
        layer = by_name[name]
        found.setdefault((layer.kind, layer.matrix, layer.dtype, state.assignments[name].weights), layer)
    return list(found.values())


def _candidates(wanted: Pair) -> Iterator[Pair]:
    names = dict.fromkeys((wanted[0], KEEP, *LOADED, *(name for _, held in schemes.families() for name in held)))
    inputs = dict.fromkeys((wanted[1], None, *_inputs()))
    for name in names:
        for given in inputs if name != KEEP else (None,):
            yield name, given


def _inputs() -> tuple[str, ...]:
    return tuple(scheme.name for scheme in activation_schemes())


def _pair(held: Assignment) -> Pair:
    return held.weights, held.inputs


def _family(name: str) -> str:
    return name if name == KEEP else next((title for title, held in schemes.families() if name in held), "")


def _bits(layer: Layer, name: str) -> float:
    bits = STORED_BITS.get(layer.dtype, 16.0) if name == KEEP else schemes.reference_bits(name)
    return min(bits, 16.0)
