"""Lists of values as HDF5 datasets, one for each field of a table; the type hint says which form a field takes.

========================  ==============================================================================================
``str``, a ``StrEnum``    variable-length UTF-8
``int float bool``        int64, float64, boolean
``tuple[T, ...]``         ``values`` one after another and ``offsets`` (entries + 1), so that entry i is
                          ``values[offsets[i]:offsets[i + 1]]``
``ndarray``               one array (entries x shape) where all have one shape; else ``values``, ``offsets`` and
                          ``shapes``; else, where dtypes or ranks differ, one dataset for each entry
``T | None``              as ``T``, with ``<field>_known`` beside it; arrays and lists hold the known entries only
========================  ==============================================================================================

Nothing here imports h5py: groups and datasets are handed in.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from workbench.errors import SessionError

Group = Any
"""An ``h5py.Group``."""

TEXT = np.dtype("O", metadata={"vlen": str})
"""What ``h5py.string_dtype()`` returns: variable-length UTF-8."""

_SCALARS: dict[Any, Any] = {int: np.int64, float: np.float64, bool: np.bool_}
_CHUNKED_FROM = 16384
_CHUNK = 1 << 19
_MARK = "\u2400"
_LARGEST_RATIO = 1100


def escape(text: str) -> str:
    """Replace what HDF5 text cannot hold (NUL, lone surrogates) by U+2400, the code in hexadecimal, and a semicolon."""
    return re.sub(f"[\0\ud800-\udfff{_MARK}]", lambda found: f"{_MARK}{ord(found[0]):x};", text)


def unescape(text: str) -> str:
    """Undo :func:`escape`."""
    return re.sub(f"{_MARK}([0-9a-f]+);", lambda found: chr(int(found[1], 16)), text) if _MARK in text else text


def link_name(text: str) -> str:
    """Return ``text`` as a name inside a group: ``/``, ``%`` and a leading dot as per cent escapes, never empty."""
    name = escape(text).replace("%", "%25").replace("/", "%2F")
    return "%2E" + name[1:] if name.startswith(".") else name or "%"


def original_name(link: str) -> str:
    """Undo :func:`link_name`."""
    return "" if link == "%" else unescape(link.replace("%2E", ".").replace("%2F", "/").replace("%25", "%"))


def describe(element: Any, kind: str, **attributes: Any) -> None:
    """Give an element its type, the version of that type's layout and further attributes."""
    for name, value in {"type": kind, "version": 1, **attributes}.items():
        element.attrs[name] = value


def write_array(group: Group, name: str, array: np.ndarray, unit: str = "", kind: str = "array") -> Any:
    """Write one array and return its dataset; larger ones get checksums, and larger ones of integers are compressed."""
    options: dict[str, Any] = {}
    if array.nbytes >= _CHUNKED_FROM:
        options = {"fletcher32": True, "chunks": _chunks(array)}
        if array.dtype.kind in "biu":
            options |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    dataset = group.create_dataset(name, data=array, **options)
    describe(dataset, kind, **({"unit": unit} if unit else {}))
    return dataset


