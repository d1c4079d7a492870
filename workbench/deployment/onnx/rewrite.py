"""A plan put into a captured graph: weights as MatMulNBits or behind DequantizeLinear, inputs through Q and DQ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from workbench.deployment.onnx.builder import Builder
from workbench.deployment.onnx.codes import Codes, plain
from workbench.deployment.onnx.inputs import InputQuantizers
from workbench.errors import ExportError
from workbench.models.layer import Layer, LayerKind, StoredTensor
from workbench.models.onnx.container import LAYER
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.formats.cast import CastScheme
from workbench.planning.plan import Assignment, resolve

if TYPE_CHECKING:
    import torch

    from workbench.deployment.onnx.capture import Graph
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel

PRODUCTS = frozenset(("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"))
"""Operators that multiply their first two inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Products:
    """How a runtime is to multiply: MatMulNBits' ``accuracy`` level; ``exact``: inputs stay as they are; ``joined``: by
    operators of ONNX Runtime's own."""

    accuracy: int
    exact: bool
    joined: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Use:
    """One product with a layer's weight: ``transposed`` where the graph turns the stored matrix round before."""

    node: Any
    place: int
    transposed: bool = False

    @property
    def is_matmul(self) -> bool:
        """Whether the node is a plain product of an input and this weight as ``inputs x outputs``."""
        return self.node.op_type == "MatMul" and self.place == 1


def rewrite(
    graph: Graph, quantized: QuantizedModel, model: Model, *, accuracy: int = 1, standard: bool = False
) -> Builder:
    """Return a copy of ``graph`` with every weight in the form of the plan, and nodes for every quantized input.

    ``model`` is the one that the plan's transforms left (see ``check``).  ``accuracy`` is MatMulNBits' level: 1 is
    float32, 4 rounds its inputs to 8 bits.  ``standard``: ONNX's own operators alone.
    """
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    copy, weights = graph.copy()
    builder = Builder(model=copy)
    assignments = resolve(quantized.plan, model.summary.layers)
    inputs = InputQuantizers(builder=builder, quantized=quantized)
    _tied_apart(weights, model, inputs, assignments)
    for layer in model.summary.stored:
        user = _multiplier(layer, model.summary.tied)
        chosen, apart = assignments[user.name].inputs, user is not layer and user.parameter in weights
        products = chosen is not None and user.kind is not LayerKind.EMBEDDING and not apart  # ids pass unchanged
        if chosen is not None and products and layer.parameter in weights:
            _inputs(inputs, user, chosen, list(uses_of(weights[layer.parameter])))
        _join(weights, layer, model.summary.tied)
        value = weights.get(layer.parameter)
        if value is None:
            continue
        uses = list(uses_of(value))
        for use in uses:
            if layer.parameter == layer.name and use.node.op_type in ("MatMul", "Gemm"):  # such as a mixture's router
                use.node.metadata_props[LAYER] = layer.name
        if layer.name in quantized.tensors:
            by = None if chosen is None else parse_scheme(chosen)
            static = by is not None and takes_range(by) and by.family == "integer"
            # Inputs of FP8 have to stay apart: ONNX Runtime joins them into an operator of integers.
            exact = not static and not standard and (accuracy != 4 or by is not None)
            how = Products(accuracy=accuracy, exact=exact, joined=not standard)
            _quantized(builder, layer, quantized, value, uses, how)
        else:
            _plain(builder, value, StoredTensor(name=layer.parameter, shape=layer.shape, dtype=layer.dtype),
                   lambda layer=layer: layer.tensor_of(model.weight(layer.name)))  # fmt: skip
    for tensor in model.summary.others:
        value = weights.get(tensor.name)
        if value is not None:
            _plain(builder, value, tensor, partial(_other, quantized, model, tensor.name))
        elif tensor.name in quantized.others or tensor.name in model.overrides.others:
            raise ExportError(f"the plan changes {tensor.name}, which torch captures as a constant of the graph")
    _others(builder, weights, model)
    copy.graph.sort()
    RemoveUnusedNodesPass()(copy)
    return builder


def _tied_apart(
    weights: Mapping[str, Any], model: Model, quantizers: InputQuantizers, assignments: Mapping[str, Assignment]
) -> None:  # fmt: skip
    """Quantize the inputs of layers whose tensor is another's and that the graph has under a name of their own."""
    owners = {layer.name: layer.parameter for layer in model.summary.stored}
    for layer in model.summary.tied:
        value, chosen = weights.get(layer.parameter), assignments[layer.name].inputs
        if value is None or layer.parameter == owners[str(layer.tied_to)] or chosen is None:
            continue
        if layer.kind is not LayerKind.EMBEDDING:
            _inputs(quantizers, layer, chosen, list(uses_of(value)))


