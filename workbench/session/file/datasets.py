"""Arrays, texts and columns as HDF5 datasets; the form of a column follows from its class.

========================  ==============================================================================================
``str``, a ``StrEnum``    variable-length UTF-8
``int float bool``        int64, float64, boolean
``tuple[T, ...]``         ``values`` one after another and ``offsets`` (entries + 1), so that entry i is
                          ``values[offsets[i]:offsets[i + 1]]``
``ndarray``               one array (entries x shape) where all have one shape; else ``values``, ``offsets`` and
                          ``shapes``; else, where dtypes or ranks differ, one dataset for each entry
``T | None``              as ``T``, with ``<field>_known`` beside it; arrays and lists hold the known entries only
========================  ==============================================================================================
"""

from __future__ import annotations

import re
import typing
import zlib
from collections.abc import Iterable

import numpy as np

from workbench.errors import SessionError
from workbench.session.columns import (
    BLANKS,
    NUMBERS,
    Coded,
    Column,
    Numbers,
    Optional,
    Ragged,
    Separate,
    arrays,
    optional,
)
from workbench.session.file.tree import Array, Group, Part, Texts

if typing.TYPE_CHECKING:
    import h5py

Attribute = str | int | float | bool

_CHUNKED_FROM = 16384
_CHUNK = 1 << 19
_MARK = "\u2400"


def escape(text: str) -> str:
    """Replace what HDF5 text cannot hold (NUL, lone surrogates) by U+2400, the code in hexadecimal, and a semicolon."""
    return re.sub(f"[\0\ud800-\udfff{_MARK}]", lambda match: f"{_MARK}{ord(match[0]):x};", text)


def unescape(text: str) -> str:
    """Undo :func:`escape`."""
    return re.sub(f"{_MARK}([0-9a-f]+);", lambda match: chr(int(match[1], 16)), text) if _MARK in text else text


def link_name(text: str) -> str:
    """Return ``text`` as a name inside a group: ``/``, ``%`` and a leading dot as per cent escapes, never empty."""
    name = escape(text).replace("%", "%25").replace("/", "%2F")
    return "%2E" + name[1:] if name.startswith(".") else name or "%"


def original_name(link: str) -> str:
    """Undo :func:`link_name`."""
    return "" if link == "%" else unescape(link.replace("%2E", ".").replace("%2F", "/").replace("%25", "%"))


def describe(element: h5py.HLObject, kind: str, **attributes: Attribute) -> None:
    """Give an element its type, the version of that type's layout and further attributes."""
    for name, value in {"type": kind, "version": 1, **attributes}.items():
        element.attrs[name] = value


def write_array(group: h5py.Group, name: str, array: np.ndarray, unit: str = "", kind: str = "array") -> h5py.Dataset:
    """Write one array and return its dataset; larger ones get HDF5's checksums, too; of these, integers and
    doubles of few digits are compressed."""
    options: dict[str, object] = {}
    if array.nbytes >= _CHUNKED_FROM:
        options = {"fletcher32": True, "chunks": _chunks(array)}
        if array.dtype.kind in "biu" or _is_coarse(array):
            options |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    dataset = group.create_dataset(name, data=array, **options)
    checksum = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data) if array.size else 0
    describe(dataset, kind, **({"unit": unit} if unit else {}), crc32=checksum)
    return dataset


def _is_coarse(array: np.ndarray) -> bool:
    """Return whether doubles hold numbers of so few digits that half of their bytes are zero."""
    whole = array.dtype == np.dtype("<f8")
    return whole and not np.ascontiguousarray(array).reshape(-1).view(np.uint32)[::2].any()


