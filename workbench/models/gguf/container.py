"""A GGUF file read without trust: every count, length and offset is checked against the file before it is used.

Layout (ggml-org/ggml, docs/gguf.md): the magic ``GGUF``, a version, two counts, metadata, the facts of each tensor
(name, sizes, fastest first, type, offset), filling up to the alignment, the tensors' bytes.  Little-endian.  Of a
model in parts (``llama-gguf-split``) each is a file of its own, and the first has the metadata.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from workbench.errors import ModelError, NotAModelError
from workbench.models.gguf.tensors import library
from workbench.models.gguf.values import ARRAY, BOOL, FORMATS, STRING, UINT32, Value
from workbench.models.readers.mapped import require_bounded

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST = 1 << 24
"""Tensors and entries of metadata together: each takes some hundred bytes of memory, and a sparse file none."""

PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
_AXES = 4
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlocks:
    """One tensor of the file at ``path``: ``type`` is its GGML type's name, ``shape`` rows first, ``start`` from the
    file's."""

    path: Path
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
    """An opened file, or the first of the parts of a model: ``metadata`` and ``tensors`` in order, memory-mapped.

    ``files`` are all parts, those without tensors too.
    """

    path: Path
    files: tuple[Path, ...]
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
        tensor, raw = self.tensors[name], np.zeros(0, np.uint8)
        try:
            if tensor.nbytes:
                raw = np.memmap(tensor.path, np.uint8, "r", tensor.start, (tensor.nbytes,))
        except ValueError:
            raise ModelError(
                f"{tensor.path} was truncated while it was open; restore the file, and open the model again"
            ) from None
        return np.asarray(raw).reshape(max(tensor.matrix[0], 1), -1)


def read_gguf(path: Path) -> GgufFile:
    """Return the file at ``path``, with the other parts of its model where it is one of several.

    Raises NotAModelError, in one line, for one that is foreign, damaged, cut short or without tensors, and where a part
    is missing, BackendUnavailableError without the package gguf.
    """
    file, _ = _one(path)
    count = file.metadata.get("split.count", Value(UINT32, 1)).data
    if isinstance(count, int) and count > 1:
        file = _joined(file, count)
    if not file.tensors:
        raise NotAModelError(f"{path} is a GGUF file without tensors (a vocabulary?); weights were expected")
    return file


def _joined(one: GgufFile, count: int) -> GgufFile:
    """Return the model of which ``one`` is a part; NotAModelError where another is missing or of another model."""
    name, said = PART.fullmatch(one.path.name), f"{one.path} is one of the {count} parts of a model"
    if name is None or int(name[3]) != count:
        raise NotAModelError(f"{said}, and is not called so; name it NAME-00001-of-{count:05}.gguf, by its number")
    places = [one.path.with_name(f"{name[1]}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1)]
    if missing := next((place for place in places if not place.is_file()), None):
        raise NotAModelError(f"{said}, and {missing.name} is not beside it; fetch it too")
    parts, left = list[GgufFile](), MOST
    for number, place in enumerate(places):
        part, left = _one(place, left)
        parts.append(part)
        if (stated := [part.plain.get(f"split.{key}") for key in ("no", "count")]) != [number, count]:
            raise NotAModelError(
                f"{said}, and {place.name} says that its number and count are {stated}; fetch it again"
            )
    tensors = {tensor.name: tensor for part in parts for tensor in part.tensors.values()}
    expected, found = parts[0].plain.get("split.tensors.count"), sum(len(part.tensors) for part in parts)
    if not expected == found == len(tensors):
        raise NotAModelError(f"{said}, which have {len(tensors)} tensors, {expected} were expected; fetch them again")
    metadata = {key: value for key, value in parts[0].metadata.items() if not key.startswith("split.")}
    return replace(parts[0], files=tuple(places), metadata=metadata, tensors=tensors)


def _one(path: Path, most: int = MOST) -> tuple[GgufFile, int]:
    """Return one file of ``most`` tensors and entries of metadata, and how many more there may be."""
    try:
        size = path.stat().st_size
        data = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
    except OSError as error:
        raise NotAModelError(f"{path} cannot be read: {error.strerror or error}") from error
    cursor = _Cursor(path, memoryview(data), size, most)  # type: ignore[arg-type]
    try:
        return _read(cursor), cursor.left
    except (struct.error, OverflowError, ValueError) as error:
        raise cursor.damaged(f"its header is cut short or garbled ({error})") from None


class _Cursor:
    """A place in the file, moved by reading; nothing is read beyond its end."""

    def __init__(self, path: Path, data: memoryview, size: int, most: int) -> None:
        self.path, self.data, self.size, self.at, self.left = path, data, size, 0, most

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
        known = f"of version {version}, versions {VERSIONS[0]} and {VERSIONS[1]} are known; convert it again"
        turn = "of a big-endian machine; turn it round with gguf-convert-endian FILE little"
        raise NotAModelError(f"{cursor.path} is a GGUF file {turn if swapped else known}")
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
    gguf, facts = library(), dict[str, tuple[StoredBlocks, int]]()
    for _ in range(tensors):
        tensor, offset = _facts(cursor, gguf)
        if tensor.name in facts:
            raise cursor.damaged(f"it has the tensor {tensor.name} twice")
        facts[tensor.name] = tensor, offset
    if (nbytes := sum(tensor.nbytes for tensor, _ in facts.values())) > cursor.size:
        raise cursor.damaged(f"its tensors take {nbytes} bytes, it has {cursor.size}")
    start = -(-cursor.at // alignment) * alignment
    stored: dict[str, StoredBlocks] = {}
    for tensor, offset in facts.values():
        if offset % alignment or start + offset + tensor.nbytes > cursor.size:
            raise cursor.damaged(
                f"the tensor {tensor.name} lies at {offset} with {tensor.nbytes} bytes, its data have "
                f"{max(cursor.size - start, 0)} bytes in steps of {alignment}"
            )
        stored[tensor.name] = replace(tensor, start=start + offset)
    return GgufFile(path=cursor.path, files=(cursor.path,), metadata=metadata, tensors=stored)


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


def _facts(cursor: _Cursor, gguf: ModuleType) -> tuple[StoredBlocks, int]:
    """Return a tensor's facts, without its place, and its offset from the first tensor's."""
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
    require_bounded(shape, f"the tensor {name}")
    nbytes = math.prod(shape) // int(width) * int(block_bytes)
    return StoredBlocks(path=cursor.path, name=name, type=kind.name, shape=shape, start=0, nbytes=nbytes), offset
