"""Frozen dataclasses in HDF5: one as a group, many as a table with one dataset for each field.

The classes' type hints are the layout.  In a group, scalars are attributes, texts and arrays datasets, records groups
and tuples of records tables; what is None is left out.  A group lists its fields, so that a file which was written
before a field was added reads with that field's default, while a part that was lost is an error.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

import numpy as np

from workbench.errors import SessionError
from workbench.session.columns import NUMBERS, Column, Columns, column_of, hints, is_text, optional
from workbench.session.file import datasets
from workbench.session.file.datasets import describe, escape, group_of, read_column, unescape, write_column
from workbench.session.file.tree import Group

if typing.TYPE_CHECKING:
    import h5py

R = TypeVar("R")
Units = Mapping[str, str]
"""Units by field."""

NAMES = {"StoredTensor": "KeptTensor"}
"""The names in files of classes that were renamed."""

FIELDS = {"others": "kept"}
"""The names in files of fields that were renamed."""


def write_table(parent: h5py.Group, name: str, columns: Columns[R], units: Units | None = None) -> h5py.Group:
    """Write columns as the group ``name`` with one dataset for each key and field."""
    group = parent.create_group(name, track_order=True)
    describe(group, f"table of {_name(columns.kind)}", rows=columns.rows, fields=" ".join(columns.fields))
    for field, column in {**columns.keys, **columns.fields}.items():
        write_column(group, field, column, (units or {}).get(field, ""))
    return group


def read_table(
    parent: Group, name: str, kind: type[R], keys: Mapping[str, type] | None = None, without: tuple[str, ...] = ()
) -> Columns[R]:
    """Read columns back, with those of ``keys`` (name to ``str`` or ``int``) and without the fields ``without``.

    A field that the file's version did not have gets its default.  Raises SessionError for missing or contradicting
    parts.
    """
    group = group_of(parent, name)
    _require_kind(group, f"table of {_name(kind)}")
    rows, stored, defaults = int(_attribute(group, "rows")), str(_attribute(group, "fields")).split(), _defaults(kind)
    fields: dict[str, Column] = {}
    for field, hint in hints(kind, without).items():
        if field in stored or field not in defaults:
            fields[field] = read_column(group, field, hint, rows)
        else:
            fields[field] = column_of([defaults[field]] * rows, hint)
    return Columns(kind, rows, fields, {key: read_column(group, key, of, rows) for key, of in (keys or {}).items()})


def read_records(
    parent: Group, name: str, kind: type[R], keys: Mapping[str, type] | None = None
) -> tuple[Columns[R], list[R]]:
    """Read columns and make their records; raises SessionError for values that ``kind`` refuses."""
    columns = read_table(parent, name, kind, keys)
    return columns, built(columns.records, datasets.place(parent, name))


def write_record(
    parent: h5py.Group, name: str, record: object, units: Units | None = None, without: tuple[str, ...] = ()
) -> h5py.Group:
    """Write a dataclass as the group ``name`` and return it."""
    group = write_scalars(parent, name, record, units, hints(type(record), without))
    write_parts(group, record, units, without)
    return group


def write_scalars(
    parent: h5py.Group, name: str, record: object, units: Units | None = None, fields: Iterable[str] = ()
) -> h5py.Group:
    """Write a dataclass's scalar fields alone; ``fields`` are those that the group is going to hold."""
    group = parent.create_group(name, track_order=True)
    scalars = [field for field, hint in hints(type(record)).items() if _is_scalar(hint)]
    describe(group, _name(type(record)), fields=" ".join(map(_link, fields or scalars)))
    for field in scalars:
        value = getattr(record, field)
        if value is not None:
            group.attrs[field] = escape(str(value)) if isinstance(value, str) else value
            if units and field in units:
                group.attrs[f"{field}_unit"] = units[field]
    return group


def write_parts(group: h5py.Group, record: object, units: Units | None = None, without: tuple[str, ...] = ()) -> None:
    """Write the other fields of a dataclass into a group."""
    for field, hint in hints(type(record), without).items():
        value, kind, link = getattr(record, field), optional(hint) or hint, _link(field)
        if _is_scalar(hint) or value is None:
            continue
        if kind is np.ndarray:
            datasets.write_array(group, link, value, (units or {}).get(field, ""))
        elif kind == tuple[str, ...]:
            datasets.write_text(group, link, value)
        elif dataclasses.is_dataclass(kind):
            write_record(group, link, value)
        else:
            write_table(group, link, Columns.of(typing.get_args(kind)[0], value))


