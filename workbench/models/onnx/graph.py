"""A graph's products with constant weights become layers; the rest of it is put in order around them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from workbench.errors import NotAModelError
from workbench.models.layer import LayerKind
from workbench.models.onnx.container import DTYPES, OnnxFile, StoredArray, layer_of
from workbench.models.onnx.float_graph import FloatGraph, Weight
from workbench.models.onnx.inner import inner_graphs, with_inner
from workbench.models.onnx.input_schemes import input_scheme
from workbench.models.onnx.kinds import CLIPPED, CODED_PRODUCTS, COMPUTED, FACTORS, RECURRENT
from workbench.models.onnx.names import TRANSPOSED_NAME, Names, stem_of
from workbench.models.onnx.nodes import attributes_of, in_float32, in_single_precision, taken_by
from workbench.models.onnx.padding import edges, with_pads
from workbench.models.onnx.weights import Constants, Numbers

CONVOLUTIONS = {("Conv", 3): LayerKind.CONV1D, ("Conv", 4): LayerKind.CONV2D, ("Conv", 5): LayerKind.CONV3D,
                **{("ConvTranspose", rank): LayerKind.CONV_TRANSPOSE for rank in (3, 4, 5)}}  # fmt: skip

MATRICES = frozenset({"MatMul", "FusedMatMul", "Gemm", "Attention"})
"""Operators that multiply the last two axes of their factors."""

NOTHING: Mapping[str, Any] = {}

TABLES = re.compile(r"(^|[._/])(cos|sin|rope|rotary|inv_freq)\w*", re.IGNORECASE)
"""Names of tables that are looked up and are not embeddings."""


def _matrix_role(node: Any, place: int, rank: int) -> dict[str, Any]:
    """Return how a factor becomes outputs x inputs, one matrix of a batch below the other; {} for 2-D ones that are."""
    attributes = attributes_of(node)
    inputs_first = (place == 1) != bool(attributes.get("transB" if place else "transA"))
    if rank == 2:
        return {"axes": (1, 0)} if inputs_first else {}
    if attributes.get("transBatchB" if place else "transBatchA"):
        return {}
    return {"kind": LayerKind.EXPERTS, "axes": (0, 2, 1) if inputs_first else (0, 1, 2), "row_axes": 2}


def float_graph(file: OnnxFile) -> FloatGraph:
    """Return the graph of a file without its codes; NotAModelError for one that cannot be read."""
    reader = _Reader(file)
    for node in file.model.graph.node:
        try:
            reader.add(node)
        except IndexError:
            raise NotAModelError(f"its operator {node.op_type} {node.name} lacks an input or an output") from None
    return reader.finish([value.name for value in file.model.graph.output])


class _Reader:
    def __init__(self, file: OnnxFile) -> None:
        graph = file.model.graph
        self.constants = Constants(file.arrays, graph.node)
        self.opset = next((each.version for each in file.model.opset_import if each.domain in ("", "ai.onnx")), 1)
        self.result = FloatGraph()
        self.paths = Names([*file.arrays, *(each.name for each in graph.input), *self.constants.makers])
        self.names, self.firsts = dict[tuple[str, bool, LayerKind, str], str](), dict[tuple[str, bool], str]()
        self.made = set[int]()
        """The nodes that are ours and whose inputs have their final names."""
        self.factors = set[tuple[int, int]]()
        """Nodes, and the places of their inputs, that have their final names."""
        self.spread: dict[str, Any] = {}
        """The nodes that spread the bias of a convolution over its positions."""
        self.cut = set[str]()
        """Inputs of layers behind a ReLU, or a Clip, that the file leaves to its codes."""

    def add(self, node: Any) -> None:
        """Add a node, as a layer where it multiplies with a constant."""
        product = None if node.op_type in ("DequantizeLinear",) else self._product(node)
        if product is None:
            copied = type(node)()
            copied.CopyFrom(node)
            self._factors(copied, None)
            self.result.nodes.append(copied)

    def _factors(self, node: Any, hidden: frozenset[str] | None) -> None:
        """Make parameters of a node's constant factors, those of inner graphs too.

        ``hidden`` are the names that inner graphs around the node define, None for a node of the graph itself.
        """
        for place in FACTORS.get(node.op_type, ()):
            name = node.input[place] if place < len(node.input) else ""
            if not name or name in (hidden or ()) or not self._is_weight(name, 2, 3, 4, 5):
                continue
            rank = len(self._shape(name))
            plain = "Conv" in node.op_type or rank < 4
            if plain and math.prod(self._shape(name)[1:]) > 1:
                node.input[place] = self._factor(node, place, name, rank, inside=hidden is not None)
                if hidden is None:
                    self.factors.add((id(node), place))
        for inner in inner_graphs(node):
            own = {each.name for each in (*inner.input, *inner.initializer)}
            own.update(output for each in inner.node for output in each.output)
            inside, nodes = (hidden or frozenset()) | own, []
            for each in inner.node:
                self._factors(each, inside)
                nodes += self._plain_blocks(each, inside) or [each]
            if len(nodes) > len(inner.node):
                del inner.node[:]
                inner.node.extend(nodes)

    def _plain_blocks(self, node: Any, hidden: frozenset[str]) -> list[Any]:
        """Return what stands for MatMulNBits in an inner graph; nothing for any other node."""
        from onnx import helper

        inputs, out = [*node.input, "", "", ""], node.output[0] if node.output else ""
        if not self._has_blocks(node, inputs) or not hidden.isdisjoint(inputs[1:5]):
            return []
        weight = self._weight(
            inputs[1], node, LayerKind.MATRIX, lambda: self.constants.blocks(node), False, {"role": {"row_axes": 1}},
            own=True,
        )  # fmt: skip
        product = f"{out}.product" if inputs[5] else out
        bias = [helper.make_node("Add", [product, inputs[5]], [out])] if inputs[5] else []
        transpose = helper.make_node("Transpose", [weight], [out + TRANSPOSED_NAME], perm=[1, 0])
        multiply = helper.make_node("MatMul", [inputs[0], out + TRANSPOSED_NAME], [product], name=node.name)
        return [transpose, multiply, *bias]

    def _factor(self, node: Any, place: int, name: str, rank: int, *, inside: bool) -> str:
        """Return the parameter of a factor; its rows are outputs where the operator says which these are.

        ``inside`` an inner graph, it has the name of a tensor only if it is that tensor.
        """
        role: dict[str, Any] = {}
        kind = LayerKind.MATRIX
        if node.op_type in RECURRENT:
            kind, role = LayerKind.RECURRENT, {"row_axes": 2}
        elif node.op_type == "ConvTranspose":
            role = {"axes": (1, 0, *range(2, rank))}
        elif "Conv" in node.op_type:
            role = {"row_axes": 1}
        elif node.op_type in MATRICES:
            role = _matrix_role(node, place, rank)
        own = inside and name not in self.constants.arrays
        return self._weight(name, node, kind, lambda: self.constants.numbers(name), False, {"role": role}, own=own)

    def _product(self, node: Any) -> str | None:
        """Add the layer of a product and return its weight's name, None for a node that is none."""
        attributes = attributes_of(node)
        taken = node.input[1 if node.op_type == "Gather" else 0] if node.input else ""
        if self.constants.source(taken) is not None:  # both are constants: no data pass through
            return None
        if node.op_type == "MatMul" and self._is_weight(node.input[1], 2):
            return self._linear(node, node.input[1], transposed=False)
        if node.op_type == "Gemm" and self._is_weight(node.input[1], 2):
            return self._linear(node, node.input[1], transposed=bool(attributes.get("transB")))
        if node.op_type == "Gather" and not attributes.get("axis", 0) and self._is_weight(node.input[0], 2):
            return self._lookup(node)
        if node.op_type == "MatMulNBits":
            return self._blocks(node)
        return self._convolution(node, attributes) if node.op_type in ("Conv", "ConvTranspose") else None

    def _is_weight(self, name: str, *ranks: int) -> bool:
        source = self.constants.source(name)
        if source is None:
            return False
        chain, array = [node.op_type for node in self._chain(name)], self.constants.arrays[source]
        try:
            shape = self._shape(name)
        except NotAModelError:
            if COMPUTED.isdisjoint(chain):
                raise
            return False
        decoded = array.is_floating or "DequantizeLinear" in chain
        return decoded and len(shape) in ranks and math.prod(shape) > 0

    def _chain(self, name: str) -> Iterator[Any]:
        while name not in self.constants.arrays:
            node = self.constants.makers[name]
            yield node
            name = node.input[0]

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.constants.numbers(name).codes.shape)

    def _linear(self, node: Any, name: str, *, transposed: bool) -> str:
        """Add a product whose weight is outputs x inputs (``transposed``) or inputs x outputs."""
        peeled, flips = name, not transposed
        while peeled not in self.constants.arrays:
            maker = self.constants.makers[peeled]
            turns = maker.op_type == "Transpose" and attributes_of(maker).get("perm", [1, 0]) == [1, 0]
            if turns and len(self._shape(peeled)) == 2:
                flips = not flips
            elif maker.op_type != "Identity":
                break
            peeled = maker.input[0]

        def numbers() -> Numbers:
            read = self.constants.numbers(peeled)
            return read.moved(torch.t) if flips else read

        weight = self._weight(peeled, node, LayerKind.LINEAR, numbers, flips)
        return self._multiply(node, weight, node.input[2] if len(node.input) > 2 else "", attributes_of(node))

    def _has_blocks(self, node: Any, inputs: list[str]) -> bool:
        """Return whether a node is MatMulNBits with constant codes in their plain order."""
        if node.op_type != "MatMulNBits" or node.domain != "com.microsoft":
            return False
        constant = all(not name or self.constants.source(name) is not None for name in inputs[1:4])
        return constant and not inputs[4] and not attributes_of(node).get("weight_prepacked")

    def _blocks(self, node: Any) -> str | None:
        inputs = [*node.input, "", "", ""]
        if not self._has_blocks(node, inputs):
            return None
        weight = self._weight(inputs[1], node, LayerKind.LINEAR, lambda: self.constants.blocks(node), False)
        return self._multiply(node, weight, inputs[5])

    def _multiply(self, node: Any, weight: str, bias: str, attributes: Mapping[str, Any] = NOTHING) -> str:
        """Add ``alpha * input @ weight.T`` and ``beta`` times the bias."""
        from onnx import helper

        out, alpha, beta = node.output[0], attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
        bias = bias if beta else ""
        scaled = f"{out}.scaled" if bias else out
        transposed, product = out + TRANSPOSED_NAME, f"{out}.product" if alpha != 1 or bias else out
        scaled = product if alpha == 1 else scaled
        transpose = helper.make_node("Transpose", [weight], [transposed], perm=[1, 0])
        taken = self._input(node.input[0], weight)
        if attributes.get("transA"):
            taken = self.result.add("Transpose", [taken], f"{out}.input", perm=[1, 0])
        multiply = helper.make_node("MatMul", [taken, transposed], [product], name=node.name)
        self._layer(product, weight, transpose, multiply)
        if alpha != 1:
            self.result.add("Mul", [product, self.result.number(alpha)], scaled)
        if bias:
            added = bias if beta == 1 else self.result.add("Mul", [bias, self.result.number(beta)], f"{out}.bias")
            self.result.add("Add", [scaled, added], out)
        return weight

    def _lookup(self, node: Any) -> str | None:
        from onnx import helper

        name = node.input[0]
        if TABLES.search(str(self.constants.source(name))):
            return None
        weight = self._weight(name, node, LayerKind.EMBEDDING, lambda: self.constants.numbers(name), False)
        gather = helper.make_node("Gather", [weight, node.input[1]], list(node.output), name=node.name)
        self._layer(node.output[0], weight, gather)
        return weight

    def _input(self, name: str, weight: str) -> str:
        """Return what a layer takes, before it is quantized; note how it is."""
        source, scheme = input_scheme(self.constants, name)
        if scheme is None:
            return source
        self.result.inputs[weight] = scheme
        return source if scheme.range is None or scheme.range[0] else self._cut_off(source, scheme.range[1])

    def _cut_off(self, name: str, high: float) -> str:
        """Return a layer's inputs behind the ReLU that quantizers leave out before codes that begin at zero.

        It changes nothing that is never negative. The codes' end is what calibration saw and no part of the network,
        so values above it pass, except where it is a whole number, as ReLU6 and Clip(0, 1) have it: the largest value
        of a calibration is none to six digits.
        """
        maker = self.constants.makers.get(name)
        if maker is None or maker.op_type == "Relu":
            return name
        whole = maker.op_type in CLIPPED and high >= 0.5 and math.isclose(high, round(high), rel_tol=1e-6)
        out = f"{name}.in.{round(high)}" if whole else f"{name}.in"
        if out in self.cut:
            return out
        self.cut.add(out)
        if not whole:
            return self.result.add("Relu", [name], out)
        if self.opset < 11:
            return self.result.add("Clip", [name], out, min=0.0, max=float(round(high)))
        return self.result.add("Clip", [name, *map(self.result.number, (0.0, float(round(high))))], out)

    def _layer(self, product: str, weight: str, *nodes: Any) -> None:
        self.result.nodes += nodes
        self.result.layers[product] = weight
        self.made.update(map(id, nodes))

    def _convolution(self, node: Any, attributes: dict[str, Any]) -> str | None:
        name = node.input[1]
        if not self._is_weight(name, 3, 4, 5):
            return None
        shape = self._shape(name)
        sizes = len(shape) - 2
        options = {
            "stride": attributes.get("strides", [1] * sizes), "dilation": attributes.get("dilations", [1] * sizes),
            "groups": attributes.get("group", 1),
        }  # fmt: skip
        padding = edges(self.result, self.opset, node, attributes, shape, options)
        if padding is None:
            return None
        taken, options["padding"] = padding
        if node.op_type == "ConvTranspose":
            options["output_padding"] = attributes.get("output_padding", [0] * sizes)
        kind = CONVOLUTIONS[node.op_type, len(shape)]
        weight = self._weight(name, node, kind, lambda: self.constants.numbers(name), False, options)
        copied = type(node)()
        copied.CopyFrom(node)
        bias = node.input[2] if len(node.input) > 2 else ""
        product = f"{node.output[0]}.product" if bias else node.output[0]
        del copied.input[:], copied.output[:]
        copied.input.extend([self._input(taken, weight), weight])
        copied.output.append(product)
        with_pads(copied, options["padding"])
        self._layer(product, weight, copied)
        if bias:
            self._add_channels(product, bias, node.output[0], sizes)
        return weight

    def _add_channels(self, product: str, bias: str, out: str, sizes: int) -> None:
        from onnx import helper

        shape = np.array([-1, *[1] * sizes], np.int64)
        name = f"channels.{sizes}"
        self.result.constants[name] = StoredArray(name=name, type=7, shape=shape.shape, data=shape.view(np.uint8))
        reshape = self.spread[f"{out}.bias"] = helper.make_node("Reshape", [bias, name], [f"{out}.bias"])
        self.result.nodes += [reshape, helper.make_node("Add", [product, f"{out}.bias"], [out])]

    def _weight(
        self, value: str, node: Any, kind: LayerKind, numbers: Any, transposed: bool,
        options: dict[str, Any] | None = None, *, own: bool = False,
    ) -> str:  # fmt: skip
        """Return the name of a layer's parameter, a new one where this weight was not met in this form.

        ``own``: a name that no tensor of the file has.
        """
        key = (value, transposed, kind, f"{options} {layer_of(node)}")
        if key in self.names:
            return self.names[key]
        source = str(self.constants.source(value) or value)
        stem, layer = stem_of(source, node), layer_of(node).strip("/")
        module = kind not in (LayerKind.MATRIX, LayerKind.RECURRENT)
        path = f"{layer or stem.removesuffix('.weight').strip('/') or 'layer'}.weight"
        stem = path if module else layer or stem.strip("/") or "weight"
        name = self.names[key] = self.paths.fresh(stem, "" if own else source)
        first = self.firsts.setdefault((value, transposed), name)
        array = self.constants.arrays[source]
        dtype = DTYPES[array.type] if array.is_floating else "float32"
        more = {**(options or {}), **({"tied": first} if first != name else {})}
        self.result.weights[name] = Weight(name=name, kind=kind, numbers=numbers, dtype=dtype, options=more)
        return name

    def finish(self, outputs: list[str]) -> FloatGraph:
        """Leave out what no output needs, and make parameters of the floating-point constants that are left."""
        result, needed, nodes = self.result, set(outputs), []
        for node in reversed(result.nodes):
            if needed.intersection(node.output):
                needed.update(taken_by(node))
                nodes.append(node)
        result.nodes = nodes[::-1]
        in_single_precision(result.nodes)
        result.unseen.update(
            node.op_type for node in with_inner(result.nodes)
            if node.op_type in CODED_PRODUCTS and any(self._has_codes(name, node) for name in node.input if name)
        )  # fmt: skip
        if all(weight.kind is None for weight in result.weights.values()):
            raise NotAModelError(
                "its graph multiplies with no constant weight in floating point, behind DequantizeLinear, in "
                "MatMulNBits, MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv or QGemm, so there is nothing to "
                "plan"
            )
        self._biases(outputs)
        uses: dict[str, list[tuple[Any, int]]] = {}
        for node in result.nodes:
            if id(node) not in self.made:
                for place, name in enumerate(node.input):
                    if (id(node), place) not in self.factors:
                        uses.setdefault(name, []).append((node, place))
            for name in taken_by(node) & self.constants.arrays.keys():
                uses.setdefault(name, [])
        for name, users in uses.items():
            if name in self.constants.arrays and not (not users and name in result.weights):
                self._keep(name, users)
        return result

    def _has_codes(self, name: str, node: Any) -> bool:
        source = self.constants.source(name)
        axes = 1 if node.op_type == "MatMulBnb4" else 2
        return source is not None and len(self.constants.arrays[source].shape) >= axes

    def _biases(self, outputs: list[str]) -> None:
        """Join the bias that is added to a product, and to nothing else, to its layer."""
        result, users = self.result, dict[str, list[Any]]()
        for node in result.nodes:
            for name in taken_by(node):
                users.setdefault(name, []).append(node)
        products = Counter(result.layers.values())
        for product, weight in result.layers.items():
            after = users.get(product, [])
            if len(after) != 1 or after[0].op_type != "Add" or product in outputs or products[weight] > 1:
                continue
            (add,) = after
            other = add.input[1] if add.input[0] == product else add.input[0]
            reshape = self.spread.get(other)
            other = other if reshape is None else reshape.input[0]
            array, kind = self.constants.arrays.get(other), result.weights[weight].kind
            joined = kind is LayerKind.LINEAR or reshape is not None
            if array is None or not array.is_floating or len(array.shape) != 1 or len(users[other]) > 1 or not joined:
                continue
            name = f"{weight.removesuffix('.weight')}.bias"
            if name in self.paths.taken or (name in self.paths.values and name != other) or array.shape[0] == 1:
                continue
            self.paths.taken.add(name)
            target = add if reshape is None else reshape
            for place, each in enumerate(target.input):
                if each == other:
                    target.input[place] = name
            result.weights[name] = self._parameter(name, other)
            result.biases[product] = (name, add.output[0])
            self.made.add(id(target))

    def _parameter(self, name: str, source: str) -> Weight:
        return Weight(
            name=name, kind=None, numbers=lambda: self.constants.numbers(source),
            dtype=DTYPES[self.constants.arrays[source].type],
        )  # fmt: skip

    def _keep(self, name: str, users: list[tuple[Any, int]]) -> None:
        """Keep a constant that nodes between the layers take: floating-point ones as parameters."""
        array = self.constants.arrays[name]
        if not users or not array.is_floating or not array.shape or not math.prod(array.shape):
            self.result.constants[name] = in_float32(array) if array.is_floating else array
            return
        own = self.result.weights.get(f"{name.removesuffix('.bias')}.weight")
        if own is not None and own.kind is not None and name.endswith(".bias"):  # its module would add it
            path = self.paths.fresh(f"{name}_added")
        else:
            path = self.paths.fresh(name, name)
        self.result.weights[path] = self._parameter(path, name)
        for node, place in users:
            node.input[place] = path
