"""ONNX's operators in torch, for gradients: what they mean is what the operator's page of ONNX's documentation says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from workbench.models.onnx.container import DTYPES
from workbench.models.onnx.nodes import Attributes, Inputs, attributes_of, input_at, ints
from workbench.models.onnx.recurrent import NoCounterpartError, gru, lstm
from workbench.models.onnx.spatial import convolution, pad, pool, resize, transposed_convolution

Operator = Callable[[Attributes, Inputs], Any]


def evaluate(nodes: Sequence[Any], known: dict[str, Tensor | None], opset: int, both: bool = False) -> None:
    """Add what ``nodes`` give to ``known``; ``both`` tries the other branch of every If, too.

    Raises KeyError for an operator that is not here, NoCounterpartError, torch's errors; their notes say which node it
    is, the innermost first.
    """
    known[""] = None
    for node in nodes:
        try:
            value = _branch(node, known, opset, both) if node.op_type == "If" else _outputs(node, known, opset)
        except Exception as error:
            error.add_note(f"{node.op_type} (node {node.name or next(iter(node.output), '')})")
            raise
        known |= zip(node.output, value if isinstance(value, tuple | list) else (value,), strict=False)


def _outputs(node: Any, known: Mapping[str, Tensor | None], opset: int) -> Any:
    attributes = {**attributes_of(node), "opset": opset, "outputs": len(node.output)}
    attributes |= {each.name: _constant(each.t) for each in node.attribute if each.type == 4}
    return OPERATORS[node.op_type](attributes, [known[name] for name in node.input])


def _branch(node: Any, known: Mapping[str, Tensor | None], opset: int, both: bool) -> list[Tensor | None]:
    """Return what the branch of an If gives that its condition chooses."""
    condition = known[node.input[0]]
    chosen = "then_branch" if condition is not None and bool(condition) else "else_branch"
    outputs = list[Tensor | None]()
    for branch in node.attribute:
        inside = {**known, **{tensor.name: _constant(tensor) for tensor in branch.g.initializer}}
        if branch.name == chosen:
            evaluate(branch.g.node, inside, opset, both)
            outputs = [inside[value.name] for value in branch.g.output]
        elif both:
            with suppress(RuntimeError, IndexError, TypeError, ValueError):  # what it is not made for
                evaluate(branch.g.node, inside, opset, both)
    return outputs


def _constant(tensor: Any) -> Tensor:
    from onnx import numpy_helper

    return torch.from_numpy(numpy_helper.to_array(tensor).copy())


def _reduce(function: Callable[[Tensor, list[int], bool], Tensor]) -> Operator:
    def reduce(attributes: Attributes, inputs: Inputs) -> Tensor:
        axes = ints(attributes, inputs, 1, "axes")
        if not axes and attributes.get("noop_with_empty_axes"):
            return inputs[0]  # type: ignore[no-any-return]
        return function(inputs[0], axes or list(range(inputs[0].ndim)), bool(attributes.get("keepdims", 1)))

    return reduce


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):  # torch multiplies along one axis at a time
        x = x.prod(axis, keep)
    return x


def _reshape(attributes: Attributes, inputs: Inputs) -> Tensor:
    x, sizes = inputs[0], inputs[1].tolist()
    if not attributes.get("allowzero"):
        sizes = [x.shape[at] if size == 0 else size for at, size in enumerate(sizes)]
    return torch.reshape(x, sizes)


def _unsqueeze(attributes: Attributes, inputs: Inputs) -> Tensor:
    x, axes = inputs[0], ints(attributes, inputs, 1, "axes") or []
    for axis in sorted(axis % (x.ndim + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x  # type: ignore[no-any-return]


def _squeeze(attributes: Attributes, inputs: Inputs) -> Tensor:
    axes = ints(attributes, inputs, 1, "axes")
    return inputs[0].squeeze() if axes is None else inputs[0].squeeze(tuple(axes))  # type: ignore[no-any-return]


def _slice(attributes: Attributes, inputs: Inputs) -> Tensor:
    x = inputs[0]
    starts, ends = ints(attributes, inputs, 1, "starts") or [], ints(attributes, inputs, 2, "ends") or []
    axes = ints(attributes, inputs, 3, "axes") or list(range(len(starts)))
    steps = ints(attributes, inputs, 4, "steps") or [1] * len(axes)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        places = range(x.shape[axis])[slice(start, None if step < 0 and end < -x.shape[axis] else end, step)]
        x = x.index_select(axis, torch.arange(places.start, places.stop, places.step)) if step != 1 else x.narrow(
            axis, places.start, len(places)
        )  # fmt: skip
    return x  # type: ignore[no-any-return]


def _gather(attributes: Attributes, inputs: Inputs) -> Tensor:
    x, places, axis = inputs[0], inputs[1].long(), attributes.get("axis", 0) % inputs[0].ndim
    places = torch.where(places < 0, places + x.shape[axis], places)
    selected = x.index_select(axis, places.reshape(-1))
    return torch.reshape(selected, (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))


def _split(attributes: Attributes, inputs: Inputs) -> tuple[Tensor, ...]:
    x, axis = inputs[0], attributes.get("axis", 0)
    sizes = ints(attributes, inputs, 1, "split")
    if sizes is None:
        step = -(-x.shape[axis] // attributes.get("num_outputs", attributes["outputs"]))
        return tuple(torch.split(x, step, axis))
    return tuple(torch.split(x, sizes, axis))


def _layer_norm(attributes: Attributes, inputs: Inputs) -> Tensor:
    x = inputs[0]
    shape = x.shape[attributes.get("axis", -1) % x.ndim :]
    return functional.layer_norm(
        x, shape, inputs[1].expand(shape), input_at(inputs, 2), attributes.get("epsilon", 1e-5)
    )


def _rms_norm(attributes: Attributes, inputs: Inputs) -> Tensor:
    x = inputs[0]
    axes = list(range(attributes.get("axis", -1) % x.ndim, x.ndim))
    return x * torch.rsqrt(x.square().mean(axes, keepdim=True) + attributes.get("epsilon", 1e-5)) * inputs[1]  # type: ignore[no-any-return]


def _skip_norm(rms: bool) -> Operator:
    """Return ONNX Runtime's sum and norm in one: outputs 1 and 4 are the norm and the sum."""

    def skip_norm(attributes: Attributes, inputs: Inputs) -> tuple[Tensor | None, ...]:
        bias = input_at(inputs, 3 if rms else 4)
        total = inputs[0] + inputs[1] + (0.0 if bias is None else bias)
        norm = _rms_norm if rms else _layer_norm
        scaled = norm(attributes, [total, inputs[2], None if rms else input_at(inputs, 3)])
        return scaled, None, None, total

    return skip_norm


