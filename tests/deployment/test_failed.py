"""What fails its proof is kept beside its place, and the message names the first tensor and value that differ."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal as signals
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from tests.deployment.exporters.llamas import folder_of
from tests.deployment.exporters.models import plan_of, quantized, tensor_model
from workbench import atomic
from workbench.deployment.checkpoints import write
from workbench.deployment.exporters import exporter, huggingface, packed_safetensors, state_dict
from workbench.deployment.failed import keeping_failed
from workbench.errors import ExportError
from workbench.models.sources import open_model
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

DIFFERS = r"\[[0-9, ]+\] reads back as .*, .* was written.* is kept as .*\.failed"


def _flipping(write: Callable[..., None]) -> Callable[..., None]:
    """Return a writer of files whose last byte the disk changes."""

    def write_otherwise(path: Path, *rest: Any) -> None:
        write(path, *rest)
        with path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))

    return write_otherwise


@pytest.mark.parametrize(("kind", "module"), [("safetensors", packed_safetensors), ("state-dict", state_dict)])
def test_files(kind: str, module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, out = tensor_model(), tmp_path / "m.safetensors"
    result = quantized(model, plan_of(c_attn="int4-g16"))
    exporter(kind).export(result, model, out, silent)
    good = out.read_bytes()
    monkeypatch.setattr(module, "write_safetensors", _flipping(module.write_safetensors))
    for _ in range(2):  # a second failure takes the place of the first
        with pytest.raises(ExportError, match=DIFFERS):
            exporter(kind).export(result, model, out, silent)
    assert sorted(os.listdir(tmp_path)) == ["m.safetensors", "m.safetensors.failed"]
    assert out.read_bytes() == good
    failed = (tmp_path / "m.safetensors.failed").read_bytes()
    assert len(failed) == len(good) and failed[:-1] == good[:-1] and failed[-1] == good[-1] ^ 1


def _at_header(find: bytes, put: bytes) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what makes a writer of files in whose header the disk changes some bytes."""

    def changing(write: Callable[..., None]) -> Callable[..., None]:
        def write_otherwise(path: Path, *rest: Any) -> None:
            write(path, *rest)
            path.write_bytes(path.read_bytes().replace(find, put, 1))

        return write_otherwise

    return changing


@pytest.mark.parametrize(("find", "put"), [(b'"__metadata__', b'"__metadatb__'), (b'"format":"pt"', b'"format":"pq"')])
@pytest.mark.parametrize(("kind", "module"), [
    ("safetensors", packed_safetensors), ("state-dict", state_dict), ("huggingface", huggingface), ("mlx", write),
])  # fmt: skip
def test_headers(
    kind: str, module: Any, find: bytes, put: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no reader uses passed the proof; what readers refuse was told by the file's temporary name."""
    model = open_model(folder_of("llama", tmp_path / "source", num_hidden_layers=1))
    made, out = quantize(model, Plan().assign([Q], weights="int4-g32", algorithm="rtn")), tmp_path / "made" / "m"
    out.parent.mkdir()
    if kind == "safetensors":
        find, put = find.replace(b'"format":"pt"', b'"version":"'), put.replace(b'"format":"pq"', b'"versioo":"')
    monkeypatch.setattr(module, "write_safetensors", _at_header(find, put)(module.write_safetensors))
    with pytest.raises(ExportError, match="the header of .* does not read back as it was written") as failed:
        exporter(kind).export(made, model, out, silent)
    assert os.listdir(out.parent) == ["m.failed"] and ".part" not in str(failed.value)
    assert str(failed.value).count(f"{out}.failed") == 2, "the file has that name now"


def test_a_hugging_face_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = transformers.GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "source")
    model, out = open_model(tmp_path / "source"), tmp_path / "made" / "m"
    out.parent.mkdir()
    result = quantize(model, Plan().assign(["transformer.wte"], weights="int8-channel", algorithm="rtn"))
    monkeypatch.setattr(huggingface, "write_safetensors", _flipping(huggingface.write_safetensors))
    for _ in range(2):
        with pytest.raises(ExportError, match=DIFFERS):
            exporter("huggingface").export(result, model, out, silent)
    assert os.listdir(out.parent) == ["m.failed"] and (out.parent / "m.failed" / "config.json").is_file()


Q = "model.layers.0.self_attn.q_proj"


