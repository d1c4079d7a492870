"""Hostile ``.pt2`` archives, made of an honest one: each would run code, or fill the memory, if it were believed."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.models.sources.networks import Images, seeded

Members = dict[str, bytes]
GRAPH, WEIGHTS, CONSTANTS = (
    "net/models/model.json", "net/data/weights/model_weights_config.json",
    "net/data/constants/model_constants_config.json",
)  # fmt: skip


class Trap:
    """Unpickling one of these makes the marker file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.mkdir, (str(self.marker),))


def pickled(marker: Path) -> bytes:
    """Return a file of torch.save that makes the marker when it is unpickled."""
    stream = io.BytesIO()
    torch.save(Trap(marker), stream)
    return stream.getvalue()


def honest(folder: Path) -> Members:
    """Return the members of an archive that opens."""
    path = folder / "net.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
        program = torch.export.export(seeded(Images), (torch.zeros(2, 3, 8, 8),), dynamic_shapes=shapes)
        torch.export.save(program, path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path: Path, members: Members, twice: tuple[tuple[str, bytes], ...] = (), packed: bool = False) -> Path:
    """Write an archive; ``twice`` are members that follow under a name that may be taken already."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for name, data in (*members.items(), *twice):
            archive.writestr(name, data, zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED)
    return path


def _json(name: str, change: Callable[[Any], object]) -> Callable[[Members, Path], None]:
    def apply(members: Members, marker: Path) -> None:
        value = json.loads(members[name])
        change(value)
        members[name] = json.dumps(value).encode().replace(b"MARKER", str(marker).encode())

    return apply


def _first(config: Any) -> Any:
    return next(iter(config["config"].values()))


def _node(change: Callable[[Any], object]) -> Callable[[Members, Path], None]:
    return _json(GRAPH, lambda program: change(program["graph_module"]["graph"]["nodes"][-1]))


def _expression(text: str) -> Callable[[Members, Path], None]:
    def change(program: Any) -> None:
        tensors = program["graph_module"]["graph"]["tensor_values"].values()
        next(size for each in tensors for size in each["sizes"] if "as_expr" in size)["as_expr"]["expr_str"] = text

    return _json(GRAPH, change)


def _added(name: str, data: Callable[[Path], bytes] = pickled) -> Callable[[Members, Path], None]:
    return lambda members, marker: members.update({name: data(marker)})


def _pickled_weight(members: Members, marker: Path) -> None:
    _json(WEIGHTS, lambda config: _first(config).update(use_pickle=True))(members, marker)
    members["net/data/weights/weight_0"] = pickled(marker)


def _nested(members: Members, marker: Path) -> None:
    """A second model whose name has a slash: its configuration lies where no check of one folder looks."""
    config = json.loads(members[WEIGHTS])
    _first(config).update(use_pickle=True, path_name="x/weight_0")
    members["net/models/a/b.json"] = members[GRAPH]
    members["net/data/weights/a/b_weights_config.json"] = json.dumps(config).encode()
    members["net/data/constants/a/b_constants_config.json"] = members[CONSTANTS]
    members["net/data/sample_inputs/a/b.pt"] = b""
    members["net/data/weights/x/weight_0"] = pickled(marker)


def _old_layout(members: Members, marker: Path) -> None:
    """The layout before 2.8 beside a decoy whose own graph fails."""
    members[GRAPH] = b"{}"
    members["version"] = b"8.20"
    for part in ("state_dict", "constants", "example_inputs"):
        members[f"serialized_{part}.pt"] = pickled(marker)
    members["serialized_exported_program.json"] = b"{}"


def _upper(name: str) -> Callable[[Members, Path], None]:
    return lambda members, marker: members.update({name: pickled(marker)})


def _constant(prefix: str) -> Callable[[Members, Path], None]:
    def apply(members: Members, marker: Path) -> None:
        entry = {"path_name": f"{prefix}0", "is_param": False, "use_pickle": True, "tensor_meta": None}
        members[CONSTANTS] = json.dumps({"config": {"c": entry}}).encode()
        members[f"net/data/constants/{prefix}0"] = pickled(marker)

    return apply


def _meta(**values: Any) -> Callable[[Members, Path], None]:
    return _json(WEIGHTS, lambda config: _first(config)["tensor_meta"].update(values))


def _sizes(*sizes: int) -> list[dict[str, int]]:
    return [{"as_int": size} for size in sizes]


def _deep(members: Members, marker: Path) -> None:
    members[GRAPH] = members[GRAPH][:-1] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def _tree(text: str) -> Callable[[Members, Path], None]:
    def change(program: Any) -> None:
        program["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = text

    return _json(GRAPH, change)


CODE = "__import__('os').mkdir('MARKER')"
HOSTILE: dict[str, Callable[[Members, Path], None]] = {
    "pickled weight": _pickled_weight,
    "nested model name": _nested,
    "old layout": _old_layout,
    "legacy weights": _added("net/data/weights/model.pt"),
    "legacy constants": _added("net/data/constants/model.pt"),
    "upper-case legacy weights": _upper("net/data/weights/model.PT"),
    "upper-case graph": _upper("net/models/model.JSON"),
    "second model": _added("net/models/other.json"),
    "aotinductor": _added("net/data/aotinductor/model/model.so"),
    "aotinductor in capitals": _added("net/data/AOTInductor/model/model.so"),
    "executorch": _added("net/data/executorch/model.pte"),
    "unknown extension": _added("net/models/model.py"),
    "graph with another extension": lambda members, marker: members.update({"net/models/model.xyz_": members[GRAPH]}),
    "second folder": _added("other/data/weights/model.pt"),
    "path upwards": _added("net/../../x.pt"),
    "absolute path": _added("/elsewhere/x.pt"),
    "custom object": _constant("custom_obj_"),
    "opaque object": _constant("opaque_obj_"),
    "pickled constant": _constant("tensor_"),
    "sample inputs": _added("net/data/sample_inputs/model.pt"),
    "expression": _expression(CODE),
    "expression by attribute": _expression("Symbol.__class__.__base__.__subclasses__()"),
    "expression in a call": _expression(f"Mul(Integer(2), {CODE})"),
    "expression in a text": _expression(f'Integer("{CODE}")'),
    "expression of sympify": _expression(f'S("{CODE}")'),
    "tower of powers": _expression("9**9**9**9"),
    "tower of functions": _expression("Pow(9, Pow(9, Pow(9, 9)))"),
    "long product": _expression("*".join(["9"] * 100_000)),
    "nested expression": _expression("(" * 5000 + "1" + ")" * 5000),
    "target in torch": _node(lambda node: node.update(target="torch.hub.load")),
    "target by attribute": _node(lambda node: node.update(target="torch.ops.aten.relu.__class__")),
    "target that reads files": _node(lambda node: node.update(target="torch.ops.aten.from_file.default")),
    "target of TorchScript that writes files": _node(lambda node: node.update(target="torch.ops.aten.save.default")),
    "target that writes to the terminal": _node(lambda node: node.update(target="torch.ops.aten._print.default")),
    "target of TorchScript that writes to the terminal": _node(
        lambda node: node.update(target="torch.ops.prim.Print.default")
    ),
    "target without its overload": _node(lambda node: node.update(target="torch.ops.aten.linear")),
    "target that takes places unchecked": _node(
        lambda node: node.update(target="torch.ops.aten._sparse_coo_tensor_unsafe.default")
    ),
    "target that never ends": _node(lambda node: node.update(target="math.factorial")),
    "target of a compiled kernel": _node(
        lambda node: node.update(target="torch.ops.higher_order.triton_kernel_wrapper_functional")
    ),
    "extension operator": _node(lambda node: node.update(target="#custom:os.mkdir")),
    "operator as an argument": _node(lambda node: node["inputs"][0].update(arg={"as_operator": "torch.load"})),
    "name as code": _node(lambda node: node.update(name=f"x={CODE}")),
    "key as code": _json(GRAPH, lambda program: program.update({f"x={CODE}": 1})),
    "weight's name as code": _json(WEIGHTS, lambda config: config["config"].update({f'a"]{CODE}': _first(config)})),
    "container that imports": _tree(
        '[1, {"type": "builtins.dict", "context": "{\\"__enum__\\": true}", "children_spec": []}]'
    ),
    "default factory": _tree(
        '[1, {"type": "collections.defaultdict", "context": "{\\"default_factory_module\\": \\"os\\", '
        '\\"default_factory_name\\": \\"getcwd\\", \\"dict_context\\": []}", "children_spec": []}]'
    ),
    "stride of zero": _meta(sizes=_sizes(1 << 20, 1 << 20), strides=_sizes(0, 0)),
    "more than the file": _meta(sizes=_sizes(1 << 30, 4), strides=_sizes(4, 1)),
    "deep graph": _deep,
    "huge number": _json(GRAPH, lambda program: program["schema_version"].update(minor=1 << 3000)),
}  # fmt: skip
"""What each archive does, as changes of an honest one."""
