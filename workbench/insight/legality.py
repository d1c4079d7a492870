"""What a target cannot run of a plan, the nearest plan that it runs, and the schemes that there are to choose from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.deployment.networks import unknown_network
from workbench.deployment.targets import Target
from workbench.deployment.targets import target as target_of
from workbench.errors import PlanError
from workbench.insight import schemes
from workbench.models.kv_cache import cache_scheme
from workbench.models.layer import Layer
from workbench.models.summary import ModelSummary, quantizable, searchable
from workbench.numerics.formats import activation_schemes, parse_scheme, standard_schemes, takes_range
from workbench.numerics.formats.gguf.inputs import SCHEMES as ROUNDED_SCHEMES
from workbench.numerics.formats.gguf.inputs import inputs_beside
from workbench.planning.candidates import More, Rounding
from workbench.planning.constraints import Constraints
from workbench.planning.groups import sharing_groups
from workbench.planning.latest import Assignments, Latest, changed_layers
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.readable import few
from workbench.sensitivity.table import Sensitivity
from workbench.session.session import Session

STORED_BITS = {"float64": 64.0, "float32": 32.0}
"""Bits of the dtypes in which a layer is stored, where they are not 16."""

COMMON = ("int4-g32", "int4-g64", "int4-g128", "int4-channel", "int8-g64", "int8-g128", "int8-channel", "int8-tensor")
"""What most runtimes load, in addition to the families' examples."""

ROUNDING = {"gguf": inputs_beside}
"""Runtimes that round inputs on their own account."""

CLOSE = 0.25
"""Bits per weight within which a repair looks at what schemes are like, not at their size alone."""

Pair = tuple[str, str | None]
"""A weight scheme and an input scheme."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Layers that the target cannot run as the plan says, and why: one layer, or several that it joins."""

    layers: tuple[str, ...]
    reason: str

    @property
    def sentence(self) -> str:
        """The layers and the reason in one line."""
        return f"{few(self.layers, 1)}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A layer's weight and input scheme before and after a repair."""

    layer: str
    before: Pair
    after: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A plan that the target runs, what it changes, and the refusals for which there is no scheme."""

    plan: Plan
    changes: tuple[Change, ...] = ()
    left: tuple[Refusal, ...] = field(default=())


def within_target(rules: Constraints, target: str, model: ModelSummary) -> Constraints:
    """Return ``rules`` with what a target (empty: any) refuses, joins and rounds on its own account; PlanError for an
    unknown one, and for one that runs no network of the model's architecture."""
    if not target:
        return rules
    if reason := unknown_network(target, model):
        raise PlanError(f"{reason}; choose another target")
    runtime = target_of(target).among(model.layers)
    bonds, rounding = runtime.bonds(model.layers), rounding_of(target)
    return replace(rules, legal=runtime.legal, bonds=bonds, target=runtime.title, rounding=rounding)


def more_of(target: str) -> More | None:
    """Return what the folders that a target (empty: any) loads take beyond a plan's bits; None for other forms."""
    from workbench.deployment.checkpoints.sizes import FOLDERS, more_bytes

    runtime = target_of(target).runtime if target else None
    kind = "" if runtime is None else FOLDERS.get(runtime.name, "")

    def more(layer: Layer, weights: str, inputs: str | None) -> int:
        return 8 * max(more_bytes(kind, [layer], {layer.name: Assignment(weights=weights, inputs=inputs)}), 0)

    return more if kind else None


def rounding_of(target: str) -> Rounding | None:
    """Return how a target (empty: any) rounds inputs on its own account; None where it does not."""
    runtime = target_of(target).runtime if target else None
    return None if runtime is None else ROUNDING.get(runtime.name)


def unknown_rounding(session: Session, target: str, metric: str) -> str:
    """Return what of a target's own rounding of inputs a search cannot count; empty where it does, or there is none."""
    table = session.inputs_table(metric)
    if rounding_of(target) is None or (table is not None and {*ROUNDED_SCHEMES} <= {*table.schemes}):
        return ""
    return (
        "llama.cpp rounds the inputs of quantized weights to 8 bits, in blocks of 32 or of 256 by the weights' type, "
        "and the session does not know what that costs"
    )


