"""A graph in floating point, and the parameters, constants and input schemes that it has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.models.onnx.container import StoredArray
from workbench.readable import few

if TYPE_CHECKING:
    from workbench.models.layer import Layer, LayerKind
    from workbench.models.onnx.weights import Numbers
    from workbench.numerics.quantized_tensor import QuantizedTensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weight:
    """A parameter of the network.

    ``numbers`` reads what the file holds, in the order that ``move`` turns into the parameter's shape; ``dtype`` is
    the file's.  ``kind`` is None for a parameter of no layer.
    """

    name: str
    kind: LayerKind | None
    numbers: Any
    dtype: str
    options: dict[str, Any] = field(default_factory=dict)

    def stored(self, layer: Layer) -> QuantizedTensor | None:
        """Return the layer's matrix as the file holds it, in a scheme of ours; None where it is in none."""
        numbers: Numbers = self.numbers()
        return numbers.moved(layer.matrix_of).stored()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputScheme:
    """How the file quantizes the inputs of a layer: a static scheme and its range, or a dynamic one without a range."""

    scheme: str
    range: tuple[float, float] | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class FloatGraph:
    """A graph in floating point: ``nodes`` in order, ``layers`` from the output of a product to its weight's name.

    ``biases`` maps such outputs to the bias that is added to them and the sum.
    ``weights`` are parameters by name, those of layers and others; ``constants`` what stays as it is.  ``unseen``
    counts the products with codes that are not layers, by their operators.
    """

    nodes: list[Any] = field(default_factory=list)
    layers: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, InputScheme] = field(default_factory=dict)
    weights: dict[str, Weight] = field(default_factory=dict)
    constants: dict[str, StoredArray] = field(default_factory=dict)
    biases: dict[str, tuple[str, str]] = field(default_factory=dict)
    unseen: Counter[str] = field(default_factory=Counter)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about the weights that are not layers."""
        if not self.unseen:
            return ()
        counts = few((f"{count} {kind}" for kind, count in sorted(self.unseen.items())), 8)
        return (f"the weights of some operators are not layers and stay as the file has them: {counts}",)

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node of one output; return the output's name."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def number(self, value: float | list[int]) -> str:
        """Return the name of a constant: a float32 number, or int64 numbers."""
        array = np.array(value, np.float32 if isinstance(value, float) else np.int64)
        name = f"{array.dtype}.{'.'.join(map(str, np.atleast_1d(array)))}"
        kind = 1 if isinstance(value, float) else 7
        data = array.reshape(-1).view(np.uint8)
        self.constants[name] = StoredArray(name=name, type=kind, shape=array.shape, data=data)
        return name
