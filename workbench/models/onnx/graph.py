"""A graph's products with constant weights become layers; the rest of it is put in order around them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from workbench.errors import NotAModelError
from workbench.models.layer import LayerKind
from workbench.models.onnx.container import DTYPES, OnnxFile, StoredArray
from workbench.models.onnx.inner import inner_graphs
from workbench.models.onnx.integers import DYNAMIC
from workbench.models.onnx.kinds import COMPUTED, FACTORS, RECURRENT
from workbench.models.onnx.nodes import attributes_of, in_float32, in_single_precision, taken_by
from workbench.models.onnx.weights import Constants, Numbers

if TYPE_CHECKING:
    from workbench.models.layer import Layer
    from workbench.numerics.quantized_tensor import QuantizedTensor

CONVOLUTIONS = {("Conv", 3): LayerKind.CONV1D, ("Conv", 4): LayerKind.CONV2D, ("Conv", 5): LayerKind.CONV3D,
                **{("ConvTranspose", rank): LayerKind.CONV_TRANSPOSE for rank in (3, 4, 5)}}  # fmt: skip

ENDINGS = re.compile(r"(\.codes|\.used|_quantized|_DQ_Q[248]|_Q[248]_?\w*|\.qweight|_DequantizeLinear\w*)$")
"""What exporters add to the name of a weight that they quantize."""

INPUTS_FIRST = frozenset({("MatMul", 1), ("FusedMatMul", 1), ("Attention", 1)})
"""Factors whose matrices are inputs x outputs."""

NOTHING: Mapping[str, Any] = {}
NEW_PAD = 11
"""The opset from which Pad takes the sizes of its edges as an input."""

RESERVED = frozenset({*dir(torch.nn.Module()), "_onnx"})
"""What a part of a parameter's name cannot be."""

NAMELESS = re.compile(r"^(onnx::|/|const|initializer|[^.]*$)")
"""Names that exporters make up."""

TABLES = re.compile(r"(^|[._/])(cos|sin|rope|rotary|inv_freq)\w*", re.IGNORECASE)
"""Names of tables that are looked up and are no embeddings."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weight:
    """A parameter of the network.

    ``numbers`` reads what the file holds, in the order that ``move`` turns into the parameter's shape; ``dtype`` is
    the file's.  ``kind`` is None for a parameter that is no layer's.
    """

    name: str
    kind: LayerKind | None
    numbers: Any
    dtype: str
    options: dict[str, Any] = field(default_factory=dict)

    def stored(self, layer: Layer) -> QuantizedTensor | None:
        """Return what the file holds as the layer's matrix in a scheme of ours; None: plain, or none says it."""
        numbers: Numbers = self.numbers()
        return numbers.moved(layer.matrix_of).stored()


def _is_plain_gemm(node: Any, place: int) -> bool:
    """Return whether the factor at ``place`` is a Gemm's matrix of inputs x outputs."""
    return bool(node.op_type == "Gemm" and place == 1 and not attributes_of(node).get("transB"))


