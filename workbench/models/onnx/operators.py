"""ONNX's operators in torch, for gradients: what they mean is what the operator's page of ONNX's documentation says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from workbench.models.onnx.container import DTYPES
from workbench.models.onnx.weights import attributes

Said = Mapping[str, Any]
Takes = Sequence[Any]
Operator = Callable[[Said, Takes], Any]


def evaluate(nodes: Sequence[Any], known: dict[str, Tensor | None], opset: int) -> None:
    """Add what ``nodes`` give to ``known``; raises KeyError for an operator that is not here, torch's errors."""
    known[""] = None
    for node in nodes:
        said = {**attributes(node), "opset": opset, "outputs": len(node.output)}
        for each in node.attribute:
            if each.type == 4:
                said[each.name] = _constant(each.t)
        given = OPERATORS[node.op_type](said, [known[name] for name in node.input])
        known |= zip(node.output, given if isinstance(given, tuple | list) else (given,), strict=False)


def _constant(tensor: Any) -> Tensor:
    from onnx import numpy_helper

    return torch.from_numpy(numpy_helper.to_array(tensor).copy())


def _at(takes: Takes, place: int) -> Any:
    return takes[place] if len(takes) > place else None


def _ints(said: Said, takes: Takes, place: int, name: str) -> list[int] | None:
    """Return whole numbers that newer opsets take as an input and older ones as an attribute."""
    given = _at(takes, place)
    if given is not None:
        return [int(each) for each in given.reshape(-1).tolist()]
    return None if name not in said else [int(each) for each in said[name]]


def _dtype(kind: int) -> torch.dtype:
    return getattr(torch, DTYPES[kind])  # type: ignore[no-any-return]


def _reduce(function: Callable[[Tensor, list[int], bool], Tensor]) -> Operator:
    def reduce(said: Said, takes: Takes) -> Tensor:
        axes = _ints(said, takes, 1, "axes")
        if not axes and said.get("noop_with_empty_axes"):
            return takes[0]  # type: ignore[no-any-return]
        return function(takes[0], axes or list(range(takes[0].ndim)), bool(said.get("keepdims", 1)))

    return reduce


def _reshape(said: Said, takes: Takes) -> Tensor:
    x, sizes = takes[0], takes[1].tolist()
    if not said.get("allowzero"):
        sizes = [x.shape[at] if size == 0 else size for at, size in enumerate(sizes)]
    return torch.reshape(x, sizes)