def _changed(path: Path, tensor: str) -> None:
    """Flip a bit in the middle of a tensor of a safetensors file."""
    raw = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(raw[:8], "little")
    first, last = json.loads(raw[8:start])[tensor]["data_offsets"]
    raw[start + (first + last) // 2] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(("kind", "weights", "inputs"), [
    ("gptq", "int4-g32-asym", None), ("mlx", "mxfp4", None), ("mlx", "int4-g32", None),
    ("torchao", "int8-channel", "int8-token"), ("compressed-tensors", "int4-g32-asym", None),
    ("compressed-tensors", "int8-channel", "int8-tensor"), ("compressed-tensors", "nvfp4", "nvfp4"),
])  # fmt: skip
def test_a_bit_of_any_tensor_of_a_checkpoint(
    kind: str, weights: str, inputs: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shape of compressed-tensors and the scales of inputs, which decode no weight, could be anything."""
    if kind in ("torchao", "compressed-tensors"):
        pytest.importorskip(kind.replace("-", "_"))
    model = open_model(folder_of("llama", tmp_path / "source", attention_bias=True))
    made = quantize(model, Plan().assign([Q], weights=weights, algorithm="rtn"))
    if inputs in ("int8-tensor", "nvfp4"):
        made = replace(made, ranges={(Q, "input"): Range(low=-2.0, high=2.0, method="min-max", clipped=0.0)})
    made = replace(made, plan=made.plan.assign([Q], inputs=inputs))
    (tmp_path / "made").mkdir()
    exporter(kind).export(made, model, tmp_path / "made" / "whole", silent)
    names, written = [*load_file(tmp_path / "made" / "whole" / "model.safetensors")], write.write_safetensors
    for name in (each for each in names if each.startswith(Q)):

        def otherwise(path: Path, *rest: Any, name: str = name) -> None:
            written(path, *rest)
            _changed(path, name)

        monkeypatch.setattr(write, "write_safetensors", otherwise)
        with pytest.raises(
            ExportError, match=r"q_proj.* reads back as .* (was|were) .* is kept as .*\.failed"
        ) as failed:
            exporter(kind).export(made, model, tmp_path / "made" / "m", silent)
        assert "\n" not in str(failed.value)
        assert sorted(os.listdir(tmp_path / "made")) == ["m.failed", "whole"]


def test_a_bit_of_any_tensor_or_operator_of_an_onnx_file(tmp_path: Path) -> None:
    """The scale of static inputs, constants and operators could be anything."""
    onnx = pytest.importorskip("onnx")
    from workbench.deployment.onnx import file

    model, path = open_model("demo:digits-classifier"), tmp_path / "m.onnx"
    names = [layer.name for layer in model.summary.stored]
    made = quantize(model, Plan().assign(names[:1], weights="int8-channel", algorithm="rtn"), ranges={})
    range_ = Range(low=-2.0, high=2.0, method="min-max", clipped=0.0)
    made = replace(made, plan=made.plan.assign(names[:1], inputs="int8-tensor"), ranges={(names[0], "input"): range_})
    content = file.content_of(made, model)
    file.write(path, content, None, silent)
    file.prove(path, content, silent, graph=True)
    whole = onnx.load(path)
    assert f"{names[0]}.input.scale" in {tensor.name for tensor in whole.graph.initializer}
    for place, tensor in enumerate(whole.graph.initializer):
        other, raw = onnx.load(path), bytearray(tensor.raw_data)
        raw[len(raw) // 2] ^= 1
        other.graph.initializer[place].raw_data = bytes(raw)
        onnx.save(other, tmp_path / "other.onnx")
        with pytest.raises(ExportError, match=rf"{tensor.name.partition('.codes')[0].partition('.scales')[0]}.* reads"):
            file.prove(tmp_path / "other.onnx", content, silent, graph=True)
    parts = (
        lambda other: (other, "producer_name"), lambda other: (other.opset_import[0], "domain"),
        lambda other: (other.graph, "name"), lambda other: (other.graph.input[0], "doc_string"),
        lambda other: (other.graph.output[0], "doc_string"), lambda other: (other.graph.value_info[0], "name"),
        lambda other: (other.graph.value_info[-1], "name"),
    )  # fmt: skip
    for part in parts:
        other = onnx.ModelProto.FromString(whole.SerializeToString())
        file._compare_header(other, content.graph)
        message, field = part(other)
        setattr(message, field, "x")
        with pytest.raises(ExportError, match="of the file reads back otherwise than it was written"):
            file._compare_header(other, content.graph)
    whole.graph.node[-1].name = "other"
    onnx.save(whole, tmp_path / "other.onnx")
    with pytest.raises(ExportError, match="the operator .* reads back otherwise than it was written"):
        file.prove(tmp_path / "other.onnx", content, silent, graph=True)


def test_an_onnx_genai_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxscript")
    from workbench.deployment.onnx import file

    model = open_model(folder_of("llama", tmp_path / "source", num_hidden_layers=1))
    made, whole = quantize(model, Plan().assign([Q], weights="int4-g32", algorithm="rtn")), file.write

    def otherwise(path: Path, content: Any, data: Path, *rest: Any) -> None:
        whole(path, content, data, *rest)
        raw = bytearray(data.read_bytes())
        raw[0] ^= 1
        data.write_bytes(raw)

    monkeypatch.setattr(file, "write", otherwise)
    with pytest.raises(ExportError, match=r"\[.*\] reads back as .*, .* was .*The folder is kept as .*m.failed"):
        exporter("onnx-genai").export(made, model, tmp_path / "m", silent)
    assert sorted(os.listdir(tmp_path)) == ["m.failed", "source"]
    assert (tmp_path / "m.failed" / "genai_config.json").is_file()


def test_a_second_failure_of_an_onnx_file_with_its_data_takes_the_place_of_the_first(tmp_path: Path) -> None:
    for text in ("first", "second"):
        written = tmp_path / "temporary"
        written.mkdir()
        (written / "m.onnx").write_text(text)
        with (
            pytest.raises(ExportError, match=r"The folder is kept as .*m.onnx.failed$"),
            keeping_failed(written, tmp_path / "m.onnx"),
        ):
            raise ExportError("a[0]")
    assert os.listdir(tmp_path) == ["m.onnx.failed"]
    assert (tmp_path / "m.onnx.failed" / "m.onnx").read_text() == "second"


def test_a_folder_that_no_export_made_stays(tmp_path: Path) -> None:
    (tmp_path / "m.failed").mkdir()
    (tmp_path / "m.failed" / "mine").write_text("mine")
    for text in ("first", "second"):
        written = tmp_path / "temporary"
        written.write_text(text)
        with (
            pytest.raises(ExportError, match=r"a\[0\]. The file is kept as .*m.failed-2"),
            keeping_failed(written, tmp_path / "m"),
        ):
            raise ExportError("a[0]")
        assert (tmp_path / "m.failed-2").read_text() == text
    assert (tmp_path / "m.failed" / "mine").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["m.failed", "m.failed-2"]


def test_an_onnx_graph_keeps_its_own_tensors_until_the_next_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calibrations give one plan other numbers; the file of tensors was replaced before the graph."""
    model, out = open_model("demo:digits-classifier"), tmp_path / "m.onnx"
    names = [layer.name for layer in model.summary.stored]
    results = [
        quantize(model, Plan().assign(names, weights="int8-channel", algorithm=algorithm), ranges={})
        for algorithm in ("rtn", "rtn-clip")
    ]
    first, second = results[0], replace(results[1], plan=results[0].plan)
    export = exporter("onnx", ["external=true"]).export
    export(first, model, out, silent)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "_flush", full)
        with pytest.raises(ExportError, match="the disk is full"):
            export(second, model, out, silent)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    export(second, model, out, silent)
    assert len(os.listdir(tmp_path)) == 2 and out.read_bytes() != before["m.onnx"]


