"""Functions of torch that multiply something with a weight: which argument it is, which of its axes are summed.

What a weight does is a fact of the call, not of its name, rank or module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from workbench.models.layer import LayerKind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Product:
    """One call: ``x`` and ``weight`` are its operands, ``place`` says where ``x`` is among the arguments.

    Of the weight's axes, ``summed`` are summed over with those of ``x``, ``batch`` count independent products (experts)
    and the others number the outputs.  ``plain``: features lie along the last axis of ``x`` and of the result (axis 1
    for convolutions), so that the call is a layer as every tap sees it; ``left``: along the last but one.  ``ends``
    are the ends of each expert's rows of ``x`` in a grouped product.  A call that no tap can see has no ``place``.
    """

    kind: LayerKind
    x: torch.Tensor
    weight: torch.Tensor
    place: int | str | None
    summed: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    plain: bool = True
    left: bool = False
    ends: torch.Tensor | None = None

    @property
    def outputs(self) -> tuple[int, ...]:
        """The weight's axes that number the outputs."""
        return tuple(axis for axis in range(self.weight.ndim) if axis not in (*self.summed, *self.batch))


Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]
Reader = Callable[[tuple[Any, ...], Mapping[str, Any]], list[Product]]


def _two(args: tuple[Any, ...], kwargs: Mapping[str, Any], names: tuple[str, str], first: int = 0) -> Any:
    """Return two arguments, each with its place; None unless both are tensors."""
    operands = []
    for position, name in enumerate(names, first):
        place: int | str = position if position < len(args) else name
        operands.append((args[position] if position < len(args) else kwargs.get(name), place))
    return operands if all(isinstance(value, torch.Tensor) for value, _ in operands) else None


def _layer(kind: LayerKind, summed: tuple[int, ...], names: tuple[str, str] = ("input", "weight")) -> Reader:
    def read(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Product]:
        operands = _two(args, kwargs, names)
        if operands is None:
            return []
        (x, place), (weight, _) = operands
        return [Product(kind=kind, x=x, weight=weight, place=place, summed=summed)]

    return read


def _matmul(first: int = 0, swapped: bool = False, names: tuple[str, str] = ("input", "other")) -> Reader:
    def read(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Product]:
        operands = _two(args, kwargs, names, first)
        if operands is None:
            return []
        (a, at), (b, bt) = reversed(operands) if swapped else operands
        products = []
        if b.ndim > 1:
            batch = tuple(range(b.ndim - 2))
            right = Product(
                kind=LayerKind.LINEAR, x=a, weight=b, place=at, summed=(b.ndim - 2,), batch=batch, plain=not batch
            )
            products.append(right)
        if a.ndim > 1:
            batch = tuple(range(a.ndim - 2))
            left = Product(
                kind=LayerKind.LINEAR, x=b, weight=a, place=bt, summed=(a.ndim - 1,), batch=batch,
                plain=not batch and b.ndim > 2, left=True,
            )  # fmt: skip
            products.append(left)
        return products

    return read


def _einsum(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Product]:
    operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    if not isinstance(args[0], str) or len(operands) < 2 or "." in args[0]:
        return []
    inputs, _, result = args[0].replace(" ", "").partition("->")
    terms = inputs.split(",")
    result = result or "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
    products = []
    for index, (term, weight) in enumerate(zip(terms, operands, strict=True)):
        others = "".join(terms[:index] + terms[index + 1 :])
        summed = tuple(axis for axis, letter in enumerate(term) if letter in others and letter not in result)
        batch = tuple(axis for axis, letter in enumerate(term) if letter in others and letter in result)
        if summed:  # of three operands the first other one stands for the input; such a call is not tapped
            x = operands[1 if index == 0 else 0]
            each = Product(
                kind=LayerKind.LINEAR, x=x, weight=weight, place=None, summed=summed, batch=batch, plain=False
            )
            products.append(each)
    return products


def _gathered(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Product]:
    operands = _two(args, kwargs, ("input", "weight"))
    if operands is None or kwargs.get("max_norm") is not None:
        return []
    (ids, place), (weight, _) = operands
    return [Product(kind=LayerKind.EMBEDDING, x=ids, weight=weight, place=place)]


def _bag(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Product]:
    return [
        Product(kind=each.kind, x=each.x, weight=each.weight, place=each.place, plain=False)
        for each in _gathered(args, kwargs)
    ]


def _grouped(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Product]:
    operands = _two(args, kwargs, ("mat_a", "mat_b"))
    if operands is None or operands[1][0].ndim != 3:
        return []
    (x, place), (weight, _) = operands
    grouped = Product(
        kind=LayerKind.LINEAR, x=x, weight=weight, place=place, summed=(1,), batch=(0,), plain=False,
        ends=kwargs.get("offs", args[2] if len(args) > 2 else None),
    )  # fmt: skip
    return [grouped]


