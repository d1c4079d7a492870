"""Quantized inputs of products in a graph: static ones through Q and DQ, dynamic ones by each token's own scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.deployment.onnx.builder import Builder
from workbench.deployment.onnx.codes import FLOATS
from workbench.errors import ExportError, MissingResultError
from workbench.models.layer import Layer
from workbench.numerics.formats import parse_scheme, takes_range
from workbench.numerics.formats.cast import CastScheme
from workbench.numerics.formats.scaled import ScaledScheme
from workbench.numerics.granularity import PerToken

if TYPE_CHECKING:
    from workbench.quantization.quantized_model import QuantizedModel


@dataclass(slots=True, kw_only=True, eq=False)
class InputQuantizers:
    """Puts nodes before products; those of the same tensor in the same way are shared."""

    builder: Builder
    quantized: QuantizedModel
    done: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def quantize(self, node: Any, place: int, layer: Layer, name: str) -> None:
        """Have ``node`` read its input ``place`` on the grid of the scheme ``name``."""
        scheme, value = parse_scheme(name), node.inputs[place]
        if isinstance(scheme, CastScheme):
            key: tuple[Any, ...] = (value, name)
            build: Callable[..., Any]
            build = partial(self._cast, node, value, scheme)
        elif not isinstance(scheme, ScaledScheme):
            raise ExportError(f"ONNX has no representation for inputs in {name}")
        elif takes_range(scheme):
            parameters = self._static(layer, scheme)
            key = (value, name, *parameters)
            build = partial(self._through, node, value, scheme, scale=parameters[0], shift=parameters[1])
        else:
            rank = len(layer.shape) if layer.kind.is_convolution else 0
            key, build = (value, name, rank), partial(self._dynamic, node, value, scheme, rank=rank)
        key = (*key, node.graph)  # what is made in one branch is not known in another
        if key not in self.done:
            self.done[key] = build(name=f"{layer.name}.input")
        node.replace_input_with(place, self.done[key])

    def _static(self, layer: Layer, scheme: ScaledScheme) -> tuple[float, int]:
        bounds = self.quantized.ranges.get((layer.name, "input"))
        if bounds is None:
            raise MissingResultError(f"the inputs of {layer.name} have the static scheme {scheme.name}: calibrate")
        parameters = scheme.fit_range(bounds.low, bounds.high)
        shift = 0 if parameters.zero_point is None else int(parameters.zero_point.item())
        return float(parameters.scale.item()), shift

    def _through(self, node: Any, value: Any, scheme: ScaledScheme, *, name: str, scale: float, shift: int) -> Any:
        import onnx_ir

        element = scheme.element
        if element.shiftable and element.bits != 8:
            raise ExportError(f"ONNX has no representation for inputs in {scheme.name}; give them 8 bits")
        kind = ("INT8" if scheme.symmetric else "UINT8") if element.shiftable else FLOATS.get(element.name)
        if kind is None:
            raise ExportError(f"ONNX has no representation for inputs in {scheme.name}")
        by = self.builder.constant(f"{name}.scale", np.array(scale, np.float32))
        zero = self.builder.constant(f"{name}.zero_point", np.array(shift).astype(onnx_ir.DataType[kind].numpy()), kind)
        codes = self.builder.node(node, "QuantizeLinear", [value, by, zero], f"{name}.codes")
        out = self.builder.node(node, "DequantizeLinear", [codes, by, zero], f"{name}.values")
        out.shape, out.type = value.shape, value.type
        return out

    def _cast(self, node: Any, value: Any, scheme: CastScheme, name: str) -> Any:
        import onnx_ir

        if scheme.name == "fp32":
            return value
        most = float(scheme.element.largest)
        ends = [self.builder.constant(f"{scheme.name}.{end}", np.array(sign * most, np.float32))
                for end, sign in (("lowest", -1), ("largest", 1))]  # fmt: skip
        inside = self.builder.node(node, "Clip", [value, *ends], f"{name}.clipped")
        kind = onnx_ir.DataType.FLOAT16 if scheme.name == "fp16" else onnx_ir.DataType.BFLOAT16
        half = self.builder.node(node, "Cast", [inside], f"{name}.{scheme.name}", to=kind)
        return self.builder.node(node, "Cast", [half], f"{name}.values", to=onnx_ir.DataType.FLOAT)

    def _dynamic(self, node: Any, value: Any, scheme: ScaledScheme, name: str, *, rank: int) -> Any:
        """Return the values rounded by each token's own scale (``rank`` > 0: each sample's), in float32."""
        element = scheme.element
        if not element.shiftable or not isinstance(scheme.granularity, PerToken):
            raise ExportError(f"ONNX has no representation for dynamic inputs in {scheme.name}; int8-token has one")
        add, number = self.builder.node, self._number
        axes = self.builder.constant(f"axes.{rank}", np.arange(1, rank) if rank else np.array([-1], np.int64))
        low = add(node, "Min", [add(node, "ReduceMin", [value, axes], f"{name}.least"), number(0)], f"{name}.low")
        high = add(node, "Max", [add(node, "ReduceMax", [value, axes], f"{name}.most"), number(0)], f"{name}.high")
        lowest, highest = float(element.lowest), float(element.highest)
        levels = highest - lowest
        if scheme.symmetric:
            ends = [add(node, "Div", [low, number(lowest)], f"{name}.below"),
                    add(node, "Div", [high, number(highest)], f"{name}.above")]  # fmt: skip
            scale, shift = add(node, "Max", ends, f"{name}.scale"), None
        else:
            ends = [add(node, "Div", [high, number(levels)], f"{name}.above"),
                    add(node, "Div", [low, number(levels)], f"{name}.below")]  # fmt: skip
            scale, shift = add(node, "Sub", ends, f"{name}.scale"), number(0)
        empty = add(node, "Equal", [scale, number(0)], f"{name}.empty")
        safe = add(node, "Where", [empty, number(1), scale], f"{name}.divisor")
        if shift is not None:
            below = add(node, "Neg", [low], f"{name}.negated")
            exact = add(node, "Div", [below, safe], f"{name}.exact_zero_point")
            whole = add(node, "Round", [exact], f"{name}.rounded_zero_point")
            shift = add(node, "Clip", [whole, number(0), number(levels)], f"{name}.zero_point")
        codes = add(node, "Round", [add(node, "Div", [value, safe], f"{name}.scaled")], f"{name}.rounded")
        if shift is None:
            codes = add(node, "Clip", [codes, number(lowest), number(highest)], f"{name}.codes")
        else:
            codes = add(node, "Add", [codes, shift], f"{name}.shifted")
            codes = add(node, "Clip", [codes, number(0), number(levels)], f"{name}.codes")
            codes = add(node, "Sub", [codes, shift], f"{name}.centred")
        out = add(node, "Mul", [codes, scale], f"{name}.values")
        out.shape, out.type = value.shape, value.type
        return out

    def _number(self, value: float) -> Any:
        return self.builder.constant(f"number.{value:g}", np.array(value, np.float32))
