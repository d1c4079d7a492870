"""Mappings from layers to results that hold columns: what a session has of thousands of layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Generic, TypeVar, cast

from workbench.session.columns import Coded, Columns, pieces

K = TypeVar("K", str, tuple[str, str], tuple[str, str, str])
R = TypeVar("R")

BLOCK = 64
"""Records that are made at once: about a quarter of a millisecond."""


class Layout(Generic[K, R]):
    """What a table holds: records of ``kind`` under keys of the parts ``names``.

    With ``by_tap`` the key is (layer, tap), and each tap has columns of its own.  Records that the user edits
    (``edited``) are made as soon as their columns arrive, because an edit copies them all.
    """

    def __init__(self, kind: type[R], *names: str, by_tap: bool = False, edited: bool = False) -> None:
        self.kind, self.names, self.by_tap, self.edited = kind, names, by_tap, edited

    def parts(self, records: Mapping[K, R]) -> dict[str, Columns[R]]:
        """Return the columns of ``records``: by tap, or all under an empty name."""
        groups: dict[str, list[K]] = {} if self.by_tap else {"": list(records)}
        if self.by_tap:
            for key in records:
                groups.setdefault(key[1], []).append(key)
        return {name: self._columns(keys, [records[key] for key in keys]) for name, keys in groups.items()}

    def _columns(self, keys: Sequence[K], records: Sequence[R]) -> Columns[R]:
        if len(self.names) == 1 and not self.by_tap:
            return Columns.of(self.kind, records, {self.names[0]: Coded.of(keys)})
        columns = {name: Coded.of([key[place] for key in keys]) for place, name in enumerate(self.names)}
        return Columns.of(self.kind, records, columns)

    def keys(self, part: str, columns: Columns[R], start: int, stop: int) -> list[K]:
        """Return the keys of the records ``start`` to ``stop`` of a part."""
        cells = [columns.keys[name].cells(start, stop) for name in self.names]
        if self.by_tap:
            return [cast(K, (layer, part)) for layer in cells[0]]
        return cast("list[K]", list(zip(*cells, strict=True)) if len(cells) > 1 else list(cells[0]))


class Table(Mapping[K, R]):
    """Records under keys, held as columns.

    Records are made when they are asked for the first time, a block at once; a table that was made of records makes its
    columns when they are needed the first time.  Both stay.
    """

    __slots__ = ("_parts", "_places", "_records", "layout")

    def __init__(self, layout: Layout[K, R], records: Mapping[K, R]) -> None:
        self.layout: Layout[K, R] = layout
        self._records: dict[K, R] = dict(records)
        self._parts: dict[str, Columns[R]] | None = None
        self._places: dict[K, tuple[str, int]] | None = None
        """The part and the row of each key."""

    @classmethod
    def of_columns(cls, layout: Layout[K, R], parts: Mapping[str, Columns[R]]) -> Table[K, R]:
        """Return the table of columns, by tap or all under an empty name."""
        table = cls(layout, {})
        table._parts, table._places = dict(parts), {}
        for part, columns in parts.items():
            for piece in pieces(columns.rows):
                keys = layout.keys(part, columns, piece.start, piece.stop)
                table._places.update(zip(keys, zip(repeat(part), range(piece.start, piece.stop)), strict=False))
        if layout.edited:
            table.make_all()
        return table

    @property
    def parts(self) -> Mapping[str, Columns[R]]:
        """The columns: by tap, or all under an empty name."""
        if self._parts is None:
            self._parts = self.layout.parts(self._records)
        return self._parts

    def make_all(self) -> None:
        """Make every record now; raises what the records' class raises for values that it refuses."""
        for part, columns in self.parts.items() if self._places is not None else ():
            for row in range(0, columns.rows, BLOCK):
                self._make(part, row)

    def _make(self, part: str, row: int) -> None:
        """Make the block of records that a row belongs to."""
        start, columns = row // BLOCK * BLOCK, self.parts[part]
        stop = min(start + BLOCK, columns.rows)
        keys = self.layout.keys(part, columns, start, stop)
        for key, record in zip(keys, columns.records(start, stop), strict=True):
            self._records.setdefault(key, record)

    def __getitem__(self, key: K) -> R:
        if key not in self._records:
            if self._places is None:
                raise KeyError(key)
            self._make(*self._places[key])
        return self._records[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._records if self._places is None else self._places)

    def __len__(self) -> int:
        return len(self._records if self._places is None else self._places)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Table.of_columns, (self.layout, self.parts)


def of_tap(table: Mapping[tuple[str, str], R], tap: str) -> Mapping[tuple[str, str], R]:
    """Return the entries of one tap; a table that holds columns gives those away and makes no record."""
    if isinstance(table, Table) and tap in table.parts:
        return Table.of_columns(table.layout, {tap: table.parts[tap]})
    return {key: record for key, record in table.items() if key[1] == tap}


def overlaid(table: Mapping[tuple[str, str], R], newer: Mapping[tuple[str, str], R]) -> Mapping[tuple[str, str], R]:
    """Return the entries of both, the newer ones where both have a key.

    Where the newer entries of a tap replace all that there were, tables of columns are joined without making a record.
    """
    if isinstance(table, Table) and isinstance(newer, Table):
        before: dict[str, set[tuple[str, str]]] = {}
        for key in table:
            before.setdefault(key[1], set()).add(key)
        if all(newer.keys() >= before.get(tap, set()) for tap in newer.parts):
            return Table.of_columns(table.layout, {**table.parts, **newer.parts})
    return {**table, **newer}
