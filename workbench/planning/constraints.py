"""What a search may choose from: groups of layers that share one choice, each with its candidates.

numpy only: the window builds the Pareto front from it on every edit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench.errors import PlanError, nearest
from workbench.models.layer import Layer
from workbench.models.summary import ModelSummary, quantizable
from workbench.planning.budgets import Times
from workbench.planning.candidates import Builder, Group, require_columns
from workbench.planning.groups import Bond, sharing_groups
from workbench.planning.patterns import matching
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.totals import cached_layers, layer_bits, quantized_inputs, untied_bits
from workbench.sensitivity.table import Sensitivity

Legality = Callable[[Layer, str, str | None], str | None]
"""``legal(layer, weights, inputs)``: why a target cannot run that, None if it can.  It may look at the layer's kind,
matrix and dtype only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What the user and a target leave open.

    ``locked`` layers keep what the base plan gives them.  ``schemes`` limits every layer (``keep`` stays possible).
    ``allowed`` are pairs of a pattern and the schemes that its layers may take (``keep`` only if listed); the first
    pattern that matches a layer counts.  ``bonds`` are layers that share one choice, in addition to those of the
    model.  ``legal`` is the target's answer, ``target`` its name in messages.  With ``keep_inputs`` a table of
    activation losses adds what the base plan's activation schemes cost, and nothing is chosen by it.
    """

    locked: frozenset[str] = frozenset()
    schemes: tuple[str, ...] | None = None
    allowed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    bonds: tuple[Bond, ...] = ()
    legal: Legality | None = None
    target: str = "the target"
    keep_inputs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchSpace:
    """Everything that a search decides and what is decided already.

    ``all_bits`` and ``counted_bits`` are the bits of tensors that the search leaves alone, in the whole file and in
    what ``bits_per_weight`` counts; ``counted_weights`` the number of weights that it divides by; ``fixed_loss`` and
    ``fixed_microseconds`` belong to the layers that are fixed; ``fixed`` says why each of them is.
    ``transforms`` are the plan's; ``unscored`` are what ``base`` rounds at a cost that no table says: ``inputs`` or
    ``cache``, the layer and the scheme.
    """

    summary: ModelSummary
    base: dict[str, Assignment]
    groups: tuple[Group, ...]
    all_bits: int
    counted_bits: int
    counted_weights: int
    fixed_loss: float
    fixed_microseconds: float = 0.0
    fixed: dict[str, str] = field(default_factory=dict)
    transforms: tuple[str, ...] = ()
    unscored: tuple[tuple[str, str, str], ...] = ()

    def nbytes(self, bits: int) -> int:
        """Return the bytes of the whole model when the groups take ``bits``, as ``totals`` counts them."""
        return (self.all_bits + bits) // 8 + self.summary.kept_nbytes

    def bits_per_weight(self, bits: int) -> float:
        """Return the bits per weight when the groups take ``bits``, as ``totals`` counts them."""
        return (self.counted_bits + bits) / self.counted_weights if self.counted_weights else 0.0


def search_space(
    summary: ModelSummary,
    table: Sensitivity,
    base: Plan,
    locked: Collection[str] = frozenset(),
    schemes: Sequence[str] | None = None,
    *,
    constraints: Constraints | None = None,
    times: Times | None = None,
    algorithms: Sequence[Sensitivity] = (),
    inputs: Sensitivity | None = None,
    cache: Sensitivity | None = None,
) -> SearchSpace:
    """Work out the groups and their candidates.

    Layers outside the search (embeddings, and what is tied to them) and locked ones keep what ``base`` gives them; a
    group with one locked layer follows it.  Keeping a layer as it is stored is a candidate, with loss 0, unless
    ``allowed`` or the target refuses it.  ``algorithms`` are tables of other rounding algorithms, ``inputs`` a table of
    activation schemes, whose losses add to the weights'; those of layers outside the choice are fixed, as are those of
    the KV cache that ``base`` rounds (by the table ``cache``), and a missing cell adds nothing to them.  Raises
    PlanError for unknown or contradictory locks and patterns and for a layer that nothing is left for, SchemeError for
    a scheme that the table lacks.
    """
    rules = _merged(constraints, locked, schemes)
    require_columns(table, rules.schemes or ())
    _require_known(rules.locked, summary)
    limits = _limits(rules.allowed, table, summary)
    assignments = resolve(base, summary.layers)
    builder = Builder(
        table=table, names=_names(table, rules.schemes), legal=rules.legal, times=times, algorithms=tuple(algorithms),
        inputs=None if rules.keep_inputs else inputs,
    )  # fmt: skip
    fixed = _Fixed()
    groups = _open_groups(summary, assignments, builder, rules, limits, fixed)
    chosen = () if rules.keep_inputs or inputs is None else {name for group in groups for name in group.layers}
    costs = _activation_costs(summary, assignments, inputs, cache, chosen)
    fixed.losses += [loss for loss in costs.values() if not math.isnan(loss)]
    return SearchSpace(
        summary=summary, base=assignments, groups=groups, transforms=base.transforms,
        all_bits=fixed.all_bits + untied_bits(summary, base.transforms),
        counted_bits=fixed.counted_bits, counted_weights=fixed.counted_weights, fixed_loss=math.fsum(fixed.losses),
        fixed_microseconds=math.fsum(fixed.times), fixed=fixed.why,
        unscored=tuple(place for place, loss in costs.items() if math.isnan(loss)),
    )  # fmt: skip


def _open_groups(
    summary: ModelSummary, assignments: dict[str, Assignment], builder: Builder, rules: Constraints,
    limits: Mapping[str, tuple[str, ...]], fixed: _Fixed,
) -> tuple[Group, ...]:  # fmt: skip
    """Return the groups that the search decides; all others are added to ``fixed`` and to ``assignments``."""
    counted = {layer.name for layer in quantizable(summary.layers)}
    groups = []
    for members in sharing_groups(summary.layers, rules.bonds):
        scheme = _locked_scheme(members, rules.locked, assignments)
        limit = _shared_limit(members, limits)
        if scheme is not None or not all(layer.name in counted for layer in members):
            fixed.add(members, scheme, assignments, counted, builder.table, builder.times)
            _check_fixed(members, assignments, rules, limit if scheme is not None else None)
            continue
        group = builder.group(members, [assignments[layer.name] for layer in members], limit)
        if not group.options:
            raise PlanError(_nothing_left(members, builder.reasons(members, assignments, limit), rules.target))
        groups.append(group)
        fixed.counted_weights += sum(layer.parameters for layer in members if layer.tied_to is None)
    return tuple(groups)


def _activation_costs(
    summary: ModelSummary, assignments: dict[str, Assignment], inputs: Sensitivity | None, cache: Sensitivity | None,
    chosen: Collection[str],
) -> dict[tuple[str, str, str], float]:  # fmt: skip
    """Return what rounded inputs (but of ``chosen`` layers) and a rounded KV cache cost, by (what, layer, scheme)."""
    rounded = {name: scheme for name, scheme in quantized_inputs(summary, assignments).items() if name not in chosen}
    cached = cached_layers(summary.layers, assignments)
    return {
        (what, name, scheme): math.nan if losses is None else losses.of(name, scheme)
        for what, places, losses in (("inputs", rounded, inputs), ("cache", cached, cache))
        for name, scheme in places.items()
    }


@dataclass(slots=True)
class _Fixed:
    """Adds up what the layers take that a search leaves alone."""

    all_bits: int = 0
    counted_bits: int = 0
    counted_weights: int = 0
    losses: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)

    def add(
        self, members: Sequence[Layer], scheme: str | None, assignments: dict[str, Assignment],
        counted: Collection[str], table: Sensitivity, times: Times | None,
    ) -> None:  # fmt: skip
        for layer in members:
            self.why[layer.name] = "outside the search" if scheme is None else "locked"
            if layer.tied_to is None:
                self._store(layer, scheme, assignments, counted, table)
            if times is not None:
                given = assignments[layer.name]
                self.times += [t for t in (times.of(layer, given.weights, given.inputs),) if not math.isnan(t)]

    def _store(
        self, layer: Layer, scheme: str | None, assignments: dict[str, Assignment], counted: Collection[str],
        table: Sensitivity,
    ) -> None:  # fmt: skip
        weights = scheme or assignments[layer.name].weights
        if assignments[layer.name].weights != weights:
            assignments[layer.name] = replace(assignments[layer.name], weights=weights)
        bits = layer_bits(layer, weights)
        self.all_bits += bits
        if layer.name in counted or weights != KEEP:
            self.counted_bits += bits
            self.counted_weights += layer.parameters
        if weights != KEEP:
            loss = table.of(layer.name, weights)
            self.losses += [] if math.isnan(loss) else [loss]


def _merged(given: Constraints | None, locked: Collection[str], schemes: Sequence[str] | None) -> Constraints:
    rules = given or Constraints()
    return replace(
        rules, locked=rules.locked | frozenset(locked), schemes=rules.schemes if schemes is None else tuple(schemes)
    )


def _names(table: Sensitivity, schemes: Sequence[str] | None) -> tuple[str, ...]:
    names = table.schemes if schemes is None else dict.fromkeys(schemes)
    return tuple(name for name in names if name != KEEP)


def _require_known(locked: Iterable[str], summary: ModelSummary) -> None:
    for name in locked:
        if name not in summary.by_name:
            raise PlanError(f"the locked layer {name!r} is not a layer of the model{nearest(name, summary.by_name)}")


def _limits(
    allowed: Sequence[tuple[str, tuple[str, ...]]], table: Sensitivity, summary: ModelSummary
) -> dict[str, tuple[str, ...]]:
    """Return the schemes that each layer may take, for the layers that a pattern speaks of."""
    limits: dict[str, tuple[str, ...]] = {}
    for pattern, schemes in allowed:
        require_columns(table, schemes)
        hits = matching(pattern, summary.by_name)
        if not hits:
            raise PlanError(f"the pattern {pattern!r} matches no layer of the model{nearest(pattern, summary.by_name)}")
        for name in hits:
            limits.setdefault(name, schemes)
    return limits


def _shared_limit(members: Sequence[Layer], limits: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the schemes that all members may take, None without a limit; PlanError that names what contradicts."""
    given = {layer.name: limits[layer.name] for layer in members if layer.name in limits}
    if not given:
        return None
    first, *others = given.values()
    shared = tuple(scheme for scheme in first if all(scheme in other for other in others))
    if not shared:
        listed = "; ".join(f"{name} may take {', '.join(schemes)}" for name, schemes in given.items())
        raise PlanError(f"these layers must share one scheme but no scheme is allowed to all: {listed}")
    return shared


