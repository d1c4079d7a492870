"""Every format that the workbench reads: a whole file of it, and how it is opened to the last byte."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from tests.deployment.exporters.llamas import ROWS, folder_of
from tests.fuzz import archives, structured
from tests.models.data.test_datasets import model
from tests.session.sessions import full_session
from workbench.cli import main
from workbench.deployment.exporters import exporter
from workbench.models.data.datasets import open_dataset
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.session.session import Session

SHOWN = (
    "info S", "info S --json", "explain S --json", "front S --json", "ranges S", "channels S", "outliers S",
    "compare S S", "compare S S --json", "plan S --bits-per-weight 5 --metric weight-error",
)  # fmt: skip
"""Commands that show what a session holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """``make`` writes whole files into an empty folder and returns the one to damage; ``open`` reads it.

    ``whole``: the file stays JSON, of which another is formed.
    """

    make: Callable[[Path], Path]
    open: Callable[[Path], object]
    is_json: bool = False
    whole: bool = False


def _read(path: Path, **spec: Any) -> None:
    """Read a data set to the last sample."""
    for _ in open_dataset(path, model(**spec)).batches(4):
        pass


def _llama(folder: Path) -> Path:
    return folder_of("llama", folder, hidden_size=32, intermediate_size=32, num_hidden_layers=1)


def _safetensors(folder: Path) -> Path:
    from safetensors.torch import save_file

    half = torch.randn(4, 8, dtype=torch.bfloat16)
    tensors = {"a.weight": torch.randn(8, 8), "b.weight": half, "b.bias": torch.ones(4)}
    save_file(tensors, folder / "m.safetensors", metadata={"format": "pt"})
    return folder / "m.safetensors"


def _state_dict(folder: Path) -> Path:
    torch.save({"a.weight": torch.randn(8, 8), "b": {"c": [1, 2]}, "b.bias": torch.ones(4)}, folder / "m.pt")
    return folder / "m.pt"


def _pickle(folder: Path) -> Path:
    with zipfile.ZipFile(_state_dict(folder)) as archive:
        (folder / "data.pkl").write_bytes(archive.read("m/data.pkl"))
    return folder / "data.pkl"


def _open_pickle(path: Path) -> None:
    """Put the pickle into its archive, so that the damage is not noticed by a checksum, and open that."""
    archive = path.with_name("m.pt")
    with zipfile.ZipFile(archive) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    open_model(archives.write(archive, members | {"m/data.pkl": path.read_bytes()}))


def _exported(folder: Path) -> Path:
    archives.honest(folder)
    return folder / "net.pt2"


def _graph(folder: Path) -> Path:
    (folder / "graph.json").write_bytes(archives.honest(folder)[archives.GRAPH])
    return folder / "graph.json"


def _open_graph(path: Path) -> None:
    """Put the graph into its archive, so that the damage is not noticed by a checksum, and open that."""
    archive = path.with_name("net.pt2")
    with zipfile.ZipFile(archive) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    open_model(archives.write(archive, members | {archives.GRAPH: path.read_bytes()}))


def _gguf(folder: Path) -> Path:
    opened = open_model(_llama(folder / "f"))
    plan = Plan().assign(["model.layers.*.mlp.*"], weights="q8_0", algorithm="rtn")
    exporter("gguf").export(quantize(opened, plan), opened, folder / "m.gguf", silent)
    return folder / "m.gguf"


def _config(folder: Path) -> Path:
    return _llama(folder) / "config.json"


def _tokenizer(folder: Path) -> Path:
    (folder / "text.txt").write_text("Hello world, it's 1234 naïve — tokens!\n" * 40)
    return _llama(folder) / "tokenizer.json"


def _read_text(path: Path) -> None:
    _read(path.parent / "text.txt", tokens=True, vocabulary=ROWS, positions=64, tokenizer=path.parent)


def _picture(kind: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from PIL import Image

        (folder / "a").mkdir()
        picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 3), dtype=np.uint8))
        picture.save(folder / "a" / f"x.{kind}")
        return folder / "a" / f"x.{kind}"

    return make


