"""The graph of a model that was opened from an ONNX file, as it was but for its codes and scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.deployment.onnx.capture import OPSET, Graph
from workbench.errors import ExportError, first_line
from workbench.models.onnx.container import FLOATS
from workbench.models.onnx.inner import inner_graphs
from workbench.models.onnx.nodes import taken_by

if TYPE_CHECKING:
    from workbench.models.sources.onnx_file import OnnxModel


def graph_of(model: OnnxModel) -> Graph:
    """Return the graph with its weights as inputs, in an opset that has blocks and 4-bit integers."""
    import onnx_ir
    from onnx import helper, version_converter

    opset = next((each.version for each in model.file.model.opset_import if each.domain in ("", "ai.onnx")), OPSET)
    document = _document(model)
    try:
        if opset < OPSET:
            document = version_converter.convert_version(document, OPSET)
        for each in document.opset_import:
            if each.domain == "ai.onnx":
                each.domain = ""
        if all(each.domain != "com.microsoft" for each in document.opset_import):
            document.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        document.ir_version = max(document.ir_version, 10)
        graph = onnx_ir.serde.deserialize_model(document)
    except Exception as error:  # the converter's errors have no common type
        raise ExportError(
            f"its graph cannot be converted from opset {opset} to {OPSET}: {first_line(error)}"
        ) from error
    given = {value.name for value in document.graph.input}
    return Graph(model=graph, weights=tuple(name for name in model.graph.weights if name in given))


def _document(model: OnnxModel) -> Any:
    from onnx import helper

    graph, network = model.graph, model.body.network
    consumed = {name for node in graph.nodes for name in taken_by(node)}
    weights = [
        helper.make_tensor_value_info(name, 1, list(network.get_parameter(name).shape))
        for name in graph.weights if name in consumed
    ]  # fmt: skip
    source = model.file.model
    takes = [value for value in source.graph.input if value.name not in model.file.arrays]
    written = helper.make_graph(
        graph.nodes, source.graph.name or "graph", [*takes, *weights], list(source.graph.output),
        [each.proto() for each in graph.constants.values()],
    )  # fmt: skip
    written.initializer.extend(source.graph.initializer)
    there = {each.name for each in (*written.input, *written.initializer)}
    given = {value.name for value in source.graph.output} - there  # tensors of the file may be outputs
    written.initializer.extend(each.proto() for name, each in model.file.arrays.items() if name in given)
    _keep_dtypes(written)
    return helper.make_model(
        written, opset_imports=list(source.opset_import), ir_version=source.ir_version,
        producer_name="quantization-workbench",
    )  # fmt: skip


def _keep_dtypes(graph: Any) -> None:
    """Cast what the graph takes and gives in other floating-point types than the float32 in which it computes."""
    from onnx import helper

    made = {name for node in graph.node for name in node.output}
    first, last, names = list[Any](), list[Any](), dict[str, str]()
    for value in graph.input:
        if value.type.tensor_type.elem_type in FLOATS - {1}:
            names[value.name] = f"{value.name}.float32"
            first.append(helper.make_node("Cast", [value.name], [names[value.name]], to=1))
    for value in graph.output:  # an input that is given as it is needs none
        if (kind := value.type.tensor_type.elem_type) in FLOATS - {1} and value.name in made:
            names[value.name] = f"{value.name}.float32"
            last.append(helper.make_node("Cast", [names[value.name]], [value.name], to=kind))
    _rename(graph.node, names)
    nodes = [*first, *graph.node, *last]
    del graph.node[:]
    graph.node.extend(nodes)


def _rename(nodes: Iterable[Any], names: Mapping[str, str]) -> None:
    for node in nodes:
        for values in (node.input, node.output):
            values[:] = [names.get(name, name) for name in values]
        for inner in inner_graphs(node):
            _rename(inner.node, names)
            for value in inner.output:
                value.name = names.get(value.name, value.name)