def refusals(
    plan: Plan, layers: Sequence[Layer], target: str, assignments: Assignments | None = None
) -> tuple[Refusal, ...]:
    """Return what the target cannot run of a plan, in model order; nothing where ``target`` is empty.

    ``assignments``: the plan resolved, where the caller has it.  Raises PlanError for an unknown target or a plan that
    does not fit the layers.
    """
    assignments = resolve(plan, layers) if assignments is None else assignments
    if not target or not assignments:
        return ()
    known = _judged.get(target)
    if known is None or known.layers is not layers or not isinstance(layers, tuple):
        accepted = target_of(target).among(layers)
        groups = sharing_groups(layers, accepted.bonds(tuple(layers)))
        places = {layer.name: place for place, members in enumerate(groups) for layer in members}
        known = _Judged(layers=layers, accepted=accepted, groups=groups, places=places, assignments={}, refused={})
    known = _judged[target] = known.moved(assignments)
    return tuple(refusal for place in sorted(known.refused) for refusal in known.refused[place])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Judged:
    """What a target refuses of a plan, by the place of its group in ``groups``: layers that share a scheme there."""

    layers: Sequence[Layer]
    accepted: Target
    groups: tuple[tuple[Layer, ...], ...]
    places: Mapping[str, int]
    assignments: Assignments
    refused: Mapping[int, tuple[Refusal, ...]]

    def moved(self, assignments: Assignments) -> _Judged:
        """Return what the target refuses of another plan; only groups that differ are looked at again."""
        changed = changed_layers(self.assignments, assignments)
        places = range(len(self.groups)) if changed is None else {self.places[name] for name in changed}
        refused = {} if changed is None else dict(self.refused)
        for place in places:
            refused.pop(place, None)
            if found := tuple(self._of(self.groups[place], assignments)):
                refused[place] = found
        return replace(self, assignments=assignments, refused=refused)

    def _of(self, members: tuple[Layer, ...], assignments: Assignments) -> Iterator[Refusal]:
        for layer in members:
            reason = self.accepted.legal(layer, *_pair(assignments[layer.name]))
            if reason:
                yield Refusal(layers=(layer.name,), reason=reason)
        pairs = {_pair(assignments[layer.name]) for layer in members} if len(members) > 1 else ()
        if len(pairs) > 1 and not all(layer.tied_to for layer in members[1:]):
            names = tuple(layer.name for layer in members)
            yield Refusal(layers=names, reason="they run as one matrix and must share one scheme")


_judged: dict[str, _Judged] = {}


latest_refusals = Latest(refusals)
"""The same of what the window shows: several of its parts ask for it."""


def by_reason(refused: Iterable[Refusal]) -> str:
    """Return a line for each reason, with the first of its layers and how many more there are."""
    layers: dict[str, list[str]] = {}
    for each in refused:
        layers.setdefault(each.reason, []).extend(each.layers)
    return "\n".join(Refusal(layers=tuple(names), reason=reason).sentence for reason, names in layers.items())


@Latest
def refused_cells(model: ModelSummary, table: Sensitivity, target: str) -> np.ndarray:
    """Return which cells of a table of weight schemes a target refuses, bool ``[layers, schemes]``."""
    refused = np.zeros(table.score.shape, bool)
    if not target:
        return refused
    accepted, known = target_of(target).among(model.layers), dict[tuple[object, ...], list[bool]]()
    for row, name in enumerate(table.layers):
        layer = model.by_name.get(name)
        if layer is not None:
            key = accepted.kind_of(layer)
            if key not in known:
                known[key] = [accepted.legal(layer, scheme) is not None for scheme in table.schemes]
            refused[row] = known[key]
    refused.flags.writeable = False  # several parts of the window ask for the same
    return refused


