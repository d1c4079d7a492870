"""A ``.pt2`` archive as plain data: its bytes are read once, checked, and packed again; only the new archive is loaded.

``torch.export.load`` unpickles tensors, constants and sample inputs, loads compiled libraries (AOTInductor) and falls
back to older layouts.  So nothing of a file reaches it but what is listed below: the graph as
:mod:`workbench.models.sources.exported_graph` has rebuilt it, configurations of tensors that were rebuilt here, and the
bytes of those tensors.  Sample inputs and extra files may lie in the archive, but are left out.
"""

from __future__ import annotations

import io
import json
import math
import pickletools
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import NotAModelError, UnsafeModelError
from workbench.models.sources.exported_graph import LARGEST, NAME, Unsafe, is_involved, plain_program
from workbench.plain_file import read_bytes

GRAPH = "models/model.json"
CONFIGS = {kind: f"data/{kind}/model_{kind}_config.json" for kind in ("weights", "constants")}
PAYLOAD = {"weights": re.compile(r"weight_\d{1,6}"), "constants": re.compile(r"tensor_\d{1,6}")}
LISTED = re.compile(
    r"archive_format|archive_version|byteorder|\.format_version|\.storage_alignment|\.data/(version|serialization_id)"
    rf"|models/model\.json|data/weights/({PAYLOAD['weights'].pattern}|model_weights_config\.json)"
    rf"|data/constants/({PAYLOAD['constants'].pattern}|model_constants_config\.json)|data/sample_inputs/model\.pt"
    r"|extra/[\w.-]{1,100}",
    re.ASCII,
)
"""Every member that ``torch.export.save`` writes for one model, below the archive's folder."""

