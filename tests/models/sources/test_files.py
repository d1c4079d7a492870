"""Bare weights, state dicts, Python files and exported programs, good and bad."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests.models.sources.networks import (
    Bands,
    Experts,
    HeadFirst,
    Images,
    Retrieved,
    Steps,
    Tokens,
    Versioned,
    save_python,
    seeded,
)
from workbench.errors import UNFORESEEN, CannotRunError, ModelTooLargeError, NotAModelError, UnsafeModelError
from workbench.models.layer import ROUTER, LayerKind
from workbench.models.model import Model
from workbench.models.sources import open_model, reopen, safetensors_file, stored
from workbench.models.sources.exported_graph import is_plain_expression
from workbench.models.sources.layers import block_of
from workbench.models.sources.safetensors_file import weight_files
from workbench.models.sources.stored import contents_of, tensors_in_files, tensors_in_memory
from workbench.models.summary import OutputKind

IDS = torch.arange(10).reshape(2, 5)


def kinds(model: Model) -> dict[str, tuple[LayerKind, tuple[int, int]]]:
    return {layer.name: (layer.kind, layer.matrix) for layer in model.summary.layers}


TOKEN_KINDS = {
    "embed": (LayerKind.EMBEDDING, (32, 8)), "conv": (LayerKind.CONV1D, (8, 12)),
    "lstm.weight_ih_l0": (LayerKind.RECURRENT, (32, 8)), "lstm.weight_hh_l0": (LayerKind.RECURRENT, (32, 8)),
    "blocks.0.0": (LayerKind.LINEAR, (12, 8)), "blocks.0.2": (LayerKind.LINEAR, (8, 12)),
    "attention.in_proj_weight": (LayerKind.ATTENTION, (24, 8)), "attention.out_proj": (LayerKind.ATTENTION, (8, 8)),
    "head": (LayerKind.LINEAR, (32, 8)),
}  # fmt: skip


def test_layers_of_a_python_model(tmp_path: Path) -> None:
    model = open_model(save_python(tmp_path, Tokens), trust=True)
    assert kinds(model) == TOKEN_KINDS
    assert model.summary.by_name["head"].tied_to == "embed"
    assert model.summary.output is OutputKind.TOKEN_LOGITS
    others = {tensor.name for tensor in model.summary.others}
    assert {"norm.weight", "norm.running_mean", "conv.bias", "attention.in_proj_bias"} <= others
    assert reopen(model.summary, trust=True).summary == model.summary


def test_layers_of_transposed_convolutions(tmp_path: Path) -> None:
    model = open_model(save_python(tmp_path, Images), trust=True)
    network = seeded(Images)
    assert kinds(model)["up"] == (LayerKind.CONV_TRANSPOSE, (6, 32))
    assert kinds(model)["depthwise"] == (LayerKind.CONV_TRANSPOSE, (12, 9))
    assert kinds(model)["volume"] == (LayerKind.CONV3D, (4, 9))
    up, depthwise = network.get_parameter("up.weight"), network.get_parameter("depthwise.weight")
    assert torch.equal(model.weight("up")[2], up[:, 2].flatten())
    assert torch.equal(model.weight("depthwise")[5], depthwise[2, 1].flatten())  # group 2's second output is channel 5


def test_experts_that_see_every_row_are_matrices(tmp_path: Path) -> None:
    model = open_model(save_python(tmp_path, Experts), trust=True)
    assert kinds(model)["up"] == (LayerKind.MATRIX, (32, 8))  # no row chooses: all of it multiplies every one
    assert torch.equal(model.weight("down")[3], seeded(Experts).get_parameter("down")[:, 3].flatten())
    assert {tensor.name for tensor in model.summary.others} == {"bias", "gate.bias"}


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("model.layers.0.self_attn.q_proj", "model.layers.0"), ("model.embed_tokens", "model"), ("lm_head", "lm_head"),
        ("layer1.2.conv1", "layer1.2"), ("features.3", "features"),
        ("model.layers.4.mlp.experts.7.w1", "model.layers.4"),
    ],
)  # fmt: skip
def test_blocks(name: str, block: str) -> None:
    assert block_of(name) == block


def test_a_bare_file_has_weights_only(tmp_path: Path) -> None:
    save_python(tmp_path, Images)
    model = open_model(tmp_path / "net.safetensors")
    running = open_model(tmp_path / "net.py", trust=True)
    assert isinstance(model, Model)
    assert model.summary.fingerprint == running.summary.fingerprint
    assert torch.equal(model.weight("conv"), running.weight("conv"))
    assert not model.with_weights({"conv": torch.zeros(8, 27)}).weight("conv").any()
    assert model.summary.output is OutputKind.NONE
    with pytest.raises(CannotRunError, match="holds weights only"):
        model.run({"inputs": torch.zeros(1, 3, 8, 8)})


def test_blocks_of_bare_files_stand_in_their_order(tmp_path: Path) -> None:
    names = [f"layers.{block}.{part}.weight" for block in (10, 2, 0) for part in ("up", "down")]
    file = tmp_path / "many.safetensors"
    save_file({name: torch.ones(4, 4) for name in ("head.weight", *names)}, file)
    assert [layer.name for layer in open_model(file).summary.layers] == [
        "head", *(f"layers.{block}.{part}" for block in (0, 2, 10) for part in ("down", "up"))
    ]  # fmt: skip


@pytest.mark.parametrize("nest", [False, True])
def test_a_state_dict_is_read_weights_only(tmp_path: Path, nest: bool) -> None:
    state = seeded(Images).state_dict()
    torch.save({"state_dict": state, "epoch": 3} if nest else state, tmp_path / "net.pth")
    save_file(dict(state), tmp_path / "net.safetensors")
    pickled, plain = open_model(tmp_path / "net.pth"), open_model(tmp_path / "net.safetensors")
    assert pickled.summary.fingerprint == plain.summary.fingerprint
    assert {x.name for x in pickled.summary.layers} == {x.name for x in plain.summary.layers}


def test_a_pickled_module_is_refused(tmp_path: Path) -> None:
    torch.save(seeded(Images), tmp_path / "whole.pt")
    with pytest.raises(UnsafeModelError, match=r"safetensors\.torch\.save_file"):
        open_model(tmp_path / "whole.pt")
    save_python(tmp_path, Images)
    with pytest.raises(UnsafeModelError, match="pickled module"):
        open_model(tmp_path / "net.py", weights=tmp_path / "whole.pt", trust=True)


def test_half_precision_weights_keep_their_dtype(tmp_path: Path) -> None:
    halves = {name: value.half() for name, value in seeded(Experts).state_dict().items()}
    model = open_model(save_python(tmp_path, Experts, halves), trust=True)
    assert {layer.dtype for layer in model.summary.layers} == {"float16"}
    assert torch.equal(model.weight("gate"), halves["gate.weight"])
    assert model.run({"inputs": torch.ones(1, 8)}).dtype == torch.float32


def test_non_finite_weights_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    state = {name: value.clone() for name, value in seeded(Images).state_dict().items()}
    state["up.weight"][0, 0, 0, 0] = float("nan")
    state["head.bias"][1] = float("inf")
    file = save_python(tmp_path, Images, state)
    for model in (open_model(file, trust=True), open_model(tmp_path / "net.safetensors")):
        assert set(model.summary.non_finite) == {"up", "head.bias"}
        assert model.weight("conv").isfinite().all()


@pytest.mark.parametrize("source", ["", "build = 3", "1/0", "def build(): return 4", "def build(): raise KeyError"])
def test_bad_python_files_are_told(tmp_path: Path, source: str) -> None:
    (tmp_path / "net.py").write_text(source)
    with pytest.raises(NotAModelError, match=r"net\.py"):
        open_model(tmp_path / "net.py", trust=True)


def test_another_factory_and_output(tmp_path: Path) -> None:
    save_python(tmp_path, Images)
    (tmp_path / "net.py").write_text(
        "from tests.models.sources.networks import Images as make\nOUTPUT = 'embedding'\ndef preprocess(x): return x\n"
    )
    with pytest.raises(NotAModelError, match="no function 'mak'.*; the closest are make"):
        open_model(tmp_path / "net.py", factory="mak", trust=True)
    model = open_model(tmp_path / "net.py", factory="make", trust=True)
    assert model.summary.output is OutputKind.EMBEDDING
    assert model.summary.source.factory == "make"


def test_a_function_behind_a_colon_is_told_where_it_goes(tmp_path: Path) -> None:
    save_python(tmp_path, Images)
    with pytest.raises(NotAModelError, match=r"net\.py:make: give .* apart, net\.py and make \(--factory\)$"):
        open_model(f"{tmp_path / 'net.py'}:make", trust=True)


def test_weights_of_another_network_are_told(tmp_path: Path) -> None:
    file = save_python(tmp_path, Images)
    save_file({"other.weight": torch.zeros(2, 2)}, tmp_path / "net.safetensors")
    with pytest.raises(NotAModelError, match=r"missing \(conv.weight, ...\) and 1 unknown to it \(other.weight"):
        open_model(file, trust=True)


def test_a_module_may_ask_for_its_version_before_it_loads(tmp_path: Path) -> None:
    file = save_python(tmp_path, Versioned)
    assert torch.equal(open_model(file, trust=True).body.network.weight, seeded(Versioned).weight)


def test_damaged_and_foreign_files_are_told(tmp_path: Path) -> None:
    save_file({"a.weight": torch.zeros(64, 64)}, tmp_path / "good.safetensors")
    data = (tmp_path / "good.safetensors").read_bytes()
    for name, bad in {
        "cut": data[:-100],
        "header": data[:20],
        "empty": b"",
        "text": b"hello, this is no model",
    }.items():
        file = tmp_path / f"{name}.safetensors"
        file.write_bytes(bad)
        with pytest.raises(NotAModelError, match=file.name):
            open_model(file)
    for name in ("bad.pt", "bad.pt2", "bad.onnx_", "bad.safetensors.index.json"):
        (tmp_path / name).write_bytes(b"hello, this is no model")
        with pytest.raises(NotAModelError, match=name):
            open_model(tmp_path / name)
    (tmp_path / "nothing").mkdir()
    for path in (tmp_path / "nothing", tmp_path / "absent", "demo:absent"):
        with pytest.raises(NotAModelError):
            open_model(path)


def _safetensors(file: Path, header: dict[str, object], data: bytes) -> Path:
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return file


@pytest.mark.parametrize(("dtype", "end", "message"), [
    ("F32", 12, "not a whole safetensors file"), ("F32", 4, "not a whole safetensors file"),
    ("F4", 1, "has the dtype F4, known are"), ("F99", 8, "has the dtype F99, known are"),
])  # fmt: skip
def test_headers_that_do_not_fit_are_told(tmp_path: Path, dtype: str, end: int, message: str) -> None:
    header = {"a.weight": {"dtype": dtype, "shape": [1, 2], "data_offsets": [0, end]}}
    with pytest.raises(NotAModelError, match=message):
        open_model(_safetensors(tmp_path / "a.safetensors", header, bytes(end)))


def test_what_is_not_finite_is_found_in_any_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "PIECE", 4)
    state = {
        "z": torch.tensor([1.0] * 9 + [torch.inf]), "b": torch.ones(3, 5), "a": torch.tensor([[torch.nan] + [0.0] * 6]),
        "empty": torch.zeros(0, 3), "whole": torch.arange(9),
    }  # fmt: skip
    save_file(state, tmp_path / "a.safetensors")
    store = tensors_in_files([tmp_path / "a.safetensors"], passing=True)
    assert contents_of(store).non_finite == tuple(name for name in store.tensors if name in ("a", "z"))


def test_one_hash_for_the_same_tensors_in_a_file_and_in_memory(tmp_path: Path) -> None:
    state = {"b": torch.arange(6.0).reshape(2, 3).bfloat16(), "a": torch.tensor([True, False]), "c": torch.tensor(3)}
    save_file(state, tmp_path / "a.safetensors")
    store = tensors_in_files([tmp_path / "a.safetensors"])
    assert contents_of(store) == contents_of(tensors_in_memory(state)) and not contents_of(store).non_finite
    dtypes = {name: tensor.dtype for name, tensor in store.tensors.items()}
    assert dtypes == {"a": "bool", "b": "bfloat16", "c": "int64"}


def test_the_files_are_those_that_transformers_loads(tmp_path: Path) -> None:
    """A second index, or an index beside the file itself, must not describe other weights than those that run."""
    for name in ("a", "model", "model-00001-of-00001"):
        save_file({"x.weight": torch.zeros(2, 2)}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {"x.weight": "a.safetensors"}}
    (tmp_path / "a.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"x.weight": "model-00001-of-00001.safetensors"}})
    )
    assert [file.name for file in weight_files(tmp_path)] == ["model.safetensors"]
    (tmp_path / "model.safetensors").unlink()
    assert [file.name for file in weight_files(tmp_path)] == ["model-00001-of-00001.safetensors"]
    (tmp_path / "model.safetensors.index.json").unlink()
    assert [file.name for file in weight_files(tmp_path)] == ["a.safetensors"]
    (tmp_path / "b.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(NotAModelError, match="2 indexes of shards; open one of a"):
        weight_files(tmp_path)


def test_bare_files_larger_than_memory_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "available_memory", lambda: 10)
    save_file({"a.weight": torch.zeros(64, 64)}, tmp_path / "a.safetensors")
    assert open_model(tmp_path / "a.safetensors").summary.parameters == 4096
    with pytest.raises(ModelTooLargeError, match="B available"):
        open_model(save_python(tmp_path, Images), trust=True)


@pytest.mark.filterwarnings("ignore")  # torch.export's own, while it writes
def export(folder: Path, network: nn.Module, example: torch.Tensor, dynamic: bool = True) -> Path:
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},) if dynamic else None
    torch.export.save(torch.export.export(network, (example,), dynamic_shapes=shapes), folder / "net.pt2")
    return folder / "net.pt2"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", (torch.export.Dim.DYNAMIC, torch.export.Dim.AUTO))
def test_sizes_that_torch_finds_itself_leave_marks_on_the_sample(size: object, tmp_path: Path) -> None:
    network, example = nn.Sequential(nn.Linear(8, 4)).eval(), torch.randn(3, 8)
    torch.export.save(torch.export.export(network, (example,), dynamic_shapes=({0: size},)), tmp_path / "net.pt2")
    values = torch.randn(5, 8)
    torch.testing.assert_close(open_model(tmp_path / "net.pt2").run({"inputs": values}), network(values))


@pytest.mark.filterwarnings("ignore")
def test_an_exported_program_is_its_network(tmp_path: Path) -> None:
    network = seeded(Tokens)
    model = open_model(export(tmp_path, network, IDS))
    assert kinds(model) == TOKEN_KINDS
    assert model.summary.by_name["head"].tied_to == "embed"
    assert model.summary.output is OutputKind.TOKEN_LOGITS
    ids = torch.arange(20).reshape(4, 5)
    torch.testing.assert_close(model.run({"input_ids": ids}), network(ids))
    received: dict[str, torch.Tensor] = {}
    model.run({"input_ids": ids}, tap=lambda name, x, y: received.update({name: y}))
    assert received.keys() == {"embed", "conv", "blocks.0.0", "blocks.0.2", "head"}
    for layer in model.summary.layers:
        plain = seeded(Tokens)
        with torch.no_grad():
            plain.get_parameter(layer.parameter).mul_(0.5)
        view = model.with_weights({layer.name: model.weight(layer.name) * 0.5})
        torch.testing.assert_close(view.run({"input_ids": ids}), plain(ids), msg=layer.name)
    assert open_model(tmp_path / "net.pt2").summary == model.summary


@pytest.mark.filterwarnings("ignore")
def test_an_exported_image_model_of_one_batch_size(tmp_path: Path) -> None:
    network = seeded(Images)
    model = open_model(export(tmp_path, network, torch.zeros(2, 3, 8, 8), dynamic=False))
    assert kinds(model)["depthwise"] == (LayerKind.CONV_TRANSPOSE, (12, 9))
    images = torch.linspace(-1, 1, 4 * 192).reshape(4, 3, 8, 8)
    torch.testing.assert_close(model.run({"inputs": images}), network(images))
    torch.testing.assert_close(model.run({"inputs": images[:3]}), network(images[:3]))  # the last piece is filled up


def rewrite(path: Path, member: str, change: bytes | tuple[bytes, bytes]) -> None:
    """Replace a member of an archive, or one string in it."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in members if name.endswith(member))
    members[name] = change if isinstance(change, bytes) else members[name].replace(*change)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


