"""Damage that keeps a file's form: its header, metadata, graph or tree say something else, and every length agrees.

Damaged bytes are mostly refused at the first length or checksum.  Here a file is written as JSON, values of the JSON
change, and the file is formed from it again.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import archives

JSON, TENSORS = "structure.json", "tensors.bin"
"""What is damaged, and what follows it in the file."""


def _written(folder: Path, structure: Any) -> Path:
    (folder / JSON).write_text(json.dumps(structure))
    return folder / JSON


def read(path: Path) -> Any:
    """Return the structure; what damage left no JSON is no structure."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None


def safetensors_header(file: Path) -> Path:
    """Write the header of a safetensors file, and what follows it, beside it."""
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    file.with_name(TENSORS).write_bytes(data[8 + length :])
    file.with_name(JSON).write_bytes(data[8 : 8 + length])
    return file.with_name(JSON)


def with_header(path: Path, file: Path) -> Path:
    """Write ``file`` with the header at ``path``."""
    header = path.read_bytes()
    file.write_bytes(len(header).to_bytes(8, "little") + header + path.with_name(TENSORS).read_bytes())
    return file


# GGUF

_WHOLE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 7: "?", 10: "Q", 11: "q"}
_REAL = {6: "f", 12: "d"}
_SIZES = {"B": 8, "b": 8, "H": 16, "h": 16, "I": 32, "i": 32, "Q": 64, "q": 64}


