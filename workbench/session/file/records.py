"""Frozen dataclasses in HDF5: one as attributes of a group, many as a table with one dataset for each field.

The classes' type hints are the layout.  A group lists its fields, so that a file which was written before a field was
added reads with that field's default, while a part that was lost is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

import h5py
import numpy as np

from workbench.errors import SessionError
from workbench.session.columns import NUMBERS, Column, Columns, column_of, hints, is_text, optional
from workbench.session.file.datasets import describe, escape, member, read_column, unescape, write_column

R = TypeVar("R")
Units = Mapping[str, str]


def write_table(parent: h5py.Group, name: str, columns: Columns[R], units: Units | None = None) -> h5py.Group:
    """Write columns as the group ``name`` with one dataset for each key and field; ``units`` are by field."""
    group = parent.create_group(name, track_order=True)
    describe(group, f"table of {columns.kind.__name__}", rows=columns.rows, fields=" ".join(columns.fields))
    for field, column in {**columns.keys, **columns.fields}.items():
        write_column(group, field, column, (units or {}).get(field, ""))
    return group


def read_table(
    parent: h5py.Group,
    name: str,
    kind: type[R],
    keys: Mapping[str, type] | None = None,
    without: tuple[str, ...] = (),
) -> Columns[R]:
    """Read columns back, with those of ``keys`` (name to ``str`` or ``int``) and without the fields ``without``.

    A field that the file's version did not have gets its default.  Raises SessionError for missing or contradicting
    parts.
    """
    group = member(parent, name)
    _require_kind(group, f"table of {kind.__name__}")
    rows, stored = int(_attribute(group, "rows")), str(_attribute(group, "fields")).split()
    fields: dict[str, Column] = {}
    for field, hint in hints(kind, without).items():
        if field in stored or not _has_default(kind, field):
            fields[field] = read_column(group, field, hint, rows)
        else:
            fields[field] = column_of([_default(kind, field)] * rows, hint)
    return Columns(kind, rows, fields, {key: read_column(group, key, of, rows) for key, of in (keys or {}).items()})


def read_records(
    parent: h5py.Group, name: str, kind: type[R], keys: Mapping[str, type] | None = None
) -> tuple[Columns[R], list[R]]:
    """Read columns and make their records; raises SessionError for values that ``kind`` refuses."""
    columns = read_table(parent, name, kind, keys)
    return columns, built(columns.records, f"{parent.name.rstrip('/')}/{name}")


def write_record(parent: h5py.Group, name: str, record: object, units: Units | None = None) -> h5py.Group:
    """Write a dataclass's scalar fields as attributes of the group ``name`` and return it; None is left out."""
    group = parent.create_group(name, track_order=True)
    fields = scalar_fields(type(record))
    describe(group, type(record).__name__, fields=" ".join(fields))
    for field in fields:
        value = getattr(record, field)
        if value is not None:
            group.attrs[field] = escape(str(value)) if isinstance(value, str) else value
            if units and field in units:
                group.attrs[f"{field}_unit"] = units[field]
    return group


def read_record(parent: h5py.Group, name: str, record: type) -> dict[str, object]:
    """Read the scalar fields of a record as keyword arguments; SessionError for a missing or mistyped one."""
    group = member(parent, name)
    _require_kind(group, record.__name__)
    stored = str(_attribute(group, "fields")).split()
    values: dict[str, object] = {}
    for field, hint in scalar_fields(record).items():
        if field in group.attrs:
            values[field] = _scalar(group, field, optional(hint) or hint)
        elif optional(hint) is not None and field in stored:
            values[field] = None
        elif not _has_default(record, field) or field in stored:
            raise SessionError(f"{group.name} has no attribute {field}")
    return values


def build(record: type[R], values: Mapping[str, object], where: str) -> R:
    """Return ``record(**values)``; raises SessionError naming ``where`` if the class refuses them."""
    return built(lambda: record(**values), where)


def built(make: Callable[[], R], where: str) -> R:
    """Return what ``make`` makes; raises SessionError naming ``where`` if a class refuses its values."""
    try:
        return make()
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise SessionError(f"{where} holds values that do not fit together: {error}") from error


def scalar_fields(record: type) -> dict[str, object]:
    """Return the fields of a dataclass that fit into attributes."""
    plain = {name: optional(hint) or hint for name, hint in hints(record).items()}
    return {name: hint for name, hint in hints(record).items() if is_text(plain[name]) or plain[name] in NUMBERS}


def _scalar(group: h5py.Group, field: str, hint: object) -> object:
    value = group.attrs[field]
    if isinstance(hint, type) and issubclass(hint, str) and isinstance(value, str):
        text = unescape(value)
        try:
            return hint(text)
        except ValueError:
            expected = ", ".join(cast("Iterable[str]", hint))
            raise SessionError(f"{group.name} has {field} {text!r}, expected one of {expected}") from None
    kinds = {int: "iu", float: "f", bool: "b"}
    if hint in kinds and isinstance(value, np.generic) and value.dtype.kind in kinds[hint]:
        return value.item()
    expected = getattr(hint, "__name__", str(hint))
    raise SessionError(f"{group.name} has the attribute {field} {value!r}, expected one of type {expected}")


def _attribute(group: h5py.Group, name: str) -> str | int:
    if name not in group.attrs:
        raise SessionError(f"{group.name} has no attribute {name}")
    return cast("str | int", group.attrs[name])


def _require_kind(group: h5py.Group, kind: str) -> None:
    stored, version = str(_attribute(group, "type")), int(_attribute(group, "version"))
    if stored != kind:
        raise SessionError(f"{group.name} is of the type {stored!r}, {kind!r} was expected")
    if version > 1:
        raise SessionError(f"{group.name} has version {version}, this workbench reads version 1; update the workbench")


def _field(record: type, name: str) -> dataclasses.Field[object]:
    return next(each for each in dataclasses.fields(record) if each.name == name)


def _has_default(record: type, name: str) -> bool:
    field = _field(record, name)
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(record: type, name: str) -> object:
    field = _field(record, name)
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
