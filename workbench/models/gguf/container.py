"""A GGUF file read without trust: every count, length and offset is checked against the file before it is used.

Layout (ggml-org/ggml, docs/gguf.md): the magic ``GGUF``, a version, two counts, metadata, the facts of each tensor
(name, sizes, fastest first, type, offset), filling up to the alignment, the tensors' bytes.  Little-endian.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import NotAModelError
from workbench.models.gguf.tensors import library
from workbench.models.gguf.values import ARRAY, BOOL, FORMATS, STRING, UINT32, Value

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST = 1 << 24
"""Tensors and entries of metadata together: each takes some hundred bytes of memory, and a sparse file none."""

_AXES = 4
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlocks:
    """One tensor of the file: ``type`` is its GGML type's name, ``shape`` rows first, ``start`` from the file's."""

    name: str
    type: str
    shape: tuple[int, ...]
    start: int
    nbytes: int

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns, all but the last axis together."""
        return math.prod(self.shape[:-1]), self.shape[-1]


@dataclass(frozen=True, kw_only=True, eq=False)
class GgufFile:
    """An opened file: ``metadata`` and ``tensors`` in its order, their bytes memory-mapped."""

    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, StoredBlocks]

    @property
    def architecture(self) -> str:
        """What the file calls its architecture; empty where it does not say."""
        value = self.metadata.get("general.architecture")
        return str(value.plain) if value is not None and value.kind == STRING else ""

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The metadata in Python's types."""
        return {key: value.plain for key, value in self.metadata.items()}

    def raw(self, name: str) -> np.ndarray:
        """Return a tensor's bytes, uint8 ``[rows, bytes of a row]``, mapped and never to be written into."""
        tensor = self.tensors[name]
        raw = np.memmap(self.path, np.uint8, "r", tensor.start, (tensor.nbytes,)) if tensor.nbytes else np.zeros(0)
        return np.asarray(raw, np.uint8).reshape(max(tensor.matrix[0], 1), -1)


def read_gguf(path: Path) -> GgufFile:
    """Return the file at ``path``; raises NotAModelError, in one line, for one that is foreign, damaged or cut short,
    BackendUnavailableError without the package gguf."""
    library()
    try:
        size = path.stat().st_size
        data = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
    except OSError as error:
        raise NotAModelError(f"{path} cannot be read: {error.strerror or error}") from error
    cursor = _Cursor(path, memoryview(data), size)  # type: ignore[arg-type]
    try:
        return _read(cursor)
    except (struct.error, OverflowError, UnicodeDecodeError) as error:
        raise cursor.damaged(f"its header is cut short or garbled ({error})") from None


class _Cursor:
    """A place in the file, moved by reading; nothing is read beyond its end."""

    def __init__(self, path: Path, data: memoryview, size: int) -> None:
        self.path, self.data, self.size, self.at, self.left = path, data, size, 0, MOST

    def damaged(self, reason: str) -> NotAModelError:
        return NotAModelError(f"{self.path} is not a whole GGUF file: {reason}; fetch it again")

    def number(self, kind: str) -> Any:
        value = struct.unpack_from("<" + kind, self.data, self.at)[0]
        self.at += struct.calcsize("<" + kind)
        return value

    def count(self, nbytes: int, what: str) -> int:
        """Read a number of items, each of at least ``nbytes`` bytes, that the rest of the file can hold."""
        number = int(self.number("Q"))
        if number * nbytes > self.size - self.at:
            raise self.damaged(f"it says that it has {number} {what}, {self.size - self.at} bytes are left")
        return number

    def listed(self, nbytes: int, what: str) -> int:
        """Read a number of items that become objects."""
        number = self.count(nbytes, what)
        self.left -= number
        if self.left < 0:
            raise self.damaged(f"it has {number} {what}, and {MOST} are the most of everything")
        return number

    def text(self) -> bytes:
        length = self.count(1, "bytes of text")
        self.at += length
        return bytes(self.data[self.at - length : self.at])


