"""An ONNX file: its graph, parsed in a limited process, and its tensors, inside it or in files beside it."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import BackendUnavailableError, NotAModelError
from workbench.limited import MEMORY, SECONDS, limited
from workbench.models.onnx.inner import hoist_weights, inner_graphs
from workbench.models.onnx.schemas import require_schemas
from workbench.models.readers.mapped import MappedFile, require_bounded, require_held

if TYPE_CHECKING:
    import torch

LAYER = "layer"
"""The key in the metadata of nodes that we write where a layer multiplies with a tensor that has another one's name."""

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
    19: "float8_e5m2", 20: "float8_e5m2fnuz",
}  # fmt: skip
"""torch's names of ONNX's types of numbers."""

PACKED = {21: (4, False), 22: (4, True), 25: (2, False), 26: (2, True)}
"""Bits, and whether signed, of the types whose numbers share bytes."""

FLOATS = frozenset({1, 10, 11, 16})
STRING = 8
DOMAINS = frozenset({"", "ai.onnx", "com.microsoft"})
"""Whose operators ONNX Runtime has by itself."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredArray:
    """One tensor of a file: ``type`` by ONNX's number, its bytes at ``start`` of ``file`` (None: in ``data``)."""

    name: str
    type: int
    shape: tuple[int, ...]
    data: np.ndarray | None
    file: MappedFile | None = None
    start: int = 0

    @property
    def is_floating(self) -> bool:
        """Whether it holds floating-point numbers of 16 bits or more."""
        return self.type in FLOATS

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return nbytes_of(self.type, self.shape)

    def raw_bytes(self) -> np.ndarray:
        """Return the bytes, uint8."""
        if self.data is not None:
            return self.data
        assert self.file is not None
        return np.frombuffer(self.file.data, np.uint8, self.nbytes, self.start)

    def tensor(self) -> torch.Tensor:
        """Return it in its own dtype, never to be written into; numbers of 4 and 2 bits as int8 or uint8."""
        import torch

        raw = torch.from_numpy(np.require(self.raw_bytes(), requirements=["C", "W"]))
        if self.type not in PACKED:
            dtype = getattr(torch, DTYPES[self.type])
            return raw.clone().view(dtype).reshape(self.shape)
        bits, signed = PACKED[self.type]
        shifts = torch.arange(0, 8, bits, dtype=torch.uint8)
        codes = (raw[:, None] >> shifts & (1 << bits) - 1).reshape(-1)[: math.prod(self.shape)]
        if signed:
            codes = codes.to(torch.int8)
            codes = torch.where(codes >= 1 << (bits - 1), codes - (1 << bits), codes)
        return codes.reshape(self.shape)

    def proto(self) -> Any:
        """Return it as onnx's tensor."""
        from onnx import helper

        return helper.make_tensor(self.name, self.type, self.shape, self.raw_bytes().tobytes(), raw=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnnxFile:
    """``model`` is onnx's message without the tensors of its graph, which are in ``arrays`` by name.

    ``notes`` are what the file says and ``model`` does not.
    """

    path: Path
    model: Any
    arrays: Mapping[str, StoredArray]
    notes: tuple[str, ...] = ()


def nbytes_of(kind: int, shape: tuple[int, ...]) -> int:
    """Return the bytes of a tensor by ONNX's number of its type."""
    bits = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 16: 16, 17: 8, 18: 8,
            19: 8, 20: 8, 21: 4, 22: 4, 25: 2, 26: 2}[kind]  # fmt: skip
    return -(-math.prod(shape) * bits // 8)


def require_packages() -> None:
    """Raise BackendUnavailableError, with the line that installs them, where ONNX files cannot be opened here."""
    for package in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            raise BackendUnavailableError(
                f"ONNX files are opened with the package {package}; install it: "
                "pip install 'quantization-workbench[onnx]'"
            )


def read_onnx(path: Path) -> OnnxFile:
    """Read the graph, in a limited process, and map the tensors.

    Raises NotAModelError for a damaged file, for operators of a library of their own, and for data outside the folder.
    """
    require_packages()
    import onnx
    import onnx.inliner
    import onnx.numpy_helper

    try:
        file = MappedFile(path)
    except OSError as error:
        raise NotAModelError(f"{path} cannot be read: {error.strerror or error}") from error
    if not file.size:
        raise NotAModelError(f"{path} is empty; fetch it again")

    def work() -> list[np.ndarray]:
        return _parsed(bytes(file.data))

    graph, table, *data = limited(
        work, str(path), NotAModelError, seconds=SECONDS + file.size / 2e7, memory=MEMORY + 5 * file.size
    )
    model = onnx.load_model_from_string(graph.tobytes())
    return OnnxFile(path=path, model=model, arrays=_arrays(path, json.loads(table.tobytes()), data))


def _require_text(graph: Any) -> None:
    """Raise NotAModelError for a name that is not UTF-8, which protobuf leaves as bytes."""
    nodes = (name for node in graph.node for name in (node.name, node.op_type, node.domain, *node.input, *node.output))
    named = (each.name for each in (*graph.initializer, *graph.input, *graph.output))
    if odd := next((name for name in (*nodes, *named) if isinstance(name, bytes)), b""):
        raise NotAModelError(f"its name {odd.decode(errors='backslashreplace')} is not UTF-8; save it again")


def _parsed(document: bytes) -> list[np.ndarray]:
    """Return the graph without its tensors, a table of these (JSON), and their bytes; in the limited process."""
    import onnx

    model = onnx.load_model_from_string(document)
    if not model.graph.node or not model.opset_import:
        raise NotAModelError("it holds no graph of ONNX; fetch it again")
    _require_text(model.graph)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    _clear(model)
    require_schemas(_nodes(model.graph, 0), {each.domain: each.version for each in model.opset_import})
    _hoist_constants(model.graph)
    hoist_weights(model.graph)
    _put_in_order(model.graph)
    _require_order(model.graph)
    strings = [tensor for tensor in model.graph.initializer if tensor.data_type == STRING]
    entries = [_entry(tensor) for tensor in model.graph.initializer if tensor.data_type != STRING]
    table, data = list[list[Any]](), list[np.ndarray]()
    for entry, raw in entries:
        table.append([*entry, len(data) if raw is not None else -1])
        data += [] if raw is None else [raw]
    del model.graph.initializer[:]
    model.graph.initializer.extend(strings)
    skeleton = np.frombuffer(model.SerializeToString(), np.uint8)
    return [skeleton, np.frombuffer(json.dumps(table).encode(), np.uint8), *data]


def _clear(model: Any) -> None:
    """Leave out what only describes a model; NotAModelError for sparse tensors and operators of other libraries."""
    for field in ("functions", "training_info", "metadata_props", "doc_string"):
        model.ClearField(field)
    for field in ("doc_string", "value_info", "quantization_annotation", "metadata_props"):
        model.graph.ClearField(field)
    if model.graph.sparse_initializer:
        raise NotAModelError("it holds sparse tensors, which are not read; save it with dense ones")
    taken, numbers = set[str](), Counter[str]()
    for node in _nodes(model.graph, 0):
        node.ClearField("doc_string")
        node.name = path = _path(node)
        while node.name and node.name in taken:  # ONNX Runtime refuses a name that two nodes have
            numbers[path] += 1
            node.name = f"{path}_{numbers[path]}"
        taken.add(node.name)
        layer = layer_of(node)
        node.ClearField("metadata_props")
        if layer:
            node.metadata_props.add(key=LAYER, value=layer)
        if node.domain not in DOMAINS or node.op_type == "EPContext":
            raise NotAModelError(
                f"its operator {node.domain}.{node.op_type} needs a custom operator library, and a file never loads one"
            )


def _nodes(graph: Any, depth: int) -> Iterator[Any]:
    """Yield every node, those of inner graphs too; NotAModelError for what they keep outside."""
    if depth > 8:
        raise NotAModelError("its graphs are nested more than 8 deep")
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if any(tensor.data_location for tensor in (attribute.t, *attribute.tensors)):
                raise NotAModelError(f"the node {node.name or node.op_type} keeps a constant in another file")
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                if any(tensor.data_location for tensor in inner.initializer):
                    raise NotAModelError(f"the node {node.name or node.op_type} keeps a constant in another file")
                yield from _nodes(inner, depth + 1)


def layer_of(node: Any) -> str:
    """Return what a node's metadata call the layer whose weight it multiplies with, "" where they say nothing."""
    return next((each.value[:4096] for each in node.metadata_props if each.key == LAYER), "")


def _path(node: Any) -> str:
    """Return a node's name, which says the module that it came from where torch's exporter noted that."""
    scopes = next((each.value for each in node.metadata_props if each.key == "pkg.torch.onnx.name_scopes"), "")
    names = re.findall(r"'([^']*)'", scopes[:4096])
    return f"/{names[-2].replace('.', '/')}/{node.op_type}" if len(names) > 1 and names[-2] else str(node.name)


def _hoist_constants(graph: Any) -> None:
    """Make initializers of the graph's own Constant nodes."""
    from onnx import numpy_helper

    others = []
    for node in graph.node:
        value = node.attribute[0] if node.op_type == "Constant" and len(node.attribute) == 1 else None
        number = None if value is None else {
            "value_float": np.float32(value.f), "value_int": np.int64(value.i),
            "value_floats": np.array(value.floats, np.float32), "value_ints": np.array(value.ints, np.int64),
        }.get(value.name)  # fmt: skip
        if number is not None:
            graph.initializer.append(numpy_helper.from_array(np.asarray(number), node.output[0]))
        elif value is not None and value.name == "value":
            graph.initializer.append(value.t)
            graph.initializer[-1].name = node.output[0]
        else:
            others.append(node)
    del graph.node[:]
    graph.node.extend(others)


def _put_in_order(graph: Any) -> None:
    """Put what a node takes right before it where it is behind it, as some converters append it; cycles stay."""
    makers = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
    before = [sorted({makers[name] for name in _taken(node) if name in makers}) for node in graph.node]
    if all(makes[-1] < at for at, makes in enumerate(before) if makes):
        return
    order, begun = dict[int, None](), set[int]()
    for first in range(len(before)):
        waiting = [first]
        while waiting:
            at = waiting[-1]
            missing = [] if at in order else [each for each in before[at] if each not in order]
            if missing and at in begun:
                return  # a cycle, which is said by the name that is missing
            begun.add(at)
            waiting += missing[::-1]
            if not missing:
                order[waiting.pop()] = None
    nodes = [graph.node[at] for at in order]
    del graph.node[:]
    graph.node.extend(nodes)


def _taken(node: Any) -> set[str]:
    inner = [each for graph in inner_graphs(node) for each in graph.node]
    return set(node.input).union(*map(_taken, inner))


def _require_order(graph: Any) -> None:
    """Raise NotAModelError unless every name is made once, and before it is used."""
    known = {"", *(value.name for value in graph.input)}
    own = [tensor.name for tensor in graph.initializer]
    if len(set(own)) != len(own):
        raise NotAModelError("two of its tensors have the same name; it is damaged")
    known.update(own)
    for node in graph.node:
        if missing := [name for name in node.input if name not in known]:
            raise NotAModelError(
                f"its node {node.name or node.op_type} takes {missing[0]}, which no node before it computes"
            )
        if any(name and name in known for name in node.output):
            raise NotAModelError(f"its node {node.name or node.op_type} defines a name that exists already")
        known.update(node.output)
    if missing := [value.name for value in graph.output if value.name not in known]:
        raise NotAModelError(f"no node computes its output {missing[0]}")


def _entry(tensor: Any) -> tuple[list[Any], np.ndarray | None]:
    """Return name, type, shape and place of a tensor, and its bytes where they are in the file itself."""
    from onnx import TensorProto, numpy_helper

    shape = tuple(int(size) for size in tensor.dims)
    if tensor.data_type not in DTYPES and tensor.data_type not in PACKED:
        raise NotAModelError(f"its tensor {tensor.name} is of type {tensor.data_type}, which is not read yet")
    if any(size < 0 for size in shape):
        raise NotAModelError(f"its tensor {tensor.name} has the shape {shape}")
    require_bounded(shape, f"its tensor {tensor.name}")
    if tensor.data_location == TensorProto.EXTERNAL:
        place = {entry.key: entry.value for entry in tensor.external_data}
        where = [place.get("location", ""), place.get("offset", "0"), place.get("length", "")]
        return [tensor.name, tensor.data_type, shape, where], None
    raw = tensor.raw_data
    if not tensor.HasField("raw_data"):
        raw = numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name).raw_data
    if len(raw) != nbytes_of(tensor.data_type, shape):
        raise NotAModelError(
            f"its tensor {tensor.name} of {shape} has {len(raw)} bytes, not {nbytes_of(tensor.data_type, shape)}"
        )
    return [tensor.name, tensor.data_type, shape, None], np.frombuffer(raw, np.uint8)


