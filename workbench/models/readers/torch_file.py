"""What ``torch.save`` writes, tensors and plain containers, without torch's reader: no code, no C on unchecked bytes.

The archive (a zip file since torch 1.6, everything in a row before) is read with the standard library, its pickle by
:mod:`workbench.models.readers.plain_pickle`; tensors are mapped from the file.  Layouts: torch/serialization.py.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from workbench.models.readers.mapped import MappedFile, require_bounded, require_held
from workbench.models.readers.plain_pickle import Named, NotPlainError, PlainPickle, ScriptedError, keys
from workbench.plain_file import opened

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
PICKLE_BYTES = 1 << 28
LOCAL_HEADER = 30
MOST_AXES = 64

STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8", "storage.UntypedStorage": "uint8",
    "storage.TypedStorage": "uint8", "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
}  # fmt: skip

ODD = {
    "torch._utils._rebuild_sparse_tensor": "sparse", "torch._utils._rebuild_sparse_csr_tensor": "sparse_csr",
    "torch._utils._rebuild_qtensor": "quantized", "torch._utils._rebuild_nested_tensor": "nested",
    "torch._utils._rebuild_meta_tensor_no_storage": "without data",
    "torch._utils._rebuild_device_tensor_from_numpy": "of another device",
}  # fmt: skip
"""Tensors that are not plain numbers in a row, and what they are."""

CALLED = {
    "collections.OrderedDict", "collections.Counter", "torch.Size", "torch.device", "_codecs.encode",
    "builtins.set", "__builtin__.set", "torch.serialization._get_layout", "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3", "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state", "torch._tensor._rebuild_from_type_v2", *ODD,
}  # fmt: skip
NAMES = {
    "torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer", "torch.per_tensor_affine",
    "torch.per_channel_affine",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnsupportedTensor:
    """A tensor that is not plain numbers, in a word or two: ``sparse_coo``."""

    kind: str


@dataclass(frozen=True, slots=True)
class _Storage:
    """Numbers in a row: their dtype, how many there are, and where."""

    dtype: str
    key: str
    count: int


@dataclass(frozen=True, slots=True)
class _View:
    """A tensor of a storage."""

    storage: _Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_file(path: Path) -> Any:
    """Return what a file holds: tensors (mapped from it, never to be written into), OddTensors, plain containers.

    Raises NotPlainError where it names objects that are not data, ValueError for damage, OSError.
    """
    file = MappedFile(path)
    try:
        if bytes(file.data[:2]) == b"PK":
            value, places = _archive(path, file)
        else:
            value, places = _in_a_row(file)
        return _Tensors(file, places).of(value)
    except (IndexError, KeyError, TypeError, AttributeError, EOFError, OverflowError, zipfile.BadZipFile,
            NotImplementedError, RecursionError, MemoryError, UnicodeError, RuntimeError) as error:  # fmt: skip
        raise ValueError(str(error).split("\n")[0][:200] or type(error).__name__) from None


def _archive(path: Path, file: MappedFile) -> tuple[Any, Mapping[str, tuple[int, int]]]:
    """Return the value of a zip archive, with the first byte and the length of each storage by its key."""
    with opened(path) as stream, zipfile.ZipFile(stream) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if len(entries) < len(archive.infolist()):
            raise ValueError("it has two members with the same name")
        if any(name.endswith("/constants.pkl") for name in entries):
            raise ScriptedError("it is a TorchScript archive, which contains code")
        main = next((name for name in entries if name.rpartition("/")[2] == "data.pkl"), "")
        if not main:
            raise ValueError("it has no data.pkl")
        root = main.removesuffix("data.pkl")
        for entry in entries.values():
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                raise ValueError(f"its member {entry.filename[:100]} is compressed, torch.save compresses nothing")
        if root + "byteorder" in entries and archive.read(root + "byteorder") != b"little":
            raise ValueError("it is from a big-endian machine")
        if entries[main].file_size > PICKLE_BYTES:
            raise ValueError(f"its pickle has {entries[main].file_size} bytes")
        value = _Reader().read(io.BytesIO(archive.read(main)))
    prefix = root + "data/"
    storages = {name: entry for name, entry in entries.items() if name.startswith(prefix)}
    return value, {name.removeprefix(prefix): _place(file, entry) for name, entry in storages.items()}


def _place(file: MappedFile, entry: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the first byte of a member that is not compressed, and its length."""
    header = bytes(file.data[entry.header_offset : entry.header_offset + LOCAL_HEADER])
    if len(header) < LOCAL_HEADER or header[:4] != b"PK\x03\x04":
        raise ValueError(f"its member {entry.filename[:100]} has no header")
    extra = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return entry.header_offset + LOCAL_HEADER + extra, entry.file_size


def _in_a_row(file: MappedFile) -> tuple[Any, Mapping[str, tuple[int, int]]]:
    """Return the value of a file of the layout before torch 1.6, and its storages."""
    stream = io.BytesIO(file.data[: min(file.size, PICKLE_BYTES)])
    if (_Reader().read(stream), _Reader().read(stream)) != (MAGIC, PROTOCOL):
        raise ValueError("it does not begin as torch.save does")
    if _Reader().read(stream).get("little_endian") is not True:
        raise ValueError("it is from a big-endian machine")
    reader = _Reader()
    value, keys = reader.read(stream), _Reader().read(stream)
    place, places = stream.tell(), dict[str, tuple[int, int]]()
    sizes = {storage.key: getattr(torch, storage.dtype).itemsize for storage in reader.storages}
    for key in keys:
        count = int.from_bytes(file.data[place : place + 8], "little")
        places[str(key)] = (place + 8, count * sizes[str(key)])
        place += 8 + count * sizes[str(key)]
    return value, places