def _read(cursor: _Cursor) -> GgufFile:
    if bytes(cursor.data[:4]) != MAGIC:
        raise NotAModelError(f"{cursor.path} is not a GGUF file: it does not begin with GGUF")
    cursor.at = 4
    version = cursor.number("I")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS
        raise NotAModelError(
            f"{cursor.path} is a GGUF file " + ("of a big-endian machine; convert it on one" if swapped else
            f"of version {version}, versions {VERSIONS[0]} and {VERSIONS[1]} are known; convert it again")
        )  # fmt: skip
    tensors, values = cursor.listed(24, "tensors"), cursor.listed(13, "metadata")
    metadata: dict[str, Value] = {}
    for _ in range(values):
        key = cursor.text().decode()
        if key in metadata:
            raise cursor.damaged(f"it has the key {key} twice")
        metadata[key] = _value(cursor, cursor.number("I"), key)
    alignment = metadata.get("general.alignment", Value(UINT32, _ALIGNMENT)).data
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20 or alignment & (alignment - 1):
        raise cursor.damaged(f"its alignment is {alignment!r}, a power of two was expected")
    facts: dict[str, tuple[StoredBlocks, int]] = {}
    for _ in range(tensors):
        tensor, offset = _facts(cursor)
        if tensor.name in facts:
            raise cursor.damaged(f"it has the tensor {tensor.name} twice")
        facts[tensor.name] = tensor, offset
    start = -(-cursor.at // alignment) * alignment
    stored: dict[str, StoredBlocks] = {}
    for tensor, offset in facts.values():
        if offset % alignment or start + offset + tensor.nbytes > cursor.size:
            raise cursor.damaged(
                f"the tensor {tensor.name} lies at {offset} with {tensor.nbytes} bytes, its data have "
                f"{max(cursor.size - start, 0)} bytes in steps of {alignment}"
            )
        stored[tensor.name] = StoredBlocks(
            name=tensor.name, type=tensor.type, shape=tensor.shape, start=start + offset, nbytes=tensor.nbytes
        )
    if not stored:
        raise NotAModelError(f"{cursor.path} is a GGUF file without tensors (a vocabulary?); weights were expected")
    return GgufFile(path=cursor.path, metadata=metadata, tensors=stored)


def _value(cursor: _Cursor, kind: int, key: str) -> Value:
    if kind == STRING:
        return Value(STRING, cursor.text())
    if kind == ARRAY:
        element = cursor.number("I")
        if element == STRING:
            number = cursor.listed(8, f"strings in {key}")
            return Value(ARRAY, [cursor.text() for _ in range(number)], STRING)
        if element in FORMATS:
            size = struct.calcsize("<" + FORMATS[element])
            number = cursor.listed(size, f"entries in {key}")
            values = list(struct.unpack_from(f"<{number}{FORMATS[element]}", cursor.data, cursor.at))
            cursor.at += number * size
            return Value(ARRAY, values, element)
        raise cursor.damaged(f"the array {key} has elements of the unknown type {element}")
    if kind not in FORMATS:
        raise cursor.damaged(f"{key} has the unknown type {kind}")
    value = cursor.number(FORMATS[kind])
    return Value(kind, bool(value) if kind == BOOL else value)


def _facts(cursor: _Cursor) -> tuple[StoredBlocks, int]:
    """Return a tensor's facts, without its place, and its offset from the first tensor's."""
    gguf = library()
    name, axes = cursor.text().decode(), cursor.number("I")
    if axes > _AXES:
        raise cursor.damaged(f"the tensor {name} has {axes} axes, {_AXES} is the most")
    shape = tuple(int(cursor.number("Q")) for _ in range(axes))[::-1] or (1,)
    number, offset = cursor.number("I"), int(cursor.number("Q"))
    try:
        kind = gguf.GGMLQuantizationType(number)
        width, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        raise NotAModelError(
            f"{cursor.path}: the tensor {name} has the GGML type {number}, which the package gguf does not know; "
            "pip install -U gguf"
        ) from None
    if shape[-1] % width:
        raise cursor.damaged(f"the tensor {name} has rows of {shape[-1]}, {kind.name} stores blocks of {width}")
    nbytes = math.prod(shape) // int(width) * int(block_bytes)
    return StoredBlocks(name=name, type=kind.name, shape=shape, start=0, nbytes=nbytes), offset