def _arrays(path: Path, table: Any, data: list[np.ndarray]) -> dict[str, StoredArray]:
    files: dict[str, MappedFile] = {}
    arrays = {}
    for name, kind, shape, where, place in table:
        array = StoredArray(name=name, type=kind, shape=tuple(shape), data=None if where else data[place])
        if where:
            location, offset, length = where
            if location not in files:
                files[location] = _beside(path, location)
            file = files[location]
            stated = (offset, length or str(array.nbytes))
            start, size = (int(text) if text.isdecimal() and len(text) < 20 else -1 for text in stated)
            if start < 0 or size != array.nbytes or start + size > file.size:
                raise NotAModelError(
                    f"{path}: the tensor {name} takes {array.nbytes} bytes at {offset[:20]} of {location}, which has "
                    f"{file.size}; fetch it again"
                )
            array = StoredArray(name=name, type=kind, shape=tuple(shape), data=None, file=file, start=start)
        arrays[name] = array
    within = sum(array.nbytes for array in arrays.values() if array.file is not None)
    try:
        require_held(within, sum(file.size for file in files.values()))
    except ValueError as error:
        raise NotAModelError(f"{path}: {error}") from None
    return arrays


def _beside(path: Path, location: str) -> MappedFile:
    """Return the data file that a graph names; NotAModelError for one outside its folder, or that is not there."""
    parts = PurePosixPath(location).parts
    odd = any(sign in location for sign in "\0\\:")
    if not location or odd or location.startswith("/") or ".." in parts:
        raise NotAModelError(f"{path} keeps tensors in {location[:200]!r}, outside its folder; it is not read")
    place = path.parent / location
    try:
        real = place.resolve(strict=True)
        homes = {path.parent.resolve(), path.resolve().parent}  # a cache links file by file to a folder of its own
        if not any(real.is_relative_to(home) for home in homes):
            raise NotAModelError(f"{path} keeps tensors in {location}, a link out of its folder, not read")
        if not real.is_file():
            raise NotAModelError(f"{path} keeps tensors in {location}, which is not a file")
        return MappedFile(real)
    except OSError as error:
        why = error.strerror or error
        raise NotAModelError(f"{path} keeps tensors in {location}: it cannot be read ({why}); fetch it too") from None
