"""What a search may choose from: groups of layers that share one choice, each with its candidates.

numpy only: the window builds the Pareto front from it on every edit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.errors import PlanError, nearest
from workbench.models.layer import Layer, LayerKind
from workbench.models.summary import ModelSummary, searchable
from workbench.planning.budgets import Times, plan_microseconds
from workbench.planning.candidates import Builder, Group, More, Rounding, require_columns
from workbench.planning.groups import Bond, sharing_groups
from workbench.planning.patterns import matching
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.totals import Ledger, cached_layers, quantized_inputs, untied_bits
from workbench.readable import few
from workbench.sensitivity.table import Sensitivity

Legality = Callable[[Layer, str, str | None], str | None]
"""``legal(layer, weights, inputs)``: why a target cannot run that, None if it can.  Of the weight of a plain module it
may look at the kind, matrix, axes and dtype only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What the user and a target leave open.

    ``locked`` layers keep what the base plan gives them.  ``schemes`` limits every layer (``keep`` stays possible).
    ``allowed`` are pairs of a pattern and the schemes that its layers may take (``keep`` only if listed); the first
    pattern that matches a layer counts.  ``bonds`` are layers that share one choice, in addition to those of the
    model.  ``legal`` is the target's answer, ``target`` its name in messages.  With ``keep_inputs`` a table of
    activation losses adds what the base plan's activation schemes cost, and nothing is chosen by it.  Layers that the
    output does not depend on stay as they are and count in no bits per weight, since another output may need them;
    with ``shrink_unused`` they get the smallest scheme.  ``rounding`` says in which scheme the target rounds inputs on
    its own account beside weights: what that costs, by a table of activation losses, counts in the choice.  ``more``
    are the bits that the target's own form takes beyond the schemes': they count in a budget of bytes.
    """

    locked: frozenset[str] = frozenset()
    schemes: tuple[str, ...] | None = None
    allowed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    bonds: tuple[Bond, ...] = ()
    legal: Legality | None = None
    target: str = "the target"
    keep_inputs: bool = False
    shrink_unused: bool = False
    rounding: Rounding | None = None
    more: More | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchSpace:
    """Everything that a search decides and what is decided already.

    A kept embedding counts in a budget of bits per weight although :class:`workbench.planning.totals.Totals` leaves it
    out: it would be free otherwise, and no search would quantize it.  ``all_bits`` and ``counted_bits`` are the bits of
    tensors that the search leaves alone, in the whole file and in what ``bits_per_weight`` counts; ``counted_weights``
    the number of weights that it divides by; ``fixed_loss`` and ``fixed_microseconds`` belong to the layers that are
    fixed; ``fixed`` says why each of them is.
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
        return (self.all_bits + bits) // 8 + self.summary.other_nbytes

    def bits_per_weight(self, bits: int) -> float:
        """Return the bits per weight when the groups take ``bits``, kept embeddings of the groups included."""
        return (self.counted_bits + bits) / self.counted_weights if self.counted_weights else 0.0


