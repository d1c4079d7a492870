"""Nodes of a graph: what they take, inner graphs included, and their computation in single precision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.models.onnx.container import FLOATS, StoredArray
from workbench.models.onnx.inner import inner_graphs

Attributes = Mapping[str, Any]
Inputs = Sequence[Any]


def in_float32(array: StoredArray) -> StoredArray:
    """Return floating-point numbers as float32."""
    data: np.ndarray = array.tensor().float().contiguous().numpy().reshape(-1).view(np.uint8)
    return StoredArray(name=array.name, type=1, shape=array.shape, data=data)


def in_single_precision(nodes: Iterable[Any]) -> None:
    """Let nodes compute in float32: what they cast to and make, in inner graphs too."""
    from onnx import numpy_helper

    for node in nodes:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype", "stash_type") and attribute.i in FLOATS:
                attribute.i = 1
            inner = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
            tensors = [attribute.t] if attribute.HasField("t") else []
            for tensor in (*tensors, *(each for graph in inner for each in graph.initializer)):
                if tensor.data_type in FLOATS:
                    values = numpy_helper.to_array(tensor).astype("float32")
                    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
            for graph in inner:
                for value in (*graph.input, *graph.output, *graph.value_info):
                    if value.type.tensor_type.elem_type in FLOATS:
                        value.type.tensor_type.elem_type = 1
                in_single_precision(graph.node)


def taken_by(node: Any) -> set[str]:
    """Return the names that a node takes, those that its inner graphs take from outside included."""
    names = {name for name in node.input if name}
    for inner in inner_graphs(node):
        own = {value.name for value in (*inner.input, *inner.initializer)}
        for each in inner.node:
            names |= taken_by(each) - own
            own |= set(each.output)
        names |= {value.name for value in inner.output} - own
    return names


def attributes_of(node: Any) -> dict[str, Any]:
    """Return a node's attributes: numbers, lists of numbers, texts; others are left out."""
    attributes: dict[str, Any] = {}
    for each in node.attribute:
        if each.type in (1, 2):
            attributes[each.name] = each.f if each.type == 1 else each.i
        elif each.type == 3:
            attributes[each.name] = each.s.decode("utf-8", "replace")
        elif each.type in (6, 7):
            attributes[each.name] = list(each.floats if each.type == 6 else each.ints)
    return attributes


def input_at(inputs: Inputs, place: int) -> Any:
    """Return an input of a node, None where it is left out."""
    return inputs[place] if len(inputs) > place else None


def ints(attributes: Attributes, inputs: Inputs, place: int, name: str) -> list[int] | None:
    """Return whole numbers that newer opsets take as an input and older ones as an attribute."""
    tensor = input_at(inputs, place)
    if tensor is not None:
        return [int(each) for each in tensor.reshape(-1).tolist()]
    return None if name not in attributes else [int(each) for each in attributes[name]]
