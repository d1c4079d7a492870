"""ONNX's own description of its operators: how many inputs and outputs each has, and attributes of which types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from workbench.errors import NotAModelError


def require_schemas(nodes: Iterable[Any], versions: Mapping[str, int]) -> None:
    """Raise NotAModelError for a node that does not have its operator's form in the opset of its domain.

    Operators that ONNX does not describe (those of ONNX Runtime) pass.
    """
    import onnx.defs

    @cache
    def schema_of(kind: str, domain: str) -> Any:
        name = "" if domain == "ai.onnx" else domain
        try:
            return onnx.defs.get_schema(kind, versions.get(name, versions.get(domain, 1)), name)
        except onnx.defs.SchemaError:
            return None

    for node in nodes:
        schema = schema_of(node.op_type, node.domain)
        if schema is None:
            continue
        for what, count, least, most in (
            ("inputs", len(node.input), schema.min_input, schema.max_input),
            ("outputs", len(node.output), schema.min_output, schema.max_output),
        ):
            if not least <= count <= most:
                expected = f"{least}" if least == most else f"at least {least}" if count < least else f"at most {most}"
                raise NotAModelError(
                    f"its node {node.name or node.op_type} has {count} {what}; {node.op_type} has {expected}"
                )
        for each in node.attribute:
            known = schema.attributes.get(each.name)
            if known is not None and each.type != known.type.value:
                raise NotAModelError(
                    f"its node {node.name or node.op_type} has an attribute {each.name} that is not of the type "
                    f"{known.type.name}"
                )
