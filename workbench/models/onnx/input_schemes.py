"""How a file quantizes what its layers take: a static range behind QuantizeLinear, or each token's own."""

from __future__ import annotations

from typing import Any

from workbench.models.onnx.float_graph import InputScheme
from workbench.models.onnx.integers import DYNAMIC
from workbench.models.onnx.weights import Constants

FLOAT8 = {17: ("fp8-e4m3-tensor", 448.0), 19: ("fp8-e5m2-tensor", 57344.0)}
"""Schemes and largest values of ONNX's float8 types."""


def input_scheme(constants: Constants, name: str) -> tuple[str, InputScheme | None]:
    """Return what a layer takes before it is quantized, and how it is quantized.

    Without a scheme, or with one that we do not have, it is ``name`` itself and None.
    """
    back = constants.makers.get(name)
    if back is not None and back.op_type == DYNAMIC:
        return str(back.input[0]), InputScheme(scheme="int8-token-asym")
    forth = None if back is None else constants.makers.get(back.input[0])
    if back is None or forth is None or (back.op_type, forth.op_type) != ("DequantizeLinear", "QuantizeLinear"):
        return name, None
    if list(back.input[1:]) != list(forth.input[1:]):
        return name, None
    scheme = _static_scheme(constants, back)
    return (name, None) if scheme is None else (str(forth.input[0]), scheme)


def _static_scheme(constants: Constants, node: Any) -> InputScheme | None:
    """Return the scheme of a DequantizeLinear with one scale, None for a type of codes that we do not have."""
    scale, zero = (constants.number(each) for each in (*node.input, "")[1:3])
    if scale is None or scale.numel() != 1:
        return None
    source = constants.source(node.input[2]) if len(node.input) > 2 else None
    kind = 2 if source is None else constants.arrays[source].type
    shift = 0.0 if zero is None else float(zero.float().reshape(()))
    unit = float(scale.float().reshape(()))
    if kind in (2, 3):
        low, high = (0, 255) if kind == 2 else (-128, 127)
        scheme = "int8-tensor" if shift == (low + high + 1) / 2 else "int8-tensor-asym"
        return InputScheme(scheme=scheme, range=((low - shift) * unit, (high - shift) * unit))
    if kind in FLOAT8 and not shift:
        scheme, top = FLOAT8[kind]
        return InputScheme(scheme=scheme, range=(-top * unit, top * unit))
    return None
