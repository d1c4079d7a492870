"""The candidates of one group of layers: weight scheme x activation scheme x algorithm, with bits, loss and time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.errors import SchemeError, nearest
from workbench.models.layer import Layer
from workbench.planning.budgets import Times
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import layer_bits
from workbench.sensitivity.table import Sensitivity

Legal = Callable[[Layer, str, str | None], str | None]


@dataclass(frozen=True, slots=True)
class Option:
    """One thing to choose: a weight scheme, and the other fields of the assignment that are decided with it."""

    weights: str
    others: tuple[tuple[str, str | None], ...] = ()

    def applied(self, assignment: Assignment) -> Assignment:
        """Return ``assignment`` with this choice."""
        if not self.others and assignment.weights == self.weights:
            return assignment
        changes: dict[str, Any] = dict(self.others)
        return replace(assignment, weights=self.weights, **changes)

    def inputs(self, otherwise: str | None) -> str | None:
        """Return the input scheme, ``otherwise`` where the choice leaves it as it is."""
        return dict(self.others).get("inputs", otherwise)

    def __str__(self) -> str:
        return ", ".join([self.weights, *(f"{key} {value or 'none'}" for key, value in self.others)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Layers that get one choice together: ``options[k]`` takes ``bits[k]`` (int64), costs ``loss[k]`` (float64) and
    ``microseconds[k]`` (float64, zeros without timings).

    Sorted by bits.  Every option is better than each other one in some respect.
    """

    layers: tuple[str, ...]
    options: tuple[Option, ...]
    bits: np.ndarray
    loss: np.ndarray
    microseconds: np.ndarray

    @property
    def schemes(self) -> tuple[str, ...]:
        """The weight scheme of each option."""
        return tuple(option.weights for option in self.options)


@dataclass(slots=True, eq=False)
class _Menu:
    """Options that many groups share, with what was worked out for them by shape."""

    options: tuple[Option, ...]
    parts: list[tuple[Sensitivity, np.ndarray, np.ndarray]]
    bits: dict[Any, np.ndarray] = field(default_factory=dict)
    times: dict[Any, np.ndarray] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Builder:
    """Makes the candidates of groups, remembering what depends on shapes only."""

    table: Sensitivity
    names: tuple[str, ...]
    legal: Legal | None
    times: Times | None
    algorithms: tuple[Sensitivity, ...]
    inputs: Sensitivity | None
    _menus: dict[Any, _Menu] = field(default_factory=dict)

    def group(
        self, members: Sequence[Layer], given: Sequence[Assignment], limit: tuple[str, ...] | None
    ) -> Group:
        """Return ``members`` with their candidates, each best in some respect; they have ``given`` so far."""
        inputs = given[0].inputs
        key = (limit, inputs, tuple((layer.kind, layer.matrix, layer.dtype) for layer in members) if self.legal else 0)
        menu = self._menus.get(key)
        if menu is None:
            options = tuple(self._legal_options(members, inputs, limit))
            menu = self._menus[key] = _Menu(options, self._parts(options))
        options = menu.options
        bits = np.zeros(len(options), np.int64)
        for layer in members:
            if layer.tied_to is None:
                bits = bits + _bits_of(layer, menu)
        loss = _losses(members, menu)
        spent = self._microseconds(members, menu, inputs)
        kept = _best(bits, loss, spent if self.times else None)
        return Group(
            layers=tuple(layer.name for layer in members), options=tuple(options[index] for index in kept),
            bits=bits[kept], loss=loss[kept], microseconds=spent[kept],
        )  # fmt: skip

    def reasons(
        self, members: Sequence[Layer], given: dict[str, Assignment], limit: tuple[str, ...] | None
    ) -> list[str]:
        """Return why schemes were refused, each kind of reason once and the rarest first, for a message."""
        kinds: dict[str, dict[str, str]] = {}
        for weights in self._weights(limit):
            for layer in members:
                reason = self.legal and self.legal(layer, weights, given[layer.name].inputs)
                if reason:
                    kinds.setdefault(reason.rpartition(", not ")[0] or reason, {})[weights] = reason
        sentences = []
        for kind, refused in sorted(kinds.items(), key=lambda item: len(item[1])):
            names = list(refused)
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            sentences.append(f"{', '.join(names[:3])}{more}: {kind if len(names) > 1 else refused[names[0]]}")
        missing = [f"{layer.name} has no score" for layer in members if layer.name not in self.table.row]
        return [*sentences[:4], *missing[:2]]

    def _weights(self, limit: tuple[str, ...] | None) -> tuple[str, ...]:
        if limit is None:
            return (*self.names, KEEP)
        return tuple(name for name in limit if name == KEEP or name in self.names)

    def _legal_options(
        self, members: Sequence[Layer], inputs: str | None, limit: tuple[str, ...] | None
    ) -> Iterable[Option]:
        for weights in self._weights(limit):
            for option in self._variants(weights, inputs):
                chosen = option.inputs(inputs)
                if self.legal is None or not any(self.legal(layer, weights, chosen) for layer in members):
                    yield option

    def _variants(self, weights: str, inputs: str | None) -> Iterable[Option]:
        """Return what can be chosen along with a weight scheme: activation schemes and algorithms that have tables."""
        activations: list[tuple[tuple[str, str | None], ...]] = [()]
        if self.inputs is not None:
            activations = [(("inputs", None),)]
            if weights != KEEP:
                activations += [(("inputs", name),) for name in self.inputs.schemes]
        elif inputs is not None and self.legal is not None:
            activations.append((("inputs", None),))
        algorithms: list[tuple[tuple[str, str | None], ...]] = [()]
        if self.algorithms and weights != KEEP:
            tables = (self.table, *self.algorithms)
            algorithms = [(("algorithm", table.algorithm),) for table in tables if weights in table.column]
        return (Option(weights, (*a, *b)) for a in activations for b in algorithms)

    def _parts(self, options: tuple[Option, ...]) -> list[tuple[Sensitivity, np.ndarray, np.ndarray]]:
        """Return for each table the columns to read and the options to which they belong."""
        tables = {table.algorithm: table for table in reversed((self.table, *self.algorithms))}
        parts: list[tuple[Sensitivity, list[tuple[int, int]]]] = [(table, []) for table in tables.values()]
        position = {name: index for index, name in enumerate(tables)}
        activations: list[tuple[int, int]] = []
        for index, option in enumerate(options):
            others = dict(option.others)
            if option.weights != KEEP:
                table = position[others.get("algorithm") or self.table.algorithm]
                parts[table][1].append((parts[table][0].column[option.weights], index))
            if self.inputs is not None and others.get("inputs") is not None:
                activations.append((self.inputs.column[str(others["inputs"])], index))
        if self.inputs is not None:
            parts.append((self.inputs, activations))
        return [(table, *_arrays(cells)) for table, cells in parts if cells]

    def _microseconds(self, members: Sequence[Layer], menu: _Menu, inputs: str | None) -> np.ndarray:
        total = np.zeros(len(menu.options))
        if self.times is None:
            return total
        for layer in members:
            key = (layer.kind, layer.matrix, inputs)
            if key not in menu.times:
                times = np.array([self.times.of(layer, o.weights, o.inputs(inputs)) for o in menu.options])
                menu.times[key] = np.zeros(len(menu.options)) if np.isnan(times).all() else times
            total += menu.times[key]
        return total


