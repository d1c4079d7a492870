"""ONNX's operators along the axes of pictures and sequences in torch: padding, pooling, convolutions, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from workbench.models.onnx.nodes import Attributes, Inputs, input_at, ints
from workbench.models.onnx.recurrent import NoCounterpartError


def pad(attributes: Attributes, inputs: Inputs) -> Tensor:
    """Pad the axes by constants, reflections or edges."""
    x, pads = inputs[0], ints(attributes, inputs, 1, "pads") or []
    axes = [axis % x.ndim for axis in (ints(attributes, inputs, 3, "axes") or range(x.ndim))]
    sides = [0] * 2 * x.ndim
    for at, axis in enumerate(axes):
        sides[2 * (x.ndim - 1 - axis)], sides[2 * (x.ndim - 1 - axis) + 1] = pads[at], pads[at + len(axes)]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}[attributes.get("mode", "constant")]
    value = input_at(inputs, 2)
    if mode == "constant":
        return functional.pad(x, sides, value=float(attributes.get("value", 0.0)) if value is None else value.item())
    while len(sides) > 2 and sides[-2:] == [0, 0]:
        sides = sides[:-2]
    return functional.pad(x, sides, mode=mode)


def _edges(attributes: Attributes, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return how many positions are added before and after each axis of a convolution or a pooling."""
    rank, same = len(kernel), attributes.get("auto_pad", "NOTSET")
    if same in ("NOTSET", "VALID"):
        pads = attributes.get("pads", [0] * 2 * rank) if same == "NOTSET" else [0] * 2 * rank
        return pads[:rank], pads[rank:]
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    total = [
        max((-(-size // stride) - 1) * stride + dilation * (extent - 1) + 1 - size, 0)
        for size, extent, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True)
    ]  # fmt: skip
    small = [each // 2 for each in total]
    large = [each - less for each, less in zip(total, small, strict=True)]
    return (small, large) if same == "SAME_UPPER" else (large, small)


def _around(x: Tensor, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Tensor:
    sides = [side for pair in zip(reversed(before), reversed(after), strict=True) for side in pair]
    return functional.pad(x, sides, value=value) if any(sides) else x


def pool(attributes: Attributes, inputs: Inputs) -> Tensor:
    """Return the maxima, or the means where ``average`` is set, of windows."""
    x, sizes = inputs[0], attributes["kernel_shape"]
    rank = len(sizes)
    before, after = _edges(attributes, x.shape[2:], sizes)
    if attributes["outputs"] > 1:
        raise NoCounterpartError("pooling with a second output of indices")
    strides, ceil = attributes.get("strides", [1] * rank), bool(attributes.get("ceil_mode"))
    even = before == after and all(2 * edge <= size for edge, size in zip(before, sizes, strict=True))
    edges = before if even else [0] * rank
    if not attributes["average"]:
        best: Any = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[rank - 1]
        x = x if even else _around(x, before, after, -math.inf)
        return best(x, sizes, strides, edges, attributes.get("dilations", [1] * rank), ceil)  # type: ignore[no-any-return]
    pool: Any = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[rank - 1]
    if even:
        return pool(x, sizes, strides, edges, ceil, bool(attributes.get("count_include_pad", 0)))  # type: ignore[no-any-return]
    mean = pool(_around(x, before, after), sizes, strides, 0, ceil)
    if attributes.get("count_include_pad"):
        return mean  # type: ignore[no-any-return]
    return mean / pool(_around(torch.ones_like(x), before, after), sizes, strides, 0, ceil)  # type: ignore[no-any-return]


def convolution(attributes: Attributes, inputs: Inputs) -> Tensor:
    """Return a convolution of one to three axes."""
    x, weight = inputs[:2]
    rank = weight.ndim - 2
    x = _around(x, *_edges(attributes, x.shape[2:], weight.shape[2:]))
    convolution: Any = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    return convolution(x, weight, input_at(inputs, 2), strides, 0, dilations, attributes.get("group", 1))  # type: ignore[no-any-return]


def transposed_convolution(attributes: Attributes, inputs: Inputs) -> Tensor:
    """Return a transposed convolution, without the edges that ``pads`` names."""
    x, weight = inputs[:2]
    rank = weight.ndim - 2
    if attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or attributes.get("output_shape"):
        raise NoCounterpartError("a transposed convolution with auto_pad or output_shape")
    pads = attributes.get("pads", [0] * 2 * rank)
    convolution: Any = (
        functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d
    )[rank - 1]  # fmt: skip
    whole = convolution(
        x, weight, input_at(inputs, 2), attributes.get("strides", [1] * rank), 0,
        attributes.get("output_padding", [0] * rank), attributes.get("group", 1),
        attributes.get("dilations", [1] * rank),
    )  # fmt: skip
    return _around(whole, [-each for each in pads[:rank]], [-each for each in pads[rank:]])


def resize(attributes: Attributes, inputs: Inputs) -> Tensor:
    """Interpolate all axes but samples and channels."""
    x, scales, sizes = inputs[0], input_at(inputs, 2 if len(inputs) > 2 else 1), input_at(inputs, 3)
    mode, place = attributes.get("mode", "nearest"), attributes.get("coordinate_transformation_mode", "half_pixel")
    size = [int(each) for each in sizes.tolist()] if sizes is not None else [
        int(math.floor(extent * scale)) for extent, scale in zip(x.shape, scales.tolist(), strict=True)
    ]  # fmt: skip
    if list(x.shape[:2]) != size[:2] or attributes.get("antialias"):
        raise NoCounterpartError("Resize of samples or channels, or with antialias")
    if mode == "nearest":
        return functional.interpolate(x, size[2:], mode="nearest-exact" if place == "half_pixel" else "nearest")
    name = {("linear", 3): "linear", ("linear", 4): "bilinear", ("cubic", 4): "bicubic"}[mode, x.ndim]
    return functional.interpolate(x, size[2:], mode=name, align_corners=place == "align_corners")
