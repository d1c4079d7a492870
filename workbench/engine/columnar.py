"""Sessions on their way through the pipe: columns of all layers instead of thousands of small objects.

Pickling objects one by one holds the interpreter's lock and fills the garbage collector's lists; a window of 10,000
layers would stand still for it.  Here equal records (statistics, ranges, layers, rules) become one column for each
field, made and taken apart by loops inside the interpreter that last milliseconds.  What arrives is equal to what was
sent; derived values that a record has cached are left behind.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain, starmap
from operator import attrgetter
from typing import Any

import numpy as np

from workbench.engine.pacing import rest
from workbench.models.summary import ModelSummary
from workbench.planning.plan import Assignment, Plan
from workbench.session.session import Session

SMALL = 4 * 1024
"""Bytes up to which the arrays of a column are joined into one; larger ones travel as they are, uncopied."""

PIECE = 1024
"""Records at a time."""

PACKED: Mapping[type, frozenset[str]] = {
    Session: frozenset({"statistics", "ranges", "active_ranges", "curvature", "outliers"}),
    ModelSummary: frozenset({"layers", "kept"}),
    Plan: frozenset({"rules"}),
}
"""Which fields of which records travel as columns: mappings to equal records, or tuples of them."""

Unpack = Callable[..., Any]
Reduced = tuple[Unpack, tuple[Any, ...]]


class ColumnarPickler(pickle.Pickler):
    """Pickles as ever, but for the records in PACKED."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how ``obj`` is pickled, or NotImplemented for all that is pickled as ever."""
        packed = PACKED.get(type(obj))
        if packed is None:
            return NotImplemented
        values = {field.name: getattr(obj, field.name) for field in dataclasses.fields(obj)}
        loose = {name: value for name, value in values.items() if name not in packed}
        tables = {name: _packed(value) for name, value in values.items() if name in packed}
        return _record, (type(obj), loose, tables)


def _record(kind: type, loose: dict[str, Any], tables: dict[str, Reduced]) -> Any:
    return kind(**loose, **{name: unpack(*parts) for name, (unpack, parts) in tables.items()})


def _packed(value: Any) -> Reduced:
    if isinstance(value, Mapping):
        keys = list(value)
        wide = set(map(type, keys)) == {tuple} and len(set(map(len, keys))) == 1
        parts = [[key[place] for key in keys] for place in range(len(keys[0]))] if wide else [keys]
        return _mapping, (wide, tuple(map(_column, parts)), _table(list(value.values())))
    return _tuple, (_table(value),)


def _mapping(wide: bool, keys: tuple[Reduced, ...], rows: Reduced) -> dict[Any, Any]:
    columns = [unpack(*parts) for unpack, parts in keys]
    unpack, parts = rows
    values: list[Any] = unpack(*parts)
    found: dict[Any, Any] = {}
    for piece in _pieces(len(values)):
        names = zip(*(column[piece] for column in columns), strict=True) if wide else columns[0][piece]
        found.update(zip(names, values[piece], strict=True))
    return found


def _tuple(rows: Reduced) -> tuple[Any, ...]:
    unpack, parts = rows
    return tuple(unpack(*parts))


def _table(rows: Sequence[Any]) -> Reduced:
    """Return the records as columns if they are of one dataclass with slots, else as they are."""
    kinds = set(map(type, rows))
    kind = kinds.pop() if len(kinds) == 1 else object
    if not dataclasses.is_dataclass(kind) or "__slots__" not in vars(kind):
        return list, (list(rows),)
    names = [field.name for field in dataclasses.fields(kind)]
    return _rows, (kind, len(rows), {name: _column(_values(rows, name)) for name in names})


def _values(rows: Sequence[Any], name: str) -> list[Any]:
    found: list[Any] = []
    for piece in _pieces(len(rows)):
        found.extend(map(attrgetter(name), rows[piece]))
    return found


def _pieces(count: int) -> Iterator[slice]:
    """Cut a loop into pieces that last less than a millisecond: between them other threads get their turn."""
    for start in range(0, count, PIECE):
        yield slice(start, start + PIECE)
        rest()


def _rows(kind: type, count: int, columns: dict[str, Reduced]) -> list[Any]:
    """Return the records, made as unpickling makes them: without the checks that they passed when they were new."""
    rows: list[Any] = [object.__new__(kind) for _ in range(count)]
    for name, (unpack, parts) in columns.items():
        values = unpack(*parts)
        for piece in _pieces(count):
            deque(map(getattr(kind, name).__set__, rows[piece], values[piece]), maxlen=0)
    return rows


def _column(values: list[Any]) -> Reduced:
    """Return the values of one field in the most compact form that gives back equal values of the same types."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return _numbers, (np.array(values, dtype=np.float64),)
    if kinds == {int} and min(values) >= -(2**63) and max(values) < 2**63:
        return _numbers, (np.array(values, dtype=np.int64),)
    if kinds == {bool} or (kinds and all(map(_has_few_values, kinds)) and _told_apart(values, kinds)):
        return _coded(values)
    if kinds == {np.ndarray} and _joinable(values):
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        return _arrays, (np.concatenate(values), lengths)
    return list, (values,)


def _has_few_values(kind: type) -> bool:
    return kind in (str, tuple, type(None), Assignment) or issubclass(kind, Enum)


def _told_apart(values: list[Any], kinds: set[type]) -> bool:
    """Tell whether equal values are the same: tuples of numbers need not be, as (1,) and (1.0,)."""
    return tuple not in kinds or set(map(type, chain.from_iterable(filter(_is_tuple, values)))) <= {int, str}


def _is_tuple(value: Any) -> bool:
    return type(value) is tuple


def _coded(values: list[Any]) -> Reduced:
    distinct = list(dict.fromkeys(values))
    places = dict(zip(distinct, range(len(distinct)), strict=True))
    codes = np.empty(len(values), np.int32)
    for piece in _pieces(len(values)):
        codes[piece] = np.fromiter(map(places.__getitem__, values[piece]), np.int32)
    return _decoded, (distinct, codes)


def _decoded(distinct: list[Any], codes: np.ndarray) -> list[Any]:
    found: list[Any] = []
    for piece in _pieces(len(codes)):
        found.extend(map(distinct.__getitem__, codes[piece].tolist()))
    return found


def _numbers(values: np.ndarray) -> list[Any]:
    found: list[Any] = values.tolist()
    return found


def _joinable(arrays: list[np.ndarray]) -> bool:
    """Tell whether the arrays are small vectors of one dtype."""
    return {array.dtype for array in arrays} == {arrays[0].dtype} and all(
        array.ndim == 1 and array.nbytes < SMALL and not array.dtype.hasobject for array in arrays
    )


def _arrays(joined: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    ends = np.cumsum(lengths)
    spans = list(zip((ends - lengths).tolist(), ends.tolist(), strict=True))
    found: list[np.ndarray] = []
    for piece in _pieces(len(spans)):
        found.extend(map(joined.__getitem__, starmap(slice, spans[piece])))
    return found