def _bits_of(layer: Layer, menu: _Menu) -> np.ndarray:
    key = (layer.matrix, layer.dtype)
    if key not in menu.bits:
        menu.bits[key] = np.array([layer_bits(layer, option.weights) for option in menu.options], np.int64)
    return menu.bits[key]


def _losses(members: Sequence[Layer], menu: _Menu) -> np.ndarray:
    total = np.zeros(len(menu.options))
    for table, columns, places in menu.parts:
        for layer in members:
            if layer.tied_to is not None:
                continue
            row = table.row.get(layer.name)
            total[places] += math.nan if row is None else np.maximum(table.score[row, columns], 0.0)
    return total


def _arrays(cells: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    columns, places = zip(*cells, strict=True)
    return np.array(columns), np.array(places)


def _best(bits: np.ndarray, loss: np.ndarray, spent: np.ndarray | None) -> np.ndarray:
    """Return the indices of the options that no other beats, by rising bits; what has no score or time is left out."""
    order = np.lexsort((loss, bits) if spent is None else (spent, loss, bits))
    known = ~np.isnan(loss[order]) if spent is None else ~(np.isnan(loss[order]) | np.isnan(spent[order]))
    order = order[known]
    sorted_loss = loss[order]
    if spent is None:
        before = np.minimum.accumulate(np.concatenate([[np.inf], sorted_loss[:-1]])) if order.size else sorted_loss
        kept: np.ndarray = order[sorted_loss < before]
        return kept
    sorted_time = spent[order]
    earlier = np.tri(order.size, k=-1, dtype=bool)
    no_worse = (sorted_loss[None] <= sorted_loss[:, None]) & (sorted_time[None] <= sorted_time[:, None])
    unbeaten: np.ndarray = order[~(earlier & no_worse).any(axis=1)]
    return unbeaten


def require_columns(table: Sensitivity, schemes: Iterable[str]) -> None:
    """Raise SchemeError for a scheme that the table has no column for."""
    for scheme in schemes:
        if scheme != KEEP and scheme not in table.column:
            raise SchemeError(
                f"the {table.metric} table has no column for {scheme!r}{nearest(scheme, table.schemes)}; "
                "score that scheme first or leave it out of the search"
            )