def _chunks(array: np.ndarray) -> tuple[int, ...]:
    """Return the shape of chunks of about 512 KiB that cut the first axis only, where they can."""
    row = max(array.nbytes // max(len(array), 1), 1)
    rows = min(max(_CHUNK // row, 1), len(array))
    return (rows, *array.shape[1:]) if row <= 1 << 26 else (1, *(min(size, 256) for size in array.shape[1:]))


def read_array(group: Group, name: str, ndim: int | None = None) -> np.ndarray:
    """Read one array of numbers; raises SessionError if it is missing, is text or has another rank than ``ndim``."""
    dataset = member(group, name)
    if not hasattr(dataset, "shape") or dataset.dtype.kind not in "biuf":
        raise SessionError(f"{_path(group, name)} is no array of numbers")
    if ndim is not None and dataset.ndim != ndim:
        raise SessionError(f"{_path(group, name)} has {dataset.ndim} axes, {ndim} were expected")
    if dataset.nbytes > _LARGEST_RATIO * dataset.id.get_storage_size() + 4096:
        raise SessionError(f"{_path(group, name)} has the shape {dataset.shape} but holds hardly any data")
    array: np.ndarray = dataset[()]
    return array


def write_text(group: Group, name: str, texts: Sequence[str]) -> Any:
    """Write strings as one variable-length dataset; returns it."""
    data = np.empty(len(texts), dtype=object)
    data[:] = [escape(text) for text in texts]
    dataset = group.create_dataset(name, data=data, dtype=TEXT)
    describe(dataset, "text")
    return dataset


def read_text(group: Group, name: str) -> list[str]:
    """Read strings; raises SessionError if they are missing or no text."""
    dataset = member(group, name)
    if not hasattr(dataset, "asstr") or dataset.dtype.kind != "O" or dataset.ndim != 1:
        raise SessionError(f"{_path(group, name)} is no list of strings")
    return [unescape(text) for text in dataset.asstr()[...]]


def member(group: Group, name: str) -> Any:
    """Return a dataset or a group; raises SessionError naming the missing part."""
    if not hasattr(group, "keys") or name not in group:
        raise SessionError(f"the part {_path(group, name)} is missing")
    return group[name]


def write_column(group: Group, name: str, values: Sequence[Any], hint: Any, units: typing.Mapping[str, str]) -> None:
    """Write a field's ``values``, one for each row, in the form that its type ``hint`` asks for."""
    inner = optional(hint)
    if inner is not None:
        known = [value is not None for value in values]
        write_array(group, f"{name}_known", np.array(known, dtype=np.bool_))
        blank = _blank(inner)
        filled = [value if given else blank for value, given in zip(values, known, strict=True)]
        kept = filled if blank is not None else [value for value in values if value is not None]
        write_column(group, name, kept, inner, units)
    elif is_text(hint):
        write_text(group, name, [str(value) for value in values])
    elif hint in _SCALARS:
        write_array(group, name, np.array(values, dtype=_SCALARS[hint]), units.get(name, ""), kind="column")
    elif hint is np.ndarray:
        _write_arrays(group, name, values, units.get(name, ""))
    elif typing.get_origin(hint) is tuple:
        _write_tuples(group, name, values, typing.get_args(hint)[0])
    else:
        raise TypeError(f"there is no column form for {hint!r} ({name})")


def read_column(group: Group, name: str, hint: Any, rows: int) -> list[Any]:
    """Read a field's values; raises SessionError if the part is missing, of another type or not ``rows`` long."""
    inner = optional(hint)
    if inner is not None:
        known = [bool(given) for given in read_array(group, f"{name}_known", 1)]
        _require(len(known) == rows, group, f"{name}_known", f"has {len(known)} entries, {rows} were expected")
        stored = read_column(group, name, inner, rows if _blank(inner) is not None else sum(known))
        entries = iter(stored)
        if _blank(inner) is not None:
            return [value if given else None for value, given in zip(stored, known, strict=True)]
        return [next(entries) if given else None for given in known]
    values: list[Any]
    if is_text(hint):
        texts = read_text(group, name)
        values = texts if hint is str else [_member_of(hint, text, group, name) for text in texts]
    elif hint in _SCALARS:
        values = read_array(group, name, 1).astype(_SCALARS[hint], casting="safe").tolist()
    elif hint is np.ndarray:
        values = _read_arrays(group, name)
    else:
        values = _read_tuples(group, name, typing.get_args(hint)[0])
    _require(len(values) == rows, group, name, f"has {len(values)} entries, {rows} were expected")
    return values


def optional(hint: Any) -> Any:
    """Return ``T`` of ``T | None``, or None where the hint is no such union."""
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return None
    inner = [each for each in typing.get_args(hint) if each is not type(None)]
    return inner[0] if len(inner) == 1 else None


def is_text(hint: Any) -> bool:
    """Tell whether the hint is ``str`` or an enumeration of strings."""
    return isinstance(hint, type) and issubclass(hint, str)


def _blank(hint: Any) -> Any:
    """Return what stands where a scalar is not known; None for what is left out instead."""
    if is_text(hint):
        return ""
    return {int: 0, float: float("nan"), bool: False}.get(hint)


def _member_of(enumeration: type[StrEnum], text: str, group: Group, name: str) -> Any:
    if text in [str(each) for each in enumeration]:
        return enumeration(text)
    raise SessionError(f"{_path(group, name)} holds {text!r}, expected one of {', '.join(enumeration)}")


def _write_arrays(group: Group, name: str, arrays: Sequence[np.ndarray], unit: str) -> None:
    shapes = {array.shape for array in arrays}
    if len({(array.dtype, array.ndim) for array in arrays}) > 1:
        inside = group.create_group(name)
        describe(inside, "separate arrays", entries=len(arrays))
        for index, array in enumerate(arrays):
            write_array(inside, str(index), array, unit)
    elif len(shapes) <= 1:
        write_array(group, name, np.stack(arrays) if arrays else np.zeros((0,)), unit, kind="stacked arrays")
    else:
        inside = group.create_group(name)
        describe(inside, "ragged arrays", **({"unit": unit} if unit else {}))
        write_array(inside, "values", np.concatenate([array.ravel() for array in arrays]), unit)
        write_array(inside, "offsets", _offsets([array.size for array in arrays]))
        write_array(inside, "shapes", np.array([array.shape for array in arrays], dtype=np.int64))


def _read_arrays(group: Group, name: str) -> list[np.ndarray]:
    found = member(group, name)
    if hasattr(found, "shape"):
        return list(read_array(group, name))
    if "entries" in found.attrs:
        return [read_array(found, str(index)) for index in range(int(found.attrs["entries"]))]
    parts = _split(found, read_array(found, "values", 1))
    shapes = read_array(found, "shapes", 2)
    fits = len(shapes) == len(parts) and bool(np.all(shapes.prod(axis=1) == [part.size for part in parts]))
    _require(fits, group, name, "has shapes that do not agree with its values")
    return [part.reshape(shape) for part, shape in zip(parts, shapes.tolist(), strict=True)]


def _write_tuples(group: Group, name: str, tuples: Sequence[tuple[Any, ...]], kind: Any) -> None:
    inside = group.create_group(name)
    describe(inside, "ragged list")
    everything = [entry for each in tuples for entry in each]
    if kind is str:
        write_text(inside, "values", everything)
    else:
        write_array(inside, "values", np.array(everything, dtype=_SCALARS[kind]))
    write_array(inside, "offsets", _offsets([len(each) for each in tuples]))


def _read_tuples(group: Group, name: str, kind: Any) -> list[tuple[Any, ...]]:
    inside = member(group, name)
    values = read_text(inside, "values") if kind is str else read_array(inside, "values", 1).tolist()
    return [tuple(part) for part in _split(inside, values)]


def _offsets(sizes: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _split(group: Group, values: Any) -> list[Any]:
    """Cut ``values`` at the group's offsets."""
    offsets = read_array(group, "offsets", 1).tolist()
    rising = all(low <= high for low, high in zip(offsets, offsets[1:], strict=False))
    whole = bool(offsets) and offsets[0] == 0 and offsets[-1] == len(values)
    _require(rising and whole, group, "offsets", "does not agree with the values")
    return [values[low:high] for low, high in zip(offsets, offsets[1:], strict=False)]


def _require(holds: bool, group: Group, name: str, problem: str) -> None:
    if not holds:
        raise SessionError(f"{_path(group, name)} {problem}")


def _path(group: Group, name: str) -> str:
    return f"{str(group.name).rstrip('/')}/{name}"
