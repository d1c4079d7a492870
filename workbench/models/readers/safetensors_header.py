"""The header of a safetensors file: which tensors it holds, and where.

Layout (huggingface/safetensors, README): the length of the header (8 bytes), the header as JSON, the tensors' bytes,
which cover the rest of the file without gaps and overlaps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.models.dtypes import BY_CODE
from workbench.models.readers.mapped import MappedFile, require_bounded


class UnknownDtypeError(ValueError):
    """A tensor of a dtype that is not read here."""


LARGEST = 1 << 25
"""Bytes of a header: room for 300,000 tensors."""

MOST_AXES = 64


class StoredEntry(NamedTuple):
    """A tensor: its dtype by torch's name, its shape, its first byte in the file and the byte behind its last."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """What the header says, all of it checked against the file's size."""

    tensors: Mapping[str, StoredEntry]
    metadata: Mapping[str, str]


def read_header(file: MappedFile) -> Header:
    """Return the header; raises ValueError, in one line, for a damaged or foreign file."""
    if not file.size:
        raise ValueError("it is empty")
    length = int.from_bytes(file.data[:8], "little") if file.size >= 8 else -1
    if not 2 <= length <= min(LARGEST, file.size - 8):
        raise ValueError(f"its header cannot have {length} bytes, the file has {file.size}")
    try:
        header = json.loads(file.data[8 : 8 + length].decode(), object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("its header is nested too deep") from None
    except UnicodeDecodeError:
        raise ValueError("its header is not text") from None
    if not isinstance(header, dict):
        raise ValueError("its header is not a table of tensors")
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are not texts")
    entries = {name: _entry(name, entry, 8 + length) for name, entry in header.items()}
    end = 8 + length
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.start != end:
            raise ValueError(f"the tensor {name} begins at byte {entry.start}, the one before it ends at {end}")
        end = entry.end
    if end != file.size:
        raise ValueError(f"its tensors end at byte {end}, the file has {file.size}")
    return Header(dict(sorted(entries.items())), metadata)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("its header has a name twice")
    return table


def _entry(name: str, entry: Any, base: int) -> StoredEntry:
    """Return a tensor's entry, its places counted from the beginning of the file."""
    try:
        code, shape, (first, last) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"its entry {name} has no dtype, shape and two data_offsets") from None
    dtype = BY_CODE.get(code) if isinstance(code, str) else None
    if dtype is None:
        known = ", ".join(BY_CODE)
        raise UnknownDtypeError(f"the tensor {name} has the dtype {code!s:.40}, known are {known}; convert it")
    if type(shape) is not list or len(shape) > MOST_AXES:
        raise ValueError(f"the shape of the tensor {name} is not a list of whole numbers")
    for number in (*shape, first, last):
        if type(number) is not int or not 0 <= number < 1 << 62:
            raise ValueError(f"the shape and offsets of the tensor {name} are not whole numbers")
    size = math.prod(shape) * dtype.bits // 8
    if last - first != size:
        raise ValueError(f"the tensor {name} takes {size} bytes and has {last - first}")
    require_bounded(shape, f"the tensor {name}")
    return StoredEntry(dtype.name, tuple(shape), base + first, base + last)
