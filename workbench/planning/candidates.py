"""The candidates of one group of layers: weight scheme x activation scheme x algorithm, with bits, loss and time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.errors import SchemeError, nearest
from workbench.models.layer import Layer, LayerKind
from workbench.planning.budgets import Times
from workbench.planning.plan import KEEP, Assignment
from workbench.planning.totals import layer_bits
from workbench.readable import few
from workbench.sensitivity.table import Sensitivity

Legal = Callable[[Layer, str, str | None], str | None]

Rounding = Callable[[str], str | None]
"""The scheme in which a target rounds inputs beside weights in a scheme, None for as computed."""

More = Callable[[Layer, str, str | None], int]
"""The bits that a target's own form of a layer takes beyond those of the scheme of its weights."""

Request = tuple[Sequence[Layer], str | None, tuple[str, ...] | None]
"""Layers that get one candidate together, their present input scheme, and the schemes that they may take."""

TOGETHER = 1 << 14
"""Groups whose candidates are compared at once."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A weight scheme, and the other fields of the assignment that are decided with it."""

    weights: str
    others: tuple[tuple[str, str | None], ...] = ()

    def applied(self, assignment: Assignment) -> Assignment:
        """Return ``assignment`` with this candidate."""
        if not self.others and assignment.weights == self.weights:
            return assignment
        changes: dict[str, Any] = dict(self.others)
        return replace(assignment, weights=self.weights, **changes)

    def inputs(self, otherwise: str | None) -> str | None:
        """Return the input scheme, ``otherwise`` where the candidate leaves it as it is."""
        return dict(self.others).get("inputs", otherwise)

    def __str__(self) -> str:
        return ", ".join([self.weights, *(f"{key} {value or 'none'}" for key, value in self.others)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Layers that get one candidate together: ``candidates[k]`` takes ``bits[k]`` (int64), costs ``loss[k]`` (float64)
    and ``microseconds[k]`` (float64, zeros without timings).

    ``rounded[k]`` (float64) of the loss is what the target's own rounding of inputs costs.  Sorted by bits.  Every
    candidate is better than each other one in some respect.
    """

    layers: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    bits: np.ndarray
    loss: np.ndarray
    microseconds: np.ndarray
    rounded: np.ndarray

    @property
    def schemes(self) -> tuple[str, ...]:
        """The weight scheme of each candidate."""
        return tuple(candidate.weights for candidate in self.candidates)


@dataclass(slots=True, eq=False)
class _Menu:
    """Candidates that many groups share, the cells of each table that they read, and their bits and times by shape."""

    candidates: tuple[Candidate, ...]
    cells: list[tuple[Sensitivity, np.ndarray, np.ndarray]]
    bits: dict[Any, np.ndarray] = field(default_factory=dict)
    times: dict[Any, np.ndarray] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Builder:
    """Makes the candidates of groups, remembering what depends on shapes only.

    The losses of ``rounded`` for what ``rounding`` says add to those of the weights, and decide nothing else; the bits
    that ``more`` says add to those of the schemes.
    """

    table: Sensitivity
    names: tuple[str, ...]
    legal: Legal | None
    times: Times | None
    algorithms: tuple[Sensitivity, ...]
    inputs: Sensitivity | None
    rounding: Rounding | None = None
    rounded: Sensitivity | None = None
    more: More | None = None
    _menus: dict[Any, _Menu] = field(default_factory=dict)

    def groups(self, requests: Sequence[Request]) -> list[Group]:
        """Return the members of each request with their candidates, each best in some respect."""
        by_menu: dict[int, tuple[_Menu, list[int]]] = {}
        for number, (members, inputs, limit) in enumerate(requests):
            menu = self._menu(members, inputs, limit)
            by_menu.setdefault(id(menu), (menu, []))[1].append(number)
        groups: dict[int, Group] = {}
        for menu, numbers in by_menu.values():
            for start in range(0, len(numbers), TOGETHER):
                part = numbers[start : start + TOGETHER]
                groups.update(zip(part, self._built(menu, [requests[number] for number in part]), strict=True))
        return [groups[number] for number in range(len(requests))]

    def _menu(self, members: Sequence[Layer], inputs: str | None, limit: tuple[str, ...] | None) -> _Menu:
        own = {each.name for each in members  # those that a target knows by their name, not by their kind alone
               if each.kind is LayerKind.EMBEDDING or each.parameter != f"{each.name}.weight"}  # fmt: skip
        kinds = tuple((each.kind, each.matrix, each.dtype, each.axes, each.name if each.name in own else "")
                      for each in members)  # fmt: skip
        key = (limit, inputs, kinds if self.legal else 0)
        menu = self._menus.get(key)
        if menu is None:
            candidates = tuple(self._legal_candidates(members, inputs, limit))
            menu = self._menus[key] = _Menu(candidates, self._cells(candidates))
        return menu

    def _built(self, menu: _Menu, requests: Sequence[Request]) -> list[Group]:
        """Return the groups of requests of one menu: bits, losses and times are matrices ``[requests, candidates]``."""
        shape = (len(requests), len(menu.candidates))
        bits, loss, spent, rounded = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), np.zeros(shape)
        owned = [[layer for layer in members if layer.tied_to is None] for members, _, _ in requests]
        present = requests[0][1]
        for place in range(max(map(len, owned), default=0)):
            at = np.array([index for index, layers in enumerate(owned) if len(layers) > place])
            layers = [owned[index][place] for index in at]
            bits[at] += np.stack([self._bits(layer, menu, present) for layer in layers])
            for table, columns, places in menu.cells:
                rows = np.array([table.row.get(layer.name, -1) for layer in layers])
                cells = np.maximum(table.score[rows[:, None], columns], 0.0)
                cells[rows < 0] = math.nan
                loss[at[:, None], places] += cells
                if table is self.rounded:
                    rounded[at[:, None], places] += cells
        for index, (members, inputs, _) in enumerate(requests if self.times is not None else ()):
            for layer in members:
                spent[index] += self._microseconds(layer, menu, inputs)
        return [
            Group(
                layers=tuple(layer.name for layer in members), candidates=tuple(map(menu.candidates.__getitem__, best)),
                bits=own_bits, loss=own_loss, microseconds=own_time, rounded=own_rounded[best],
            )
            for (members, _, _), own_rounded, (best, own_bits, own_loss, own_time) in zip(
                requests, rounded, _best(bits, loss, spent, self.times is not None), strict=True
            )
        ]  # fmt: skip

    def reasons(
        self, members: Sequence[Layer], assignments: dict[str, Assignment], limit: tuple[str, ...] | None
    ) -> list[str]:
        """Return why schemes were refused, each kind of reason once and the rarest first, for a message."""
        kinds: dict[str, dict[str, str]] = {}
        for weights in self._weights(limit):
            for layer in members:
                reason = self.legal and self.legal(layer, weights, assignments[layer.name].inputs)
                if reason:
                    kinds.setdefault(reason.rpartition(", not ")[0] or reason, {})[weights] = reason
        sentences = []
        for kind, refused in sorted(kinds.items(), key=lambda item: len(item[1])):
            names = list(refused)
            sentences.append(f"{few(names)}: {kind if len(names) > 1 else refused[names[0]]}")
        missing = [f"{layer.name} has no score" for layer in members if layer.name not in self.table.row]
        return [*sentences[:4], *missing[:2]]

    def _weights(self, limit: tuple[str, ...] | None) -> tuple[str, ...]:
        if limit is None:
            return (*self.names, KEEP)
        return tuple(name for name in limit if name == KEEP or name in self.names)

    def _legal_candidates(
        self, members: Sequence[Layer], inputs: str | None, limit: tuple[str, ...] | None
    ) -> Iterable[Candidate]:
        for candidate in (each for weights in self._weights(limit) for each in self._variants(weights, inputs)):
            chosen = candidate.inputs(inputs)
            if self.legal is None or not any(self.legal(layer, candidate.weights, chosen) for layer in members):
                yield candidate

    def _variants(self, weights: str, inputs: str | None) -> Iterable[Candidate]:
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
        return (Candidate(weights, (*a, *b)) for a in activations for b in algorithms)

    def _cells(self, candidates: tuple[Candidate, ...]) -> list[tuple[Sensitivity, np.ndarray, np.ndarray]]:
        """Return for each table the columns to read and the candidates to which they belong."""
        tables = {table.algorithm: table for table in reversed((self.table, *self.algorithms))}
        weights, activations = [], []
        for index, candidate in enumerate(candidates):
            others = dict(candidate.others)
            if candidate.weights != KEEP:
                table = tables[others.get("algorithm") or self.table.algorithm]
                weights.append((table, table.column[candidate.weights], index))
            if self.inputs is not None and others.get("inputs") is not None:
                activations.append((self.inputs, self.inputs.column[str(others["inputs"])], index))
            beside = self.rounding(candidate.weights) if self.rounding else None
            if self.rounded is not None and beside in self.rounded.column:
                activations.append((self.rounded, self.rounded.column[beside], index))
        cells = [*weights, *activations]
        return [
            (table, *np.array([(column, index) for other, column, index in cells if other is table]).T.copy())
            for table in dict.fromkeys(table for table, _, _ in cells)
        ]

    def _bits(self, layer: Layer, menu: _Menu, inputs: str | None) -> np.ndarray:
        key = (layer.shape, layer.view, layer.axes, layer.row_axes, layer.dtype)
        known = menu.bits.get(key)
        if known is None:
            bits = [layer_bits(layer, each.weights) for each in menu.candidates]
            if self.more is not None:
                more = (self.more(layer, each.weights, each.inputs(inputs)) for each in menu.candidates)
                bits = [own + beyond for own, beyond in zip(bits, more, strict=True)]
            known = menu.bits[key] = np.array(bits, np.int64)
        return known

    def _microseconds(self, layer: Layer, menu: _Menu, inputs: str | None) -> np.ndarray:
        key = (layer.kind, layer.matrix, inputs)
        if key not in menu.times and self.times is not None:
            times = np.array([self.times.of(layer, each.weights, each.inputs(inputs)) for each in menu.candidates])
            menu.times[key] = np.zeros(len(times)) if np.isnan(times).all() else times
        return menu.times[key]


Chosen = tuple[list[int], np.ndarray, np.ndarray, np.ndarray]
"""Indices of candidates, and their bits, losses and times."""


def _best(bits: np.ndarray, loss: np.ndarray, spent: np.ndarray, timed: bool) -> Iterator[Chosen]:
    """Yield for each row the candidates that no other beats, by rising bits, without those of no score or time."""
    if timed:
        for own_bits, own_loss, own_time in zip(bits, loss, spent, strict=True):
            best = _unbeaten(own_bits, own_loss, own_time)
            yield best.tolist(), own_bits[best], own_loss[best], own_time[best]
        return
    order = np.lexsort((loss, bits), axis=-1)
    sorted_bits, sorted_loss = np.take_along_axis(bits, order, 1), np.take_along_axis(loss, order, 1)
    known = np.where(np.isnan(sorted_loss), np.inf, sorted_loss)
    before = np.minimum.accumulate(np.pad(known, ((0, 0), (1, 0)), constant_values=np.inf), axis=1)[:, :-1]
    better = known < before
    ends = better.sum(axis=1).cumsum().tolist()
    picks, flat_bits, flat_loss = order[better].tolist(), sorted_bits[better], sorted_loss[better]
    times, first = np.zeros(len(picks)), 0
    for last in ends:
        yield picks[first:last], flat_bits[first:last], flat_loss[first:last], times[first:last]
        first = last


def _unbeaten(bits: np.ndarray, loss: np.ndarray, spent: np.ndarray) -> np.ndarray:
    """Return the indices of one row's candidates that no other beats in bits, loss and time, by rising bits."""
    order = np.lexsort((spent, loss, bits))
    order = order[~np.isnan(loss[order] + spent[order])]
    by_bits, times = loss[order], spent[order]
    earlier = np.tri(order.size, k=-1, dtype=bool)
    no_worse = (by_bits[None] <= by_bits[:, None]) & (times[None] <= times[:, None])
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