class Trap:
    """Unpickling one of these would run code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("trapped",))


@pytest.mark.filterwarnings("ignore")
def test_the_class_of_a_container_is_never_looked_up(tmp_path: Path) -> None:
    path = export(tmp_path, seeded(Images), torch.zeros(2, 3, 8, 8))
    rewrite(path, "models/model.json", (b'\\"type\\": \\"builtins.dict', b'\\"type\\": \\"os.dict'))
    assert open_model(path).summary.layers


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["pickled", "target", "expression", "sample", "name"])
def test_an_exported_program_that_would_run_code_is_refused(
    tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = export(tmp_path, seeded(Images), torch.zeros(2, 3, 8, 8))
    stream = io.BytesIO()
    torch.save(Trap(), stream)
    changes: dict[str, tuple[str, bytes | tuple[bytes, bytes]]] = {
        "pickled": ("weights_config.json", (b'"use_pickle": false', b'"use_pickle": true')),
        "target": ("models/model.json", (b"torch.ops.aten.relu.default", b"torch.hub.load")),
        "expression": ("models/model.json", (b'"expr_str": "', b'"expr_str": "print(1) + ')),
        "sample": ("sample_inputs/model.pt", stream.getvalue()),
        "name": ("models/model.json", (b'"name": "relu"', b'"name": "relu=print(1)"')),
    }
    rewrite(path, *changes[way])
    with pytest.raises(UnsafeModelError, match=r"net\.pt2 is refused"):
        open_model(path)
    assert capsys.readouterr().out == ""
    assert pickle.dumps(Trap())


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Mul(Integer(2), Symbol('s58', positive=True, integer=True))", True),
        ("Mod(s0, 8)**2 + FloorDiv(s58, 2)", True), ("2**s0", False), ("Pow(9, Pow(9, 9))", False),
        ("open(name)", False), ("().__class__", False), ("Symbol.mro()", False), ("Symbol('s').func", False),
        ("(lambda: 0)()", False), ("eval('x')", False), ("Pow(s0, Integer(2))", True), ("s0**-1", True),
        ("Pow(9, Mul(8, 99999999999))", False), ("Pow(2, Max(8, 10000000000))", False), ("9**(8 + 99999999)", False),
        ("Float('0.5', precision=53)", True), ("Float('1e999999999')", False), ("Float(5, precision=10**9)", False),
        ("Float(5, 100000000)", False), ("Float(s0, precision=53)", True), ("RoundDecimal(s0, -999999999)", False),
        ("RoundDecimal(s0, 2)", True),
    ],
)  # fmt: skip
def test_expressions_over_sizes(text: str, plain: bool) -> None:
    assert is_plain_expression(text) is plain


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "words"), [
    (lambda: torch.eye(4).to_sparse(), "sparse_coo"), (lambda: torch.eye(4).to_sparse_csr(), "sparse_csr"),
    (lambda: torch.empty(4, 4, device="meta"), "without data"),
    (lambda: torch.zeros(1).expand(1 << 20, 1 << 20), "fewer values"),
    (lambda: torch.eye(4).to(torch.complex128), "dtype complex128"),
    (lambda: torch.eye(4).to(torch.float8_e4m3fnuz), "float8_e4m3fnuz"),
    (lambda: torch.quantize_per_tensor(torch.eye(4), 0.1, 0, torch.qint8), "qint8"),
])  # fmt: skip
def test_tensors_that_are_not_plain_numbers_are_refused(
    tmp_path: Path, make: Callable[[], torch.Tensor], words: str
) -> None:
    torch.save({"a.weight": torch.eye(4), "b.weight": make()}, tmp_path / "m.pt")
    with pytest.raises(NotAModelError, match=f"the tensor b.weight .*{words}"):
        open_model(tmp_path / "m.pt")


def test_a_checkpoint_of_training_holds_its_state_dict_under_any_name(tmp_path: Path) -> None:
    network, file = torch.nn.Linear(8, 8), tmp_path / "last.pt"
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    torch.save({"step": 3, "net": network.state_dict(), "optimizer": optimizer.state_dict()}, file)
    assert torch.equal(open_model(file).weight("weight"), network.weight)
    torch.save({"generator": network.state_dict(), "judge": network.state_dict()}, file)
    with pytest.raises(NotAModelError, match="several sets of tensors: generator, judge"):
        open_model(file)


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (TypeError("unsupported\noperand"), NotAModelError), (struct.error("unpack requires 4 bytes"), NotAModelError),
        (RecursionError("maximum recursion depth exceeded"), NotAModelError), (MemoryError(), MemoryError),
        (RuntimeError("can't allocate memory: you tried to allocate 8 bytes"), RuntimeError),
        (PermissionError(13, "Permission denied"), PermissionError), (UnsafeModelError("a pickle"), UnsafeModelError),
    ],
)  # fmt: skip
def test_what_no_reader_foresaw_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception, seen: type[Exception]
) -> None:
    def opens(*_: object) -> Model:
        raise raised

    save_file({"a.weight": torch.ones(4, 4)}, tmp_path / "m.safetensors")
    monkeypatch.setattr(safetensors_file.SafetensorsFiles, "open", opens)
    with pytest.raises(seen) as caught:
        open_model(tmp_path / "m.safetensors")
    if seen is NotAModelError:
        assert UNFORESEEN in str(caught.value) and "\n" not in str(caught.value) and caught.value.__cause__ is raised


@pytest.mark.parametrize("inner", ["some model", "snapshots/a1b2", "models--x--y/snapshots/a1b2"])
def test_a_folder_above_a_model_names_the_model(tmp_path: Path, inner: str) -> None:
    folder = tmp_path / inner
    folder.mkdir(parents=True)
    save_file({"weight": torch.zeros(4, 4)}, folder / "model.safetensors")
    with pytest.raises(NotAModelError) as refused:
        open_model(tmp_path)
    assert str(folder) in str(refused.value) and "expected" not in str(refused.value)


def test_what_is_no_model_is_told_what_would_be_one(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    for place, words in ((tmp_path, "nothing that is a model"), (tmp_path / "notes", r"unknown kind \(no suffix\)")):
        with pytest.raises(NotAModelError, match=f"{words}; expected"):
            open_model(place)


@pytest.mark.parametrize(
    ("kind", "output"), [(HeadFirst, OutputKind.TOKEN_LOGITS), (Retrieved, OutputKind.CLASS_LOGITS)]
)
def test_what_a_python_network_takes_and_gives_is_seen_by_running_it(
    tmp_path: Path, kind: type[torch.nn.Module], output: OutputKind
) -> None:
    model = open_model(save_python(tmp_path, kind), trust=True)
    assert model.inputs.tokens and model.inputs.vocabulary == 13 and model.summary.output is output
    ids = torch.arange(10).reshape(2, 5)
    torch.testing.assert_close(model.run({"input_ids": ids}), seeded(kind)(ids))


def test_series_and_bands_are_traced_at_opening(tmp_path: Path) -> None:
    layers = open_model(save_python(tmp_path, Steps), trust=True).summary.by_name
    assert layers["choose"].keep == ROUTER and layers["experts"].kind is LayerKind.EXPERTS
    layers = open_model(save_python(tmp_path, Bands), trust=True).summary.by_name
    assert layers["table"].axes == (1, 0) and layers["table"].kind is LayerKind.LINEAR
