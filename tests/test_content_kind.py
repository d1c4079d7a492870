"""A file is replaced by one of its own kind only: a name given by mistake costs no session and no model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import h5py
import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from tests.test_cli import MODEL, TEXT, fails
from workbench.atomic import replacing
from workbench.cli import main
from workbench.content_kind import content_kind
from workbench.errors import ExportError
from workbench.planning.plan import Plan

X = np.ones((4, 32), np.float32)


def _gguf(path: Path) -> None:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tensor("x", X)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()


def _hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = X


def _onnx(path: Path) -> None:
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", [x], [x])
    onnx.save(onnx.helper.make_model(graph), path)


def _arrow(path: Path) -> None:
    table = pa.table({"x": X[0]})
    with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[Path], object]] = {
    "session.qwb": _hdf5, "model.gguf": _gguf, "model.safetensors": lambda path: save_file({"x": torch.ones(3)}, path),
    "model.onnx": _onnx, "model.pt": lambda path: torch.save({"x": torch.ones(3)}, path),
    "data.npz": lambda path: np.savez(path, x=X), "data.npy": lambda path: np.save(path, X), "data.arrow": _arrow,
    "data.parquet": lambda path: pq.write_table(pa.table({"x": X[0]}), path),
    "plan.json": lambda path: Plan().save(path), "config.json": lambda path: path.write_text('{"model_type": "llama"}'),
    "report.html": lambda path: path.write_text("<!DOCTYPE html>\n<html></html>"),
    "net.py": lambda path: path.write_text("def model(): ..."), "data.csv": lambda path: path.write_text("x,y\n1,2\n"),
    "notes.txt": lambda path: path.write_text("mine"),
}  # fmt: skip
"""What writes a file of each kind: the library of its format."""
TEXTS = ("net.py", "data.csv", "notes.txt")
"""Whose contents tell nothing: each may replace another."""


def test_each_kind_replaces_itself_and_no_other(tmp_path: Path) -> None:
    for target, first in WRITERS.items():
        for source, second in WRITERS.items():
            path = tmp_path / target
            path.unlink(missing_ok=True)
            first(path)
            before = path.read_bytes()
            second(tmp_path / f"new-{source}")
            after = (tmp_path / f"new-{source}").read_bytes()
            archives = {source, target} <= {"model.pt", "data.npz"}
            try:
                with replacing(path, ExportError, "the result") as temporary:
                    temporary.write_bytes(after)
            except ExportError as error:
                assert "which it would replace; choose another name" in str(error)
                assert (path.read_bytes(), source) != (after, target)
                assert path.read_bytes() == before
            else:
                assert source == target or archives or {source, target} <= {*TEXTS}, (source, target)
                assert path.read_bytes() == after
            assert len(list(tmp_path.glob(".*"))) == 0


def test_what_is_empty_or_missing_is_replaced_by_anything(tmp_path: Path) -> None:
    (tmp_path / "empty.qwb").touch()
    assert content_kind(tmp_path / "empty.qwb") is content_kind(tmp_path / "none") is content_kind(tmp_path) is None
    with replacing(tmp_path / "empty.qwb", ExportError, "the plan") as temporary:
        temporary.write_text("{}")
    assert (tmp_path / "empty.qwb").read_text() == "{}"


@pytest.mark.parametrize("contents", [b"alias ls='ls -l'\n", bytes(range(1, 200)), b"\0" * 5000])
def test_what_has_no_kind_is_replaced_by_no_other(tmp_path: Path, contents: bytes) -> None:
    """As what a link leads to that somebody put where a session is to go."""
    file, link = tmp_path / "profile", tmp_path / "s.qwb"
    file.write_bytes(contents)
    link.symlink_to(file)
    for write in (_hdf5, lambda path: Plan().save(path), lambda path: torch.save({"x": torch.ones(3)}, path)):
        with (
            pytest.raises(ExportError, match="a file of another kind, which it would replace"),
            replacing(link, ExportError, "the result") as temporary,
        ):
            write(temporary)
    assert file.read_bytes() == contents and link.is_symlink()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kinds") / "s.qwb"
    assert main(["calibrate", MODEL, "--data", TEXT, "--samples", "2", "--out", str(path), "--quiet"]) == 0
    return path


@pytest.mark.parametrize("words", [
    ("plan", "S", "--uniform", "int4-g32", "--out", "S"), ("report", "S", "S"), ("report", "S", "W"),
    ("export", "S", "--to", "plan", "--out", "S"), ("export", "S", "--to", "gguf", "--out", "W"),
    ("calibrate", MODEL, "--data", TEXT, "--out", "W"), ("calibrate", MODEL, "--data", TEXT, "--out", "P"),
    ("sensitivity", "S", "--out", "W"),
], ids=lambda words: f"{words[0]} {words[-1]}")  # fmt: skip
def test_no_command_replaces_a_session_a_plan_or_a_model_by_something_else(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    files = {"S": session, "W": tmp_path / "weights", "P": tmp_path / "config.json"}
    save_file({"x": torch.ones(3)}, files["W"])
    files["P"].write_text('{"model_type": "llama"}')
    before = {name: path.read_bytes() for name, path in files.items()}
    capsys.readouterr()
    assert "which it would replace" in fails(capsys, *(str(files.get(word, word)) for word in words))
    assert {name: path.read_bytes() for name, path in files.items()} == before
