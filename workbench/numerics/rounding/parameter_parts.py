"""Parameters cut and put together again: by columns where groups are fitted one after another, by rows to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from workbench.numerics.granularity import PerChannel, PerGroup
from workbench.numerics.scheme import BlockParameters, Parameters, Scheme

if TYPE_CHECKING:
    import torch


def is_plain(scheme: Scheme, parameters: Parameters, rows: int) -> bool:
    """Return whether every run of columns has a scale (and zero point) for each row, none shared or nested."""
    return (
        type(parameters) is Parameters
        and parameters.shared is None
        and isinstance(scheme.granularity, PerGroup | PerChannel)
        and parameters.scale.shape[0] == rows
    )


def unit_width(scheme: Scheme, parameters: Parameters, shape: tuple[int, int]) -> int | None:
    """Return how many columns can be fitted apart from all others, None if rows or all columns hang together.

    A group's width; a block's where several groups make one (K-quants); the whole row where it has one scale.
    """
    if is_plain(scheme, parameters, shape[0]):
        return min(parameters.width, shape[1]) if parameters.scale.shape[1] > 1 else shape[1]
    return min(parameters.block, shape[1]) if isinstance(parameters, BlockParameters) else None


def join_columns(parts: Sequence[Parameters]) -> Parameters:
    """Return the parameters of neighbouring runs of columns as those of all of them."""
    first, *others = parts
    return first.joined(others) if isinstance(first, BlockParameters) else _join(parts, 1)


def stack_rows(parts: Sequence[Parameters]) -> Parameters:
    """Return the parameters of matrices of one width, laid one below the other."""
    return _join(parts, 0)


def take_rows(parameters: Parameters, index: torch.Tensor) -> Parameters:
    """Return the parameters of the rows ``index``."""
    return _each(parameters, lambda name, tensor: tensor[index])


def _join(parts: Sequence[Parameters], axis: int) -> Parameters:
    import torch

    return _each(parts[0], lambda name, _: torch.cat([getattr(part, name) for part in parts], dim=axis))


def _each(parameters: Parameters, change: Callable[[str, torch.Tensor], torch.Tensor]) -> Parameters:
    """Return the parameters with every tensor that has an entry for each row changed."""
    import torch

    rows = parameters.scale.shape[0]
    tensors = {field.name: getattr(parameters, field.name) for field in fields(parameters)}
    changed: dict[str, Any] = {
        name: change(name, tensor)
        for name, tensor in tensors.items()
        if isinstance(tensor, torch.Tensor) and tensor.shape[0] == rows
    }
    return replace(parameters, **changed)
