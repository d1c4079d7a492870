"""Several weights of one layer in one run: the samples once for each weight, one after another along the first axis.

A small model's run costs what its operations cost to start, not what they compute; so one run of three times the
samples takes little longer than one.  What ran before the layer is the same for every weight.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from workbench.models.model import Batch


class UnevenSamplesError(Exception):
    """The layer's input does not hold each weight's samples one after another."""


def repeated(output: Any, samples: int, times: int) -> Any:
    """Return ``output`` (any nest of tensors) with every tensor whose first axis has ``samples`` repeated along it."""

    def repeat(tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor] * times) if tensor.ndim and tensor.shape[0] == samples else tensor

    return pytree.tree_map_only(torch.Tensor, repeat, output)


def repeated_batch(batch: Batch, times: int) -> dict[str, torch.Tensor]:
    """Return the samples of ``batch`` ``times`` times, one copy after another."""
    return {name: torch.cat([tensor] * times) for name, tensor in batch.items()}


def tensors_of(output: Any) -> list[torch.Tensor]:
    """Return the tensors in ``output``, any nest of them, data classes too."""
    return [
        tensor for leaf in pytree.tree_leaves(output)
        for tensor in (tensors_of(vars(leaf)) if is_dataclass(leaf) and hasattr(leaf, "__dict__") else [leaf])
        if isinstance(tensor, torch.Tensor)
    ]  # fmt: skip


@contextmanager
def running(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Let ``module`` run ``forward`` instead of its own."""
    before = module.__dict__.get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if before is None:
            del module.__dict__["forward"]
        else:
            module.forward = before


@contextmanager
def several_weights(module: nn.Module, parameter: str, tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """Let ``module`` run equal shares of its input's first axis with each of ``tensors`` as its ``parameter``.

    Raises UnevenSamplesError out of the run where the input cannot be divided equally.
    """
    with running(module, partial(_share, [_with(module, parameter, tensor) for tensor in tensors])):
        yield


def _with(module: nn.Module, parameter: str, tensor: torch.Tensor) -> nn.Module:
    """Return a copy of ``module`` that shares all but ``parameter`` with it and has no hooks."""
    twin = copy.copy(module)
    twin._parameters = {**module._parameters, parameter: nn.Parameter(tensor, requires_grad=False)}
    return twin


def _share(twins: Sequence[nn.Module], *args: Any, **kwargs: Any) -> torch.Tensor:
    if len(args) != 1 or kwargs or not isinstance(args[0], torch.Tensor) or args[0].shape[0] % len(twins):
        raise UnevenSamplesError
    shares = args[0].chunk(len(twins))
    return torch.cat([twin.forward(share) for twin, share in zip(twins, shares, strict=True)])