def search_space(
    summary: ModelSummary, table: Sensitivity, base: Plan, rules: Constraints | None = None, *,
    times: Times | None = None, algorithms: Sequence[Sensitivity] = (), inputs: Sensitivity | None = None,
    cache: Sensitivity | None = None,
) -> SearchSpace:  # fmt: skip
    """Work out the groups and their candidates.

    Locked layers, kept and unused ones, and embeddings that nothing but ``keep`` is left for keep what ``base`` gives
    them; a group with one locked layer follows it.  Keeping a layer as it is stored is a candidate, with loss 0, unless
    ``allowed`` or the target refuses it.  ``algorithms`` are tables of other rounding algorithms, ``inputs`` a table of
    activation schemes, whose losses add to the weights'; those of layers outside the choice are fixed, as are those of
    the KV cache that ``base`` rounds (by the table ``cache``), and a missing cell adds nothing to them.  Raises
    PlanError for unknown or contradictory locks and patterns and for a layer that nothing is left for, SchemeError for
    a scheme that the table lacks.
    """
    rules = rules or Constraints()
    require_columns(table, rules.schemes or ())
    for name in rules.locked:
        if name not in summary.by_name:
            raise PlanError(f"the locked layer {name!r} is not a layer of the model{nearest(name, summary.by_name)}")
    assignments = resolve(base, summary.layers)
    names = dict.fromkeys(table.schemes if rules.schemes is None else rules.schemes)
    builder = Builder(
        table=table, names=tuple(name for name in names if name != KEEP), legal=rules.legal, times=times,
        algorithms=tuple(algorithms), inputs=None if rules.keep_inputs else inputs,
        rounding=rules.rounding, rounded=_rounded(summary, table, inputs) if rules.rounding and inputs else None,
        more=rules.more,
    )  # fmt: skip
    groups, reasons = _split(summary, assignments, builder, rules)
    searched = {name for group in groups for name in group.layers}
    fixed = {name: assignments[name] for name in reasons}
    amounts = Ledger.of(summary, fixed, None).amounts
    costs = _activation_costs(summary, assignments, inputs, cache, () if builder.inputs is None else searched)
    owned = [layer for layer in summary.stored if layer.name in fixed]
    losses = [table.of(layer.name, fixed[layer.name].weights) for layer in owned if fixed[layer.name].weights != KEEP]
    open_weights = sum(layer.parameters for layer in summary.stored if layer.name in searched)
    return SearchSpace(
        summary=summary, base=assignments, groups=groups, transforms=base.transforms,
        all_bits=amounts.bits + untied_bits(summary, base.transforms) + _more_bits(summary, fixed, rules),
        counted_bits=amounts.counted_bits, counted_weights=amounts.counted_weights + open_weights,
        fixed_loss=math.fsum(loss for loss in (*losses, *costs.values()) if not math.isnan(loss)),
        fixed_microseconds=0.0 if times is None else plan_microseconds(summary, fixed, times), fixed=reasons,
        unscored=tuple(place for place, loss in costs.items() if math.isnan(loss)),
    )  # fmt: skip


def _more_bits(summary: ModelSummary, fixed: Mapping[str, Assignment], rules: Constraints) -> int:
    """Return the bits that the target's own form of the ``fixed`` layers takes beyond their schemes'."""
    if rules.more is None:
        return 0
    owned = [(layer, fixed[layer.name]) for layer in summary.stored if layer.name in fixed]
    return sum(rules.more(layer, each.weights, each.inputs) for layer, each in owned)


def _rounded(summary: ModelSummary, table: Sensitivity, inputs: Sensitivity) -> Sensitivity:
    """Return the losses of inputs for the layers of ``table``: 0 where none is known, those of tied layers with the
    owner's."""
    score = np.nan_to_num(inputs.cells(table.layers, inputs.schemes))
    for layer in summary.tied:
        if layer.tied_to in table.row:
            score[table.row[layer.tied_to]] += np.nan_to_num(inputs.cells([layer.name], inputs.schemes))[0]
    return Sensitivity(
        metric=inputs.metric, unit=inputs.unit, layers=table.layers, schemes=inputs.schemes, score=score,
        samples=inputs.samples, seed=inputs.seed,
    )  # fmt: skip


