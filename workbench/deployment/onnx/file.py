"""An ONNX file of a quantized model: written tensor by tensor, read back by the package onnx, compared bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.deployment.onnx.builder import Builder
from workbench.deployment.onnx.capture import Graph, capture
from workbench.deployment.onnx.codes import Initializer, refusal
from workbench.deployment.onnx.rewrite import rewrite
from workbench.deployment.onnx.source_graph import graph_of
from workbench.deployment.onnx.values import Decoder
from workbench.deployment.targets import target
from workbench.deployment.tensors import decoded, require_same_bytes, require_that_all_fit
from workbench.errors import ExportError, first_line
from workbench.models.dtypes import tensor_bytes
from workbench.models.layer import Layer, StoredTensor
from workbench.models.sources.onnx_file import OnnxModel
from workbench.planning.plan import KEEP, resolve
from workbench.progress import Progress
from workbench.readable import few

if TYPE_CHECKING:
    from workbench.models.model import Model
    from workbench.quantization.quantized_model import QuantizedModel

LARGE = 1 << 30
"""Bytes of tensors from which they are written to a file of their own; a file of ONNX holds at most 2 GB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Content:
    """The graph (of onnx_ir), the parameters that it uses, the model's tensors by their names there."""

    graph: Any
    weights: frozenset[str]
    tensors: Mapping[str, Initializer]
    quantized: QuantizedModel
    model: Model

    @property
    def nbytes(self) -> int:
        """The bytes of the model's tensors; not those of the graph's own constants."""
        return sum(int(self.graph.graph.initializers[name].const_value.nbytes) for name in self.tensors)


def content_of(
    quantized: QuantizedModel, model: Model, graph: Graph | None = None, *, accuracy: int = 1, standard: bool = False
) -> Content:
    """Return what the file of a quantized model holds; no weight is read yet.

    ``model`` is the one that the plan's transforms left; ``graph`` one that was captured of it (default: captured now).
    Raises ExportError for a plan that ONNX Runtime does not run, with every layer and the reason, and where the network
    cannot be captured.
    """
    require_fit(refusals(quantized, model))
    graph = graph or (graph_of(model) if isinstance(model, OnnxModel) else capture(model))
    builder: Builder = rewrite(graph, quantized, model, accuracy=accuracy, standard=standard)
    written = builder.model
    opsets = written.opset_imports
    kinds = {each.type for each in builder.initializers.values()}
    if kinds & {"INT2", "UINT2"}:
        opsets[""] = 25
    if any(node.domain == "com.microsoft" for node in written.graph.all_nodes()):
        opsets["com.microsoft"] = 1
    written.metadata_props["plan"] = quantized.plan.hash
    written.metadata_props["fingerprint"] = quantized.fingerprint
    return Content(
        graph=written, weights=frozenset(graph.weights), tensors=dict(builder.initializers), quantized=quantized,
        model=model,
    )  # fmt: skip


def refusals(quantized: QuantizedModel, model: Model, name: str = "onnxruntime") -> dict[str, str]:
    """Return why the runtime ``name`` does not run each layer as the plan says, for those that it does not."""
    runtime, reasons = target(name), {}
    for layer_name, assignment in resolve(quantized.plan, model.summary.layers).items():
        layer = model.summary.by_name[layer_name]
        weights = KEEP if layer.tied_to is None and layer_name not in quantized.tensors else assignment.weights
        reason = runtime.legal(layer, weights, assignment.inputs)
        reason = reason or (None if weights == KEEP else refusal(weights))
        if assignment.cache is not None:
            reason = f"{runtime.title} has no cache of keys and values in another format; take the cache schemes out"
        if reason is not None:
            reasons[layer_name] = reason
    return reasons


def require_fit(reasons: Mapping[str, str], name: str = "onnxruntime") -> None:
    """Raise ExportError that names every layer that does not fit, by reason."""
    what = "an ONNX file" if name == "onnxruntime" else f"an ONNX file for {target(name).title}"
    require_that_all_fit(reasons, what, name)


def require_accuracy(level: int) -> None:
    """Raise ExportError for a level of MatMulNBits that there is not."""
    if level not in range(5):
        raise ExportError(f"accuracy is 0 to 4, not {level}")


def write(path: Path, content: Content, data: Path | None, progress: Progress) -> None:
    """Write the graph to ``path``, tensors to ``data`` beside it where one is named; one tensor in memory at a time.

    Raises ExportError for a name that is not UTF-8, which the package onnx does not open.
    """
    import onnx_ir

    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ExportError(f"the package onnx does not read what would be written: {first_line(error)}") from None

    def wrote(tensor: Any, info: Any) -> None:
        progress(info.index / max(info.total, 1), f"writing {tensor.name}")

    external = None if data is None else data.name
    onnx_ir.save(content.graph, path, format="protobuf", external_data=external, callback=wrote if external else None)