@pytest.mark.parametrize("fails", [False, True])
def test_two_exports_to_one_path_at_once_leave_each_other_s_tensors(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both chose one name for their tensors, and the one that failed removed those of the other."""
    from workbench.deployment.exporters import onnx as module

    model, out, write = open_model("demo:digits-classifier"), tmp_path / "m.onnx", module._write
    names = [layer.name for layer in model.summary.stored]
    made = quantize(model, Plan().assign(names, weights="int8-channel", algorithm="rtn"), ranges={})
    export = exporter("onnx", ["external=true"]).export
    underway = tmp_path / "m.onnx.01234567.data"  # of a third one, whose graph is not there yet
    underway.touch()
    second: list[Path] = []

    def first(*arguments: Any) -> None:
        monkeypatch.setattr(module, "_write", write)
        second.extend(export(made, model, out, silent))
        if fails:
            raise ExportError("no")
        write(*arguments)

    monkeypatch.setattr(module, "_write", first)
    kept = second
    if fails:
        with pytest.raises(ExportError, match="no"):
            export(made, model, out, silent)
    else:
        kept = [*export(made, model, out, silent)]
        assert kept[1] != second[1]
    assert sorted(tmp_path.iterdir()) == sorted([underway, *kept])
    onnx = pytest.importorskip("onnx")
    assert {each.name for each in onnx.load(out).graph.initializer}, "its tensors are read from the file beside it"
    for _ in range(3):
        kept = [*export(made, model, out, silent)]
        assert sorted(tmp_path.iterdir()) == sorted([underway, *kept])


def test_a_link_leads_to_the_graph_and_its_tensors(tmp_path: Path) -> None:
    """The tensors came beside the link, and where that was on another disk the export failed."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model, there = open_model("demo:digits-classifier"), tmp_path / "there"
    there.mkdir()
    (tmp_path / "m.onnx").symlink_to(there / "real.onnx")
    out, data = exporter("onnx", ["external=true"]).export(quantize(model, Plan()), model, tmp_path / "m.onnx", silent)
    assert sorted(there.iterdir()) == sorted([out, data]) and sorted(os.listdir(tmp_path)) == ["m.onnx", "there"]
    onnxruntime.InferenceSession(str(out))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("signal", ["SIGKILL", "SIGTERM"])
def test_killed_exports_of_two_files_leave_nothing_to_the_next(signal: str, tmp_path: Path) -> None:
    """Killed at each change of a name: tensors stayed in the folder, empty or whole, and no graph named them."""
    model, out = open_model("demo:digits-classifier"), tmp_path / "m.onnx"
    made, export = quantize(model, Plan()), exporter("onnx", ["external=true"]).export
    export(made, model, out, silent)
    for name, count in (("mkdir", 1), ("replace", 4), ("unlink", 1)):
        for moment in range(count):
            died = os.fork()
            if not died:
                _die_at(name, moment, signal)
                export(made, model, out, silent)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(died, 0)[1]) == -int(getattr(signals, signal))
            if signal == "SIGTERM":
                assert len(os.listdir(tmp_path)) == 2
            kept = [*export(made, model, out, silent)]
            assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_a_graph_with_its_tensors_within_leaves_none_beside_it(tmp_path: Path) -> None:
    """Those of the graph that it replaced stayed."""
    model, out = open_model("demo:digits-classifier"), tmp_path / "m.onnx"
    for external in ("true", "false"):
        kept = exporter("onnx", [f"external={external}"]).export(quantize(model, Plan()), model, out, silent)
        assert sorted(tmp_path.iterdir()) == sorted(kept)
    assert kept == (out,)


