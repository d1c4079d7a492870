"""Tensors as they lie in files: named, typed, hashed, and read one at a time."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch

from workbench.errors import NotAModelError

CHUNK = 1 << 24
FLOATING = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "float8_e4m3fn": 8, "float8_e5m2": 8}
"""Bits of the floating-point dtypes."""

SAFETENSORS_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64",
    "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
"""The names that the safetensors format gives to torch's dtypes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """One tensor's header; ``file`` and ``start`` (bytes from the file's beginning) say where its ``nbytes`` lie."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path | None = None
    start: int = 0
    nbytes: int = 0


class TensorStore(Protocol):
    """Named tensors that are read one at a time."""

    @property
    def tensors(self) -> Mapping[str, StoredTensor]:
        """Every tensor's header by name."""
        ...

    def read(self, name: str) -> torch.Tensor:
        """Return one tensor in its stored dtype; never write into it."""
        ...

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of one tensor (row-major, little-endian)."""
        ...


class SafetensorsStore:
    """The tensors of one or several safetensors files; nothing but the headers is read at first."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.tensors: dict[str, StoredTensor] = {}
        for file in files:
            self.tensors.update(read_header(file))
        if not self.tensors:
            raise NotAModelError(f"{files[0] if files else 'the file'} holds no tensors; weights were expected")

    def read(self, name: str) -> torch.Tensor:
        """Return one tensor through a memory map."""
        from safetensors import safe_open

        with safe_open(str(self.tensors[name].file), framework="pt") as file:
            tensor: torch.Tensor = file.get_tensor(name)
        return tensor

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the tensor's bytes as the file holds them."""
        tensor = self.tensors[name]
        assert tensor.file is not None
        left = tensor.nbytes
        with tensor.file.open("rb") as file:
            file.seek(tensor.start)
            while left:
                data = file.read(min(CHUNK, left))
                if not data:
                    raise NotAModelError(f"{tensor.file} ended inside the tensor {name}; fetch the file again")
                left -= len(data)
                yield data


class StateDictStore:
    """The tensors of a state dict in memory."""

    def __init__(self, state: Mapping[str, torch.Tensor]) -> None:
        self.state = dict(state)

    @cached_property
    def tensors(self) -> dict[str, StoredTensor]:
        """Every tensor's header by name."""
        return {
            name: StoredTensor(name=name, dtype=dtype_name(value), shape=tuple(value.shape), nbytes=value.nbytes)
            for name, value in self.state.items()
        }

    def read(self, name: str) -> torch.Tensor:
        """Return one tensor."""
        return self.state[name].detach()

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the tensor's bytes, row-major."""
        flat = self.state[name].detach().cpu().contiguous().reshape(-1)
        if flat.numel():
            data = flat.view(torch.uint8).numpy()
            for start in range(0, len(data), CHUNK):
                yield data[start : start + CHUNK].tobytes()


def dtype_name(tensor: torch.Tensor) -> str:
    """Return a tensor's dtype by torch's name (``float32``)."""
    return str(tensor.dtype).removeprefix("torch.")


def read_header(file: Path) -> dict[str, StoredTensor]:
    """Return the headers of one safetensors file; raises NotAModelError for a foreign or truncated one."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(size - 8, 100_000_000):
            raise NotAModelError(
                f"{file} is no safetensors file or is cut off (its {size} bytes hold no valid header); fetch it again"
            )
        try:
            header = json.loads(stream.read(length))
            entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
            found = {name: _entry(file, name, entry, 8 + length) for name, entry in entries.items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise NotAModelError(f"{file} is no safetensors file: its header cannot be read") from None
    end = max((tensor.start + tensor.nbytes for tensor in found.values()), default=0)
    if end > size:
        raise NotAModelError(f"{file} is cut off: its header tells of {end} bytes, it has {size}; fetch it again")
    return found


def _entry(file: Path, name: str, entry: Mapping[str, Any], base: int) -> StoredTensor:
    first, last = entry["data_offsets"]
    shape = tuple(int(size) for size in entry["shape"])
    if entry["dtype"] not in SAFETENSORS_DTYPES:
        known = ", ".join(SAFETENSORS_DTYPES)
        raise NotAModelError(
            f"{file}: the tensor {name} has the dtype {entry['dtype']}, known are {known}; convert it to one of them"
        )
    dtype = SAFETENSORS_DTYPES[entry["dtype"]]
    if first < 0 or (last - first) != math.prod(shape) * getattr(torch, dtype).itemsize:
        raise NotAModelError(f"{file} is damaged: the {last - first} bytes of {name} do not fit its shape")
    return StoredTensor(name=name, dtype=dtype, shape=shape, file=file, start=base + first, nbytes=last - first)


def fingerprint(store: TensorStore) -> str:
    """Return ``sha256:`` and the hash over every tensor's name, dtype, shape and bytes, in the order of names."""
    total = hashlib.sha256()
    for name in sorted(store.tensors):
        tensor = store.tensors[name]
        total.update(f"{name}\0{tensor.dtype}\0{','.join(map(str, tensor.shape))}\0".encode())
        for chunk in store.chunks(name):
            total.update(chunk)
    return "sha256:" + total.hexdigest()


def all_finite(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor holds no NaN and no infinity."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    values = tensor.float() if tensor.dtype.itemsize == 1 else tensor
    low, high = torch.aminmax(values.detach())
    return bool(torch.isfinite(low) and torch.isfinite(high))


def non_finite_tensors(store: TensorStore) -> list[str]:
    """Return the names of the tensors that hold NaN or infinity, reading one tensor at a time."""
    floating = [name for name, tensor in store.tensors.items() if tensor.dtype in FLOATING]
    return [name for name in floating if not all_finite(store.read(name))]
