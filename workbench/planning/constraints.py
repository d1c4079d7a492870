"""What a search may choose from: groups of layers that share one scheme, each with its candidates.

numpy only: the window builds the Pareto front from it on every edit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.errors import PlanError, SchemeError, nearest
from workbench.models.layer import Layer
from workbench.models.summary import ModelSummary, quantizable
from workbench.planning.plan import KEEP, Assignment, Plan, resolve
from workbench.planning.sensitivity import Sensitivity
from workbench.planning.totals import layer_bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Layers that get one choice together: ``schemes[k]`` takes ``bits[k]`` (int64) and costs ``loss[k]`` (float64).

    Choices are sorted by bits; every one that takes more bits than another has a smaller loss.
    """

    layers: tuple[str, ...]
    schemes: tuple[str, ...]
    bits: np.ndarray
    loss: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choices:
    """Everything that a search decides and what is decided already.

    ``all_bits`` and ``counted_bits`` are the bits of tensors that the search leaves alone, in the whole file and in
    what ``bits_per_weight`` counts; ``counted_weights`` the number of weights that it divides by; ``fixed_loss`` the
    loss of the layers that are fixed.
    """

    summary: ModelSummary
    base: dict[str, Assignment]
    groups: tuple[Group, ...]
    all_bits: int
    counted_bits: int
    counted_weights: int
    fixed_loss: float

    def nbytes(self, bits: int) -> int:
        """Return the bytes of the whole model when the groups take ``bits``, as ``totals`` counts them."""
        return (self.all_bits + bits) // 8 + self.summary.kept_nbytes

    def bits_per_weight(self, bits: int) -> float:
        """Return the bits per weight when the groups take ``bits``, as ``totals`` counts them."""
        return (self.counted_bits + bits) / self.counted_weights if self.counted_weights else 0.0


def choices(
    summary: ModelSummary,
    table: Sensitivity,
    base: Plan,
    locked: Collection[str] = frozenset(),
    schemes: Sequence[str] | None = None,
) -> Choices:
    """Work out the groups and their candidates.

    Layers outside the search (embeddings, and what is tied to them) and locked ones keep what ``base`` gives them; a
    group with one locked layer follows it.  Keeping a layer as it is stored is always a candidate, with loss 0.  Raises
    PlanError for locks of one group that contradict each other or name no layer, SchemeError for a scheme that the
    table lacks.
    """
    names = _candidates(table, schemes)
    _require_known(locked, summary)
    assignments = resolve(base, summary.layers)
    counted = {layer.name for layer in quantizable(summary.layers)}
    open_groups: list[Group] = []
    all_bits = counted_bits = counted_weights = 0
    fixed_loss: list[float] = []
    for members in sharing_groups(summary.layers):
        stored = [layer for layer in members if layer.tied_to is None]
        scheme = _locked_scheme(members, locked, assignments)
        if scheme is None and all(layer.name in counted for layer in members):
            open_groups.append(_group(members, stored, table, names))
            counted_weights += sum(layer.parameters for layer in stored)
            continue
        for layer in stored:
            weights = scheme or assignments[layer.name].weights
            assignments.update({layer.name: _with(assignments[layer.name], weights)})
            bits = layer_bits(layer, weights)
            all_bits += bits
            if layer.name in counted or weights != KEEP:
                counted_bits += bits
                counted_weights += layer.parameters
            if weights != KEEP:
                fixed_loss.append(table.of(layer.name, weights))
    return Choices(
        summary=summary, base=assignments, groups=tuple(open_groups), all_bits=all_bits, counted_bits=counted_bits,
        counted_weights=counted_weights, fixed_loss=math.fsum(loss for loss in fixed_loss if not math.isnan(loss)),
    )  # fmt: skip


def sharing_groups(layers: Sequence[Layer]) -> tuple[tuple[Layer, ...], ...]:
    """Return the layers in groups that must share a weight scheme (tied tensors, ``shares_with``), in model order."""
    by_name = {layer.name: layer for layer in layers}
    parent = {name: name for name in by_name}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for layer in layers:
        for other in (*layer.shares_with, *((layer.tied_to,) if layer.tied_to else ())):
            if other in parent:
                parent[root(other)] = root(layer.name)
    groups: dict[str, list[Layer]] = {}
    for layer in layers:
        groups.setdefault(root(layer.name), []).append(layer)
    return tuple(tuple(group) for group in groups.values())


def _candidates(table: Sensitivity, schemes: Sequence[str] | None) -> tuple[str, ...]:
    if schemes is None:
        return table.schemes
    for scheme in schemes:
        if scheme != KEEP and scheme not in table.column:
            raise SchemeError(
                f"the {table.metric} table has no column for {scheme!r}{nearest(scheme, table.schemes)}; "
                "score that scheme first or leave it out of the search"
            )
    return tuple(dict.fromkeys(scheme for scheme in schemes if scheme != KEEP))


def _require_known(locked: Iterable[str], summary: ModelSummary) -> None:
    for name in locked:
        if name not in summary.by_name:
            raise PlanError(f"the locked layer {name!r} is no layer of the model{nearest(name, summary.by_name)}")


def _locked_scheme(
    members: Sequence[Layer], locked: Collection[str], assignments: dict[str, Assignment]
) -> str | None:
    fixed = {layer.name: assignments[layer.name].weights for layer in members if layer.name in locked}
    if len(set(fixed.values())) > 1:
        said = ", ".join(f"{name} to {scheme}" for name, scheme in fixed.items())
        raise PlanError(f"these layers must share one scheme but are locked differently: {said}; unlock all but one")
    return next(iter(fixed.values()), None)


def _with(assignment: Assignment, weights: str) -> Assignment:
    from dataclasses import replace

    return assignment if assignment.weights == weights else replace(assignment, weights=weights)


def _group(members: Sequence[Layer], stored: Sequence[Layer], table: Sensitivity, names: Sequence[str]) -> Group:
    columns = [table.column[name] for name in names]
    rows = [table.row.get(layer.name) for layer in stored]
    loss = np.zeros(len(names) + 1)
    for row in rows:
        loss[:-1] += np.nan if row is None else np.maximum(table.score[row, columns], 0.0)
    candidates = (*names, KEEP)
    bits = np.array([sum(layer_bits(layer, name) for layer in stored) for name in candidates], np.int64)
    order = np.lexsort((np.arange(len(candidates)), loss, bits))
    best, kept = math.inf, []
    for index in order:
        if loss[index] < best:
            best = loss[index]
            kept.append(index)
    return Group(
        layers=tuple(layer.name for layer in members),
        schemes=tuple(candidates[index] for index in kept),
        bits=bits[kept], loss=loss[kept],
    )  # fmt: skip
