"""The dtypes that a stored tensor may have: their names in torch and in safetensors, their sizes; a tensor's bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Dtype:
    """``name`` is torch's, ``code`` the safetensors format's."""

    name: str
    code: str
    bits: int
    floating: bool = False


_ALL = (
    Dtype("float64", "F64", 64, floating=True),
    Dtype("float32", "F32", 32, floating=True),
    Dtype("float16", "F16", 16, floating=True),
    Dtype("bfloat16", "BF16", 16, floating=True),
    Dtype("float8_e4m3fn", "F8_E4M3", 8, floating=True),
    Dtype("float8_e5m2", "F8_E5M2", 8, floating=True),
    Dtype("float8_e8m0fnu", "F8_E8M0", 8),  # scales alone, so not floating: no weights
    Dtype("complex64", "C64", 64),
    Dtype("int64", "I64", 64),
    Dtype("int32", "I32", 32),
    Dtype("int16", "I16", 16),
    Dtype("int8", "I8", 8),
    Dtype("uint64", "U64", 64),
    Dtype("uint32", "U32", 32),
    Dtype("uint16", "U16", 16),
    Dtype("uint8", "U8", 8),
    Dtype("bool", "BOOL", 8),
)

DTYPES = {dtype.name: dtype for dtype in _ALL}
BY_CODE = {dtype.code: dtype for dtype in _ALL}
FLOATING = frozenset(dtype.name for dtype in _ALL if dtype.floating)


def dtype_name(tensor: torch.Tensor) -> str:
    """Return a tensor's dtype by torch's name (``float32``)."""
    return str(tensor.dtype).removeprefix("torch.")


def tensor_bytes(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor's bytes, row-major and little-endian, as uint8 ``[nbytes]``; never write into them."""
    import torch

    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else np.zeros(0, np.uint8)


def hash_of(labelled: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Return ``sha256:`` and the hash over each label and its tensor's bytes."""
    total = hashlib.sha256()
    for label, tensor in labelled:
        total.update(label.encode())
        total.update(tensor_bytes(tensor).data)
    return "sha256:" + total.hexdigest()