def _locked_scheme(
    members: Sequence[Layer], locked: Collection[str], assignments: dict[str, Assignment]
) -> str | None:
    fixed = {layer.name: assignments[layer.name].weights for layer in members if layer.name in locked}
    if len(set(fixed.values())) > 1:
        listed = ", ".join(f"{name} to {scheme}" for name, scheme in fixed.items())
        raise PlanError(f"these layers must share one scheme but are locked differently: {listed}; unlock all but one")
    return next(iter(fixed.values()), None)


def _check_fixed(
    members: Sequence[Layer], assignments: dict[str, Assignment], rules: Constraints, limit: tuple[str, ...] | None
) -> None:
    """Raise PlanError if what is decided contradicts ``allowed`` or cannot run on the target."""
    for layer in members:
        given = assignments[layer.name]
        if limit is not None and given.weights not in limit:
            raise PlanError(
                f"{layer.name} is locked to {given.weights}, but its pattern allows only {', '.join(limit)}; "
                "unlock it or allow that scheme"
            )
        if rules.legal is None or (given.weights == KEEP and given.inputs is None and layer.name not in rules.locked):
            continue
        reason = rules.legal(layer, given.weights, given.inputs)
        if reason:
            held = "locked to" if layer.name in rules.locked else "outside the search and has"
            raise PlanError(f"{layer.name} is {held} {given.weights}, which {rules.target} cannot run: {reason}")


def _nothing_left(members: Sequence[Layer], reasons: Sequence[str], target: str) -> str:
    names = ", ".join(layer.name for layer in members)
    return f"nothing is left to choose for {names} on {target}: {'; '.join(reasons) or 'no candidate was given'}"
