"""Records of one dataclass as columns: one for each field, so that thousands of layers are a few arrays.

The types of the fields are the layout.  Sessions hold their results as columns; the engine's pipe sends them and the
session file writes them as they are.  A record is made when it is asked for.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Generic, TypeVar, cast

import numpy as np

from workbench.pacing import pause

R = TypeVar("R")

SMALL = 4 * 1024
"""Bytes up to which the arrays of a column are joined into one; larger ones stay where they are."""

PIECE = 1024
"""Records at a time: between two pieces other threads get their turn."""

NUMBERS: Mapping[object, type[np.generic]] = {int: np.int64, float: np.float64, bool: np.bool_}
BLANKS: Mapping[object, object] = {int: 0, float: float("nan"), bool: False, str: ""}
"""What stands in a column of numbers or texts where a record has None."""


class Column:
    """The values of one field of all records."""

    __slots__ = ()

    def __len__(self) -> int:
        """The number of records."""
        raise NotImplementedError

    def cells(self, start: int, stop: int) -> Iterable[object]:
        """Return the values of the records ``start`` to ``stop``."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Numbers(Column):
    """``values``: int64, float64 or bool ``[records]``, or arrays of one shape ``[records, ...]``."""

    values: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def cells(self, start: int, stop: int) -> Iterable[object]:
        cells = self.values[start:stop]
        return cast("list[object]", cells.tolist()) if cells.ndim == 1 else cells


@dataclass(frozen=True, slots=True, eq=False)
class Coded(Column):
    """Text, members of enumerations, small records: value i is ``distinct[codes[i]]``; int32 codes."""

    distinct: tuple[Hashable, ...]
    codes: np.ndarray

    @staticmethod
    def of(values: Sequence[Hashable]) -> Coded:
        """Return the column of ``values``."""
        distinct = tuple(dict.fromkeys(values))
        places = dict(zip(distinct, range(len(distinct)), strict=True))
        codes = np.empty(len(values), np.int32)
        for piece in pieces(len(values)):
            codes[piece] = np.fromiter(map(places.__getitem__, values[piece]), np.int32)
        return Coded(distinct, codes)

    def __len__(self) -> int:
        return len(self.codes)

    def cells(self, start: int, stop: int) -> Iterable[object]:
        return map(self.distinct.__getitem__, self.codes[start:stop].tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Ragged(Column):
    """Number i is ``entries[offsets[i]:offsets[i + 1]]``: a tuple, or an array in the shape ``shapes[i]``."""

    entries: Numbers | Coded
    offsets: np.ndarray
    shapes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def cells(self, start: int, stop: int) -> Iterable[object]:
        spans = list(pairwise(self.offsets[start : stop + 1].tolist()))
        if self.shapes is not None:
            values, shapes = cast(Numbers, self.entries).values, self.shapes[start:stop].tolist()
            return [values[low:high].reshape(shape) for (low, high), shape in zip(spans, shapes, strict=True)]
        first, last = (spans[0][0], spans[-1][1]) if spans else (0, 0)
        entries = tuple(self.entries.cells(first, last))
        return [entries[low - first : high - first] for low, high in spans]


@dataclass(frozen=True, slots=True, eq=False)
class Separate(Column):
    """Arrays of any shapes and dtypes, each by itself."""

    arrays: Sequence[np.ndarray]

    def __len__(self) -> int:
        return len(self.arrays)

    def cells(self, start: int, stop: int) -> Iterable[object]:
        return self.arrays[start:stop]


@dataclass(frozen=True, slots=True, eq=False)
class Optional(Column):
    """Values that can be None, except where ``known`` (bool ``[records]``) is true.

    Numbers and texts have a blank for every None; of arrays and tuples, ``entries`` holds the known ones only.
    """

    known: np.ndarray
    entries: Column

    def __len__(self) -> int:
        return len(self.known)

    def cells(self, start: int, stop: int) -> Iterable[object]:
        known = self.known[start:stop].tolist()
        if len(self.entries) == len(self.known):
            cells = self.entries.cells(start, stop)
            return [cell if is_known else None for cell, is_known in zip(cells, known, strict=True)]
        before = int(np.count_nonzero(self.known[:start]))
        entries = iter(self.entries.cells(before, before + sum(known)))
        return [next(entries) if is_known else None for is_known in known]


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Generic[R]):
    """Records of the dataclass ``kind``: a column for each field, and ``keys``: what tells the records apart."""

    kind: type[R]
    rows: int
    fields: Mapping[str, Column]
    keys: Mapping[str, Column] = field(default_factory=dict)

    @staticmethod
    def of(
        kind: type[R], records: Sequence[R], keys: Mapping[str, Column] | None = None, without: tuple[str, ...] = ()
    ) -> Columns[R]:
        """Return the columns of ``records``; the fields ``without`` are left out."""
        fields = {name: column_of(_values(records, name), hint) for name, hint in hints(kind, without).items()}
        return Columns(kind, len(records), fields, keys or {})

    def records(self, start: int = 0, stop: int | None = None) -> list[R]:
        """Make the records ``start`` to ``stop``."""
        return [self.kind(**row) for row in self.dictionaries(start, stop)]

    def dictionaries(self, start: int = 0, stop: int | None = None) -> Iterator[dict[str, object]]:
        """Yield the fields of the records ``start`` to ``stop`` by name."""
        last, names = self.rows if stop is None else min(stop, self.rows), tuple(self.fields)
        for piece in pieces(last, start):
            if not names:
                yield from ({} for _ in range(piece.start, piece.stop))
                continue
            cells = [column.cells(piece.start, piece.stop) for column in self.fields.values()]
            yield from [dict(zip(names, row)) for row in zip(*cells, strict=True)]  # noqa: B905 - as many, above


