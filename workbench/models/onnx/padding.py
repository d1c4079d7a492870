"""The edges of convolutions: the same on both sides as torch has them, others by zeros that a Pad adds before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.models.onnx.float_graph import FloatGraph

NEW_PAD = 11
"""The opset from which Pad takes the sizes of its edges as an input."""


def with_pads(convolution: Any, padding: list[int]) -> None:
    """Write the padding of a convolution as numbers, the same on both sides."""
    from onnx import helper

    others = [each for each in convolution.attribute if each.name not in ("pads", "auto_pad")]
    del convolution.attribute[:]
    convolution.attribute.extend([*others, helper.make_attribute("pads", [*padding, *padding])])


def edges(
    graph: FloatGraph, opset: int, node: Any, attributes: Mapping[str, Any], shape: tuple[int, ...],
    options: Mapping[str, Any],
) -> tuple[str, list[int]] | None:  # fmt: skip
    """Return what a convolution takes and how much it is padded on both sides; None where torch has none like it.

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
            return _padded_to_fit(graph, opset, node, extents, options["stride"], same)
        small, large = ([each // 2 for each in extents], [each - each // 2 for each in extents])
        before, after = (small, large) if same == "SAME_UPPER" else (large, small)
    if same == "VALID":
        return taken, [0] * sizes
    if before == after:
        return taken, before
    return _padded(graph, opset, node, [0, 0, *before, 0, 0, *after]), [0] * sizes


def _padded(graph: FloatGraph, opset: int, node: Any, pads: list[int] | str) -> str:
    """Add zeros around what a node takes: ``pads`` as numbers, or the name of what is computed."""
    out = f"{node.output[0]}.padded"
    if opset < NEW_PAD:
        return graph.add("Pad", [node.input[0]], out, pads=pads)
    return graph.add("Pad", [node.input[0], pads if isinstance(pads, str) else graph.number(pads)], out)


def _padded_to_fit(
    graph: FloatGraph, opset: int, node: Any, extents: list[int], strides: list[int], same: str
) -> tuple[str, list[int]] | None:  # fmt: skip
    """Pad as much as a stride needs, by the size that comes.

    In all ``max((ceil(size / stride) - 1) * stride + extent + 1 - size, 0)``; onnx, docs/Operators.md, Conv.
    """
    if opset < NEW_PAD:
        return None
    out, number = f"{node.output[0]}.same", graph.number

    def computed(kind: str, *inputs: str, **attributes: Any) -> str:
        place = f"{out}.{len(graph.nodes)}"
        return graph.add(kind, list(inputs), place, **attributes)

    size = computed("Slice", computed("Shape", node.input[0]), number([2]), number([9]))
    steps = computed("Div", computed("Add", size, number([each - 1 for each in strides])), number(strides))
    last = computed("Mul", computed("Sub", steps, number([1])), number(strides))
    over = computed("Sub", computed("Add", last, number([each + 1 for each in extents])), size)
    total = computed("Where", computed("Greater", over, number([0])), over, number([0]))
    small = computed("Div", total, number([2]))
    large, zeros = computed("Sub", total, small), number([0, 0])
    before, after = (small, large) if same == "SAME_UPPER" else (large, small)
    pads = computed("Concat", zeros, before, zeros, after, axis=0)
    return _padded(graph, opset, node, pads), [0] * len(extents)