def _join(weights: dict[str, Any], layer: Layer, tied: Iterable[Layer]) -> None:
    """Have the products of tied layers take the tensor that they share; each says by whose weight it multiplies.

    Where the owner's own is not used, the first of them stands for it.
    """
    for each in tied:
        if each.tied_to == layer.name and each.parameter != layer.parameter and each.parameter in weights:
            value = weights.pop(each.parameter)
            if layer.parameter not in weights:
                weights[layer.parameter] = value
                continue
            for use in uses_of(value):
                use.node.metadata_props[LAYER] = each.name
            value.replace_all_uses_with(weights[layer.parameter])


def _inputs(quantizers: InputQuantizers, layer: Layer, scheme: str, uses: list[Use]) -> None:
    """Quantize the inputs of all products with a weight; ExportError where the graph has none."""
    products = [use for use in uses if use.node.op_type in PRODUCTS and use.place < 2]
    if not products:
        raise ExportError(
            f"the inputs of {layer.name} have the scheme {scheme}, but the graph uses its weight in "
            f"{', '.join(sorted({use.node.op_type for use in uses}))} alone; leave its inputs in floating point"
        )
    for use in products:
        quantizers.quantize(use.node, 1 - use.place, layer, scheme)


def _multiplier(layer: Layer, tied: Iterable[Layer]) -> Layer:
    """Return the layer that multiplies with a weight: where a table of embeddings is also the head, the head."""
    if layer.kind is not LayerKind.EMBEDDING:
        return layer
    return next((each for each in tied if each.tied_to == layer.name and each.kind is not LayerKind.EMBEDDING), layer)


def _other(quantized: QuantizedModel, model: Model, name: str) -> torch.Tensor:
    tensor = model.other(name)
    return quantized.others.get(name, tensor).to(tensor.dtype)


def _others(builder: Builder, weights: Mapping[str, Any], model: Model) -> None:
    """Fill parameters of the graph that no layer and no other tensor names (aliases), as the network has them."""
    known = {*(layer.parameter for layer in model.summary.stored), *(tensor.name for tensor in model.summary.others)}
    for name, value in weights.items():
        if name not in known:
            own = model.body.network.get_parameter(name).detach()  # type: ignore[attr-defined]
            dtype = str(own.dtype).removeprefix("torch.")
            _plain(builder, value, StoredTensor(name=name, shape=tuple(own.shape), dtype=dtype), lambda own=own: own)


def uses_of(value: Any) -> Iterator[Use]:
    """Yield every use of a weight, through a transposition of its last two axes."""
    for node, place in value.uses():
        order = list(node.attributes["perm"].as_ints()) if node.op_type == "Transpose" else []
        if order and order == [*range(len(order) - 2), len(order) - 1, len(order) - 2]:
            for user, at in node.outputs[0].uses():
                yield Use(node=user, place=at, transposed=True)
        else:
            yield Use(node=node, place=place)


def _plain(builder: Builder, value: Any, stored: StoredTensor, load: Any) -> None:
    """Store a tensor in its own dtype; the graph, which computes in float32, casts it."""
    import onnx_ir

    tensor = plain(stored.name, stored.dtype, stored.shape, load)
    dtype = value.dtype
    value.name = f"{stored.name}.used"
    own = builder.add(tensor)
    if own.dtype != dtype:
        own = builder.node(None, "Cast", [own], f"{stored.name}.float32", to=onnx_ir.DataType(dtype))
    value.replace_all_uses_with(own)


def _quantized(
    builder: Builder, layer: Layer, quantized: QuantizedModel, value: Any, uses: list[Use], how: Products
) -> None:
    stored, name = quantized.tensors[layer.name], layer.parameter
    value.name = f"{name}.used"
    if isinstance(parse_scheme(stored.scheme), CastScheme):
        _cast(builder, layer, quantized, value)
        return
    codes = Codes(name=name, stored=stored)
    plain_matrix = layer.axes == (0, 1)
    matmuls = [use for use in uses if use.is_matmul and use.transposed == plain_matrix]
    turned = len(matmuls) == len(uses) and len(layer.shape) == 2 and layer.axes in ((0, 1), (1, 0))
    if turned and how.joined and codes.group and codes.fits_blocks:
        _blocks(builder, codes, matmuls, how.accuracy)
    elif turned:
        own = _dequantized(builder, codes, transposed=True)
        own = _apart(builder, own, name, codes.stored.shape[::-1]) if how.exact else own
        for use in matmuls:
            use.node.replace_input_with(use.place, own)
    else:
        own = _as_stored(builder, layer, codes)
        alone = own.producer().op_type == "DequantizeLinear"
        fused = any(use.node.op_type in ("MatMul", "Gemm") for use in uses)
        value.replace_all_uses_with(_apart(builder, own, name, layer.shape) if how.exact and alone and fused else own)