def _unsqueeze(said: Said, takes: Takes) -> Tensor:
    x, axes = takes[0], _ints(said, takes, 1, "axes") or []
    for axis in sorted(axis % (x.ndim + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x  # type: ignore[no-any-return]


def _squeeze(said: Said, takes: Takes) -> Tensor:
    axes = _ints(said, takes, 1, "axes")
    return takes[0].squeeze() if axes is None else takes[0].squeeze(tuple(axes))  # type: ignore[no-any-return]


def _slice(said: Said, takes: Takes) -> Tensor:
    x = takes[0]
    starts, ends = _ints(said, takes, 1, "starts") or [], _ints(said, takes, 2, "ends") or []
    axes = _ints(said, takes, 3, "axes") or list(range(len(starts)))
    steps = _ints(said, takes, 4, "steps") or [1] * len(axes)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        places = range(x.shape[axis])[slice(start, None if step < 0 and end < -x.shape[axis] else end, step)]
        x = x.index_select(axis, torch.arange(places.start, places.stop, places.step)) if step != 1 else x.narrow(
            axis, places.start, len(places)
        )  # fmt: skip
    return x  # type: ignore[no-any-return]


def _gather(said: Said, takes: Takes) -> Tensor:
    x, places, axis = takes[0], takes[1].long(), said.get("axis", 0) % takes[0].ndim
    places = torch.where(places < 0, places + x.shape[axis], places)
    taken = x.index_select(axis, places.reshape(-1))
    return torch.reshape(taken, (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))


def _split(said: Said, takes: Takes) -> tuple[Tensor, ...]:
    x, axis = takes[0], said.get("axis", 0)
    sizes = _ints(said, takes, 1, "split")
    if sizes is None:
        step = -(-x.shape[axis] // said.get("num_outputs", said["outputs"]))
        return tuple(torch.split(x, step, axis))
    return tuple(torch.split(x, sizes, axis))


def _pad(said: Said, takes: Takes) -> Tensor:
    x, pads = takes[0], _ints(said, takes, 1, "pads") or []
    axes = [axis % x.ndim for axis in (_ints(said, takes, 3, "axes") or range(x.ndim))]
    sides = [0] * 2 * x.ndim
    for at, axis in enumerate(axes):
        sides[2 * (x.ndim - 1 - axis)], sides[2 * (x.ndim - 1 - axis) + 1] = pads[at], pads[at + len(axes)]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}[said.get("mode", "constant")]
    value = _at(takes, 2)
    if mode == "constant":
        return functional.pad(x, sides, value=float(said.get("value", 0.0)) if value is None else value.item())
    while len(sides) > 2 and sides[-2:] == [0, 0]:
        sides = sides[:-2]
    return functional.pad(x, sides, mode=mode)


def _pool(said: Said, takes: Takes) -> Tensor:
    x, sizes = takes[0], said["kernel_shape"]
    rank, pads = len(sizes), said.get("pads", [0] * 2 * len(sizes))
    if said.get("auto_pad", "NOTSET") != "NOTSET" or pads[:rank] != pads[rank:] or said["outputs"] > 1:
        raise ValueError("pooling with uneven edges")
    strides, ceil = said.get("strides", [1] * rank), bool(said.get("ceil_mode"))
    if "count_include_pad" in said or said["average"]:
        pool: Any = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[rank - 1]
        return pool(x, sizes, strides, pads[:rank], ceil, bool(said.get("count_include_pad", 0)))  # type: ignore[no-any-return]
    best: Any = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[rank - 1]
    return best(x, sizes, strides, pads[:rank], said.get("dilations", [1] * rank), ceil)  # type: ignore[no-any-return]


def _layer_norm(said: Said, takes: Takes) -> Tensor:
    x = takes[0]
    shape = x.shape[said.get("axis", -1) % x.ndim :]
    return functional.layer_norm(x, shape, takes[1].expand(shape), _at(takes, 2), said.get("epsilon", 1e-5))


def _rms_norm(said: Said, takes: Takes) -> Tensor:
    x = takes[0]
    axes = list(range(said.get("axis", -1) % x.ndim, x.ndim))
    return x * torch.rsqrt(x.square().mean(axes, keepdim=True) + said.get("epsilon", 1e-5)) * takes[1]  # type: ignore[no-any-return]


def _skip_norm(rms: bool) -> Operator:
    """Return ONNX Runtime's sum and norm in one: outputs 1 and 4 are the norm and the sum."""

    def norm(said: Said, takes: Takes) -> tuple[Tensor | None, ...]:
        bias = _at(takes, 3 if rms else 4)
        total = takes[0] + takes[1] + (0.0 if bias is None else bias)
        scaled = _rms_norm(said, [total, takes[2]]) if rms else _layer_norm(said, [total, takes[2], _at(takes, 3)])
        return scaled, None, None, total

    return norm


def _batch_norm(said: Said, takes: Takes) -> Tensor:
    x, weight, bias, mean, variance = takes[:5]
    return functional.batch_norm(x, mean, variance, weight, bias, False, 0.0, said.get("epsilon", 1e-5))


def _softmax(function: Callable[[Tensor, int], Tensor]) -> Operator:
    def softmax(said: Said, takes: Takes) -> Tensor:
        x = takes[0]
        if said["opset"] >= 13:
            return function(x, said.get("axis", -1))
        axis = said.get("axis", 1) % x.ndim
        return function(x.reshape(math.prod(x.shape[:axis]), -1), -1).reshape(x.shape)

    return softmax


def _gemm(said: Said, takes: Takes) -> Tensor:
    a, b = (takes[place].T if said.get(name) else takes[place] for place, name in enumerate(("transA", "transB")))
    product = said.get("alpha", 1.0) * (a @ b)
    bias = _at(takes, 2)
    return product if bias is None else product + said.get("beta", 1.0) * bias  # type: ignore[no-any-return]


def _clip(said: Said, takes: Takes) -> Tensor:
    low, high = (_at(takes, place) for place in (1, 2))
    low, high = said.get("min") if low is None else low, said.get("max") if high is None else high
    x = takes[0]
    x = x if low is None else torch.maximum(x, torch.as_tensor(low, dtype=x.dtype))
    return x if high is None else torch.minimum(x, torch.as_tensor(high, dtype=x.dtype))


def _resize(said: Said, takes: Takes) -> Tensor:
    x, scales, sizes = takes[0], _at(takes, 2 if len(takes) > 2 else 1), _at(takes, 3)
    mode, place = said.get("mode", "nearest"), said.get("coordinate_transformation_mode", "half_pixel")
    size = [int(each) for each in sizes.tolist()] if sizes is not None else [
        int(math.floor(extent * scale)) for extent, scale in zip(x.shape, scales.tolist(), strict=True)
    ]  # fmt: skip
    if list(x.shape[:2]) != size[:2] or said.get("antialias"):
        raise ValueError("resizing of samples or channels")
    if mode == "nearest":
        return functional.interpolate(x, size[2:], mode="nearest-exact" if place == "half_pixel" else "nearest")
    name = {("linear", 3): "linear", ("linear", 4): "bilinear", ("cubic", 4): "bicubic"}[mode, x.ndim]
    return functional.interpolate(x, size[2:], mode=name, align_corners=place == "align_corners")


def _constant_of_shape(said: Said, takes: Takes) -> Tensor:
    value = said.get("value", torch.zeros(1))
    return torch.full([int(size) for size in takes[0].tolist()], value.item(), dtype=value.dtype)


def _rounded(said: Said, takes: Takes) -> Tensor:
    """QuantizeLinear: a whole number of steps, kept with its gradient; DequantizeLinear multiplies it."""
    scale, zero = takes[1], _at(takes, 2)
    axis = said.get("axis", 1)
    dtype = torch.uint8 if zero is None else zero.dtype
    if scale.numel() > 1:
        shape = [-1 if at == axis % takes[0].ndim else 1 for at in range(takes[0].ndim)]
        scale, zero = scale.reshape(shape), None if zero is None else zero.reshape(shape)
    ends = torch.iinfo(dtype)
    steps = takes[0] / scale
    codes = steps + (torch.round(steps) - steps).detach() + (0 if zero is None else zero.float())
    return codes.clamp(ends.min, ends.max)  # type: ignore[no-any-return]


def _dequantized(said: Said, takes: Takes) -> Tensor:
    scale, zero, axis = takes[1], _at(takes, 2), said.get("axis", 1)
    if said.get("block_size"):
        size = said["block_size"]
        scale, zero = (None if each is None else each.repeat_interleave(size, axis) for each in (scale, zero))
    elif scale.numel() > 1:
        shape = [-1 if at == axis % takes[0].ndim else 1 for at in range(takes[0].ndim)]
        scale, zero = scale.reshape(shape), None if zero is None else zero.reshape(shape)
    return (takes[0].float() - (0 if zero is None else zero.float())) * scale  # type: ignore[no-any-return]


def _scatter_nd(said: Said, takes: Takes) -> Tensor:
    if said.get("reduction", "none") != "none":
        raise ValueError("ScatterND that adds up")
    places = tuple(takes[1].long().unbind(-1))
    return takes[0].index_put(places, takes[2])  # type: ignore[no-any-return]


def _gather_nd(said: Said, takes: Takes) -> Tensor:
    if said.get("batch_dims"):
        raise ValueError("GatherND by sample")
    return takes[0][tuple(takes[1].long().unbind(-1))]  # type: ignore[no-any-return]


def _cumulated(said: Said, takes: Takes) -> Tensor:
    if said.get("exclusive") or said.get("reverse"):
        raise ValueError("CumSum from the other end")
    return torch.cumsum(takes[0], int(takes[1]))


def _triangle(said: Said, takes: Takes) -> Tensor:
    offset = _at(takes, 1)
    k = 0 if offset is None else int(offset)
    return torch.triu(takes[0], k) if said.get("upper", 1) else torch.tril(takes[0], k)


def _least(said: Said, takes: Takes) -> Tensor:
    return _fold(torch.minimum, takes)


def _fold(function: Callable[[Tensor, Tensor], Tensor], takes: Takes) -> Tensor:
    total = takes[0]
    for each in takes[1:]:
        total = function(total, each)
    return total  # type: ignore[no-any-return]


def _divided(said: Said, takes: Takes) -> Tensor:
    whole = not takes[0].is_floating_point()
    return torch.div(takes[0], takes[1], rounding_mode="trunc" if whole else None)


def _simple(function: Callable[..., Any], count: int = 1) -> Operator:
    return lambda said, takes: function(*takes[:count])


def _with(function: Callable[..., Any], **names: tuple[str, Any]) -> Operator:
    """Return an operator of one input whose attributes are ``function``'s arguments: (attribute, default)."""
    return lambda said, takes: function(takes[0], **{key: said.get(*pair) for key, pair in names.items()})


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
    "Max": lambda s, t: _fold(torch.maximum, t), "Min": _least, "Sum": lambda s, t: _fold(torch.add, t),
    "Mod": lambda s, t: (torch.fmod if s.get("fmod") else torch.remainder)(t[0], t[1]),
    "PRelu": lambda s, t: torch.where(t[0] < 0, t[0] * t[1], t[0]),
    "LeakyRelu": _with(functional.leaky_relu, negative_slope=("alpha", 0.01)),
    "Elu": _with(functional.elu, alpha=("alpha", 1.0)),
    "HardSigmoid": lambda s, t: (t[0] * s.get("alpha", 0.2) + s.get("beta", 0.5)).clamp(0, 1),
    "Gelu": lambda s, t: functional.gelu(t[0], approximate=s.get("approximate", "none")),
    "FastGelu": lambda s, t: functional.gelu(t[0] if _at(t, 1) is None else t[0] + t[1], approximate="tanh"),
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
    "ReduceProd": _reduce(lambda x, axes, keep: x.prod(axes[0], keep) if len(axes) == 1 else x.prod()),
    "ArgMax": lambda s, t: t[0].argmax(s.get("axis", 0), keepdim=bool(s.get("keepdims", 1))),
    "Identity": lambda s, t: t[0], "Dropout": lambda s, t: t[0], "Cast": lambda s, t: t[0].to(_dtype(s["to"])),
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
    "ScatterND": _scatter_nd, "Trilu": _triangle, "CumSum": _cumulated, "Pad": _pad, "Resize": _resize,
    "Einsum": lambda s, t: torch.einsum(s["equation"], *t), "DepthToSpace": lambda s, t: _depth(s, t),
    "MaxPool": lambda s, t: _pool({**s, "average": False}, t),
    "AveragePool": lambda s, t: _pool({**s, "average": True}, t),
    "GlobalAveragePool": lambda s, t: t[0].mean(list(range(2, t[0].ndim)), keepdim=True),
    "GlobalMaxPool": lambda s, t: t[0].amax(list(range(2, t[0].ndim)), keepdim=True),
    "QuantizeLinear": _rounded, "DequantizeLinear": _dequantized,
}  # fmt: skip


def _depth(said: Said, takes: Takes) -> Tensor:
    if said.get("mode", "DCR") != "CRD":
        raise ValueError("DepthToSpace in the order DCR")
    return functional.pixel_shuffle(takes[0], said["blocksize"])
