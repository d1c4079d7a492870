"""What a graph takes: its inputs, how samples lie in them, and random samples of the sizes that a file leaves open."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from workbench.errors import DataError, NotAModelError
from workbench.models.onnx.container import DTYPES, FLOATS
from workbench.models.onnx.kinds import MOVES, RECURRENT
from workbench.models.onnx.nodes import attributes_of
from workbench.models.tracing import PIXELS, TOKENS

if TYPE_CHECKING:
    from workbench.models.model import Batch
    from workbench.models.onnx.float_graph import FloatGraph

FILLED = ("attention_mask", "position_ids", "token_type_ids", "use_cache_branch")
"""Inputs that follow from the tokens where the data do not give them; so do empty caches (``past...``)."""

SIZES = ((TOKENS, PIXELS), (64, 64), (576, 224), (16000, 640))
"""What free sizes are tried with, until the graph runs: tokens, frames or points of sound; height and width."""

SAMPLES = 2
"""How many samples a graph is tried with that takes any number."""

CALLED = re.compile(r"batch|^(n|b|bs|samples?)$", re.IGNORECASE)
"""What exporters call the number of samples."""

LARGEST = 1 << 27
"""Numbers of one input that are tried at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input of a graph; a size that is free is None or the name that the graph has for it.

    ``axis`` is where the samples lie, None where the graph takes the same for all of them.  ``rows`` is the length of
    the table that the input looks up in, None where it looks up in none.  ``equal`` is a number that the graph compares
    it with, None where it does not.
    """

    name: str
    dtype: torch.dtype
    shape: tuple[int | str | None, ...]
    axis: int | None = 0
    rows: int | None = None
    equal: int | None = None

    @property
    def follows(self) -> bool:
        """Whether it is made from the other inputs where the data do not give it."""
        return self.name in FILLED or self.name.startswith("past")

    @property
    def of_a_sample(self) -> tuple[int | str | None, ...]:
        """The shape of what one sample gives."""
        return self.shape if self.axis is None else (*self.shape[: self.axis], *self.shape[self.axis + 1 :])

    @property
    def in_words(self) -> str:
        """The shape in which data give it."""
        named = (size if isinstance(size, int) else size or "any" for size in self.of_a_sample)
        return " x ".join(map(str, ("samples", *named)))

    def possible(self, shape: list[int]) -> list[int]:
        """Return a shape in which it is tried; DataError for one that is too large."""
        if math.prod(shape) > LARGEST:
            raise DataError(f"its input {self.name} ({self.in_words}) has more than {LARGEST:,} numbers")
        return shape

    def filled(self, samples: int, tokens: int) -> torch.Tensor | None:
        """Return what follows from the tokens, None for an input that does not."""
        if self.name.startswith("past"):
            free = [size if isinstance(size, int) else 0 for size in self.shape[1:]]
            return torch.zeros(self.possible([samples, *free]), dtype=self.dtype)
        if self.name not in FILLED:
            return None
        if self.name == "use_cache_branch":
            return torch.zeros(1, dtype=self.dtype)
        places = torch.arange(tokens).expand(samples, tokens)
        values = places if self.name == "position_ids" else torch.full_like(places, self.name == FILLED[0])
        return values.to(self.dtype)

    def placed(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return what data hold, samples along axis 0, as the graph takes it; DataError for another shape."""
        own = self.of_a_sample
        fixed = [size for size in own if isinstance(size, int)]
        if len(fixed) == len(own) and math.prod(tensor.shape[1:]) == math.prod(fixed):
            tensor = tensor.reshape(len(tensor), *fixed)  # a number a sample, a state with or without its axis of 1
        fits = tensor.ndim == len(own) + 1 and all(
            not isinstance(size, int) or size == extent for size, extent in zip(own, tensor.shape[1:], strict=True)
        )
        if not fits:
            raise DataError(f"{self.name} is {tuple(tensor.shape)} in the data; the model takes {self.in_words}")
        if self.axis is not None:
            return tensor.movedim(0, self.axis).to(self.dtype)
        if not bool((tensor == tensor[:1]).all()):
            raise DataError(f"{self.name} differs between samples; the graph takes one for all that run together")
        return tensor[0].to(self.dtype)


def inputs_of(
    values: Iterable[Any], graph: FloatGraph, rows_of: Callable[[str], int], preferred: Sequence[str]
) -> tuple[dict[str, Input], str]:  # fmt: skip
    """Return the inputs of a graph by name, and the name of the main one: ids that a table is looked up by, else the
    first of ``preferred``, else the first.

    ``rows_of`` returns the length of a parameter.  Raises NotAModelError for an input that is not a tensor of numbers.
    """
    read = {each.name: each for each in map(_input, values)}
    if not read:
        raise NotAModelError("its graph takes no input, so there is nothing to run it on")
    rows = {name: min(map(rows_of, each)) for name, each in _tables(graph, read).items()}
    equal = _compared(graph, read)
    read = {name: replace(each, rows=rows.get(name), equal=equal.get(name)) for name, each in read.items()}
    ids = [name for name, each in read.items() if each.rows is not None]
    ids = ["input_ids"] if "input_ids" in ids else ids
    main = next((name for name in (*ids, *preferred, *read) if name in read), "")
    read[main] = replace(read[main], axis=_samples(read[main], graph))
    return {name: replace(each, axis=_axis(each, read[main])) for name, each in read.items()}, main