def _number(kind: int, value: Any) -> bytes:
    """Return a value in the bytes of a GGUF type, whatever it is."""
    if kind in _REAL:
        real = float(value) if isinstance(value, int | float) and abs(value) < 1e38 else 0.0
        return struct.pack("<" + _REAL[kind], real)
    code = _WHOLE.get(kind, "I")
    whole = int(value) if isinstance(value, int | float) and value == value else 0
    if code == "?":
        return bytes([whole & 1])
    return (whole % (1 << _SIZES[code])).to_bytes(_SIZES[code] // 8, "little")


def _text(value: Any) -> bytes:
    data = (value if isinstance(value, str) else json.dumps(value)).encode("latin-1", "replace")
    return len(data).to_bytes(8, "little") + data


def _value(kind: Any, value: Any) -> bytes:
    kind = kind if isinstance(kind, int) else 4
    if kind == 8:
        return _text(value)
    if kind == 9:
        element, items = value if isinstance(value, list) and len(value) == 2 else (4, value)
        element, items = element if isinstance(element, int) else 8, items if isinstance(items, list) else [items]
        inside = b"".join(_text(item) if element == 8 else _number(element, item) for item in items)
        return _number(4, element) + len(items).to_bytes(8, "little") + inside
    return _number(kind, value)


def gguf_metadata(file: Path) -> Path:
    """Write the metadata and the tensors' facts of a GGUF file as JSON, and its tensors, beside it."""
    from workbench.models.gguf.container import read_gguf
    from workbench.models.gguf.tensors import library

    whole, kinds = read_gguf(file), library().GGMLQuantizationType

    def plain(value: Any) -> Any:
        return value.decode("latin-1") if isinstance(value, bytes) else value

    metadata = []
    for key, value in whole.metadata.items():
        element = getattr(value, "element", None)
        if value.kind == 9:
            metadata.append([key, 9, [element, [plain(item) for item in value.data]]])
        else:
            metadata.append([key, int(value.kind), plain(value.data)])
    start = min(tensor.start for tensor in whole.tensors.values())
    tensors = [
        [tensor.name, list(tensor.shape[::-1]), int(kinds[tensor.type]), tensor.start - start]
        for tensor in whole.tensors.values()
    ]  # fmt: skip
    file.with_name(TENSORS).write_bytes(file.read_bytes()[start:])
    return _written(file.parent, {"version": 3, "metadata": metadata, "tensors": tensors})


def gguf_of(structure: Any, tensors: bytes) -> bytes:
    """Form a GGUF file of what :func:`gguf_metadata` wrote, however it was changed since."""

    def rows(name: str, length: int) -> list[list[Any]]:
        value = structure.get(name) if isinstance(structure, dict) else None
        return [row for row in value if isinstance(row, list) and len(row) == length] if isinstance(value, list) else []

    metadata, facts = rows("metadata", 3), rows("tensors", 4)
    version = structure.get("version") if isinstance(structure, dict) else 3
    head = b"GGUF" + _number(4, version) + len(facts).to_bytes(8, "little") + len(metadata).to_bytes(8, "little")
    body = b"".join(_text(key) + _number(4, kind) + _value(kind, value) for key, kind, value in metadata)
    for name, shape, kind, offset in facts:
        sizes = shape if isinstance(shape, list) else [shape]
        body += _text(name) + _number(4, len(sizes)) + b"".join(_number(10, size) for size in sizes)
        body += _number(4, kind) + _number(10, offset)
    head += body
    return head + bytes(-len(head) % 32) + tensors


# ONNX


def onnx_graph(file: Path) -> Path:
    """Write an ONNX file as the JSON of its protobuf, in which bytes are base64."""
    import onnx
    from google.protobuf import json_format

    return _written(file.parent, json_format.MessageToDict(onnx.load(file)))


def onnx_of(structure: Any) -> bytes | None:
    """Form an ONNX file of JSON; None where protobuf has no such file."""
    import onnx
    from google.protobuf import json_format

    try:
        model = json_format.ParseDict(structure, onnx.ModelProto(), ignore_unknown_fields=True)
        return bytes(model.SerializeToString())
    except (json_format.ParseError, ValueError, TypeError, AttributeError, OverflowError):
        return None


# Sessions


def session_tree(file: Path) -> Path:
    """Write the tree of an HDF5 file: attributes, texts, arrays (small ones as numbers, others as base64)."""
    import h5py

    def walked(group: Any) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for name, item in group.items():
            if isinstance(item, h5py.Group):
                members[name] = walked(item)
            elif h5py.check_string_dtype(item.dtype) is not None:
                texts = [bytes(text).decode() for text in item[()].ravel().tolist()]
                members[name] = {"attributes": attributes(item), "texts": texts}
            else:
                values = item[()]
                members[name] = {"attributes": attributes(item), "dtype": values.dtype.str, "shape": list(values.shape)}
                if values.size <= 64:
                    members[name]["values"] = values.ravel().tolist()
                else:
                    members[name]["bytes"] = base64.b64encode(values.tobytes()).decode()
        return {"attributes": attributes(group), "members": members}

    def attributes(item: Any) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for name, value in item.attrs.items():
            if isinstance(value, str) or (isinstance(value, np.generic) and value.dtype.kind in "biuf"):
                plain[name] = value if isinstance(value, str) else value.item()
        return plain

    with h5py.File(file, "r") as opened:
        return _written(file.parent, walked(opened))


def session_of(structure: Any) -> bytes:
    """Form an HDF5 file without a seal of a tree, however it was changed since; what HDF5 cannot hold is left out."""
    import h5py

    def array(node: dict[str, Any]) -> np.ndarray:
        if "texts" in node:
            texts = node["texts"] if isinstance(node["texts"], list) else [node["texts"]]
            return np.array([*map(str, texts), None], dtype=object)[:-1]
        if "bytes" in node:
            values = np.frombuffer(base64.b64decode(node["bytes"]), np.dtype(node.get("dtype", "<f8")))
        else:
            values = np.array(node.get("values", [])).astype(np.dtype(node.get("dtype", "<f8")))
        shape = tuple(node.get("shape") or values.shape)
        return np.resize(values, shape) if np.prod(shape, dtype=object) <= 1 << 20 else values

    def write(group: Any, node: Any) -> None:
        for name, value in (node.get("attributes") or {}).items():
            if name not in ("sealed", "attributes_crc32", "crc32"):
                put(functools.partial(group.attrs.__setitem__, name, value))
        for name, member in (node.get("members") or {}).items():
            put(functools.partial(item, group, name, member))

    def item(group: Any, name: str, node: dict[str, Any]) -> None:
        if "members" in node:
            write(group.create_group(name, track_order=True), node)
            return
        dtype = h5py.string_dtype() if "texts" in node else None
        write(group.create_dataset(name, data=array(node), dtype=dtype), {"attributes": node.get("attributes")})

    def put(change: Callable[[], object]) -> None:
        try:
            change()
        except (TypeError, ValueError, AttributeError, OverflowError, OSError, KeyError, MemoryError, RuntimeError):
            return

    image = io.BytesIO()
    with h5py.File(image, "w", track_order=True) as file:
        put(lambda: write(file, structure))
    return image.getvalue()


# Archives


def archive_members(archive: Path) -> Path:
    """Write the JSON members of an archive, without the graph, beside it."""
    with zipfile.ZipFile(archive) as whole:
        names = [name for name in whole.namelist() if name.endswith(".json") and name != archives.GRAPH]
        return _written(archive.parent, {name: json.loads(whole.read(name)) for name in names})


def write_members(archive: Path, structure: Any) -> None:
    """Put JSON members into an archive."""
    with zipfile.ZipFile(archive) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    others = {name: data for name, data in members.items() if not name.endswith(".json") or name == archives.GRAPH}
    changed = structure if isinstance(structure, dict) else {}
    archives.write(archive, others | {name: json.dumps(value).encode() for name, value in changed.items() if name})