def prove(path: Path, content: Content, progress: Progress, *, graph: bool = False) -> None:
    """Raise ExportError unless the package onnx reads the very values back that were evaluated, bit for bit.

    ``graph``: and the very operators and constants, whose names may be others in a file of another process.
    """
    try:
        _check(path, content.model)
        decoder = Decoder(path)
    except Exception as error:  # the checker has errors of many kinds
        raise ExportError(f"the package onnx does not read what was written: {first_line(error)}") from error
    if graph:
        _compare_graph(decoder, content)
    layers = [layer for layer in content.model.summary.stored if layer.parameter in content.weights]
    for place, layer in enumerate(layers):
        progress(place / max(len(layers), 1), f"comparing {layer.name}")
        _compare(decoder, layer, content)
    for tensor in content.model.summary.others:
        if tensor.name in content.weights:
            own = content.model.other(tensor.name)
            expected = content.quantized.others.get(tensor.name, own).to(own.dtype)
            require_same_bytes(tensor, decoder.raw_bytes(tensor.name), tensor_bytes(expected), "please report")


def _compare_graph(decoder: Decoder, content: Content) -> None:
    """Raise ExportError naming the first operator or constant that the file holds otherwise than it was written."""
    from onnx_ir.serde import serialize_node

    written, nodes = content.graph.graph, decoder.model.graph.node
    _compare_header(decoder.model, content.graph)
    for node, read in zip_longest(written, nodes):
        if node is None or read is None or serialize_node(node).SerializeToString() != read.SerializeToString():
            named = getattr(node, "name", None) or getattr(read, "name", "")
            raise ExportError(f"the operator {named} reads back otherwise than it was written; please report")
    for name, value in written.initializers.items():
        constant = value.const_value
        if name not in content.tensors and constant.dtype.name != "STRING":
            expected = np.frombuffer(constant.tobytes(), np.uint8)
            shape = tuple(constant.shape.numpy()) if constant.dtype.bitwidth >= 8 else expected.shape
            stored = StoredTensor(name=name, dtype=constant.dtype.numpy().name, shape=shape)
            require_same_bytes(stored, decoder.raw_bytes(name), expected, "please report")


def _compare_header(file: Any, written: Any) -> None:
    """Raise ExportError naming what the file says otherwise than it was written, beside operators and constants."""
    from onnx_ir.serde import serialize_model, serialize_value

    constants = dict(written.graph.initializers)
    written.graph.initializers.clear()
    try:
        expected = serialize_model(written)
    finally:
        written.graph.initializers.update(constants)
    values = {each.name: each for each in (*expected.graph.value_info, *map(serialize_value, constants.values()))}
    other = [each.name for each in file.graph.value_info if values.get(each.name) != each]
    apart = ("graph", "node", "initializer", "value_info")
    first, second = (
        {
            field.name: value
            for field, value in (*each.ListFields(), *each.graph.ListFields())
            if field.name not in apart
        }
        for each in (expected, file)
    )
    if other := [*other, *(what for what in first | second if first.get(what) != second.get(what))]:
        raise ExportError(f"{few(other, 4)} of the file reads back otherwise than it was written; please report")


def _check(path: Path, model: Model) -> None:
    """Raise the checker's error unless the file that the model was opened from has it too, and runs."""
    import onnx

    try:
        onnx.checker.check_model(str(path), full_check=False)
    except onnx.checker.ValidationError:
        if isinstance(model, OnnxModel):
            try:
                onnx.checker.check_model(str(model.file.path), full_check=False)
            except onnx.checker.ValidationError:
                return
        raise


def _compare(decoder: Decoder, layer: Layer, content: Content) -> None:
    """Raise ExportError naming the first value of a weight that the file holds otherwise than it was evaluated."""
    quantized, model = content.quantized, content.model
    if layer.name in quantized.tensors:
        expected = layer.matrix_of(decoded(quantized, layer)).float().numpy()
    else:
        expected = model.held_weight(layer.name).float().numpy()
    matrix = decoder.matrix(layer)
    if matrix.shape != expected.shape:
        raise ExportError(f"{layer.parameter} reads back as {matrix.shape}, not {expected.shape}; please report")
    same = np.ascontiguousarray(matrix).view(np.uint32) == np.ascontiguousarray(expected).view(np.uint32)
    if not same.all():
        row, column = np.argwhere(~same)[0]
        raise ExportError(
            f"{layer.parameter}[{row}, {column}] reads back as {float(matrix[row, column])!r}, "
            f"{float(expected[row, column])!r} was evaluated; please report"
        )