def _samples(main: Input, graph: FloatGraph) -> int:
    """Return the axis of the main input along which samples lie: where its size is called so, or where a recurrent
    network has them (steps come first there), else the first."""
    named = [axis for axis, size in enumerate(main.shape) if isinstance(size, str) and CALLED.search(size)]
    if named:
        return named[0]
    makers = {name: node for node in graph.nodes for name in node.output}
    for node in graph.nodes:
        if node.op_type not in RECURRENT or attributes_of(node).get("layout") or not node.input:
            continue
        name, axis = node.input[0], 1
        while (maker := makers.get(name)) is not None and maker.op_type in ("Transpose", "Cast", "Identity"):
            order = attributes_of(maker).get("perm", [2, 1, 0]) if maker.op_type == "Transpose" else [0, 1, 2]
            name, axis = maker.input[0], order[axis] if axis < len(order) else 0
        if name == main.name and axis < len(main.shape):
            return axis
    return 0


def _input(value: Any) -> Input:
    tensor = value.type.tensor_type
    shape = tuple(each.dim_value if each.dim_value > 0 else each.dim_param or None for each in tensor.shape.dim)
    name = "float32" if tensor.elem_type in FLOATS else DTYPES.get(tensor.elem_type)
    if name is None or name in ("uint16", "uint32", "uint64"):
        raise NotAModelError(f"its input {value.name} is not a tensor of numbers that torch supports")
    return Input(name=value.name, dtype=getattr(torch, name), shape=shape)


def _tables(graph: FloatGraph, takes: Mapping[str, Input]) -> dict[str, list[str]]:
    """Return the parameters that each input looks up in."""
    makers = {name: node for node in graph.nodes for name in node.output}
    tables: dict[str, list[str]] = {}
    for node in graph.nodes:
        axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
        if node.op_type == "Gather" and not axis and node.input[0] in graph.weights:
            name = _start(node.input[1], takes, makers, MOVES)
            if name in takes:
                tables.setdefault(name, []).append(node.input[0])
    return tables


def _compared(graph: FloatGraph, takes: Mapping[str, Input]) -> dict[str, int]:
    """Return the first whole number that each input is compared with: a rate in Hz, a task, a language."""
    makers = {name: node for node in graph.nodes for name in node.output}
    numbers: dict[str, int] = {}
    for node in graph.nodes:
        if node.op_type == "Equal":
            for factor, other in (node.input, reversed(node.input)):
                name, constant = _start(factor, takes, makers, MOVES | {"Gather"}), graph.constants.get(other)
                if name in takes and constant is not None and math.prod(constant.shape) == 1:
                    number = constant.tensor().reshape(())
                    if not number.is_floating_point():
                        numbers.setdefault(name, int(number))
    return numbers


def _start(name: str, takes: Mapping[str, Input], makers: Mapping[str, Any], moves: frozenset[str]) -> str:
    """Return what a value is moved from: an input, or where something is computed."""
    while name not in takes and name in makers and makers[name].op_type in moves:
        name = makers[name].input[0]
    return name


def _axis(each: Input, main: Input) -> int | None:
    """Return the axis of the samples: the one of the main input's first size, by its name or its number.

    Where sizes have no names, it is the first axis if that is free, else the only one that is.
    """
    first = main.shape[main.axis or 0] if main.shape else None
    if each is main or each.follows:
        return main.axis if each is main else 0
    if isinstance(first, str) and first in each.shape:
        return each.shape.index(first)
    if not each.shape:
        return None
    if isinstance(first, int):
        return each.shape.index(first) if first in each.shape[: (main.axis or 0) + 1] else None
    free = [axis for axis, size in enumerate(each.shape) if not isinstance(size, int)]
    return free[0] if free and (free[0] == 0 or len(free) == 1) else None


def fixed_samples(takes: Mapping[str, Input], main: str) -> int | None:
    """Return how many samples the graph takes at once, None for any number.

    One, where an input has no axis of samples: each has a state or a rate of its own.
    """
    own = takes[main]
    first = own.shape[own.axis or 0] if own.shape else None
    if isinstance(first, int):
        return first
    return 1 if any(each.axis is None and not each.follows for each in takes.values()) else None


def random_samples(takes: Mapping[str, Input], main: str, sizes: tuple[int, int], count: int) -> Batch:
    """Return random samples; free sizes are ``sizes``: of tokens or frames, and of height and width."""
    generator, batch = torch.Generator().manual_seed(0), dict[str, torch.Tensor]()
    known: dict[str, int] = {}
    tokens = _free(takes[main], sizes, known)[-1:] or [sizes[0]]
    for name, each in takes.items():
        if (tensor := each.filled(count, tokens[0])) is not None:
            if not name.startswith("past") and name != "use_cache_branch":
                batch[name] = tensor
            continue
        shape = each.possible([count, *_free(each, sizes, known)])
        if each.dtype.is_floating_point and each.rows is None:
            batch[name] = torch.randn(shape, generator=generator, dtype=each.dtype)
        elif each.dtype is torch.bool:
            batch[name] = torch.ones(shape, dtype=torch.bool)
        elif len(shape) == 1 and each.rows is None:
            number = tokens[0] if each.equal is None else each.equal  # one number a sample: a length, a rate
            batch[name] = torch.full(shape, number, dtype=each.dtype)
        else:
            drawn = torch.randint(0, each.rows or 2, shape, generator=generator)
            batch[name] = drawn if each.rows is not None else drawn.to(each.dtype)  # ids, even if the graph casts them
    return batch


def _free(each: Input, sizes: tuple[int, int], known: dict[str, int]) -> list[int]:
    """Return the shape of one sample; sizes of one name are the same."""
    image, shape = len(each.shape) > 3, []
    for place, size in enumerate(each.of_a_sample):
        if isinstance(size, int):
            shape.append(size)
            continue
        free = 3 if image and place == 0 else sizes[1 if image else 0]
        shape.append(known.setdefault(size, free) if size is not None else free)
    return shape