def _sound(kind: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        import soundfile

        (folder / "a").mkdir()
        soundfile.write(folder / "a" / f"x.{kind}", np.sin(np.arange(1600) / 9).astype(np.float32), 16000)
        return folder / "a" / f"x.{kind}"

    return make


def _arrays(kind: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        stream, values = io.BytesIO(), np.arange(96, dtype=np.float32).reshape(4, 3, 2, 4)
        if kind == "npz":
            np.savez_compressed(stream, inputs=values, labels=np.arange(4))
        else:
            np.save(stream, values)
        (folder / f"x.{kind}").write_bytes(stream.getvalue())
        return folder / f"x.{kind}"

    return make


def _table(kind: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        rows = [{"text": f"some words {n}, and «more»", "label": n % 3} for n in range(12)]
        file = folder / f"x.{kind}"
        if kind == "jsonl":
            file.write_text("\n".join(json.dumps(row) for row in rows))
        elif kind == "csv":
            file.write_text("text,label\n" + "".join(f'"{row["text"]}",{row["label"]}\n' for row in rows))
        else:
            import pyarrow
            from pyarrow import ipc, parquet

            table = pyarrow.Table.from_pylist(rows)
            if kind == "parquet":
                parquet.write_table(table, file)
            else:
                make = ipc.new_file if kind == "arrow" else ipc.new_stream
                file = file.with_suffix(".arrow")
                with make(str(file), table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as stream:
                    stream.write_table(table)
        return file

    return make


def _read_table(path: Path) -> None:
    from workbench.models.data.tables import read_table

    read_table(path, "")


def _plan(folder: Path) -> Path:
    plan = Plan().assign(["a.*", "re:b[0-9]+"], weights="int4-g32", algorithm="gptq").assign(["c"], weights="int8")
    plan.save(folder / "p.json")
    return folder / "p.json"


def _onnx(folder: Path) -> Path:
    """Return a graph with a loop of sizes, a table, a product and a norm."""
    import onnx
    from onnx import helper, numpy_helper

    numbers = np.random.default_rng(0)
    tensors = {"e": (20, 16), "w": (16, 8), "g": (8,)}
    weights = [numpy_helper.from_array(numbers.normal(size=s).astype(np.float32), n) for n, s in tensors.items()]
    weights.append(numpy_helper.from_array(np.array([0, -1, 8]), "shape"))
    nodes = [
        helper.make_node("Gather", ["e", "ids"], ["x"]), helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Reshape", ["y", "shape"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "g"], ["z"], axis=-1),
    ]  # fmt: skip
    takes = [helper.make_tensor_value_info("ids", 7, ["n", "t"])]
    graph = helper.make_graph(nodes, "g", takes, [helper.make_tensor_value_info("z", 1, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    return folder / "m.onnx"


def _session(folder: Path) -> Path:
    full_session().save(folder / "s.qwb")
    return folder / "s.qwb"


def _unsealed(folder: Path) -> Path:
    """Write a session as older versions did: what is damaged is not noticed by the seal."""
    import h5py

    with h5py.File(_session(folder), "r+") as file:
        del file.attrs["sealed"]
    return folder / "s.qwb"


def _look_at(path: Path) -> None:
    """Open a model and read every weight, as it is stored and as numbers."""
    from workbench.steps.files.first_session import as_stored

    opened = open_model(path)
    as_stored(opened, Plan())
    for layer in opened.summary.stored:
        opened.encoded(layer.name)
        opened.weight(layer.name).float().sum()


def _look_at_folder(path: Path) -> None:
    _look_at(path.parent)


def _header(folder: Path) -> Path:
    return structured.safetensors_header(_safetensors(folder))


def _open_header(path: Path) -> None:
    _look_at(structured.with_header(path, path.with_name("m.safetensors")))


def _metadata(folder: Path) -> Path:
    return structured.gguf_metadata(_gguf(folder))


def _open_metadata(path: Path) -> None:
    file = path.with_name("m.gguf")
    file.write_bytes(structured.gguf_of(structured.read(path), path.with_name(structured.TENSORS).read_bytes()))
    _look_at(file)


def _onnx_graph(folder: Path) -> Path:
    return structured.onnx_graph(_onnx(folder))


def _open_onnx_graph(path: Path) -> None:
    data = structured.onnx_of(structured.read(path))
    if data is not None:
        path.with_name("m.onnx").write_bytes(data)
        _look_at(path.with_name("m.onnx"))


def _members(folder: Path) -> Path:
    return structured.archive_members(_exported(folder))


def _open_members(path: Path) -> None:
    structured.write_members(path.with_name("net.pt2"), structured.read(path))
    _look_at(path.with_name("net.pt2"))


def _tree(folder: Path) -> Path:
    """Write the tree of a session of the digits with every result that a command shows."""
    file, digits = folder / "s.qwb", "demo:digits-classifier"
    for command in ("calibrate D --data D --samples 8 --out S", "sensitivity S --metric weight-error", "front S"):
        words = [{"D": digits, "S": str(file)}.get(word, word) for word in command.split()]
        assert main([*words, "--quiet"]) == 0
    return structured.session_tree(file)


def _open_tree(path: Path) -> None:
    """Open a session whose tree was changed, and print everything that commands show of it at once."""
    file = path.with_name("s.qwb")
    file.write_bytes(structured.session_of(structured.read(path)))
    session = Session.load(file)
    output = io.StringIO()
    with mock.patch.object(Session, "load", lambda place: session), contextlib.redirect_stdout(io.StringIO()):
        for command in SHOWN:
            with contextlib.redirect_stderr(output):
                main([*(str(file) if word == "S" else word for word in command.split()), "--quiet"])
    if output.getvalue().count("\n") > len(SHOWN):
        raise AssertionError(output.getvalue())


def _checkpoint(kind: str) -> Callable[[Path], Path]:
    """Return what writes a folder with quantized weights; its configuration is damaged."""

    def make(folder: Path) -> Path:
        opened = open_model(_llama(folder / "f"))
        scheme = "fp8-e4m3-channel" if kind == "compressed-tensors" else "int4-g32-asym"
        plan = Plan().assign(["model.layers.*.mlp.*"], weights=scheme, algorithm="rtn")
        exporter(kind).export(quantize(opened, plan), opened, folder / "q", silent)
        return folder / "q" / "config.json"

    return make


def _index(folder: Path) -> Path:
    """Write a folder whose weights lie in two files, and return what says where."""
    from safetensors.torch import load_file, save_file

    file = _llama(folder) / "model.safetensors"
    whole = sorted(load_file(file).items())
    file.unlink()
    for number, part in enumerate((whole[::2], whole[1::2])):
        save_file(dict(part), folder / f"m{number}.safetensors", metadata={"format": "pt"})
    names = {name: f"m{number % 2}.safetensors" for number, (name, _) in enumerate(whole)}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": names}))
    return index


def _read_pictures(path: Path) -> None:
    _read(path.parents[1], tokens=False, channels=3, size=(16, 16))


def _read_sounds(path: Path) -> None:
    _read(path.parents[1], tokens=False, rate=16000)


FORMATS: dict[str, Format] = {
    "safetensors": Format(make=_safetensors, open=open_model),
    "pt": Format(make=_state_dict, open=open_model),
    "pt pickle": Format(make=_pickle, open=_open_pickle),
    "pt2": Format(make=_exported, open=open_model),
    "pt2 graph": Format(make=_graph, open=_open_graph, is_json=True),
    "gguf": Format(make=_gguf, open=open_model),
    "onnx": Format(make=_onnx, open=open_model),
    "config.json": Format(make=_config, open=lambda path: open_model(path.parent), is_json=True),
    "tokenizer.json": Format(make=_tokenizer, open=_read_text, is_json=True),
    "png": Format(make=_picture("png"), open=_read_pictures),
    "jpeg": Format(make=_picture("jpg"), open=_read_pictures),
    "wav": Format(make=_sound("wav"), open=_read_sounds),
    "flac": Format(make=_sound("flac"), open=_read_sounds),
    "npy": Format(make=_arrays("npy"), open=lambda path: _read(path, tokens=False)),
    "npz": Format(make=_arrays("npz"), open=lambda path: _read(path, tokens=False)),
    "jsonl": Format(make=_table("jsonl"), open=_read_table, is_json=True),
    "csv": Format(make=_table("csv"), open=_read_table),
    "parquet": Format(make=_table("parquet"), open=_read_table),
    "arrow": Format(make=_table("arrow"), open=_read_table),
    "arrow stream": Format(make=_table("arrow stream"), open=_read_table),
    "plan": Format(make=_plan, open=Plan.load, is_json=True),
    "session": Format(make=_session, open=Session.load),
    "old session": Format(make=_unsealed, open=Session.load),
    "safetensors header": Format(make=_header, open=_open_header, whole=True),
    "gguf metadata": Format(make=_metadata, open=_open_metadata, whole=True),
    "onnx graph": Format(make=_onnx_graph, open=_open_onnx_graph, whole=True),
    "pt2 members": Format(make=_members, open=_open_members, whole=True),
    "session tree": Format(make=_tree, open=_open_tree, whole=True),
    "quantized config": Format(make=_checkpoint("compressed-tensors"), open=_look_at_folder, is_json=True),
    "weight index": Format(make=_index, open=_look_at_folder, is_json=True),
}