_CONVOLUTIONS = {
    F.conv1d: LayerKind.CONV1D, F.conv2d: LayerKind.CONV2D, F.conv3d: LayerKind.CONV3D,
    torch.conv1d: LayerKind.CONV1D, torch.conv2d: LayerKind.CONV2D, torch.conv3d: LayerKind.CONV3D,
    F.conv_transpose1d: LayerKind.CONV_TRANSPOSE, F.conv_transpose2d: LayerKind.CONV_TRANSPOSE,
    F.conv_transpose3d: LayerKind.CONV_TRANSPOSE,
}  # fmt: skip


def _table_first(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Product]:
    operands = _two(args, kwargs, ("weight", "indices"))
    if operands is None:
        return []
    (weight, _), (ids, place) = operands
    return [Product(kind=LayerKind.EMBEDDING, x=ids, weight=weight, place=place)]


CONVOLUTIONS = {3: LayerKind.CONV1D, 4: LayerKind.CONV2D, 5: LayerKind.CONV3D}
"""What ``aten.convolution``, which decompositions leave, does by the axes of its weight."""


def _convolution(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Product]:
    """Read ``aten.convolution(input, weight, bias, stride, padding, dilation, transposed, ...)``."""
    kind = LayerKind.CONV_TRANSPOSE if args[6] else CONVOLUTIONS[args[1].ndim]
    return [Product(kind=kind, x=args[0], weight=args[1], place=0)]


def _in_aten(functions: Mapping[Any, Reader]) -> dict[Any, Reader]:
    """Return the readers of the operations behind ``functions``, which exported programs call."""
    named = {str(function.__name__): reader for function, reader in functions.items()}
    packets = {getattr(torch.ops.aten, name): reader for name, reader in named.items() if hasattr(torch.ops.aten, name)}
    packets |= {torch.ops.aten.embedding: _table_first, torch.ops.aten.convolution: _convolution}
    return {getattr(packet, name): reader for packet, reader in packets.items() for name in packet.overloads()}


_FUNCTIONS: dict[Any, Reader] = {
    F.linear: _layer(LayerKind.LINEAR, (1,)),
    torch.matmul: _matmul(), torch.Tensor.matmul: _matmul(), torch.Tensor.__matmul__: _matmul(),
    torch.Tensor.__rmatmul__: _matmul(swapped=True),
    torch.mm: _matmul(names=("input", "mat2")), torch.Tensor.mm: _matmul(names=("input", "mat2")),
    torch.bmm: _matmul(names=("input", "mat2")), torch.Tensor.bmm: _matmul(names=("input", "mat2")),
    torch.addmm: _matmul(1, names=("mat1", "mat2")), torch.baddbmm: _matmul(1, names=("batch1", "batch2")),
    torch.einsum: _einsum, torch.functional.einsum: _einsum,
    F.embedding: _gathered, F.embedding_bag: _bag,
    **{function: _layer(kind, ()) for function, kind in _CONVOLUTIONS.items()},
    **{getattr(owner, name): _grouped for owner, name in ((torch, "_grouped_mm"), (F, "grouped_mm"))
       if hasattr(owner, name)},
}  # fmt: skip

PRODUCTS: dict[Any, Reader] = {**_FUNCTIONS, **_in_aten(_FUNCTIONS)}
"""Reads the arguments of a function: one product for each operand that could be the weight."""

NO_PRODUCT = frozenset((
    "add", "sub", "mul", "div", "true_divide", "floor_divide", "rsub", "neg", "exp", "expm1", "log", "log1p",
    "sigmoid", "tanh", "softplus", "relu", "silu", "abs", "pow", "sqrt", "rsqrt", "reciprocal", "cat", "stack",
    "concat", "where", "__getitem__", "index_select", "gather", "take", "repeat", "repeat_interleave", "tile",
    "interpolate", "grid_sample", "pad", "layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm",
    "sum", "mean", "var", "var_mean", "norm", "linalg_vector_norm", "_weight_norm", "addcmul", "clamp", "clamp_min",
    "clamp_max", "minimum", "maximum", "roll", "masked_fill", "softmax", "normalize", "scatter", "index_add",
    "fft_rfft", "view_as_complex", "polar", "cos", "sin",
))  # fmt: skip
"""Functions (without underscores of operators and of in-place forms) that use a tensor without a matrix product."""


def plain_name(function: Any) -> str:
    """Return a function's name without the marks of operators and of in-place forms: ``__radd__`` is ``add``."""
    name = str(getattr(function, "__name__", function)).partition(".")[0]
    if name in NO_PRODUCT:
        return name
    bare = name.strip("_")
    return bare if bare in NO_PRODUCT or not bare.startswith(("r", "i")) or bare[1:] not in NO_PRODUCT else bare[1:]