def _apart(builder: Builder, values: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Return ``values`` behind a node that changes nothing.

    ONNX Runtime joins DequantizeLinear and the product that follows it, and rounds that product's inputs to 8 bits
    (its session option ``session.qdq_matmulnbits_accuracy_level`` is 4): errors of 5e-3, which nobody has evaluated.
    """
    sizes = builder.constant("shape." + "x".join(map(str, shape)), np.array(shape, np.int64))
    return builder.node(None, "Reshape", [values, sizes], f"{name}.as_evaluated")


def _cast(builder: Builder, layer: Layer, quantized: QuantizedModel, value: Any) -> None:
    from workbench.deployment.tensors import decoded

    scheme = parse_scheme(quantized.tensors[layer.name].scheme)
    assert isinstance(scheme, CastScheme)
    dtype = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}[scheme.name]

    def load() -> torch.Tensor:
        return decoded(quantized, layer).to(getattr(torch, dtype))

    _plain(builder, value, StoredTensor(name=layer.parameter, shape=layer.shape, dtype=dtype), load)


def _blocks(builder: Builder, codes: Codes, uses: list[Use], accuracy: int) -> None:
    """Put MatMulNBits in the place of the products with a weight."""
    blocks, scales = builder.add(codes.blocks()), builder.float32(None, builder.add(codes.scales()))
    shifts = codes.block_zero_points()
    rows, columns = codes.stored.shape
    more = [] if shifts is None else [builder.add(shifts)]
    for use in uses:
        out = use.node.outputs[0]
        new = builder.node(
            use.node, "MatMulNBits", [use.node.inputs[0], blocks, scales, *more], f"{out.name}.blocks",
            domain="com.microsoft", K=columns, N=rows, bits=codes.scheme.element.bits, block_size=codes.group,
            accuracy_level=accuracy,
        )  # fmt: skip
        new.type, new.shape = out.type, out.shape
        new.producer().metadata_props.update(use.node.metadata_props)
        _replace(out, new)


def _replace(old: Any, new: Any) -> None:
    graph = old.producer().graph
    outputs = graph.outputs
    for place, output in enumerate(outputs):
        if output is old:
            name = old.name
            old.name = f"{name}.before"
            new.name = name
            outputs[place] = new
    old.replace_all_uses_with(new)
    graph.remove(old.producer(), safe=True)


def _dequantized(
    builder: Builder, codes: Codes, shape: tuple[int, ...] | None = None, *, transposed: bool = False
) -> Any:
    """Return the values behind one DequantizeLinear, of ``shape`` (default: the matrix)."""
    first = builder.add(codes.codes(shape or codes.stored.shape, transposed=transposed))
    scales = builder.float32(None, builder.add(codes.scales(transposed=transposed)))
    shifts = codes.zero_points(transposed=transposed)
    attributes: dict[str, Any] = {}
    if codes.group:
        attributes = {"axis": 0 if transposed else 1, "block_size": codes.group}
    elif codes.per_row:
        attributes = {"axis": 1 if transposed else 0}
    more = [] if shifts is None else [builder.add(shifts)]
    return builder.node(None, "DequantizeLinear", [first, scales, *more], f"{codes.name}.values", **attributes)


def _as_stored(builder: Builder, layer: Layer, codes: Codes) -> Any:
    """Return the values in the shape in which the network uses them."""
    axes = layer.axes
    if layer.row_axes == 1 and axes == tuple(range(len(axes))) and not codes.group:
        return _dequantized(builder, codes, layer.shape)
    values = _dequantized(builder, codes)
    sizes = [layer.viewed[axis] for axis in axes]
    if len(sizes) != 2:
        shape = builder.constant(f"{codes.name}.sizes", np.array(sizes, np.int64))
        values = builder.node(None, "Reshape", [values, shape], f"{codes.name}.reshaped")
    if axes != tuple(range(len(axes))):
        back = sorted(range(len(axes)), key=axes.__getitem__)
        values = builder.node(None, "Transpose", [values], f"{codes.name}.stored", perm=back)
    if layer.view:
        shape = builder.constant(f"{codes.name}.shape", np.array(layer.shape, np.int64))
        values = builder.node(None, "Reshape", [values, shape], f"{codes.name}.whole")
    return values
