"""Every hostile archive is refused by name, runs nothing and leaves no marker; honest archives of every kind open."""

from __future__ import annotations

import json
import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.fuzz import archives
from workbench.errors import NotAModelError, UnsafeModelError
from workbench.models.sources import exported_program, open_model


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> archives.Members:
    return archives.honest(tmp_path_factory.mktemp("honest"))


@pytest.fixture(autouse=True)
def no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of torch must not even see a hostile archive."""

    def load(*_: object) -> None:
        raise AssertionError("a hostile archive reached torch.export.load")

    monkeypatch.setattr(exported_program, "_load", load)


@pytest.mark.parametrize("way", archives.HOSTILE)
def test_it_is_refused_and_leaves_no_marker(tmp_path: Path, honest: archives.Members, way: str) -> None:
    marker = tmp_path / "marker"
    members = dict(honest)
    archives.HOSTILE[way](members, marker)
    assert members != honest
    path = archives.write(tmp_path / "net.pt2", members)
    with pytest.raises((UnsafeModelError, NotAModelError), match=r"net\.pt2 is (refused|not an exported program)"):
        open_model(path)
    assert not marker.exists()


@pytest.mark.parametrize("name", [archives.GRAPH, archives.GRAPH.replace("model.json", "Model.json")])
def test_members_of_one_name_are_refused(tmp_path: Path, honest: archives.Members, name: str) -> None:
    path = archives.write(tmp_path / "net.pt2", honest, ((name, honest[archives.GRAPH]),))
    with pytest.raises(UnsafeModelError, match="members of the same name"):
        open_model(path)


def test_a_member_without_a_name_is_refused(tmp_path: Path, honest: archives.Members) -> None:
    path = archives.write(tmp_path / "net.pt2", dict(honest), (("net/NAMELESS", b""),))
    path.write_bytes(path.read_bytes().replace(b"net/NAMELESS", b"\0et/NAMELESS"))  # a name ends before a zero
    with pytest.raises(UnsafeModelError, match="the member ''"):
        open_model(path)


def test_bombs_are_refused_before_they_are_read(tmp_path: Path, honest: archives.Members) -> None:
    bomb = honest | {"net/data/weights/weight_0": bytes(1 << 27)}
    path = archives.write(tmp_path / "net.pt2", bomb, packed=True)
    del bomb
    tracemalloc.start()
    with pytest.raises(UnsafeModelError, match="is compressed"):
        open_model(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24


def test_members_that_overlap_are_refused(tmp_path: Path, honest: archives.Members) -> None:
    path = archives.write(tmp_path / "net.pt2", honest)
    with zipfile.ZipFile(path, "a") as archive:
        first = archive.getinfo("net/data/weights/weight_0")
        for number in range(100, 400):
            copy = zipfile.ZipInfo(f"net/data/weights/weight_{number}")
            copy.header_offset, copy.CRC = first.header_offset, first.CRC
            copy.file_size = copy.compress_size = first.file_size
            archive.filelist.append(copy)
        archive.comment = b"x"
    with pytest.raises(UnsafeModelError, match="overlap"):
        open_model(path)


def test_the_bytes_that_were_checked_are_loaded(
    tmp_path: Path, honest: archives.Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    path, marker = archives.write(tmp_path / "net.pt2", honest), tmp_path / "marker"
    opened = open_model(path).summary.fingerprint
    hostile = dict(honest)
    archives.HOSTILE["pickled weight"](hostile, marker)
    checked = exported_program.plain_archive

    def exchange(*arguments: object) -> object:
        archive = checked(*arguments)  # type: ignore[arg-type]
        archives.write(path, hostile)
        return archive

    monkeypatch.setattr(exported_program, "plain_archive", exchange)
    assert open_model(path).summary.fingerprint == opened
    assert not marker.exists()
    assert os.listdir(tmp_path) == ["net.pt2"]


def test_a_graph_that_fills_the_memory_does_so_aside(
    tmp_path: Path, honest: archives.Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening runs the graph; it asks for 16 GB here."""
    monkeypatch.undo()
    program = json.loads(honest[archives.GRAPH])
    node = next(node for node in program["graph_module"]["graph"]["nodes"] if node["target"].endswith("relu.default"))
    node["target"] = "torch.ops.aten.repeat.default"
    node["inputs"].append({"name": "repeats", "arg": {"as_ints": [1 << 20, 1, 1, 1]}, "kind": 1})
    path = archives.write(tmp_path / "net.pt2", honest | {archives.GRAPH: json.dumps(program).encode()})
    with pytest.raises(NotAModelError, match="too much memory"):
        open_model(path)


