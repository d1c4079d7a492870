"""Inner graphs of a graph (If, Loop, Scan): the weights of their products move to the outer graph.

Names of the outer graph are known in the inner ones, so nothing else changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.models.onnx.kinds import CODES, COMPUTED, DEEPEST, FACTORS, MOVES


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


def places(nodes: Iterable[Any], kinds: Container[str], within: str = "") -> Iterator[str]:
    """Say of every node whose operator is none of ``kinds`` what it is and where, inner graphs included."""
    for node in nodes:
        name = node.name or next(iter(node.output), "")
        if node.op_type not in kinds:
            yield f"{node.op_type} (node {name}{within})"
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                yield from places(inner.node, kinds, f" in the {attribute.name} of {node.op_type} {name}{within}")


def hoist_weights(graph: Any) -> None:
    """Move the constants that products in inner graphs multiply with to ``graph``, under names of their own."""
    if not any(True for node in graph.node for _ in inner_graphs(node)):
        return
    hoist, nodes = _Hoist(graph), []
    for node in graph.node:
        for inner in inner_graphs(node):
            hoist.visit([_Scope(inner)])
        nodes += [*hoist.nodes, node]
        hoist.nodes.clear()
    del graph.node[:]
    graph.node.extend(nodes)


@dataclass(slots=True, eq=False)
class _Scope:
    """An inner graph, and what makes each of its names: a tensor or a node."""

    graph: Any
    makers: dict[str, Any] = field(init=False)
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.makers = {tensor.name: tensor for tensor in self.graph.initializer}
        self.makers |= {name: node for node in self.graph.node for name in node.output if name}
        self.names = frozenset(self.makers) | {value.name for value in self.graph.input}

    def without(self, things: Iterable[Any]) -> None:
        """Take tensors and nodes out of the graph."""
        gone = set(map(id, things))
        for members in (self.graph.node, self.graph.initializer):
            for place in reversed([at for at, each in enumerate(members) if id(each) in gone]):
                del members[place]  # the others stay the messages that they are


class _Hoist:
    """Moves what products take; ``nodes`` are to run before the node whose graphs are visited."""

    def __init__(self, graph: Any) -> None:
        self.graph, self.nodes = graph, list[Any]()
        self.fixed = {tensor.name for tensor in graph.initializer}
        self.taken = {*self.fixed, *(value.name for value in graph.input)}
        self.inside = Counter(
            name for node in with_inner(graph.node) for inner in inner_graphs(node) for name in _Scope(inner).names
        )
        """How many inner graphs have each name: one that stays there would hide what moves out of another."""
        for node in graph.node:
            self.taken.update(node.output)
            if _moves(node) and self.fixed.issuperset(name for name in node.input if name):
                self.fixed.update(node.output)

    def visit(self, scopes: list[_Scope]) -> None:
        """Move the constant factors of the products in the last of ``scopes``, which lie in one another."""
        for node in list(scopes[-1].graph.node):
            for place in (1, 2, 3) if node.op_type == "MatMulNBits" else FACTORS.get(node.op_type, ()):
                if place < len(node.input) and node.input[place]:
                    parts: dict[int, tuple[_Scope, Any]] = {}
                    if self._made_of(node.input[place], scopes, parts, DEEPEST):
                        self._move(parts, scopes)
            for inner in inner_graphs(node):
                self.visit([*scopes, _Scope(inner)])

    def _made_of(self, name: str, scopes: list[_Scope], parts: dict[int, tuple[_Scope, Any]], depth: int) -> bool:
        """Add to ``parts``, in order, what makes a constant; False for what is none."""
        for at in range(len(scopes), 0, -1):
            scope = scopes[at - 1]
            if name not in scope.names:
                continue
            maker = scope.makers.get(name)
            if maker is None or any(value.name == name for value in scope.graph.output):
                return False
            if hasattr(maker, "op_type") and id(maker) not in parts:
                known = depth > 0 and (_moves(maker) or _is_constant(maker))
                if not known or not all(
                    self._made_of(each, scopes[:at], parts, depth - 1) for each in maker.input if each
                ):
                    return False
            parts.setdefault(id(maker), (scope, maker))
            return True
        return name in self.fixed

    def _move(self, parts: dict[int, tuple[_Scope, Any]], scopes: list[_Scope]) -> None:
        for scope in scopes:
            things = [maker for own, maker in parts.values() if own is scope]
            names: dict[str, str] = {}
            for maker in things:
                for name in maker.output if hasattr(maker, "op_type") else (maker.name,):
                    names[name] = self._fresh(name)
            if things:
                _rename(scope.graph, names)
                scope.without(things)
                for maker in things:
                    self._place(maker, names)
                scope.__post_init__()

    def _place(self, maker: Any, names: dict[str, str]) -> None:
        """Add a tensor or a node to the outer graph; its inputs have their new names."""
        if not hasattr(maker, "op_type"):
            maker.name = names[maker.name]
            self.graph.initializer.append(maker)
        elif _is_constant(maker):
            tensor = maker.attribute[0].t
            tensor.name = names[maker.output[0]]
            self.graph.initializer.append(tensor)
        else:
            for place, name in enumerate(maker.output):
                maker.output[place] = names.get(name, name)
            self.nodes.append(maker)
        self.fixed.update(names.values())

    def _fresh(self, name: str) -> str:
        new, number = name, 2
        self.inside[name] -= 1
        while new in self.taken or self.inside[new] > 0:
            new, number = f"{name}_{number}", number + 1
        self.taken.add(new)
        return new


def _moves(node: Any) -> bool:
    return node.op_type in MOVES | COMPUTED | CODES


def _is_constant(node: Any) -> bool:
    return node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].name == "value"


def _rename(graph: Any, names: dict[str, str]) -> None:
    """Rename what the nodes of ``graph`` take, in the graphs inside it too where these do not define it again."""
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in names:
                node.input[place] = names[name]
        for inner in inner_graphs(node):
            own = {each.name for each in (*inner.input, *inner.initializer)}
            own.update(name for each in inner.node for name in each.output)
            _rename(inner, {name: new for name, new in names.items() if name not in own})