class _Reader(PlainPickle):
    """Reads the pickles of torch.save."""

    def __init__(self) -> None:
        super().__init__(_called, _is_known, self._storage)
        self.storages: list[_Storage] = []

    def _storage(self, identity: Any) -> _Storage:
        kind, storage, key, _, count = identity[:5]
        if kind != "storage" or not isinstance(storage, Named) or (len(identity) > 5 and identity[5] is not None):
            raise NotPlainError("it stores something that is not numbers")
        dtype = STORAGES[storage.name.removeprefix("torch.")]
        self.storages.append(_Storage(dtype, str(key), _whole([count])[0]))
        return self.storages[-1]


def _is_known(name: str) -> bool:
    part = name.removeprefix("torch.")
    is_dtype = part != name and isinstance(getattr(torch, part, None) if part.isidentifier() else None, torch.dtype)
    return name in CALLED or name in NAMES or is_dtype or (part != name and part in STORAGES)


def _called(name: str, arguments: tuple[Any, ...]) -> object:
    """Return what a call of a listed name describes."""
    if name not in CALLED:
        raise NotPlainError(f"it calls {name[:100]}")
    if name in ODD:
        dtypes = [each.name.removeprefix("torch.") for each in arguments if isinstance(each, Named)]
        dtypes += [each.dtype for each in arguments if isinstance(each, _Storage)]
        return UnsupportedTensor(next((each for each in dtypes if each.startswith(("sparse", "q"))), ODD[name]))
    match name.rpartition(".")[2]:
        case "OrderedDict" | "Counter":
            pairs = [tuple(pair) for each in arguments for pair in (each.items() if isinstance(each, dict) else each)]
            return dict(zip(keys(key for key, _ in pairs), (value for _, value in pairs), strict=True))
        case "Size":
            return tuple(*arguments)
        case "set":
            return set(keys(*arguments))
        case "encode":
            return str(arguments[0]).encode("latin1")
        case "device":
            return str(arguments[0])
        case "_get_layout":
            return Named(str(arguments[0]))
        case "_rebuild_from_type_v2":
            return _called(arguments[0].name, arguments[2])
        case "_rebuild_parameter" | "_rebuild_parameter_with_state":
            return arguments[0]
    return _view(arguments, arguments[6].name if name.endswith("_v3") else "")


def _view(arguments: tuple[Any, ...], dtype: str) -> _View:
    storage, offset, shape, strides = arguments[:4]
    if not isinstance(storage, _Storage):
        raise ValueError("a tensor has no storage")
    sizes, steps = _whole(shape), _whole(strides)
    if len(sizes) != len(steps) or len(sizes) > MOST_AXES:
        raise ValueError("the sizes and strides of a tensor do not fit together")
    require_bounded(sizes, "a tensor")
    return _View(storage, dtype.removeprefix("torch.") or storage.dtype, _whole([offset])[0], sizes, steps)


def _whole(values: Any) -> tuple[int, ...]:
    if not all(type(value) is int and 0 <= value < 1 << 62 for value in values):
        raise ValueError("the sizes of a tensor are not whole numbers")
    return tuple(values)


@dataclass(frozen=True, slots=True)
class _Tensors:
    """Makes tensors of views: ``places`` has the first byte and the length of each storage."""

    file: MappedFile
    places: Mapping[str, tuple[int, int]]
    made: dict[int, Any] = field(default_factory=dict)
    taken: list[int] = field(default_factory=lambda: [0])

    def of(self, value: Any) -> Any:
        """Return a value with tensors in place of the views; raises RecursionError for one that holds itself."""
        if not isinstance(value, _View | dict | list | tuple):
            return value
        if id(value) not in self.made:  # what a file names often is made once
            self.made[id(value)] = self._made(value)
        return self.made[id(value)]

    def _made(self, value: Any) -> Any:
        if isinstance(value, _View):
            return self._tensor(value)
        if isinstance(value, dict):
            return {key: self.of(each) for key, each in value.items()}
        return type(value)(self.of(each) for each in value)

    def _tensor(self, view: _View) -> torch.Tensor | UnsupportedTensor:
        storage, dtype = view.storage, getattr(torch, view.dtype)
        start, size = self.places[storage.key]
        if storage.count * getattr(torch, storage.dtype).itemsize > size or start + size > self.file.size:
            raise ValueError(
                f"the storage {storage.key[:100]} has {size} bytes, {storage.count} numbers are to be in it"
            )
        if storage.dtype.startswith("q"):
            return UnsupportedTensor(storage.dtype)
        available = size // dtype.itemsize
        count = math.prod(view.shape)
        steps = sum((length - 1) * step for length, step in zip(view.shape, view.strides, strict=True))
        if count and view.offset + steps >= available:
            raise ValueError(f"a tensor extends beyond the storage {storage.key[:100]} of {available} numbers")
        if not count:
            return torch.empty(view.shape, dtype=dtype)
        if count > available:
            return UnsupportedTensor(f"of the shape {view.shape}, but the file holds fewer values")
        self.taken[0] += count * dtype.itemsize
        require_held(self.taken[0], self.file.size)
        whole = self.file.tensor(start, (available,), dtype)
        return whole.as_strided(view.shape, view.strides, view.offset)
