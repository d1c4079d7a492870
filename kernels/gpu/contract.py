"""What every launcher checks before it launches: each error says what came, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from ..errors import ArgumentError

MOST_ELEMENTS = 2**31 - 1
"""Kernels count elements in 32 bits."""
ALIGNMENT = 16
"""Bytes that a kernel loads at once."""


class Place(Protocol):
    """What has a device: an executor."""

    @property
    def device(self) -> torch.device:
        """Where tensors must be."""
        ...


def check_tensor(
    name: str, x: torch.Tensor, on: Place, dtypes: Sequence[torch.dtype], shape: Sequence[int | None]
) -> None:
    """Raise ArgumentError unless ``x`` is a contiguous, aligned tensor on the device; None in ``shape`` is any size."""
    if not isinstance(x, torch.Tensor):
        raise ArgumentError(f"{name} is a {type(x).__name__}; expected a tensor")
    if x.dtype not in dtypes:
        raise ArgumentError(f"{name} is {_plain(x.dtype)}; expected {' or '.join(map(_plain, dtypes))}")
    fits = x.ndim == len(shape) and all(size is None or size == own for size, own in zip(shape, x.shape, strict=True))
    if not fits:
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise ArgumentError(f"{name} has shape {tuple(x.shape)}; expected ({expected})")
    if x.device != on.device:
        raise ArgumentError(f"{name} is on {x.device}; the kernel runs on {on.device}: move it there first")
    if not x.numel():
        raise ArgumentError(f"{name} is empty (shape {tuple(x.shape)}); there is nothing to compute")
    check_count(name, x.numel())
    if not x.is_contiguous():
        raise ArgumentError(f"{name} is not contiguous (strides {x.stride()}); call .contiguous() first")
    if x.data_ptr() % ALIGNMENT:
        raise ArgumentError(f"{name} starts at an address that is not a multiple of {ALIGNMENT} bytes; clone it first")


def check_multiple(name: str, value: int, of: int) -> None:
    """Raise ArgumentError unless ``value`` is a positive multiple of ``of``."""
    if value <= 0 or value % of:
        raise ArgumentError(f"{name} is {value}; expected a positive multiple of {of}")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise ArgumentError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ArgumentError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}")


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def check_count(name: str, elements: int) -> None:
    """Raise ArgumentError if a tensor has more elements than kernels count."""
    if elements > MOST_ELEMENTS:
        raise ArgumentError(f"{name} has {elements} elements; at most {MOST_ELEMENTS}: split it")


def check_matrix(
    name: str, x: torch.Tensor, on: Place, dtypes: Sequence[torch.dtype], columns: int, of: str = "columns"
) -> tuple[int, int]:
    """Return rows and columns of a matrix whose rows are whole blocks of ``columns``; raises ArgumentError."""
    check_tensor(name, x, on, dtypes, (None, None))
    check_multiple(of, x.shape[1], columns)
    return x.shape[0], x.shape[1]


def check_groups(name: str, columns: int, group: int, multiple: int) -> None:
    """Raise ArgumentError unless groups of ``group``, a multiple of ``multiple``, divide the columns of ``name``."""
    check_multiple("group", group, multiple)
    if columns % group:
        raise ArgumentError(f"group is {group}, which does not divide the {columns} columns of {name}")


def check_vectors(
    on: Place, dtype: torch.dtype, tensors: dict[str, tuple[torch.Tensor | None, tuple[int, ...]]]
) -> None:
    """Check tensors that all have one dtype: name -> tensor (None: left out) and shape.  Raises ArgumentError."""
    for name, (tensor, shape) in tensors.items():
        if tensor is not None:
            check_tensor(name, tensor, on, (dtype,), shape)