def _batch_norm(attributes: Attributes, inputs: Inputs) -> Tensor:
    x, weight, bias, mean, variance = inputs[:5]
    shape = [-1, *[1] * (x.ndim - 2)]  # by hand: torch's own has no gradients for means and variances
    scale = weight * torch.rsqrt(variance + attributes.get("epsilon", 1e-5))
    return x * scale.reshape(shape) + (bias - mean * scale).reshape(shape)  # type: ignore[no-any-return]


def _softmax(function: Callable[[Tensor, int], Tensor]) -> Operator:
    def softmax(attributes: Attributes, inputs: Inputs) -> Tensor:
        x = inputs[0]
        if attributes["opset"] >= 13:
            return function(x, attributes.get("axis", -1))
        axis = attributes.get("axis", 1) % x.ndim
        return function(x.reshape(math.prod(x.shape[:axis]), -1), -1).reshape(x.shape)

    return softmax


def _gemm(attributes: Attributes, inputs: Inputs) -> Tensor:
    turned = (attributes.get("transA"), attributes.get("transB"))
    a, b = (matrix.T if turn else matrix for matrix, turn in zip(inputs[:2], turned, strict=True))
    product = attributes.get("alpha", 1.0) * (a @ b)
    bias = input_at(inputs, 2)
    return product if bias is None else product + attributes.get("beta", 1.0) * bias  # type: ignore[no-any-return]