def _with_pads(convolution: Any, padding: list[int]) -> None:
    """Say the edges of a convolution as numbers, the same on both sides."""
    from onnx import helper

    others = [each for each in convolution.attribute if each.name not in ("pads", "auto_pad")]
    del convolution.attribute[:]
    convolution.attribute.extend([*others, helper.make_attribute("pads", [*padding, *padding])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """How the file quantizes the inputs of a layer: a static scheme and its range, or a dynamic one without."""

    scheme: str
    range: tuple[float, float] | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Normal:
    """A graph in floating point: ``nodes`` in order, ``layers`` from the output of a product to its weight's name.

    ``biases`` maps such outputs to the bias that is added to them and the sum.
    ``weights`` are parameters by name, those of layers and others; ``constants`` what stays as it is.  ``left`` counts
    the tensors that pass through QuantizeLinear although no layer takes them.
    """

    nodes: list[Any] = field(default_factory=list)
    layers: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, Inputs] = field(default_factory=dict)
    weights: dict[str, Weight] = field(default_factory=dict)
    constants: dict[str, StoredArray] = field(default_factory=dict)
    biases: dict[str, tuple[str, str]] = field(default_factory=dict)
    left: int = 0


def normal(file: OnnxFile) -> Normal:
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
        self.result, self.taken, self.above = Normal(), set[str](), set[str]()
        self.values = {*file.arrays, *(each.name for each in graph.input), *self.constants.makers}
        self.names: dict[tuple[str, bool, LayerKind, str], str] = {}
        self.made = set[int]()
        """The nodes that are ours and whose inputs have their final names."""
        self.factors = set[tuple[int, int]]()
        """Nodes, and the places of their inputs, that have their final names."""
        self.spread: dict[str, Any] = {}
        """The nodes that spread the bias of a convolution over its positions."""

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
        turn = helper.make_node("Transpose", [weight], [f"{out}.turned"], perm=[1, 0])
        return [turn, helper.make_node("MatMul", [inputs[0], f"{out}.turned"], [product], name=node.name), *bias]

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
        elif rank == 2 and ((node.op_type, place) in INPUTS_FIRST or _is_plain_gemm(node, place)):
            role = {"axes": (1, 0)}
        own = inside and name not in self.constants.arrays
        return self._weight(name, node, kind, lambda: self.constants.numbers(name), False, {"role": role}, own=own)

    def _product(self, node: Any) -> str | None:
        """Add the layer of a product and return its weight's name, None for a node that is none."""
        attributes = attributes_of(node)
        taken = node.input[1 if node.op_type == "Gather" else 0] if node.input else ""
        if self.constants.source(taken) is not None:  # both are constants: no data pass through
            return None
        if node.op_type == "MatMul" and self._is_weight(node.input[1], 2):
            return self._linear(node, node.input[1], turned=False)
        if node.op_type == "Gemm" and self._is_weight(node.input[1], 2):
            return self._linear(node, node.input[1], turned=bool(attributes.get("transB")))
        if node.op_type == "Gather" and not attributes.get("axis", 0) and self._is_weight(node.input[0], 2):
            return self._lookup(node)
        if node.op_type == "MatMulNBits":
            return self._blocks(node)
        if node.op_type in ("Conv", "ConvTranspose"):
            return self._convolution(node, attributes)
        return None

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

    def _linear(self, node: Any, name: str, *, turned: bool) -> str:
        """Add a product whose weight is outputs x inputs (``turned``) or inputs x outputs."""
        peeled, flips = name, not turned
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
        turned, product = f"{out}.turned", f"{out}.product" if alpha != 1 else f"{out}.product" if bias else out
        scaled = product if alpha == 1 else scaled
        turn = helper.make_node("Transpose", [weight], [turned], perm=[1, 0])
        taken = self._input(node.input[0], weight)
        if attributes.get("transA"):
            taken = self._node("Transpose", [taken], f"{out}.input", perm=[1, 0])
        self._layer(product, weight, turn, helper.make_node("MatMul", [taken, turned], [product], name=node.name))
        if alpha != 1:
            self._node("Mul", [product, self._number(alpha)], scaled)
        if bias:
            added = bias if beta == 1 else self._node("Mul", [bias, self._number(beta)], f"{out}.bias")
            self._node("Add", [scaled, added], out)
        return weight

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.result.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _number(self, value: float | list[int]) -> str:
        """Return the name of a constant: a float32 number, or int64 numbers."""
        import numpy as np

        array = np.array(value, np.float32 if isinstance(value, float) else np.int64)
        name = f"{array.dtype}.{'.'.join(map(str, np.atleast_1d(array)))}"
        kind = 1 if isinstance(value, float) else 7
        data = array.reshape(-1).view(np.uint8)
        self.result.constants[name] = StoredArray(name=name, type=kind, shape=array.shape, data=data)
        return name

    def _lookup(self, node: Any) -> str | None:
        from onnx import helper

        name = node.input[0]
        if TABLES.search(str(self.constants.source(name))):
            return None
        weight = self._weight(name, node, LayerKind.EMBEDDING, lambda: self.constants.numbers(name), False)
        gather = helper.make_node("Gather", [weight, node.input[1]], list(node.output), name=node.name)
        self._layer(node.output[0], weight, gather)
        return weight

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
        edges = self._edges(node, attributes, shape, options)
        if edges is None:
            return None
        taken, options["padding"] = edges
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
        _with_pads(copied, options["padding"])
        self._layer(product, weight, copied)
        if bias:
            self._add_channels(product, bias, node.output[0], sizes)
        return weight

    def _edges(
        self, node: Any, attributes: Mapping[str, Any], shape: tuple[int, ...], options: Mapping[str, Any]
    ) -> tuple[str, list[int]] | None:  # fmt: skip
        """Return what a convolution takes and how much it is padded on both sides; None for one that torch has not.

        Where both sides differ, zeros are added before it.
        """
        sizes, taken = len(shape) - 2, node.input[0]
        pads, same = attributes.get("pads", [0] * 2 * sizes), attributes.get("auto_pad", "NOTSET")
        before, after = pads[:sizes], pads[sizes:]
        if node.op_type == "ConvTranspose":
            plain = same in ("NOTSET", "VALID") and before == after and not attributes.get("output_shape")
            return (taken, before if same == "NOTSET" else [0] * sizes) if plain else None
        if same.startswith("SAME"):
            extents = [step * (size - 1) for step, size in zip(options["dilation"], shape[2:], strict=True)]
            if options["stride"] != [1] * sizes:
                return self._padded_to_fit(node, extents, options["stride"], same)
            small, large = ([each // 2 for each in extents], [each - each // 2 for each in extents])
            before, after = (small, large) if same == "SAME_UPPER" else (large, small)
        if same == "VALID":
            return taken, [0] * sizes
        if before == after:
            return taken, before
        return self._padded(node, [0, 0, *before, 0, 0, *after]), [0] * sizes

    def _padded(self, node: Any, pads: list[int] | str) -> str:
        """Add zeros around what a node takes: ``pads`` as numbers, or the name of what is computed."""
        out = f"{node.output[0]}.padded"
        if self.opset < NEW_PAD:
            return self._node("Pad", [node.input[0]], out, pads=pads)
        return self._node("Pad", [node.input[0], pads if isinstance(pads, str) else self._number(pads)], out)

    def _padded_to_fit(
        self, node: Any, extents: list[int], strides: list[int], same: str
    ) -> tuple[str, list[int]] | None:  # fmt: skip
        """Pad as much as a stride needs, by the size that comes.

        In all ``max((ceil(size / stride) - 1) * stride + extent + 1 - size, 0)``; onnx, docs/Operators.md, Conv.
        """
        if self.opset < NEW_PAD:
            return None
        out, number = f"{node.output[0]}.same", self._number

        def computed(kind: str, *inputs: str, **attributes: Any) -> str:
            place = f"{out}.{len(self.result.nodes)}"
            return self._node(kind, list(inputs), place, **attributes)

        size = computed("Slice", computed("Shape", node.input[0]), number([2]), number([9]))
        steps = computed("Div", computed("Add", size, number([each - 1 for each in strides])), number(strides))
        last = computed("Mul", computed("Sub", steps, number([1])), number(strides))
        over = computed("Sub", computed("Add", last, number([each + 1 for each in extents])), size)
        total = computed("Where", computed("Greater", over, number([0])), over, number([0]))
        small = computed("Div", total, number([2]))
        large, zeros = computed("Sub", total, small), number([0, 0])
        before, after = (small, large) if same == "SAME_UPPER" else (large, small)
        pads = computed("Concat", zeros, before, zeros, after, axis=0)
        return self._padded(node, pads), [0] * len(extents)

    def _add_channels(self, product: str, bias: str, out: str, sizes: int) -> None:
        import numpy as np
        from onnx import helper

        shape = np.array([-1, *[1] * sizes], np.int64)
        name = f"channels.{sizes}"
        self.result.constants[name] = StoredArray(name=name, type=7, shape=shape.shape, data=shape.view(np.uint8))
        reshape = self.spread[f"{out}.bias"] = helper.make_node("Reshape", [bias, name], [f"{out}.bias"])
        self.result.nodes += [reshape, helper.make_node("Add", [product, f"{out}.bias"], [out])]

    def _weight(
        self, value: str, node: Any, kind: LayerKind, numbers: Any, turned: bool, options: dict[str, Any] | None = None,
        *, own: bool = False,
    ) -> str:  # fmt: skip
        """Return the name of a layer's parameter, a new one where this weight was not met in this form.

        ``own``: a name that no tensor of the file has.
        """
        key = (value, turned, kind, repr(options))
        if key in self.names:
            return self.names[key]
        source = str(self.constants.source(value) or value)
        stem = ENDINGS.sub("", source)
        if NAMELESS.match(stem) and "/" in node.name:
            stem = re.sub(rf"/{node.op_type}\w*$", "", node.name).strip("/") or stem
        module = kind not in (LayerKind.MATRIX, LayerKind.RECURRENT)
        stem = f"{stem.removesuffix('.weight').strip('/') or 'layer'}.weight" if module else stem.strip("/") or "weight"
        tied = next((name for other, name in self.names.items() if other[:2] == (value, turned)), None)
        name = self.names[key] = self._fresh(stem, "" if own else source)
        array = self.constants.arrays[source]
        dtype = DTYPES[array.type] if array.is_floating else "float32"
        more = {**(options or {}), **({"tied": tied} if tied else {})}
        self.result.weights[name] = Weight(name=name, kind=kind, numbers=numbers, dtype=dtype, options=more)
        return name

    def _fresh(self, name: str, source: str = "") -> str:
        """Return a name like ``name`` that can be a parameter's path, and that nothing else in the graph has."""
        parts = [part + "_" if part in RESERVED else part for part in re.split(r"[./:\s]+", name) if part]
        stem, last, number = parts[:-1], parts[-1], 0
        while True:
            tail = f"_{number + 1}" if number else ""
            path = [*stem[:-1], stem[-1] + tail, last] if stem else [last + tail]
            full, number = ".".join(path), number + 1
            above = {".".join(path[:at]) for at in range(1, len(path))}
            used = full in self.taken or full in self.above or not above.isdisjoint(self.taken)
            used = used or (last == "weight" and ".".join(path[:-1]) in self.above)
            if not used and (full == source or full not in self.values):
                self.taken.add(full)
                self.above |= above
                return full

    def _input(self, name: str, weight: str) -> str:
        """Return what a layer takes, before it is quantized; its static scheme is noted."""
        back = self.constants.makers.get(name)
        if back is not None and back.op_type == DYNAMIC:
            self.result.inputs[weight] = Inputs(scheme="int8-token-asym")
            return str(back.input[0])
        forth = None if back is None else self.constants.makers.get(back.input[0])
        if back is None or forth is None or (back.op_type, forth.op_type) != ("DequantizeLinear", "QuantizeLinear"):
            return name
        scale, zero = (self.constants.number(each) for each in (*back.input, "")[1:3])
        if list(back.input[1:]) != list(forth.input[1:]) or scale is None or scale.numel() != 1:
            return name
        source = self.constants.source(back.input[2]) if len(back.input) > 2 else None
        kind = 2 if source is None else self.constants.arrays[source].type
        shift = 0.0 if zero is None else float(zero.float().reshape(()))
        unit = float(scale.float().reshape(()))
        if kind in (2, 3):
            low, high = (0, 255) if kind == 2 else (-128, 127)
            even = shift == (low + high + 1) / 2
            scheme = "int8-tensor" if even else "int8-tensor-asym"
            self.result.inputs[weight] = Inputs(scheme=scheme, range=((low - shift) * unit, (high - shift) * unit))
        elif kind in (17, 19) and not shift:
            top = 448.0 if kind == 17 else 57344.0
            scheme = "fp8-e4m3-tensor" if kind == 17 else "fp8-e5m2-tensor"
            self.result.inputs[weight] = Inputs(scheme=scheme, range=(-top * unit, top * unit))
        else:
            return name
        return str(forth.input[0])

    def finish(self, outputs: list[str]) -> Normal:
        """Leave out what no output needs, and make parameters of the floating-point constants that are left."""
        result, needed, nodes = self.result, set(outputs), []
        for node in reversed(result.nodes):
            if needed.intersection(node.output):
                needed.update(taken_by(node))
                nodes.append(node)
        result.nodes = nodes[::-1]
        in_single_precision(result.nodes)
        result.left = sum(node.op_type == "QuantizeLinear" for node in nodes)
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
            for name in taken_by(node) & set(self.constants.arrays):
                uses.setdefault(name, [])
        for name, users in uses.items():
            if name in self.constants.arrays and not (not users and name in result.weights):
                self._keep(name, users)
        return result

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
            if name in self.taken or (name in self.values and name != other) or array.shape[0] == 1:
                continue
            self.taken.add(name)
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
            path = self._fresh(f"{name}_added")
        else:
            path = self._fresh(name, name)
        self.result.weights[path] = self._parameter(path, name)
        for node, place in users:
            node.input[place] = path