def left_out(layers: Sequence[Layer], target: str | None, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return by layer which of some schemes need no score for a target (empty or None: any), whatever its inputs are.

    Those that it refuses everywhere were named for something else.
    """
    if not target:
        return {}
    accepted, inputs = target_of(target).among(layers), (None, *_input_schemes())
    kinds = {accepted.kind_of(layer): layer for layer in searchable(layers)}
    refused = {
        kind: {name for name in names if all(accepted.legal(layer, name, scheme) for scheme in inputs)}
        for kind, layer in kinds.items()
    }  # fmt: skip
    everywhere = set(names).intersection(*refused.values())
    found = ((layer.name, refused.get(accepted.kind_of(layer))) for layer in layers)
    return {name: frozenset(each - everywhere) for name, each in found if each and each - everywhere}


def reasons_by_layer(refused: Iterable[Refusal], target: str) -> dict[str, str]:
    """Return for every refused layer a sentence that names the target and all that is wrong with the layer."""
    reasons: dict[str, list[str]] = {}
    for refusal in refused:
        for name in refusal.layers:
            reasons.setdefault(name, []).append(refusal.reason)
    title = target_of(target).title if reasons else ""
    return {name: f"{title} cannot run this: {'; '.join(texts)}" for name, texts in reasons.items()}


def repair(plan: Plan, layers: Sequence[Layer], target: str, assignments: Assignments | None = None) -> Repaired:
    """Return the plan with the schemes that the refused layers need: the nearest ones in bits that the target runs.

    Layers that must share get one pair of schemes together.  Raises PlanError as :func:`refusals` does.
    """
    assignments = resolve(plan, layers) if assignments is None else assignments
    refused = refusals(plan, layers, target, assignments)
    if not refused:
        return Repaired(plan=plan)
    pairs = _repaired_pairs(layers, assignments, {name for refusal in refused for name in refusal.layers}, target)
    names_by_pair: dict[Pair, list[str]] = {}
    for name, pair in pairs.items():
        names_by_pair.setdefault(pair, []).append(name)
    for (weights, inputs), names in names_by_pair.items():
        plan = plan.assign(names, weights=weights, inputs=inputs)
    changes = tuple(Change(layer=name, before=_pair(assignments[name]), after=pair) for name, pair in pairs.items())
    return Repaired(plan=plan, changes=changes, left=refusals(plan, layers, target))


def _repaired_pairs(
    layers: Sequence[Layer], assignments: Assignments, refused: set[str], target: str
) -> dict[str, Pair]:
    """Return the pair of schemes of every layer that has to change; layers that nothing fits are left out."""
    accepted = target_of(target).among(layers)
    repaired, known = dict[str, Pair](), dict[tuple[object, ...], Pair | None]()
    for members in sharing_groups(layers, accepted.bonds(tuple(layers))):
        if not any(layer.name in refused for layer in members):
            continue
        pairs = [_pair(assignments[layer.name]) for layer in members]
        largest = max(pairs, key=lambda pair: _bits(members[0], pair[0]))
        kind = (largest, *map(accepted.kind_of, members))
        if kind not in known:
            known[kind] = nearest_legal(members, largest, accepted)
        if (nearest := known[kind]) is not None:
            repaired.update(
                (layer.name, nearest) for layer, pair in zip(members, pairs, strict=True) if pair != nearest
            )
    return repaired


def nearest_legal(members: Sequence[Layer], pair: Pair, target: Target) -> Pair | None:
    """Return the legal pair for all ``members`` that is nearest to ``pair``, None where there is none.

    Near is: few bits of weights away (above 16 bits all count as 16, and up to ``CLOSE`` is as near as none), inputs as
    computed where they are, values that are alike (with a zero point or without, evenly apart or not), the same input
    scheme, one without calibrated ranges, the same family.
    """
    bits = _bits(members[0], pair[0])

    def apart(name: str) -> float:
        return round(abs(_bits(members[0], name) - bits), 3)

    nearest_first = sorted(
        _pairs(pair),
        key=lambda other: (
            max(apart(other[0]) - CLOSE, 0.0),
            pair[1] is None and other[1] is not None,
            schemes.unlike(other[0], pair[0]),
            apart(other[0]),
            other[1] != pair[1],
            (other[1] is None) != (pair[1] is None),
            other[1] is not None and takes_range(parse_scheme(other[1])),
            _family(other[0]) != _family(pair[0]),
            other,
        ),
    )
    legal = (other for other in nearest_first if all(target.legal(layer, *other) is None for layer in members))
    return next(legal, None)


def target_schemes(layers: Iterable[Layer], target: str) -> tuple[str, ...]:
    """Return the schemes of all families that a target runs for at least one of the layers, fewest bits first."""
    accepted = target_of(target)
    kinds = {(layer.kind, layer.matrix, layer.dtype): layer for layer in quantizable(tuple(layers))}.values()
    names = {*COMMON, *_examples()}
    legal = (name for name in names if any(accepted.legal(layer, name, None) is None for layer in kinds))
    return tuple(sorted(legal, key=lambda name: (schemes.reference_bits(name), name)))


def quick_schemes(layers: Iterable[Layer], target: str) -> tuple[str, ...]:
    """Return the schemes of :func:`target_schemes` that a table is scored for without being named."""
    return tuple(name for name in target_schemes(layers, target) if parse_scheme(name).is_quick)


def refused_layers(layers: Sequence[Layer], target: str, names: Iterable[str]) -> tuple[dict[str, int], int]:
    """Return in how many of the layers with weights of their own a target refuses each scheme, and how many these are.

    Layers of one kind are asked once.
    """
    runtime = target_of(target).among(layers)
    own = {runtime.kind_of(layer): layer for layer in searchable(layers) if not layer.tied_to}
    counts = Counter(runtime.kind_of(layer) for layer in searchable(layers) if not layer.tied_to)
    refused = {name: sum(counts[kind] for kind, layer in own.items() if runtime.legal(layer, name)) for name in names}
    return refused, counts.total()


def weight_choices(
    session: Session | None, assignments: Assignments, *, target: str = "", metric: str = "predicted_kl",
    layers: Iterable[str] = (),
) -> tuple[str, ...]:  # fmt: skip
    """Return ``keep``, then the schemes of the metric's table (or the standard ones), then what else the plan uses.

    With a target: of every family, what it can run for all ``layers``, whatever their inputs are.
    """
    table = session.table(metric) if session else None
    names = list(table.schemes) if table is not None else [scheme.name for scheme in standard_schemes()]
    names += sorted({assignment.weights for assignment in assignments.values()} - {*names, KEEP})
    kinds = _distinct(session, assignments, layers) if target else []
    if not kinds:
        return (KEEP, *names)
    accepted, inputs = target_of(target).among(session.model.layers if session else ()), (None, *_input_schemes())
    every = dict.fromkeys((KEEP, *names, *COMMON, *_examples()))
    return tuple(
        name for name in every
        if all(any(accepted.legal(layer, name, scheme) is None for scheme in inputs) for layer in kinds)
    )  # fmt: skip


def input_choices(
    session: Session | None, assignments: Assignments, *, target: str = "", layers: Iterable[str] = ()
) -> tuple[str | None, ...]:
    """Return the schemes for a layer's inputs, None first (floating point).

    With a target: what it runs for all ``layers`` with the weights they have.
    """
    names, kinds = (None, *_input_schemes()), _distinct(session, assignments, layers) if target else []
    if not kinds:
        return names
    accepted = target_of(target)
    return tuple(
        name for name in names
        if all(accepted.legal(layer, assignments[layer.name].weights, name) is None for layer in kinds)
    )  # fmt: skip


def cache_choices() -> tuple[str, ...]:
    """Return the schemes in which a KV cache can be stored, token by token."""
    choices = []
    for name in _input_schemes():
        with suppress(PlanError):
            choices.append(cache_scheme(name).name)
    return tuple(choices)


def _distinct(session: Session | None, assignments: Assignments, layers: Iterable[str]) -> list[Layer]:
    """Return one layer of each kind, shape and assignment among ``layers``: a target sees no more."""
    if session is None or not assignments:
        return []
    kinds: dict[tuple[object, ...], Layer] = {}
    for name in layers:
        layer = session.model.by_name[name]
        kinds.setdefault(kind_of(layer, assignments), layer)
    return list(kinds.values())


def kind_of(layer: Layer, assignments: Assignments) -> tuple[object, ...]:
    """Return what the schemes that can be chosen for a layer depend on, hashable: its kind, shape and assignment."""
    return layer.kind, layer.matrix, layer.dtype, assignments[layer.name].weights


def _pairs(pair: Pair) -> Iterator[Pair]:
    """Yield ``pair`` and all others that are tried in its place; schemes that round slowly are the user's choice."""
    inputs = dict.fromkeys((pair[1], None, *_input_schemes()))
    quick = (name for name in _examples() if parse_scheme(name).is_quick)
    for name in dict.fromkeys((pair[0], KEEP, *COMMON, *quick)):
        for scheme in inputs if name != KEEP else (None,):
            yield name, scheme


def _examples() -> Iterator[str]:
    return (name for _, names in schemes.families() for name in names)


def _input_schemes() -> tuple[str, ...]:
    return tuple(scheme.name for scheme in activation_schemes())


def _pair(assignment: Assignment) -> Pair:
    return assignment.weights, assignment.inputs


def _family(name: str) -> str:
    return name if name == KEEP else next((title for title, names in schemes.families() if name in names), "")


def _bits(layer: Layer, name: str) -> float:
    bits = STORED_BITS.get(layer.dtype, 16.0) if name == KEEP else schemes.reference_bits(name)
    return min(bits, 16.0)
