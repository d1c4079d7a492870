"""Inner graphs of a graph (If, Loop, Scan): their weights move to the outer graph, whose names they may take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

FLOATS = frozenset({1, 10, 11, 16})


def inner_graphs(node: Any) -> Iterator[Any]:
    """Yield the graphs among a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def with_inner(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield nodes and those of the graphs inside them."""
    for node in nodes:
        yield node
        for inner in inner_graphs(node):
            yield from with_inner(inner.node)


def hoist_weights(graph: Any) -> None:
    """Move floating-point constants of more than one axis from inner graphs to ``graph``, under names of their own."""
    taken = {*(tensor.name for tensor in graph.initializer), *(value.name for value in graph.input)}
    taken.update(name for node in graph.node for name in node.output)
    for node in graph.node:
        for inner in inner_graphs(node):
            _hoist(inner, graph, taken)


def _hoist(inner: Any, graph: Any, taken: set[str]) -> None:
    own = {value.name for value in inner.output}
    renamed: dict[str, str] = {}
    nodes, tensors = [], []
    for node in inner.node:
        value = node.attribute[0] if node.op_type == "Constant" and len(node.attribute) == 1 else None
        if value is not None and value.name == "value" and _is_weight(value.t) and node.output[0] not in own:
            value.t.name = node.output[0]
            renamed[node.output[0]] = _moved(value.t, graph, taken)
        else:
            nodes.append(node)
    for tensor in inner.initializer:
        if _is_weight(tensor) and tensor.name not in own:
            renamed[tensor.name] = _moved(tensor, graph, taken)
        else:
            tensors.append(tensor)
    if renamed:
        del inner.node[:], inner.initializer[:]
        inner.node.extend(nodes)
        inner.initializer.extend(tensors)
        _rename(inner, renamed)
    for node in inner.node:
        for each in inner_graphs(node):
            _hoist(each, graph, taken)


def _is_weight(tensor: Any) -> bool:
    return tensor.data_type in FLOATS and len(tensor.dims) > 1


def _moved(tensor: Any, graph: Any, taken: set[str]) -> str:
    name, number = tensor.name, 2
    while name in taken:
        name, number = f"{tensor.name}_{number}", number + 1
    taken.add(name)
    graph.initializer.append(tensor)
    graph.initializer[-1].name = name
    return name


def _rename(graph: Any, names: dict[str, str]) -> None:
    """Rename what the nodes of ``graph`` take, in the graphs inside it too where these do not define it anew."""
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = names.get(name, name)
        for inner in inner_graphs(node):
            own = {each.name for each in (*inner.input, *inner.initializer)}
            own.update(name for each in inner.node for name in each.output)
            _rename(inner, {name: new for name, new in names.items() if name not in own})
