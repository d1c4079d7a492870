"""Mixtures of experts: which expert each row of a product belongs to, and all tokens for all experts.

Networks multiply with the weight ``[experts, ...]`` of a mixture in four ways: one expert's matrix at a time, one
matrix gathered for each row, rows that are sorted by expert (grouped products), and the same number of rows for each
expert (batched products).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

import torch
from torch import nn

from workbench.models.execution.products import Product
from workbench.models.execution.stopped_gradients import not_the_network
from workbench.models.model import Routed

GATHERING = frozenset(("__getitem__", "index_select"))
"""Functions that pick matrices out of the weight of a mixture."""


def gathered_by(func: Any, args: tuple[Any, ...]) -> torch.Tensor | None:
    """Return the numbers (int64 ``[rows]``) of the matrices that a call picks from its first argument, if it does."""
    if getattr(func, "__name__", "") not in GATHERING or len(args) < 2 or not isinstance(args[0], torch.Tensor):
        return None
    index = args[-1]
    whole = isinstance(index, torch.Tensor) and index.ndim == 1 and index.dtype in (torch.int32, torch.int64)
    return index if whole and (len(args) == 2 or args[1] == 0) else None


class ExpertProducts:
    """Finds the products of mixtures' weights: ``tensors`` by layer, each of ``counts`` matrices of one size."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], counts: Mapping[str, int]) -> None:
        self._spans = sorted((tensor.data_ptr(), name) for name, tensor in tensors.items())
        self._starts = [start for start, _ in self._spans]
        self._tensors, self._counts = tensors, counts
        self._gathered: dict[int, tuple[str, torch.Tensor, torch.Tensor]] = {}

    def note(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        """Remember matrices that a call gathered; they stay alive, so that their place is not used again."""
        numbers = gathered_by(func, args)
        if numbers is not None and isinstance(result, torch.Tensor) and args[0].ndim == 3:
            name = self._owner(args[0])
            if name and args[0].numel() == self._tensors[name].numel():
                self._gathered[result.data_ptr()] = name, numbers, result

    def _owner(self, tensor: torch.Tensor) -> str:
        place = bisect_right(self._starts, tensor.data_ptr()) - 1
        if place < 0:
            return ""
        start, name = self._spans[place]
        own = self._tensors[name]
        return name if tensor.data_ptr() < start + own.numel() * own.element_size() else ""

    def find(self, product: Product) -> tuple[str, Callable[[torch.Tensor], Routed]] | None:
        """Return the layer of a product and what makes its :class:`Routed` of the output; None for other products."""
        weight = product.weight
        if product.place is None or product.x.ndim < 2:
            return None
        if weight.data_ptr() in self._gathered:
            name, numbers, _ = self._gathered[weight.data_ptr()]
            count = self._counts[name]
            return (name, lambda output: _of_rows(numbers, count, output)) if len(weight) == len(numbers) else None
        name = self._owner(weight)
        if not name:
            return None
        whole, count = self._tensors[name], self._counts[name]
        if weight.numel() == whole.numel() and product.ends is not None:
            ends = product.ends
            return name, lambda output: _of_ends(ends, output)
        if weight.numel() == whole.numel() and weight.ndim == 3 and product.batch == (0,):
            return name, lambda output: _of_batch(count, output)
        if weight.numel() * count != whole.numel():
            return None
        number = (weight.data_ptr() - whole.data_ptr()) // (weight.numel() * weight.element_size())
        return name, lambda output: Routed(experts=_filled(number, output), count=count)


def _filled(number: int, output: torch.Tensor) -> torch.Tensor:
    return torch.full((output.numel() // max(output.shape[-1], 1),), number, device=output.device)


def _of_rows(numbers: torch.Tensor, count: int, output: torch.Tensor) -> Routed:
    shape = (len(numbers), *[1] * (output.ndim - 2))
    return Routed(experts=numbers.reshape(shape).expand(output.shape[:-1]).reshape(-1).long(), count=count)


def _of_ends(ends: torch.Tensor, output: torch.Tensor) -> Routed:
    rows = torch.arange(len(output), device=output.device)
    experts = torch.bucketize(rows, ends.to(rows), right=True)
    beyond = bool((experts >= len(ends)).any())
    return Routed(experts=experts, count=len(ends), keep=experts < len(ends) if beyond else None)


def _of_batch(count: int, output: torch.Tensor) -> Routed:
    numbers = torch.arange(count, device=output.device)[:, None].expand(output.shape[:-1]).reshape(-1)
    return Routed(experts=numbers, count=count, padded=True)


class AllExperts:
    """While open, every token also runs through every expert, without an effect on the network's output.

    ``owners`` maps layers to the path of the module that holds their weight, ``counts`` to the number of experts.  That
    module, or the one above it, is given the chosen experts as integers ``[tokens, chosen]`` and their shares: after
    each of its runs it runs again with all experts chosen by all tokens, without gradients, and what comes of it is
    dropped; ``running`` says so meanwhile.  Mixtures that are built otherwise are left as they are.
    """

    def __init__(self, network: nn.Module, owners: Mapping[str, str], counts: Mapping[str, int]) -> None:
        self.running = False
        self._network, self._hooks = network, ExitStack()
        self._counts: dict[str, int] = {}
        for name, owner in owners.items():
            self._counts |= {owner: counts[name], owner.rpartition(".")[0]: counts[name]}

    def __enter__(self) -> Self:
        for path, count in self._counts.items():
            module, again = self._network.get_submodule(path), partial(self._again, count)
            self._hooks.callback(module.register_forward_hook(again, with_kwargs=True).remove)
        return self

    def __exit__(self, *failure: object) -> None:
        self._hooks.close()

    def _again(self, count: int, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        chosen = _choice((*args, *kwargs.values()), count)
        if chosen is None or self.running:
            return
        indices, shares = chosen
        everyone = torch.arange(count, device=indices.device, dtype=indices.dtype).expand(len(indices), count)
        even = torch.full((len(indices), count), 1 / count, device=shares.device, dtype=shares.dtype)
        others = {id(indices): everyone.contiguous(), id(shares): even}
        self.running = True
        try:
            with not_the_network(), torch.no_grad():
                module.forward(
                    *(others.get(id(each), each) for each in args),
                    **{key: others.get(id(each), each) for key, each in kwargs.items()},
                )
        finally:
            self.running = False


def _choice(arguments: tuple[Any, ...], count: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the chosen experts and their shares among what a module was given."""
    tensors = [each for each in arguments if isinstance(each, torch.Tensor) and each.ndim == 2]
    for indices in tensors:
        if indices.dtype in (torch.int32, torch.int64) and indices.shape[1] <= count and len(indices):
            for shares in tensors:
                if shares.is_floating_point() and shares.shape == indices.shape:
                    return indices, shares
    return None