def _chunks(array: np.ndarray) -> tuple[int, ...]:
    """Return the shape of chunks of about 512 KiB that cut the first axis only, where they can."""
    row = max(array.nbytes // max(len(array), 1), 1)
    rows = min(max(_CHUNK // row, 1), len(array))
    return (rows, *array.shape[1:]) if row <= 1 << 26 else (1, *(min(size, 256) for size in array.shape[1:]))


def read_array(group: Group, name: str, ndim: int | None = None) -> np.ndarray:
    """Return one array of numbers; raises SessionError if it is missing, is text or has another rank than ``ndim``."""
    dataset = member(group, name)
    if not isinstance(dataset, Array):
        raise SessionError(f"{place(group, name)} is not an array of numbers")
    if ndim is not None and dataset.values.ndim != ndim:
        raise SessionError(f"{place(group, name)} has {dataset.values.ndim} axes, {ndim} were expected")
    return dataset.values


def write_text(group: h5py.Group, name: str, texts: Iterable[str]) -> h5py.Dataset:
    """Write strings as one variable-length dataset; returns it."""
    return _write_text(group, name, np.array([*map(escape, texts), None], dtype=object)[:-1])


def _write_text(group: h5py.Group, name: str, data: np.ndarray) -> h5py.Dataset:
    from h5py import string_dtype

    dataset = group.create_dataset(name, data=data, dtype=string_dtype())
    describe(dataset, "text", crc32=zlib.crc32("\0".join(data.tolist()).encode()))
    return dataset


def read_text(group: Group, name: str) -> list[str]:
    """Read strings; raises SessionError if they are missing or not text."""
    texts = _read_coded(group, name)
    return [str(text) for text in texts.cells(0, len(texts))]


def member(group: Part, name: str) -> Part:
    """Return a part of a group; raises SessionError naming a missing one."""
    if not isinstance(group, Group) or name not in group:
        raise SessionError(f"the part {place(group, name)} is missing")
    return group.members[name]


def group_of(parent: Part, name: str) -> Group:
    """Return a group inside a group; raises SessionError where there is none."""
    group = member(parent, name)
    if not isinstance(group, Group):
        raise SessionError(f"the part {place(parent, name)} is missing: a group was expected")
    return group


def write_column(group: h5py.Group, name: str, column: Column, unit: str = "") -> None:
    """Write the values of one field."""
    if isinstance(column, Separate):
        column = arrays(column.arrays)
    match column:
        case Optional(known=known, entries=entries):
            write_array(group, f"{name}_known", known)
            write_column(group, name, entries, unit)
        case Coded(distinct=distinct, codes=codes):
            texts = [escape(str(value)) for value in distinct]
            _write_text(group, name, np.array([*texts, None], dtype=object)[codes])
        case Numbers(values=values):
            write_array(group, name, values, unit, kind="column" if values.ndim == 1 else "stacked arrays")
        case Ragged(entries=entries, offsets=offsets, shapes=shapes):
            inside = group.create_group(name)
            describe(inside, "ragged list" if shapes is None else "ragged arrays", **({"unit": unit} if unit else {}))
            write_array(inside, "offsets", offsets)
            if shapes is None:
                write_column(inside, "values", entries)
            else:
                write_array(inside, "values", typing.cast(Numbers, entries).values, unit)
                write_array(inside, "shapes", shapes)
        case Separate(arrays=separate):
            inside = group.create_group(name)
            describe(inside, "separate arrays", entries=len(separate))
            for index, array in enumerate(separate):
                write_array(inside, str(index), array, unit)
        case _:
            raise TypeError(f"{name}: there is no dataset for {type(column).__name__}")


def read_column(group: Group, name: str, hint: object, rows: int) -> Column:
    """Read the values of one field; raises SessionError if it is missing, of another type or not ``rows`` long."""
    column: Column
    inner = optional(hint)
    if inner is not None:
        known = read_array(group, f"{name}_known", 1).astype(np.bool_)
        column = Optional(known, read_column(group, name, inner, rows if inner in BLANKS else int(known.sum())))
        name = f"{name}_known"
    elif isinstance(hint, type) and issubclass(hint, str):
        column = _read_coded(group, name, hint)
    elif hint in NUMBERS:
        column = Numbers(read_array(group, name, 1).astype(NUMBERS[hint], casting="safe"))
    elif hint is np.ndarray:
        column = _read_arrays(group, name)
    else:
        inside = group_of(group, name)
        is_text = typing.get_args(hint)[0] is str
        values = _read_coded(inside, "values") if is_text else Numbers(read_array(inside, "values", 1))
        column = Ragged(values, _read_offsets(inside, len(values)))
    _require(len(column) == rows, group, name, f"has {len(column)} entries, {rows} were expected")
    return column


def _read_coded(group: Group, name: str, kind: type[str] = str) -> Coded:
    """Read strings, or members of an enumeration."""
    dataset = member(group, name)
    if not isinstance(dataset, Texts):
        raise SessionError(f"{place(group, name)} is not a list of strings")
    stored = Coded.of(dataset.texts)
    texts = [unescape(str(each)) for each in stored.distinct]
    if kind is not str:
        members = [str(each) for each in typing.cast("Iterable[str]", kind)]
        for text in texts:
            if text not in members:
                raise SessionError(f"{place(group, name)} holds {text!r}, expected one of {', '.join(members)}")
    return Coded(tuple(map(kind, texts)), stored.codes)


def _read_arrays(group: Group, name: str) -> Column:
    if isinstance(member(group, name), Array):
        return Numbers(read_array(group, name))
    inside = group_of(group, name)
    if "entries" in inside.attrs:
        return Separate([read_array(inside, str(index)) for index in range(int(inside.attrs["entries"]))])
    values, shapes = read_array(inside, "values", 1), read_array(inside, "shapes", 2)
    offsets = _read_offsets(inside, len(values))
    fits = len(shapes) == len(offsets) - 1 and np.array_equal(shapes.prod(axis=1), np.diff(offsets))
    _require(fits, group, name, "has shapes that do not agree with its values")
    return Ragged(Numbers(values), offsets, shapes)


def _read_offsets(group: Group, count: int) -> np.ndarray:
    offsets = read_array(group, "offsets", 1)
    whole = bool(len(offsets)) and offsets[0] == 0 and offsets[-1] == count
    _require(whole and bool(np.all(np.diff(offsets) >= 0)), group, "offsets", "does not agree with the values")
    return offsets


def _require(holds: bool, group: Group, name: str, problem: str) -> None:
    if not holds:
        raise SessionError(f"{place(group, name)} {problem}")


def place(group: Part, name: str) -> str:
    """Return the path of a member of a group, for messages."""
    return f"{'' if group is None else group.name.rstrip('/')}/{name}"
