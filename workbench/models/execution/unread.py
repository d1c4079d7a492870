"""A network that runs without its large weights being read, as what it does with them does not depend on their numbers.

Reading and multiplying 16 GB to see which function uses which parameter takes a minute.  Here the shapes of results are
computed alone (on torch's meta device), and their values are noise; only what is picked out of a table is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from workbench.models.execution.widened import PICKS, VIEWS, Wrapper

LEAST = 1 << 16
"""Smaller parameters are used as they are: norms, biases, small routers."""

MOST_NOISE = 1 << 23
"""Numbers of a result that are made up; of a larger one, as of weights gathered for every token, none are."""

DEVIATION = 0.5
"""Of the noise: no function overflows."""


class Unread(Wrapper):
    """``held``, which nothing computes with: a view of it is another, and what a function makes of it is noise."""

    noise: torch.Generator

    @staticmethod
    def __new__(cls, held: torch.Tensor, noise: torch.Generator) -> Unread:
        tensor = cls.around(held, held.dtype)
        tensor.noise = noise
        return tensor

    @staticmethod
    def _dispatched(func: Any, args: Any, kwargs: Any) -> Any:
        return _dispatched(func, args, kwargs)


def _dispatched(func: Any, args: Any, kwargs: Any) -> Any:
    noise = next(leaf.noise for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Unread))
    first, rest = args[0], (args[1:], kwargs)
    if isinstance(first, Unread) and func in VIEWS:
        return _map(lambda view: Unread(view, noise), func(first.held, *args[1:], **kwargs))
    if not func._schema.is_mutable:
        try:
            shapes = SHAPES.get(func, func)(*_map(_shape, args), **_map(_shape, kwargs))
        except (NotImplementedError, RuntimeError):  # what results look like depends on the numbers
            shapes = None
        others = any(isinstance(leaf, Unread) for leaf in pytree.tree_leaves(rest))
        picks = isinstance(first, Unread) and func in PICKS and not others
        results = [leaf for leaf in pytree.tree_leaves(shapes) if isinstance(leaf, torch.Tensor)]
        small = all(result.numel() <= MOST_NOISE for result in results)
        if results and all(result.is_floating_point() for result in results) and not (picks and small):
            device = first.device if isinstance(first, torch.Tensor) else torch.device("cpu")
            return _map(lambda result: _made_up(result, device, noise), shapes)
    args, kwargs = pytree.tree_map_only(Unread, lambda tensor: tensor.held, (args, kwargs))
    return func(*args, **kwargs)


def _map(function: Any, values: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, function, values)


def _grouped(x: torch.Tensor, weights: torch.Tensor, *_: Any, **kwargs: Any) -> torch.Tensor:
    """Return the shape of rows (``[rows, inputs]``) times their experts' matrices (``[experts, inputs, outputs]``)."""
    if (x.ndim, weights.ndim) != (2, 3):
        raise NotImplementedError
    return x.new_empty(x.shape[0], weights.shape[2])


SHAPES = {torch.ops.aten._grouped_mm.default: _grouped}
"""Functions that torch computes no shapes of, for some dtypes or devices."""


def _shape(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _made_up(shape: torch.Tensor, device: torch.device, noise: torch.Generator) -> torch.Tensor:
    """Return noise of a small result, of a large one a tensor that takes no memory, as nothing reads it either."""
    if shape.numel() > MOST_NOISE:
        return Unread(torch.zeros(shape.shape, dtype=shape.dtype, device=device), noise)
    values = torch.empty(shape.shape).normal_(0, DEVIATION, generator=noise)
    return values.to(device=device, dtype=shape.dtype)


@contextmanager
def unread(network: nn.Module) -> Iterator[None]:
    """Have no large parameter of ``network`` read while it runs.

    The parts of a TorchScript program take nothing but plain tensors and stay as they are.
    """
    noise, known = torch.Generator().manual_seed(0), dict[int, Unread]()
    replaced = [
        (module._parameters, name, parameter)
        for module in network.modules() if not isinstance(module, torch.jit.ScriptModule)
        for name, parameter in module._parameters.items()
        if parameter is not None and parameter.is_floating_point() and parameter.numel() >= LEAST
    ]  # fmt: skip
    for parameters, name, parameter in replaced:
        shared = known.setdefault(id(parameter), Unread(parameter.detach(), noise))
        parameters[name] = shared  # type: ignore[assignment]
    try:
        yield
    finally:
        for parameters, name, parameter in replaced:
            parameters[name] = parameter
