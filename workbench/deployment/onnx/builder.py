"""Nodes and tensors that are added to a graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.deployment.onnx.codes import Initializer


@dataclass(slots=True, kw_only=True, eq=False)
class Builder:
    """Adds nodes and initializers to a model of onnx_ir; ``initializers`` are our model's tensors, by name."""

    model: Any
    initializers: dict[str, Initializer] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)

    @property
    def graph(self) -> Any:
        """The graph that is built."""
        return self.model.graph

    def add(self, tensor: Initializer) -> Any:
        """Return the value of a tensor of the model in the graph."""
        self.initializers[tensor.name] = tensor
        return self._register(tensor.name, tensor.tensor())

    def constant(self, name: str, values: np.ndarray, kind: str | None = None) -> Any:
        """Return the value of a small array that follows from the plan; the same for the same name."""
        import onnx_ir

        if name not in self.constants:
            tensor = onnx_ir.Tensor(values, None if kind is None else onnx_ir.DataType[kind], name=name)
            self.constants[name] = self._register(name, tensor)
        return self.constants[name]

    def _register(self, name: str, tensor: Any) -> Any:
        import onnx_ir

        value = onnx_ir.Value(
            name=name, type=onnx_ir.TensorType(tensor.dtype), shape=onnx_ir.Shape(tensor.shape), const_value=tensor
        )
        self.graph.register_initializer(value)
        return value

    def node(
        self, before: Any, kind: str, inputs: list[Any], name: str, *, domain: str = "", **attributes: Any
    ) -> Any:  # fmt: skip
        """Insert a node before another, in the graph of that (None: at the beginning), and return its output."""
        import onnx_ir

        self.names[name] += 1
        name += f".{self.names[name]}" if self.names[name] > 1 else ""
        node = onnx_ir.node(kind, inputs, attributes or None, domain=domain, name=name)
        node.outputs[0].name = name
        if before is not None:
            before.graph.insert_before(before, node)
        else:
            self.graph.insert_before(next(iter(self.graph)), node)
        return node.outputs[0]

    def float32(self, before: Any, value: Any) -> Any:
        """Return ``value`` in float32, cast where it has fewer bits: exactly, and once, when it is loaded."""
        import onnx_ir

        if value.dtype == onnx_ir.DataType.FLOAT:
            return value
        return self.node(before, "Cast", [value], f"{value.name}.float32", to=onnx_ir.DataType.FLOAT)
