"""What a network does with each of its parameters, seen in one forward pass: the facts that layers are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from workbench.models.execution.dependence import places
from workbench.models.execution.experts import gathered_by
from workbench.models.execution.products import PRODUCTS, Product, plain_name
from workbench.models.execution.stacked import tensors_of
from workbench.models.layer import LayerKind

CHOOSING, PAIRED = frozenset(("topk", "argmax", "kthvalue", "argsort")), frozenset(("max", "sort"))
"""Functions that pick by rank, and those that do where they return the places too."""

READING = frozenset(("item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__"))
"""Functions by which Python gets numbers: on what it does with them, everything may depend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One product with a parameter: ``summed`` and ``batch`` are axes of the parameter as stored.

    ``whole``: the call takes all of the parameter and is one that a tap can see.  ``samples`` is the axis of the
    call's input along which the samples lie, None where none has their number.  ``consecutive``: the ids of a look-up
    count upwards, as positions do.  ``experts``: the call uses one of so many matrices of the parameter for rows of its
    own, in a way that a tap can follow; 0 where it does not.
    """

    kind: LayerKind
    summed: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    groups: int = 1
    whole: bool = False
    samples: int | None = None
    consecutive: bool = False
    experts: int = 0


@dataclass(slots=True, kw_only=True)
class Uses:
    """``products`` and the names of ``other`` functions by parameter; ``routers`` are parameters whose product is
    ranked, and a later product, or what Python does, depends on the ranks; ``derived`` those of which a product's
    weight is computed."""

    products: dict[str, list[Use]] = field(default_factory=dict)
    other: dict[str, set[str]] = field(default_factory=dict)
    routers: set[str] = field(default_factory=set)
    derived: set[str] = field(default_factory=set)

    def __contains__(self, parameter: str) -> bool:
        return parameter in self.products or parameter in self.other


class UseRecorder(TorchFunctionMode):
    """Writes down the uses of ``parameters`` (by name, each once) while a batch of ``samples`` runs.

    A parameter is known by its storage; results stay alive, so that no storage is used twice.
    """

    def __init__(self, parameters: Mapping[str, torch.Tensor], samples: int) -> None:
        super().__init__()
        self.uses, self._parameters, self._samples = Uses(), parameters, samples
        self._names = {place: name for name, tensor in parameters.items() for place in places([tensor])}
        self._origins: dict[int, frozenset[str]] = {}
        self._ranked: dict[int, str] = {}
        self._chosen: dict[int, frozenset[str]] = {}
        self._alive: list[torch.Tensor] = []
        self._gathered: dict[int, tuple[str, torch.Tensor]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func not in PASSIVE:
            self._note(func, args, kwargs, tensors_of(result))
        return result

    def _note(self, func: Any, args: Any, kwargs: Any, results: list[torch.Tensor]) -> None:
        reader, inputs = PRODUCTS.get(func), tensors_of((args, kwargs))
        self._alive += results
        chosen = self._choose(plain_name(func), inputs, results)
        if reader is not None or getattr(func, "__name__", "") in READING:
            self.uses.routers |= chosen
        if reader is not None:
            products = reader(args, kwargs)
            for product in products:
                self._product(product, results[0], kwargs, args)
            counted = places([product.weight for product in products])
            for place in places(inputs) - counted:  # the other operand, or a bias
                if place in self._names:
                    self.uses.other.setdefault(self._names[place], set()).add("input")
            return
        if gathered_by(func, args) is not None and (owner := self._names.get(next(iter(places([args[0]]))))):
            self._gathered |= {place: (owner, each) for each in results for place in places([each])}
            self.uses.other.setdefault(owner, set()).add(plain_name(func))
            return
        name, written = plain_name(func), places(results)
        rank = next((self._ranked[id(each)] for each in inputs if id(each) in self._ranked), "")
        if rank and results and not _chooses(name, results):
            width = self._parameters[rank].shape
            self._ranked |= {id(each): rank for each in results if each.ndim and each.shape[-1] in width}
        for place in places(inputs) - written:
            if place in self._names:
                self.uses.other.setdefault(self._names[place], set()).add(name)
        self._derive(inputs, results)

    def _choose(self, name: str, inputs: list[torch.Tensor], results: list[torch.Tensor]) -> frozenset[str]:
        """Return the parameters on the ranks of whose products a call depends; what it writes depends on them too."""
        before = frozenset[str]().union(*(self._chosen.get(place, ()) for place in places(inputs)))
        ranks = {self._ranked.get(id(each), "") for each in inputs if _chooses(name, results)} - {""}
        for each in results or inputs[:1]:  # an assignment to places of a tensor returns nothing
            shapes = (each.shape, each.shape[:-1])  # of the largest along the last axis; along others they pool
            pooled = ranks and each is results[0] and len(results) == 2 and inputs[0].shape[:-1] not in shapes
            if chosen := before if pooled else before | ranks:
                for place in places([each]):
                    self._chosen[place] = self._chosen.get(place, frozenset()) | chosen
        return before

    def _product(self, product: Product, result: torch.Tensor, kwargs: Any, args: Any) -> None:
        (place,) = places([product.weight])
        name = self._names.get(place)
        if place in self._gathered:
            name, matrices = self._gathered[place]
            use = self._use(product, matrices, args, kwargs)
            if use is not None and matrices.ndim == self._parameters[name].ndim == 3:
                self.uses.products.setdefault(name, []).append(
                    replace(use, whole=False, batch=(0,), experts=len(self._parameters[name]))
                )
            else:
                self.uses.other.setdefault(name, set()).add("product")
            return
        if name is None:
            self.uses.derived |= self._origins.get(place, frozenset())
            return
        use = self._use(product, self._parameters[name], args, kwargs)
        if use is None:
            self.uses.other.setdefault(name, set()).add("product")
            return
        self.uses.products.setdefault(name, []).append(use)
        if use.kind is LayerKind.LINEAR and not use.batch:
            self._ranked[id(result)] = name

    def _use(self, product: Product, parameter: torch.Tensor, args: Any, kwargs: Any) -> Use | None:
        """Return the use in terms of the parameter's own axes, None where the view mixes them."""
        mapped = {}
        for axis, stride in enumerate(product.weight.stride()):
            same = [own for own, size in enumerate(parameter.shape) if parameter.stride(own) == stride and size > 1]
            if product.weight.shape[axis] > 1:
                mapped[axis] = same[0] if len(same) == 1 else None
        convolution = product.kind.is_convolution
        if not convolution and any(mapped.get(axis, 0) is None for axis in (*product.summed, *product.batch)):
            return None
        whole = product.weight.numel() == parameter.numel() and product.plain
        place = 8 if len(args) > 8 else 6  # aten.convolution says first whether it is transposed
        x, groups = product.x, kwargs.get("groups", args[place] if convolution and len(args) > place else 1)
        sizes = x.shape[:1] if convolution else x.shape[:-1]  # a picture has 3 channels, as the probe 3 samples
        sized = [axis for axis, size in enumerate(sizes) if size == self._samples]
        return Use(
            kind=product.kind, whole=whole and (convolution or product.weight.ndim == parameter.ndim == 2),
            summed=tuple(own for axis in product.summed if (own := mapped.get(axis)) is not None),
            batch=tuple(own for axis in product.batch if (own := mapped.get(axis)) is not None)
            or self._missing(product, parameter, mapped.values()),
            groups=groups if isinstance(groups, int) else 1, samples=sized[0] if sized else None,
            consecutive=product.kind is LayerKind.EMBEDDING and product.x.ndim > 0 and product.x.shape[-1] > 2
            and bool((product.x.diff(dim=-1) == 1).all()),
            experts=_matrices(product, parameter),
        )  # fmt: skip

    def _missing(
        self, product: Product, parameter: torch.Tensor, mapped: Iterable[int | None]
    ) -> tuple[int, ...]:  # fmt: skip
        """Return the first axis where the call took one entry of it: an expert's matrix."""
        alone = product.weight.ndim == 2 and parameter.ndim == 3 and 0 not in set(mapped)
        return (0,) if alone else ()

    def _derive(self, inputs: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """Note which parameters a tensor is computed of, as long as nothing else enters."""
        origins = [self._origin(each) for each in inputs if each.numel() > 1]
        if not origins or not all(origins):
            return
        for place in places(results):
            self._origins.setdefault(place, frozenset().union(*origins))

    def _origin(self, tensor: torch.Tensor) -> frozenset[str]:
        (place,) = places([tensor])
        return frozenset((self._names[place],)) if place in self._names else self._origins.get(place, frozenset())


def _chooses(name: str, results: list[torch.Tensor]) -> bool:
    return name in CHOOSING or (name in PAIRED and len(results) == 2)


PASSIVE = frozenset(
    getattr(torch.Tensor, name).__get__
    for name in ("shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "layout", "grad_fn", "data")
) | {torch.Tensor.size, torch.Tensor.dim, torch.Tensor.stride, torch.Tensor.numel, torch.Tensor.is_floating_point}
"""Questions that a tensor answers without being used."""


def _matrices(product: Product, parameter: torch.Tensor) -> int:
    """Return of how many equal matrices, one below the other, a product takes one for each of its rows; else 0."""
    weight = product.weight
    if product.kind is not LayerKind.LINEAR or product.place is None or not weight.numel() or product.x.ndim < 2:
        return 0
    if weight.numel() == parameter.numel():
        return len(parameter) if product.batch == (0,) and weight.ndim == parameter.ndim == 3 else 0
    rows, remainder = parameter.numel() // weight.numel(), parameter.numel() % weight.numel()
    offset = (weight.data_ptr() - parameter.data_ptr()) // weight.element_size()
    dense = weight.is_contiguous() or weight.mT.is_contiguous()
    below = weight.ndim == 2 and dense and parameter.is_contiguous() and not remainder + offset % weight.numel()
    return rows if below else 0
