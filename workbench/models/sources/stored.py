"""Tensors as they lie in files: named, typed, hashed, and read one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch

from workbench.errors import NotAModelError
from workbench.models.dtypes import BY_CODE, FLOATING

CHUNK = 1 << 24
"""Bytes that are hashed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """One tensor's header; ``dtype`` by torch's name."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class TensorStore(Protocol):
    """Named tensors that are read one at a time."""

    @property
    def tensors(self) -> Mapping[str, StoredTensor]:
        """Every tensor's header by name."""
        ...

    def read(self, name: str) -> torch.Tensor:
        """Return one tensor in its stored dtype; never write into it."""
        ...


class SafetensorsStore:
    """The tensors of one or several safetensors files; nothing but the headers is read at first."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.tensors: dict[str, StoredTensor] = {}
        self._file_of: dict[str, Path] = {}
        for file in files:
            with _opened(file) as opened:
                for name in opened.keys():  # noqa: SIM118 - it is no mapping
                    self.tensors[name] = _header(file, name, opened.get_slice(name))
                    self._file_of[name] = file
        if not self.tensors:
            raise NotAModelError(f"{files[0] if files else 'the file'} holds no tensors; weights were expected")

    def read(self, name: str) -> torch.Tensor:
        """Return one tensor through a memory map."""
        with _opened(self._file_of[name]) as file:
            tensor: torch.Tensor = file.get_tensor(name)
        return tensor


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Open a safetensors file; raises NotAModelError for a foreign, damaged or truncated one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), framework="pt") as opened:
            yield opened
    except SafetensorError as error:
        raise NotAModelError(f"{file} is not a whole safetensors file: {error}; fetch it again") from None


def _header(file: Path, name: str, stored: Any) -> StoredTensor:
    code = stored.get_dtype()
    if code not in BY_CODE:
        raise NotAModelError(
            f"{file}: the tensor {name} has the dtype {code}, known are {', '.join(BY_CODE)}; convert it to one of them"
        )
    return StoredTensor(name=name, dtype=BY_CODE[code].name, shape=tuple(stored.get_shape()))


class StateDictStore:
    """The tensors of a state dict in memory."""

    def __init__(self, state: Mapping[str, torch.Tensor]) -> None:
        self.state = dict(state)

    @cached_property
    def tensors(self) -> dict[str, StoredTensor]:
        """Every tensor's header by name."""
        return {
            name: StoredTensor(name=name, dtype=dtype_name(value), shape=tuple(value.shape))
            for name, value in self.state.items()
        }

    def read(self, name: str) -> torch.Tensor:
        """Return one tensor."""
        return self.state[name].detach()


def dtype_name(tensor: torch.Tensor) -> str:
    """Return a tensor's dtype by torch's name (``float32``)."""
    return str(tensor.dtype).removeprefix("torch.")


def fingerprint(store: TensorStore) -> str:
    """Return ``sha256:`` and the hash over every tensor's name, dtype, shape and bytes, in the order of names."""
    total = hashlib.sha256()
    for name in sorted(store.tensors):
        tensor = store.tensors[name]
        total.update(f"{name}\0{tensor.dtype}\0{','.join(map(str, tensor.shape))}\0".encode())
        for chunk in _chunks(store.read(name)):
            total.update(chunk)
    return "sha256:" + total.hexdigest()


def _chunks(tensor: torch.Tensor) -> Iterator[memoryview]:
    """Yield a tensor's bytes, row-major and little-endian."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if flat.numel():
        data = flat.view(torch.uint8).numpy()
        for start in range(0, len(data), CHUNK):
            yield data[start : start + CHUNK].data


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
