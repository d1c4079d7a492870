"""Frozen dataclasses in HDF5: one as attributes of a group, many as a table with one dataset for each field.

The classes' type hints are the layout.  A group lists its fields, so that a file which was written before a field was
added reads with that field's default, while a part that was lost is an error.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from workbench.errors import SessionError
from workbench.session.file.columns import (
    Group,
    describe,
    escape,
    is_text,
    member,
    optional,
    read_column,
    unescape,
    write_column,
)

T = TypeVar("T")
Units = Mapping[str, str]


def hints(record: type[Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the type of each field of a dataclass, in order."""
    resolved = typing.get_type_hints(record)
    return {field.name: resolved[field.name] for field in dataclasses.fields(record) if field.name not in without}


def write_table(
    parent: Group,
    name: str,
    record: type[Any],
    rows: Sequence[Any],
    *,
    keys: Mapping[str, list[str] | np.ndarray] | None = None,
    units: Units | None = None,
    without: tuple[str, ...] = (),
) -> Group:
    """Write ``rows`` (instances of the dataclass ``record``) as the group ``name`` with one dataset for each field.

    ``keys`` are further columns, written first: strings, or an int64 array; ``units`` gives units by field; fields in
    ``without`` are left out.
    """
    group = parent.create_group(name, track_order=True)
    fields = hints(record, without)
    describe(group, f"table of {record.__name__}", rows=len(rows), fields=" ".join(fields))
    for key, values in (keys or {}).items():
        write_column(group, key, list(values), int if isinstance(values, np.ndarray) else str, {})
    for field, hint in fields.items():
        write_column(group, field, [getattr(row, field) for row in rows], hint, units or {})
    return group


def read_table(
    parent: Group,
    name: str,
    record: type[T],
    *,
    keys: Mapping[str, type[Any]] | None = None,
) -> tuple[list[T], list[list[Any]]]:
    """Read a table back: its records, and the columns of ``keys`` (name to ``str`` or ``int``).

    Raises SessionError for missing or contradicting parts and for values that ``record`` refuses.
    """
    rows, columns = read_rows(parent, name, record, keys=keys)
    return [build(record, row, f"{parent.name.rstrip('/')}/{name}") for row in rows], columns


def read_rows(
    parent: Group,
    name: str,
    record: type[Any],
    *,
    keys: Mapping[str, type[Any]] | None = None,
    without: tuple[str, ...] = (),
) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Read a table's rows as dictionaries without the fields ``without``, and its key columns."""
    group = member(parent, name)
    _require_kind(group, f"table of {record.__name__}")
    count, stored = int(_attribute(group, "rows")), str(_attribute(group, "fields")).split()
    columns = {
        field: read_column(group, field, hint, count)
        for field, hint in hints(record, without).items()
        if field in stored or not _has_default(record, field)
    }
    found = [read_column(group, key, kind, count) for key, kind in (keys or {}).items()]
    if not columns:
        return [{} for _ in range(count)], found
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], found


def write_record(parent: Group, name: str, record: Any, units: Units | None = None) -> Group:
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


def read_record(parent: Group, name: str, record: type[Any]) -> dict[str, Any]:
    """Read the scalar fields of a record as keyword arguments; SessionError for a missing or mistyped one."""
    group = member(parent, name)
    _require_kind(group, record.__name__)
    stored = str(_attribute(group, "fields")).split()
    values = {}
    for field, hint in scalar_fields(record).items():
        if field in group.attrs:
            values[field] = _scalar(group, field, optional(hint) or hint)
        elif optional(hint) is not None and field in stored:
            values[field] = None
        elif not _has_default(record, field) or field in stored:
            raise SessionError(f"{group.name} has no attribute {field}")
    return values


def build(record: type[T], values: Mapping[str, Any], where: str) -> T:
    """Return ``record(**values)``; raises SessionError naming ``where`` if the class refuses them."""
    try:
        return record(**values)
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise SessionError(f"{where} holds values that do not fit together: {error}") from error


def scalar_fields(record: type[Any]) -> dict[str, Any]:
    """Return the fields of a dataclass that fit into attributes."""
    plain = {name: optional(hint) or hint for name, hint in hints(record).items()}
    return {
        name: hint for name, hint in hints(record).items() if is_text(plain[name]) or plain[name] in (int, float, bool)
    }


def _scalar(group: Group, field: str, hint: Any) -> Any:
    value = group.attrs[field]
    if is_text(hint) and isinstance(value, str):
        text = unescape(value)
        if hint is not str and text not in list(hint):
            raise SessionError(f"{group.name} has {field} {text!r}, expected one of {', '.join(hint)}")
        return hint(text)
    kinds = {int: "iu", float: "f", bool: "b"}.get(hint, "")
    if getattr(value, "ndim", 1) == 0 and value.dtype.kind in kinds:
        return hint(value)
    raise SessionError(f"{group.name} has the attribute {field} {value!r}, expected one of type {hint.__name__}")


def _attribute(group: Group, name: str) -> Any:
    if name not in group.attrs:
        raise SessionError(f"{group.name} has no attribute {name}")
    return group.attrs[name]


def _require_kind(group: Group, kind: str) -> None:
    found, version = str(_attribute(group, "type")), int(_attribute(group, "version"))
    if found != kind:
        raise SessionError(f"{group.name} is of the type {found!r}, {kind!r} was expected")
    if version > 1:
        raise SessionError(f"{group.name} has version {version}, this workbench reads version 1; update the workbench")


def _has_default(record: type[Any], field: str) -> bool:
    found = next(each for each in dataclasses.fields(record) if each.name == field)
    return found.default is not dataclasses.MISSING or found.default_factory is not dataclasses.MISSING