def read_record(parent: Group, name: str, record: type, without: tuple[str, ...] = ()) -> dict[str, object]:
    """Read the fields of a record as keyword arguments; SessionError for a missing or mistyped one."""
    return read_scalars(parent, name, record) | read_parts(group_of(parent, name), record, without)


def read_scalars(parent: Group, name: str, record: type) -> dict[str, object]:
    """Read what :func:`write_scalars` wrote."""
    group = group_of(parent, name)
    _require_kind(group, _name(record))
    scalars = {field: hint for field, hint in hints(record).items() if _is_scalar(hint)}
    values = {
        field: _scalar(group, field, optional(hint) or hint) for field, hint in scalars.items() if field in group.attrs
    }
    return values | _missing(group, record, scalars.keys() - values.keys(), "attribute")


def read_parts(group: Group, record: type, without: tuple[str, ...] = ()) -> dict[str, object]:
    """Read what :func:`write_parts` wrote."""
    parts = {field: hint for field, hint in hints(record, without).items() if not _is_scalar(hint)}
    links = {field: _link(field) for field in parts if _link(field) in group}
    values = {field: _part(group, link, optional(parts[field]) or parts[field]) for field, link in links.items()}
    return values | _missing(group, record, parts.keys() - values.keys(), "part")


def build(record: type[R], values: Mapping[str, object], where: str) -> R:
    """Return ``record(**values)``; raises SessionError naming ``where`` if the class refuses them."""
    return built(lambda: record(**values), where)


def built(make: Callable[[], R], where: str) -> R:
    """Return what ``make`` makes; raises SessionError naming ``where`` if a class refuses its values."""
    try:
        return make()
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise SessionError(f"{where} holds values that do not fit together: {error}") from error


def _is_scalar(hint: object) -> bool:
    kind = optional(hint) or hint
    return is_text(kind) or kind in NUMBERS


def _missing(group: Group, record: type, fields: Iterable[str], what: str) -> dict[str, object]:
    """Return None for missing fields that can be None; those that the file's version did not have get their defaults.

    Raises SessionError for any other.
    """
    stored, defaults, layout = str(group.attrs.get("fields", "")).split(), _defaults(record), hints(record)
    values: dict[str, object] = {}
    for field in fields:
        if optional(layout[field]) is not None and _link(field) in stored:
            values[field] = None
        elif _link(field) in stored or field not in defaults:
            if what == "attribute":
                raise SessionError(f"{group.name} has no attribute {field}")
            raise SessionError(f"the part {datasets.place(group, _link(field))} is missing")
    return values


def _part(group: Group, field: str, kind: object) -> object:
    if kind is np.ndarray:
        return datasets.read_array(group, field)
    if kind == tuple[str, ...]:
        return tuple(datasets.read_text(group, field))
    if isinstance(kind, type):
        return build(kind, read_record(group, field, kind), datasets.place(group, field))
    return tuple(read_records(group, field, typing.get_args(kind)[0])[1])


def _scalar(group: Group, field: str, hint: object) -> object:
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


def _attribute(group: Group, name: str) -> str | int:
    if name not in group.attrs:
        raise SessionError(f"{group.name} has no attribute {name}")
    return cast("str | int", group.attrs[name])


def _name(kind: type) -> str:
    return NAMES.get(kind.__name__, kind.__name__)


def _link(field: str) -> str:
    """Return the name of a field in files."""
    return FIELDS.get(field, field)


def _require_kind(group: Group, kind: str) -> None:
    stored, version = str(_attribute(group, "type")), int(_attribute(group, "version"))
    if stored != kind:
        raise SessionError(f"{group.name} is of the type {stored!r}, {kind!r} was expected")
    if version > 1:
        raise SessionError(f"{group.name} has version {version}, this workbench reads version 1; update the workbench")


def _defaults(record: type) -> dict[str, object]:
    """Return the defaults of those fields of a dataclass that have one."""
    defaults: dict[str, object] = {}
    for field in dataclasses.fields(record):
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory()
    return defaults