def column_of(values: Sequence[object], hint: object) -> Column:
    """Return the values of a field as a column in the form that the field's type ``hint`` asks for."""
    inner = optional(hint)
    if inner is not None:
        known = np.array([value is not None for value in values], dtype=np.bool_)
        if inner in BLANKS:
            present = [BLANKS[inner] if value is None else value for value in values]
        else:
            present = [value for value in values if value is not None]
        return Optional(known, column_of(present, inner))
    if hint in NUMBERS:
        return Numbers(np.array(values, dtype=NUMBERS[hint]))
    if is_text(hint) or dataclasses.is_dataclass(hint):
        return Coded.of(values)
    if hint is np.ndarray:
        parts = cast("Sequence[np.ndarray]", values)
        return arrays(parts) if all(array.nbytes < SMALL for array in parts) else Separate(parts)
    if typing.get_origin(hint) is tuple:
        tuples = cast("Sequence[tuple[object, ...]]", values)
        entries = column_of(list(chain.from_iterable(tuples)), typing.get_args(hint)[0])
        return Ragged(cast("Numbers | Coded", entries), offsets(map(len, tuples)))
    raise TypeError(f"there is no column for {hint!r}")


def arrays(values: Sequence[np.ndarray]) -> Column:
    """Return arrays as one, where they fit into one."""
    if len({(array.dtype, array.ndim) for array in values}) > 1:
        return Separate(values)
    if len({array.shape for array in values}) <= 1:
        return Numbers(np.stack(values) if values else np.zeros((0,)))
    shapes = np.array([array.shape for array in values], dtype=np.int64)
    entries = Numbers(np.concatenate([array.ravel() for array in values]))
    return Ragged(entries, offsets(array.size for array in values), shapes)


def offsets(sizes: Iterable[int]) -> np.ndarray:
    """Return where each of several parts of ``sizes`` begins, and where the last one ends; int64."""
    return np.concatenate([[0], np.cumsum(list(sizes))]).astype(np.int64)


def pieces(count: int, first: int = 0) -> Iterator[slice]:
    """Cut a loop into pieces that last about a millisecond: between them other threads get their turn."""
    for start in range(first, count, PIECE):
        yield slice(start, min(start + PIECE, count))
        pause()


def hints(record: type, without: tuple[str, ...] = ()) -> dict[str, object]:
    """Return the type of each field of a dataclass, in order."""
    resolved = typing.get_type_hints(record)
    return {each.name: resolved[each.name] for each in dataclasses.fields(record) if each.name not in without}


def optional(hint: object) -> object | None:
    """Return ``T`` of ``T | None``, or None where the hint is no such union."""
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return None
    inner = [each for each in typing.get_args(hint) if each is not type(None)]
    return inner[0] if len(inner) == 1 else None


def is_text(hint: object) -> bool:
    """Return whether the hint is ``str`` or an enumeration of strings."""
    return isinstance(hint, type) and issubclass(hint, str)


def _values(records: Sequence[R], name: str) -> list[object]:
    values: list[object] = []
    for piece in pieces(len(records)):
        values.extend(getattr(record, name) for record in records[piece])
    return values
