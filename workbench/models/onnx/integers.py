"""Operators that compute with integers, as floating-point ones between QuantizeLinear and DequantizeLinear.

What ONNX Runtime's quantizer writes with QuantFormat.QOperator (QLinearMatMul, QLinearConv, QGemm, ...) and by
quantize_dynamic (MatMulInteger, ConvInteger).  A sum of products of codes, scaled, is the product of the scaled codes,
so that nothing changes but the rounding of float32.  Operators: onnx, docs/Operators.md; onnxruntime,
docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.models.onnx.container import OnnxFile, StoredArray
from workbench.models.onnx.nodes import attributes_of, taken_by
from workbench.models.onnx.weights import Constants

DYNAMIC = "quantization_workbench_dynamic"
"""The operator that stands for inputs rounded by ranges of their own; only :mod:`.graph` sees it."""

SIMPLE = {"QLinearAdd": ("Add", 2), "QLinearMul": ("Mul", 2), "QLinearLeakyRelu": ("LeakyRelu", 1),
          "QLinearSigmoid": ("Sigmoid", 1)}  # fmt: skip
"""Operators of com.microsoft on values with scales and zero points: what they compute, and of how many."""

MOVES = frozenset({"Gather", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Identity", "MaxPool"})
"""Operators that give codes of what they take: moved before QuantizeLinear, they give the same."""

INTEGERS = frozenset({"MatMulInteger", "ConvInteger"})

Coded = tuple[str, str, str]
"""Names of codes, scale and zero point ("": none)."""


def in_floating_point(file: OnnxFile) -> OnnxFile:
    """Return ``file`` with integer operators as floating-point ones; those that cannot be read so stay as they are."""
    writer = _Writer(file)
    for node in file.model.graph.node:
        writer.add(node)
    if not writer.changed:
        return file
    model = type(file.model)()
    model.CopyFrom(file.model)
    del model.graph.node[:]
    model.graph.node.extend(writer.nodes)
    return replace(file, model=model, arrays={**file.arrays, **writer.arrays}, notes=writer.notes)


@dataclass(slots=True, eq=False)
class _Writer:
    file: OnnxFile
    nodes: list[Any] = field(default_factory=list)
    arrays: dict[str, StoredArray] = field(default_factory=dict)
    coded: dict[str, Coded] = field(default_factory=dict)
    """Values that are codes, with their scales."""
    constants: Constants = field(init=False)
    users: dict[str, list[Any]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    values: dict[Coded, str] = field(default_factory=dict)
    changed: bool = False
    recurrent: int = 0
    """Recurrent networks whose inputs and states the file rounds."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the file says and the graph in floating point does not."""
        notes = []
        if self.recurrent:
            notes.append(
                f"the file rounds what {self.recurrent} DynamicQuantizeLSTM take to 8 bits; no plan says that of a "
                "recurrent network, so these inputs are left as computed"
            )
        if dynamic := sum(how == DYNAMIC for _, how, _ in self.values):
            notes.append(
                f"the file rounds {dynamic} inputs over one range for all that runs at once (DynamicQuantizeLinear); "
                "the plan takes the range of each token or place, and its answers differ a little"
            )
        return tuple(notes)

    def __post_init__(self) -> None:
        graph = self.file.model.graph
        self.constants = Constants(self.file.arrays, graph.node)
        self.names.update(self.file.arrays, (each.name for each in graph.input))
        for node in graph.node:
            self.names.update(node.output)
            for name in taken_by(node):
                self.users.setdefault(name, []).append(node)

    def add(self, node: Any) -> None:
        """Add a node in the form that the rest reads."""
        try:
            rewritten = self._rewritten(node)
        except (ValueError, IndexError, KeyError, RuntimeError):  # too few inputs: ONNX Runtime says what is wrong
            rewritten = False
        if not rewritten:
            if node.op_type == "QuantizeLinear" and len(node.input) > 1:
                self.coded[node.output[0]] = (node.output[0], node.input[1], [*node.input, ""][2])
            self.nodes.append(node)
        else:
            self.changed = True

    def _rewritten(self, node: Any) -> bool:
        own: Callable[[Any], bool] | None = {
            "QLinearMatMul": self._matmul, "QLinearConv": self._convolution, "QGemm": self._gemm,
            "MatMulIntegerToFloat": self._to_float, "DynamicQuantizeMatMul": self._dynamic_matmul,
            "DynamicQuantizeLSTM": self._recurrent,
        }.get(node.op_type)  # fmt: skip
        if own is not None:
            return own(node)
        if node.op_type in SIMPLE and node.domain == "com.microsoft":
            return self._simple(node, *SIMPLE[node.op_type])
        if node.op_type == "Mul":
            return self._scaled(node)
        return node.op_type in MOVES and self._moved(node)

    def _node(self, kind: str, inputs: Iterable[str], output: str, like: Any = None, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=like.name if like else "", **attributes))
        return output

    def _fresh(self, name: str) -> str:
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name

    def _values(self, codes: str, scale: str, zero: str, axis: int | None = None) -> str:
        """Return the values of codes, behind one DequantizeLinear for all who take them."""
        key = (codes, scale, zero)
        if key not in self.values:
            attributes = {} if axis is None or self._size(scale) == 1 else {"axis": axis}
            name = self._fresh(f"{codes}.values")
            self.values[key] = self._node("DequantizeLinear", [each for each in key if each], name, **attributes)
        return self.values[key]

    def _size(self, name: str) -> int | None:
        number = self.constants.number(name) if name else None
        return None if number is None else number.numel()

    def _codes(self, product: Callable[[str], object], out: str, scale: str, zero: str) -> None:
        """Add a computation in floating point and the codes ``out`` of what it gives (no ``scale``: what it gives)."""
        if not scale:
            product(out)
            return
        value = self._fresh(f"{out}.exact")
        product(value)
        self._node("QuantizeLinear", [each for each in (value, scale, zero) if each], out)
        self.coded[out] = (out, scale, zero)

    def _matmul(self, node: Any) -> bool:
        a, b, (scale, zero) = self._triple(node, 0), self._triple(node, 3), node.input[6:8]
        factors = [self._values(*a), self._values(*b, axis=self._rank(b[0]) - 1)]
        self._codes(lambda out: self._node("MatMul", factors, out, node), node.output[0], scale, zero)
        return True

    @staticmethod
    def _triple(node: Any, at: int) -> Coded:
        codes, scale, zero = [*node.input, "", ""][at : at + 3]
        return codes, scale, zero

    def _rank(self, name: str) -> int:
        array = self.file.arrays.get(name)
        return 2 if array is None else max(len(array.shape), 1)

    def _convolution(self, node: Any) -> bool:
        if attributes_of(node).get("channels_last"):
            return False
        inputs, weights, (scale, zero) = self._triple(node, 0), self._triple(node, 3), node.input[6:8]
        operands = [self._values(*inputs), self._values(*weights, axis=0)]
        if len(node.input) > 8 and node.input[8]:
            bias = self._bias(node.input[8], inputs[1], weights[1], 1.0)
            if bias is None:
                return False
            operands.append(bias)
        self._codes(lambda out: self._like(node, "Conv", operands, out), node.output[0], scale, zero)
        return True

    def _gemm(self, node: Any) -> bool:
        attributes = attributes_of(node)
        a, b, (bias, scale, zero) = self._triple(node, 0), self._triple(node, 3), [*node.input, "", "", ""][6:9]
        operands = [self._values(*a), self._values(*b, axis=0 if attributes.get("transB") else 1)]
        if bias:
            added = self._bias(bias, a[1], b[1], attributes.get("alpha", 1.0))
            if added is None:
                return False
            operands.append(added)
        self._codes(lambda out: self._like(node, "Gemm", operands, out), node.output[0], scale, zero)
        return True

    def _like(self, node: Any, kind: str, inputs: Sequence[str], out: str) -> None:
        """Add a node of another kind with the attributes of this one."""
        self._node(kind, inputs, out, node)
        self.nodes[-1].attribute.extend(node.attribute)

    def _bias(self, name: str, *factors: Any) -> str | None:
        """Return a constant of integers times the scales of both factors, in float32; None for what is computed."""
        values: Any = np.float64(1)
        for each in (name, *factors):
            number = each if isinstance(each, float) else self.constants.number(each)
            if number is None:
                return None
            values = values * (number if isinstance(number, float) else number.double().numpy())
        values = np.ascontiguousarray(values, np.float32)
        fresh = self._fresh(f"{name}.values")
        data = values.reshape(-1).view(np.uint8)
        self.arrays[fresh] = StoredArray(name=fresh, type=1, shape=values.shape, data=data)
        return fresh

    def _simple(self, node: Any, kind: str, count: int) -> bool:
        operands = [self._values(*self._triple(node, 3 * at)) for at in range(count)]
        scale, zero = [*node.input, ""][3 * count : 3 * count + 2]
        self._codes(lambda out: self._like(node, kind, operands, out), node.output[0], scale, zero)
        return True

    def _moved(self, node: Any) -> bool:
        """Move an operator that only moves codes before their QuantizeLinear."""
        source = self.coded.get(node.input[0]) or self._constant(node)
        if source is None or len(node.output) != 1:
            return False
        taken, _, _ = source
        values = self._values(taken, *source[1:])
        self._codes(
            lambda out: self._like(node, node.op_type, [values, *node.input[1:]], out), node.output[0], *source[1:]
        )
        return True

    def _constant(self, node: Any) -> Coded | None:
        """Return a constant of codes that a node looks up, with the scale that those who take its output say."""
        array = self.file.arrays.get(node.input[0])
        if node.op_type != "Gather" or array is None or array.type not in (2, 3):
            return None
        for user in self.users.get(node.output[0], []):
            at = list(user.input).index(node.output[0]) if node.output[0] in user.input else 0
            if user.op_type == "DequantizeLinear" or user.op_type.startswith(("QLinear", "QGemm")):
                _, scale, zero = self._triple(user, at)
                if self._size(scale) == 1:
                    return node.input[0], scale, zero
            if user.op_type == "MatMulInteger" and at == 0:
                zero, scaled = [*user.input, "", ""][2], self._scales(user)
                if scaled is not None and self._size(scaled[0]) == 1:
                    return node.input[0], scaled[0], zero
        return None

    def _scales(self, product: Any) -> tuple[str, str, Any] | None:
        """Return the scales of inputs and weights behind a product of integers, and the node that applies them.

        The pattern is ``Mul(Cast(product), Mul(scale of inputs, scale of weights))``; integers may be added to the
        product.
        """
        name = product.output[0]
        added = self._only(name, "Add")
        cast = self._only(name if added is None else added.output[0], "Cast")
        last = None if cast is None else self._only(cast.output[0], "Mul")
        if cast is None or last is None or attributes_of(cast).get("to") != 1:
            return None
        other = next((name for name in last.input if name != cast.output[0]), "")
        both = self.constants.makers.get(other)
        if both is None or both.op_type != "Mul":
            return None
        first, second = both.input
        if self.constants.source(second) is None:
            first, second = second, first
        return None if self.constants.source(second) is None else (first, second, last)

    def _only(self, name: str, kind: str) -> Any:
        """Return the one node that takes a value, None where there are others or it is of another kind."""
        users = self.users.get(name, [])
        outputs = {each.name for each in self.file.model.graph.output}
        return users[0] if len(users) == 1 and users[0].op_type == kind and name not in outputs else None

    def _scaled(self, last: Any) -> bool:
        """Replace the last node of the pattern of :meth:`_scales` by a product in floating point."""
        for name in last.input:
            cast = self.constants.makers.get(name)
            if cast is None or cast.op_type != "Cast":
                continue
            product, added = self._integers(cast.input[0])
            if product is None:
                continue
            scales = self._scales(product)
            if scales is None or scales[2] is not last or self.constants.source(product.input[1]) is None:
                return False
            zeros = [*product.input, "", ""][2:4]
            convolution = product.op_type == "ConvInteger"
            taken = self._inputs(product.input[0], scales[0], zeros[0])
            if taken is None:
                return False
            axis = 0 if convolution else self._rank(product.input[1]) - 1
            weight = self._values(product.input[1], scales[1], zeros[1], axis=axis)
            out = self._fresh(f"{last.output[0]}.product") if added else last.output[0]
            self._like(product, "Conv" if convolution else "MatMul", [taken, weight], out)
            if added:
                scale = next(each for each in last.input if each != name)
                self._node("Add", [out, self._unscaled(added, scale)], last.output[0])
            return True
        return False

    def _integers(self, name: str) -> tuple[Any, str]:
        """Return the product of integers that makes a value, and what is added to it ("": nothing); None: no such."""
        maker = self.constants.makers.get(name)
        if maker is None or maker.op_type != "Add":
            return (maker if maker is not None and maker.op_type in INTEGERS else None), ""
        for first, second in (maker.input, maker.input[::-1]):
            product = self.constants.makers.get(first)
            if product is not None and product.op_type in INTEGERS:
                return product, second
        return None, ""

    def _unscaled(self, integers: str, scale: str) -> str:
        """Return what is added to a product of integers, times its scale.

        ONNX Runtime's quantizer divides a bias by the scale and takes the whole number below; that number times the
        scale is the bias to a part of 2**-15 of the largest product.
        """
        moves, name = [], integers
        while (maker := self.constants.makers.get(name)) is not None and maker.op_type in ("Reshape", "Unsqueeze"):
            moves.append(maker)
            name = maker.input[0]
        for kind in ("Cast", "Floor", "Div"):
            if maker is None or maker.op_type != kind:
                break
            name, maker = maker.input[0], self.constants.makers.get(maker.input[0])
        else:
            if self.constants.source(name) is not None:
                for move in reversed(moves):
                    out = self._fresh(f"{move.output[0]}.values")
                    self._like(move, move.op_type, [name, *move.input[1:]], out)
                    name = out
                return name
        whole = self._node("Cast", [integers], self._fresh(f"{integers}.float"), to=1)
        return self._node("Mul", [whole, scale], self._fresh(f"{integers}.values"))

    def _recurrent(self, node: Any) -> bool:
        """``(X, W, R, B, lengths, first h, first c, P, scale of W, zero point of W, scale of R, zero point of R)``.

        W and R are inputs x gates here, gates x inputs in LSTM.  What it takes is left as it is.
        """
        inputs = [*node.input, *[""] * 12][:12]
        weights = []
        for name, scale, zero in ((inputs[1], *inputs[8:10]), (inputs[2], *inputs[10:12])):
            array, size = self.file.arrays.get(name), self._size(scale)
            if array is None or size is None or len(array.shape) != 3:
                return False
            directions, columns, gates = array.shape
            transposed = self._node("Transpose", [name], self._fresh(f"{name}.transposed"), perm=[0, 2, 1])
            if size in (1, directions):
                weights.append(self._values(transposed, scale, zero, axis=0))
                continue
            rows = self._reshaped(transposed, [directions * gates, columns])
            scale, zero = self._reshaped(scale, [-1]), self._reshaped(zero, [-1]) if zero else ""
            weights.append(self._reshaped(self._values(rows, scale, zero, axis=0), [directions, gates, columns]))
        self.recurrent += 1
        self._like(node, "LSTM", [inputs[0], *weights, *inputs[3:8]], node.output[0])
        del self.nodes[-1].output[:]
        self.nodes[-1].output.extend(node.output)
        return True

    def _reshaped(self, name: str, shape: list[int]) -> str:
        sizes = self._fresh(f"{name}.sizes")
        data = np.array(shape, np.int64).view(np.uint8)
        self.arrays[sizes] = StoredArray(name=sizes, type=7, shape=(len(shape),), data=data)
        return self._node("Reshape", [name, sizes], self._fresh(f"{name}.reshaped"))

    def _inputs(self, codes: str, scale: str, zero: str) -> str | None:
        """Return what was rounded to ``codes``, marked as such; None where it is not known."""
        maker = self.constants.makers.get(codes)
        if maker is not None and maker.op_type == "DynamicQuantizeLinear":
            return self._dynamic(maker.input[0]) if list(maker.output[:3]) == [codes, scale, zero] else None
        return self._values(codes, scale, zero) if self._size(scale) == 1 else None

    def _dynamic(self, name: str) -> str:
        key = (name, DYNAMIC, "")
        if key not in self.values:
            self.values[key] = self._node(DYNAMIC, [name], self._fresh(f"{name}.rounded"))
        return self.values[key]

    def _to_float(self, node: Any) -> bool:
        """``(A, B, scale of A, scale of B, zero point of A, of B, bias)``."""
        a, b, a_scale, b_scale, a_zero, b_zero, bias = [*node.input, "", "", ""][:7]
        taken = self._inputs(a, a_scale, a_zero)
        if taken is None or self._size(b_scale) is None or self.constants.source(b) is None:
            return False
        self._biased(node, taken, self._values(b, b_scale, b_zero, axis=self._rank(b) - 1), bias)
        return True

    def _dynamic_matmul(self, node: Any) -> bool:
        """``(A, B, scale of B, zero point of B, bias)``."""
        a, b, scale, zero, bias = [*node.input, "", "", ""][:5]
        if self._size(scale) is None or self.constants.source(b) is None:
            return False
        self._biased(node, self._dynamic(a), self._values(b, scale, zero, axis=self._rank(b) - 1), bias)
        return True

    def _biased(self, node: Any, taken: str, weight: str, bias: str) -> None:
        out = node.output[0]
        product = self._node("MatMul", [taken, weight], self._fresh(f"{out}.product") if bias else out, node)
        if bias:
            self._node("Add", [product, bias], out)