NAMING = ("GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "EXT1", "EXT2", "EXT4")
TENSORS = re.compile(
    r"torch (\w*Storage|[a-z]+\d*|Tensor)|torch\._utils _rebuild_(tensor_v2|parameter)|"
    r"torch\._tensor _rebuild_from_type_v2|collections OrderedDict|(__builtin__|builtins) set|"
    r"torch\._dynamo\.decorators _DimRange",
    re.ASCII,
)
"""What names objects in a pickle, and the names that tensors have there, those with marks of free sizes included."""

HEADERS = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little", ".data/version": b"6\n"}
JSON_BYTES, MEMBERS, ALIASES = 1 << 28, 200_000, 16
"""The largest JSON member in bytes, the most members, and how often the payload's bytes may be named by tensors."""

ELEMENT_BYTES = {
    1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2, 28: 2, 29: 1, 30: 1, 31: 1,
    32: 1, 33: 1, 34: 4, 35: 8,
}  # fmt: skip
"""Bytes of an element by the number of the data type in torch's schema."""


@dataclass(frozen=True, slots=True)
class PlainArchive:
    """A fresh archive of checked bytes, to be loaded from memory, and the bytes of its weights and of its graph.

    ``involved``: it has sizes to work out that are more than a few operations.
    """

    image: io.BytesIO
    weights: int
    graph: int
    involved: bool


def plain_archive(path: Path, require: Callable[[int], None]) -> PlainArchive:
    """Read a file once and return an archive of what was checked.

    ``require`` gets the bytes of memory that reading takes and raises where there are not as many.  Raises
    UnsafeModelError naming what could run code or fill the memory, NotAModelError for any other file.
    """
    try:
        require(3 * path.stat().st_size)
        data = read_bytes(path)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _packed(_members(archive, len(data)))
    except Unsafe as reason:
        raise UnsafeModelError(
            f"{path} is refused: {reason}, which can run code or fill the memory when it is opened; export the model "
            "again with plain tensors (torch.export.save), or save its weights as safetensors"
        ) from None
    except (zipfile.BadZipFile, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError,
            NotImplementedError, RuntimeError, EOFError, MemoryError) as error:  # fmt: skip
        text = str(error).split("\n")[0][:200] or type(error).__name__
        raise NotAModelError(f"{path} is not an exported program or is damaged: {text}") from None


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    """Return the listed members by their name below the archive's folder, all of the others refused."""
    entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    names = [entry.filename for entry in entries]
    if not any(re.search(r"(^|/)models/[^/]+\.json$", name) for name in names):
        raise ValueError("it holds no graph of this version of torch; write it with torch.export.save")
    if len(entries) > MEMBERS or len({name.casefold() for name in names}) < len(names):
        raise Unsafe("it has members of the same name")
    root = names[0].partition("/")[0] + "/"
    for entry in entries:
        name = entry.filename
        if not name.startswith(root) or not LISTED.fullmatch(name.removeprefix(root)):
            raise Unsafe(f"it has the member {name[:200]!r}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise Unsafe(f"its member {name[:200]!r} is compressed")
        if name.endswith(".json") and entry.file_size > JSON_BYTES:
            raise Unsafe(f"its member {name[:200]!r} has {entry.file_size} bytes")
    if sum(entry.file_size for entry in entries) > size:
        raise Unsafe("its members overlap")
    for entry in entries:
        if entry.filename.endswith(".pt"):
            _require_tensors(archive.read(entry))
    left_out = (root + "extra/", root + "data/sample_inputs/")
    return {
        entry.filename.removeprefix(root): archive.read(entry)
        for entry in entries if not entry.filename.startswith(left_out)
    }  # fmt: skip


def _require_tensors(sample: bytes) -> None:
    """Refuse sample inputs with anything but tensors: they are left out, but such a file was made to do harm."""
    if not sample:
        return
    with zipfile.ZipFile(io.BytesIO(sample)) as archive:
        pickles = [entry for entry in archive.infolist() if entry.filename.casefold().endswith(".pkl")]
        for entry in pickles:
            if entry.file_size > len(sample):
                raise Unsafe("its sample inputs are compressed")
            for operation, argument, _ in pickletools.genops(archive.read(entry)):
                harmless = operation.name == "GLOBAL" and TENSORS.fullmatch(str(argument))
                if operation.name in NAMING and not harmless:
                    raise Unsafe("its sample inputs are pickled objects")


def _packed(members: Mapping[str, bytes]) -> PlainArchive:
    for name, value in HEADERS.items():
        if not name.startswith(".") and members.get(name, value) != value:
            raise ValueError(f"its member {name} is {members[name][:20]!r}, {value!r} was expected")
    image, weights = io.BytesIO(), 0
    with zipfile.ZipFile(image, "w", zipfile.ZIP_STORED) as packed:
        for name, value in HEADERS.items():
            packed.writestr(f"model/{name}", value)
        program = plain_program(json.loads(members[GRAPH]))
        packed.writestr(f"model/{GRAPH}", json.dumps(program))
        packed.writestr("model/data/sample_inputs/model.pt", b"")
        for kind, name in CONFIGS.items():
            config = json.loads(members[name])["config"]
            folder = f"data/{kind}/"
            plain = {key: entry for key, entry, _ in _tensors(config, folder, PAYLOAD[kind], members)}
            weights += sum(size for *_, size in _tensors(config, folder, PAYLOAD[kind], members))
            packed.writestr(f"model/{name}", json.dumps({"config": plain}))
            for payload in sorted({entry["path_name"] for entry in plain.values()}):
                packed.writestr(f"model/{folder}{payload}", members[folder + payload])
    total = sum(map(len, members.values()))
    if weights > ALIASES * total:
        raise Unsafe(f"its tensors take {weights} bytes of {total} in the file")
    image.seek(0)
    return PlainArchive(image, weights, len(members[GRAPH]), is_involved(program))


def _tensors(
    config: Mapping[str, Any], folder: str, payload: re.Pattern[str], members: Mapping[str, bytes]
) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Yield the name, the rebuilt entry and the bytes of each tensor of a configuration."""
    for key, entry in config.items():
        name, meta = entry["path_name"], entry["tensor_meta"]
        if entry["use_pickle"] is not False or not isinstance(name, str) or not payload.fullmatch(name):
            raise Unsafe(f"the tensor or object {key[:200]!r} is pickled")
        if not NAME.fullmatch(key):
            raise Unsafe(f"it names something {key[:200]!r}")
        if meta["dtype"] not in ELEMENT_BYTES or meta["layout"] != 7:
            raise ValueError(f"the tensor {key} has a data type or layout that is not supported")
        if meta["device"]["type"] not in ("cpu", "cuda", "mps", "xpu"):
            raise ValueError(f"the tensor {key} has no values: it lies on the device {meta['device']['type']!r:.40}")
        sizes, strides = _integers(meta["sizes"]), _integers(meta["strides"])
        (offset,) = _integers([meta["storage_offset"]])
        element = ELEMENT_BYTES[meta["dtype"]]
        count, available = math.prod(sizes), len(members[folder + name]) // element
        last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) if count else -1
        if last >= available or count > available:
            raise Unsafe(f"the tensor {key} asks for {count} elements of {available}")
        plain_meta = {
            "dtype": meta["dtype"], "sizes": _as_int(sizes), "requires_grad": meta["requires_grad"] is True,
            "device": {"type": "cpu", "index": None}, "strides": _as_int(strides),
            "storage_offset": {"as_int": offset}, "layout": 7,
        }  # fmt: skip
        plain = {
            "path_name": name, "is_param": entry["is_param"] is True, "use_pickle": False, "tensor_meta": plain_meta,
        }  # fmt: skip
        yield key, plain, count * element


def _integers(sizes: list[dict[str, Any]]) -> list[int]:
    values = [size["as_int"] for size in sizes]
    if len(values) > 64 or not all(type(value) is int and 0 <= value <= LARGEST for value in values):
        raise ValueError("a tensor's sizes are not whole numbers")
    return values


def _as_int(values: list[int]) -> list[dict[str, int]]:
    return [{"as_int": value} for value in values]
