"""The header of a safetensors file: which tensors it holds, and where.

Layout (huggingface/safetensors, README): the length of the header (8 bytes), the header as JSON, the tensors' bytes,
which cover the rest of the file without gaps and overlaps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.models.dtypes import BY_CODE
from workbench.models.readers.mapped import MappedFile


class UnknownDtypeError(ValueError):
    """A tensor of a dtype that is not read here."""


LARGEST = 1 << 25
"""Bytes of a header: room for 300,000 tensors."""

MOST_AXES = 64


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A tensor: its dtype by torch's name, its shape, and its first byte in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int


@dataclass(frozen=True, slots=True)
class Header:
    """What the header says, all of it checked against the file's size."""

    tensors: Mapping[str, StoredEntry]
    metadata: Mapping[str, str]


def read_header(file: MappedFile) -> Header:
    """Return the header; raises ValueError, in one line, for a damaged or foreign file."""
    length = int.from_bytes(file.data[:8], "little") if file.size >= 8 else -1
    if not 2 <= length <= min(LARGEST, file.size - 8):
        raise ValueError(f"its header cannot have {length} bytes, the file has {file.size}")
    try:
        header = json.loads(file.data[8 : 8 + length].decode(), object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("its header is nested too deep") from None
    except UnicodeDecodeError:
        raise ValueError("its header is no text") from None
    if not isinstance(header, dict):
        raise ValueError("its header is no table of tensors")
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are not texts")
    entries = sorted((_entry(name, entry, 8 + length) for name, entry in header.items()), key=lambda each: each[2])
    end = 8 + length
    for name, _, (first, last) in entries:
        if first != end:
            raise ValueError(f"the tensor {name} begins at byte {first}, the one before it ends at {end}")
        end = last
    if end != file.size:
        raise ValueError(f"its tensors end at byte {end}, the file has {file.size}")
    return Header({name: entry for name, entry, _ in sorted(entries)}, metadata)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("its header has a name twice")
    return table


def _entry(name: str, entry: Any, base: int) -> tuple[str, StoredEntry, tuple[int, int]]:
    """Return a tensor and its first byte and the byte behind it, from the beginning of the file."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise ValueError(f"its entry {name} has no dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in BY_CODE:
        known = ", ".join(BY_CODE)
        raise UnknownDtypeError(f"the tensor {name} has the dtype {code!s:.40}, known are {known}; convert it")
    if not _whole(shape) or not _whole(offsets) or len(offsets) != 2 or len(shape) > MOST_AXES:
        raise ValueError(f"the shape and offsets of the tensor {name} are not whole numbers")
    size = math.prod(shape) * BY_CODE[code].bits // 8
    if offsets[1] - offsets[0] != size:
        raise ValueError(f"the tensor {name} takes {size} bytes and has {offsets[1] - offsets[0]}")
    return (
        name,
        StoredEntry(BY_CODE[code].name, tuple(shape), base + offsets[0]),
        (base + offsets[0], base + offsets[1]),
    )


def _whole(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 1 << 62 for value in values)