@pytest.mark.parametrize(
    ("size", "reason"),
    [("*".join(["(s0 + s1 + s2 + s3 + s4 + s5)"] * 60), "takes more than"), ("~s0", "torch.export cannot load")],
)
def test_sizes_that_take_long_do_so_aside_and_write_nothing(
    tmp_path: Path, honest: archives.Members, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    size: str, reason: str,
) -> None:  # fmt: skip
    monkeypatch.undo()
    monkeypatch.setattr(exported_program, "SECONDS", 1.0)
    program = json.loads(honest[archives.GRAPH])
    program["range_constraints"] = {f"s{each}": {"min_val": 2, "max_val": 64} for each in range(6)}
    sizes = [value["tensor_meta"]["sizes"] if "tensor_meta" in value else value["sizes"]
             for value in program["graph_module"]["graph"]["tensor_values"].values()]  # fmt: skip
    for each in sizes:
        each[0] = {"as_expr": {"expr_str": size, "hint": {"as_int": 4}}}
    path = archives.write(tmp_path / "net.pt2", honest | {archives.GRAPH: json.dumps(program).encode()})
    with pytest.raises(NotAModelError, match=reason):
        open_model(path)
    assert "".join(capfd.readouterr()) == ""


class Bits(nn.Module):
    """Operators of Python on masks, which are written with two underscores."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.where((x > 0) & (x < 1) | (x < -1), x, x * 2))


@pytest.mark.filterwarnings("ignore")
def test_operators_of_python_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    torch.export.save(torch.export.export(Bits().eval(), (torch.randn(2, 8),)), tmp_path / "net.pt2")
    assert "torch.ops.aten.__and__.Tensor" in str(zipfile.ZipFile(tmp_path / "net.pt2").read(archives.GRAPH))
    assert open_model(tmp_path / "net.pt2").summary.layers


class Various(nn.Module):
    """Buffers, a constant, a tied weight, a name with a dash, no_grad, attention, a dictionary as the output."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)
        self.blocks = nn.ModuleDict({"a-b": nn.Linear(16, 16), "c": nn.Linear(16, 16)})
        self.blocks["c"].weight = self.blocks["a-b"].weight
        self.register_buffer("positions", torch.arange(32).float())
        self.scale = torch.tensor([2.0, 3.0])

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.embed(ids) * self.scale.sum() + self.get_buffer("positions")[: ids.shape[1]][None, :, None]
        x = nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        with torch.no_grad():
            x = x + self.blocks["a-b"](x)
        return {"logits": self.head(self.blocks["c"](x.reshape(ids.shape[0] * ids.shape[1], 16)).reshape(x.shape))}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dynamic", [True, False])
def test_honest_programs_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, dynamic: bool
) -> None:
    monkeypatch.undo()
    network, ids = Various().eval().to(dtype), torch.arange(10).reshape(2, 5)
    batch, length = (torch.export.Dim(name, min=2, max=32) for name in ("batch", "length"))
    shapes = ({0: batch, 1: length},) if dynamic else None
    torch.export.save(torch.export.export(network, (ids,), dynamic_shapes=shapes), tmp_path / "net.pt2")
    model = open_model(tmp_path / "net.pt2")
    assert {"embed", "head"} <= {layer.name for layer in model.summary.layers}
    assert {layer.dtype for layer in model.summary.layers} == {str(dtype).removeprefix("torch.")}
    if dtype is torch.float32:
        torch.testing.assert_close(model.run({"input_ids": ids}), network(ids)["logits"])
    with zipfile.ZipFile(tmp_path / "net.pt2") as archive:
        assert json.loads(archive.read("net/models/model.json"))["graph_module"]