def _die_at(name: str, moment: int, signal: str) -> None:
    """End this process when ``os.name`` is called for the time ``moment`` (from 0), as the program does."""
    call, calls = getattr(os, name), itertools.count()

    def dies(*arguments: Any, **named: Any) -> Any:
        if next(calls) == moment:
            if signal == "SIGTERM":
                atomic.abandon()
            os.kill(os.getpid(), getattr(signals, signal))
        return call(*arguments, **named)

    setattr(os, name, dies)


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode there")
@pytest.mark.parametrize("kind", ["onnx", "gguf", "safetensors"])
def test_a_place_whose_name_is_no_utf8(kind: str, tmp_path: Path) -> None:
    """The package onnx opens none: it was found at the end, and the file kept as one that failed its proof."""
    opened, out = open_model(folder_of("llama", tmp_path / "model")), tmp_path / os.fsdecode(b"\xff") / "m"
    out.parent.mkdir()
    plan = Plan().assign(["model.layers.*.mlp.*"], weights="q8_0" if kind == "gguf" else "int8", algorithm="rtn")
    result = quantized(opened, plan)
    if kind == "onnx":
        with pytest.raises(ExportError, match="takes names and texts in UTF-8 alone"):
            exporter(kind).export(result, opened, out, silent)
        assert not os.listdir(out.parent)
    else:
        assert exporter(kind).export(result, opened, out, silent) == (out,) and out.exists()