def _split(
    summary: ModelSummary, assignments: dict[str, Assignment], builder: Builder, rules: Constraints
) -> tuple[tuple[Group, ...], dict[str, str]]:
    """Return the groups that the search decides, and why it leaves the other layers alone.

    Locked layers give their scheme, in ``assignments``, to those that share it.
    """
    limits = _limits(rules.allowed, builder.table, summary)
    counted, tables = {layer.name for layer in searchable(summary.layers)}, summary.embeddings
    if rules.shrink_unused:
        counted |= {layer.name for layer in summary.layers if layer.unused and layer.kind is not LayerKind.EMBEDDING}
    groups, reasons = [], dict[str, str]()
    sharing = [
        (members, _locked_scheme(members, rules.locked, assignments), _shared_limit(members, limits))
        for members in sharing_groups(summary.layers, rules.bonds)
    ]
    free = [scheme is None and all(layer.name in counted for layer in members) for members, scheme, _ in sharing]
    built = iter(builder.groups([
        (members, assignments[members[0].name].inputs, limit)
        for (members, _, limit), is_free in zip(sharing, free, strict=True) if is_free
    ]))  # fmt: skip
    for (members, scheme, limit), is_free in zip(sharing, free, strict=True):
        if is_free:
            group = next(built)
            if members[0].name not in tables or set(group.schemes) - {KEEP}:
                if not group.candidates:
                    raise PlanError(_nothing_left(members, rules, builder.reasons(members, assignments, limit)))
                groups.append(group)
                continue
        refused = scheme is None and members[0].name in tables and _is_refused(members, assignments, rules)
        for layer in members:
            reasons[layer.name] = "locked" if scheme is not None else layer.unused or layer.keep or "outside the search"
            if refused:
                assignments[layer.name] = replace(assignments[layer.name], weights=KEEP)
            if scheme is not None and layer.tied_to is None:
                assignments[layer.name] = replace(assignments[layer.name], weights=scheme)
        _check_fixed(members, assignments, rules, limit if scheme is not None else None)
    return tuple(groups), reasons


def _nothing_left(members: Sequence[Layer], rules: Constraints, reasons: Iterable[str]) -> str:
    names, why = few(layer.name for layer in members), "; ".join(reasons) or "no candidate was given"
    return f"nothing is left to choose for {names} on {rules.target}: {why}"


def _is_refused(members: Sequence[Layer], assignments: Mapping[str, Assignment], rules: Constraints) -> bool:
    planned = ((layer, assignments[layer.name]) for layer in members)
    return rules.legal is not None and any(rules.legal(layer, has.weights, has.inputs) for layer, has in planned)


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
    if not limits:
        return None
    limited = {layer.name: limits[layer.name] for layer in members if layer.name in limits}
    if not limited:
        return None
    first, *others = limited.values()
    shared = tuple(scheme for scheme in first if all(scheme in other for other in others))
    if not shared:
        listed = few(f"{name} may take {' or '.join(schemes)}" for name, schemes in limited.items())
        raise PlanError(f"these layers must share one scheme but no scheme is allowed to all: {listed}")
    return shared


def _locked_scheme(members: Sequence[Layer], locked: Collection[str], assignments: dict[str, Assignment]) -> str | None:
    if not locked:
        return None
    fixed = {layer.name: assignments[layer.name].weights for layer in members if layer.name in locked}
    if len(set(fixed.values())) > 1:
        listed = few(f"{name} to {scheme}" for name, scheme in fixed.items())
        raise PlanError(f"these layers must share one scheme but are locked differently: {listed}; unlock all but one")
    return next(iter(fixed.values()), None)


def _check_fixed(
    members: Sequence[Layer], assignments: dict[str, Assignment], rules: Constraints, limit: tuple[str, ...] | None
) -> None:
    """Raise PlanError if what is decided contradicts ``allowed`` or cannot run on the target."""
    for layer in members:
        fixed = assignments[layer.name]
        if limit is not None and fixed.weights not in limit:
            raise PlanError(
                f"{layer.name} is locked to {fixed.weights}, but its pattern allows only {', '.join(limit)}; "
                "unlock it or allow that scheme"
            )
        if rules.legal is None or (fixed.weights == KEEP and fixed.inputs is None and layer.name not in rules.locked):
            continue
        reason = rules.legal(layer, fixed.weights, fixed.inputs)
        if reason:
            state = "locked to" if layer.name in rules.locked else "outside the search and has"
            raise PlanError(f"{layer.name} is {state} {fixed.weights}, which {rules.target} cannot run: {reason}")