def _clip(attributes: Attributes, inputs: Inputs) -> Tensor:
    low, high = (input_at(inputs, place) for place in (1, 2))
    low, high = attributes.get("min") if low is None else low, attributes.get("max") if high is None else high
    x = inputs[0]
    x = x if low is None else torch.maximum(x, torch.as_tensor(low, dtype=x.dtype))
    return x if high is None else torch.minimum(x, torch.as_tensor(high, dtype=x.dtype))


def _constant_of_shape(attributes: Attributes, inputs: Inputs) -> Tensor:
    value = attributes.get("value", torch.zeros(1))
    return torch.full([int(size) for size in inputs[0].tolist()], value.item(), dtype=value.dtype)


def _along(attributes: Attributes, inputs: Inputs, scale: Tensor, zero: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Return a scale and a zero point for each entry of an axis in the shape that spreads them over the input."""
    if scale.numel() == 1:
        return scale, zero
    axis, axes = attributes.get("axis", 1), inputs[0].ndim
    shape = [-1 if at == axis % axes else 1 for at in range(axes)]
    return scale.reshape(shape), None if zero is None else zero.reshape(shape)


def _rounded(attributes: Attributes, inputs: Inputs) -> Tensor:
    """QuantizeLinear: a whole number of steps, kept with its gradient; DequantizeLinear multiplies it."""
    scale, zero = inputs[1], input_at(inputs, 2)
    dtype = torch.uint8 if zero is None else zero.dtype
    scale, zero = _along(attributes, inputs, scale, zero)
    ends = torch.iinfo(dtype)
    steps = inputs[0] / scale
    codes = steps + (torch.round(steps) - steps).detach() + (0 if zero is None else zero.float())
    return codes.clamp(ends.min, ends.max)  # type: ignore[no-any-return]


def _dequantized(attributes: Attributes, inputs: Inputs) -> Tensor:
    scale, zero, axis = inputs[1], input_at(inputs, 2), attributes.get("axis", 1)
    if attributes.get("block_size"):
        size = attributes["block_size"]
        scale, zero = (None if each is None else each.repeat_interleave(size, axis) for each in (scale, zero))
    else:
        scale, zero = _along(attributes, inputs, scale, zero)
    return (inputs[0].float() - (0 if zero is None else zero.float())) * scale  # type: ignore[no-any-return]


def _scatter_nd(attributes: Attributes, inputs: Inputs) -> Tensor:
    if attributes.get("reduction", "none") != "none":
        raise NoCounterpartError("ScatterND that adds up")
    places = tuple(inputs[1].long().unbind(-1))
    return inputs[0].index_put(places, inputs[2])  # type: ignore[no-any-return]


def _gather_nd(attributes: Attributes, inputs: Inputs) -> Tensor:
    if attributes.get("batch_dims"):
        raise NoCounterpartError("GatherND by sample")
    return inputs[0][tuple(inputs[1].long().unbind(-1))]  # type: ignore[no-any-return]


REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
"""torch's names of what ScatterElements does with the numbers that meet at one place."""


def _scatter_elements(attributes: Attributes, inputs: Inputs) -> Tensor:
    x, places, axis = inputs[0], inputs[1].long(), attributes.get("axis", 0)
    places, how = torch.where(places < 0, places + x.shape[axis], places), attributes.get("reduction", "none")
    if how == "none":
        return x.scatter(axis, places, inputs[2])  # type: ignore[no-any-return]
    return x.scatter_reduce(axis, places, inputs[2], REDUCTIONS[how])  # type: ignore[no-any-return]


def _largest(attributes: Attributes, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """TopK: of equal numbers the first is taken."""
    axis, count = attributes.get("axis", -1), int(attributes["k"] if input_at(inputs, 1) is None else inputs[1])
    values, places = inputs[0].sort(dim=axis, descending=bool(attributes.get("largest", 1)), stable=True)
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


def _cumulated(attributes: Attributes, inputs: Inputs) -> Tensor:
    if attributes.get("exclusive") or attributes.get("reverse"):
        raise NoCounterpartError("an exclusive or reverse CumSum")
    return torch.cumsum(inputs[0], int(inputs[1]))


def _triangle(attributes: Attributes, inputs: Inputs) -> Tensor:
    offset = input_at(inputs, 1)
    k = 0 if offset is None else int(offset)
    return torch.triu(inputs[0], k) if attributes.get("upper", 1) else torch.tril(inputs[0], k)


def _fold(function: Callable[[Tensor, Tensor], Tensor], inputs: Inputs) -> Tensor:
    total = inputs[0]
    for each in inputs[1:]:
        total = function(total, each)
    return total  # type: ignore[no-any-return]


def _divided(attributes: Attributes, inputs: Inputs) -> Tensor:
    whole = not inputs[0].is_floating_point()
    return torch.div(inputs[0], inputs[1], rounding_mode="trunc" if whole else None)


def _simple(function: Callable[..., Any], count: int = 1) -> Operator:
    return lambda attributes, inputs: function(*inputs[:count])


def _with(function: Callable[..., Any], **names: tuple[str, Any]) -> Operator:
    """Return an operator of one input whose attributes are ``function``'s arguments: (attribute, default)."""
    return lambda attributes, inputs: function(inputs[0], **{key: attributes.get(*pair) for key, pair in names.items()})


OPERATORS: dict[str, Operator] = {
    **{name: _simple(getattr(torch, name.lower())) for name in (
        "Abs", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Round", "Sigmoid", "Sign",
        "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Atan", "IsNaN", "IsInf", "Relu", "Softsign", "Softplus", "Mish",
    ) if hasattr(torch, name.lower())},
    "Softplus": _simple(functional.softplus), "Mish": _simple(functional.mish), "Not": _simple(torch.logical_not),
    "HardSwish": _simple(functional.hardswish),
    "QuickGelu": lambda s, t: t[0] * torch.sigmoid(s.get("alpha", 1.702) * t[0]),
    "Add": _simple(torch.add, 2), "Sub": _simple(torch.sub, 2), "Mul": _simple(torch.mul, 2), "Div": _divided,
    "Pow": lambda s, t: torch.pow(t[0], t[1]).to(t[0].dtype), "MatMul": _simple(torch.matmul, 2), "Gemm": _gemm,
    "Equal": _simple(torch.eq, 2), "Less": _simple(torch.lt, 2), "LessOrEqual": _simple(torch.le, 2),
    "Greater": _simple(torch.gt, 2), "GreaterOrEqual": _simple(torch.ge, 2), "And": _simple(torch.logical_and, 2),
    "Or": _simple(torch.logical_or, 2), "Xor": _simple(torch.logical_xor, 2), "Where": _simple(torch.where, 3),
    "Max": lambda s, t: _fold(torch.maximum, t), "Min": lambda s, t: _fold(torch.minimum, t),
    "Sum": lambda s, t: _fold(torch.add, t),
    "Mod": lambda s, t: (torch.fmod if s.get("fmod") else torch.remainder)(t[0], t[1]),
    "PRelu": lambda s, t: torch.where(t[0] < 0, t[0] * t[1], t[0]),
    "LeakyRelu": _with(functional.leaky_relu, negative_slope=("alpha", 0.01)),
    "Elu": _with(functional.elu, alpha=("alpha", 1.0)),
    "HardSigmoid": lambda s, t: (t[0] * s.get("alpha", 0.2) + s.get("beta", 0.5)).clamp(0, 1),
    "Gelu": lambda s, t: functional.gelu(t[0], approximate=s.get("approximate", "none")),
    "FastGelu": lambda s, t: functional.gelu(t[0] if input_at(t, 1) is None else t[0] + t[1], approximate="tanh"),
    "BiasGelu": lambda s, t: functional.gelu(t[0] + t[1]),
    "Swish": lambda s, t: t[0] * torch.sigmoid(s.get("alpha", 1.0) * t[0]),
    "Clip": _clip, "Softmax": _softmax(torch.softmax), "LogSoftmax": _softmax(torch.log_softmax),
    "LayerNormalization": _layer_norm, "SimplifiedLayerNormalization": _rms_norm, "RMSNormalization": _rms_norm,
    "SkipLayerNormalization": _skip_norm(False), "SkipSimplifiedLayerNormalization": _skip_norm(True),
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": lambda s, t: functional.instance_norm(
        t[0], weight=t[1], bias=t[2], eps=s.get("epsilon", 1e-5)
    ),
    "ReduceMean": _reduce(torch.mean), "ReduceSum": _reduce(torch.sum), "ReduceMax": _reduce(torch.amax),
    "ReduceMin": _reduce(torch.amin),
    "ReduceL2": _reduce(lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep)),
    "ReduceSumSquare": _reduce(lambda x, axes, keep: x.square().sum(axes, keep)),
    "ReduceProd": _reduce(_product),
    "ArgMax": lambda s, t: t[0].argmax(s.get("axis", 0), keepdim=bool(s.get("keepdims", 1))),
    "Identity": lambda s, t: t[0], "Dropout": lambda s, t: t[0],
    "Cast": lambda s, t: t[0].to(getattr(torch, DTYPES[s["to"]])),
    "CastLike": lambda s, t: t[0].to(t[1].dtype), "Constant": lambda s, t: s["value"],
    "Shape": lambda s, t: torch.tensor(t[0].shape[s.get("start", 0) : s.get("end")], dtype=torch.int64),
    "Size": lambda s, t: torch.tensor(t[0].numel()), "ConstantOfShape": _constant_of_shape,
    "Range": lambda s, t: torch.arange(t[0].item(), t[1].item(), t[2].item(), dtype=t[0].dtype),
    "Expand": lambda s, t: torch.broadcast_to(t[0], np.broadcast_shapes(t[0].shape, t[1].tolist())),
    "Reshape": _reshape, "Unsqueeze": _unsqueeze, "Squeeze": _squeeze, "Slice": _slice, "Gather": _gather,
    "Split": _split,
    "Flatten": lambda s, t: t[0].reshape(math.prod(t[0].shape[: s.get("axis", 1)]), -1),
    "Transpose": lambda s, t: t[0].permute(s.get("perm") or tuple(reversed(range(t[0].ndim)))),
    "Concat": lambda s, t: torch.cat(list(t), s["axis"]), "Tile": lambda s, t: t[0].repeat(t[1].tolist()),
    "GatherElements": lambda s, t: torch.gather(t[0], s.get("axis", 0), t[1].long()), "GatherND": _gather_nd,
    "ScatterND": _scatter_nd, "ScatterElements": _scatter_elements, "TopK": _largest, "Trilu": _triangle,
    "CumSum": _cumulated, "Pad": pad, "Resize": resize,
    "Einsum": lambda s, t: torch.einsum(s["equation"], *t), "DepthToSpace": lambda s, t: _depth(s, t),
    "Conv": convolution, "ConvTranspose": transposed_convolution, "LSTM": lstm, "GRU": gru,
    "MaxPool": lambda s, t: pool({**s, "average": False}, t),
    "AveragePool": lambda s, t: pool({**s, "average": True}, t),
    "GlobalAveragePool": lambda s, t: t[0].mean(list(range(2, t[0].ndim)), keepdim=True),
    "GlobalMaxPool": lambda s, t: t[0].amax(list(range(2, t[0].ndim)), keepdim=True),
    "QuantizeLinear": _rounded, "DequantizeLinear": _dequantized,
}  # fmt: skip


def _depth(attributes: Attributes, inputs: Inputs) -> Tensor:
    if attributes.get("mode", "DCR") != "CRD":
        raise NoCounterpartError("DepthToSpace in the order DCR")
    return functional.pixel_shuffle(inputs[0], attributes["blocksize"])
