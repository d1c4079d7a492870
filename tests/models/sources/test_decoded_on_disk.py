"""Quantized models that do not fit into memory in float32: decoded to the disk, with the results of memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from tests.models.networks import Rows
from tests.models.sources.gguf_copies import copied
from tests.numerics.statistics.same import same
from workbench import memory
from workbench.deployment.exporters import exporter
from workbench.measurement.calibrate import Calibration, calibrate
from workbench.models.execution import unread, widened
from workbench.models.execution.widened import Later, Widened
from workbench.models.model import Model
from workbench.models.sources import gguf_file, open_model, quantized_checkpoint, roles
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

TOKENS = {"input_ids": torch.arange(3, 23).reshape(1, 20), "attention_mask": torch.ones(1, 20, dtype=torch.int64)}
ATTENTION = {"attn_qkv.weight": ("attn_q.weight", "attn_k.weight", "attn_v.weight")}


def exported(name: str, kind: str, scheme: str, place: Path) -> Path:
    model = open_model(folder_of(name, place / name))
    names = [layer.name for layer in quantizable(model.summary.stored) if "layer" in layer.name or ".h." in layer.name]
    out = place / ("model.gguf" if kind == "gguf" else "model")
    plan = Plan().assign(names, weights=scheme, algorithm="rtn")
    exporter(kind).export(quantize(model, plan), model, out, silent)
    return out


@pytest.fixture
def too_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Return what makes the memory too small for any model in float32."""

    def shrink() -> None:
        monkeypatch.setenv(memory.SCRATCH_VARIABLE, str(tmp_path / "scratch"))
        for module in (gguf_file, quantized_checkpoint):
            monkeypatch.setattr(module, "fits", lambda nbytes: False)
        monkeypatch.setattr(roles, "MOST_READ", 2)
        for module in (gguf_file, quantized_checkpoint, widened, unread):
            monkeypatch.setattr(module, "LEAST", 2)

    return shrink


@pytest.mark.parametrize(("name", "kind", "scheme"), [
    ("llama", "gguf", "q4_0"), ("gpt2", "gguf", "q8_0"), ("mixtral", "gguf", "q5_1"), ("gemma2", "gguf", "q4_1"),
    ("nomic_bert", "gguf", "q8_0"), ("llama", "compressed-tensors", "int4-g32"), ("llama", "gptq", "int4-g32"),
    ("qwen3_moe", "compressed-tensors", "int8-channel"), ("llama", "mlx", "mxfp4"),
])  # fmt: skip
def test_answers_weights_and_bytes_are_those_of_memory(
    name: str, kind: str, scheme: str, tmp_path: Path, too_small: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = exported(name, kind, scheme, tmp_path)
    if name == "nomic_bert":
        file = copied(file, tmp_path / "fused.gguf", fused=ATTENTION)
    whole = open_model(file)
    too_small()
    written = list[Later]()
    write = Later._write
    monkeypatch.setattr(Later, "_write", lambda self, out: (written.append(self), write(self, out))[1])
    model = open_model(file)
    assert model.summary == whole.summary and len(written) <= 2  # the tables in which tokens are looked up
    assert "do not fit into memory; they take" in " ".join(model.notes) and not any("memory" in n for n in whole.notes)
    parameters = list(model.body.network.parameters())  # type: ignore[attr-defined]
    assert sum(isinstance(each, Widened) for each in parameters) > 4
    with torch.no_grad():
        assert torch.equal(model.run(TOKENS), whole.run(TOKENS))
    assert len(written) > 4
    for layer in whole.summary.stored:
        assert torch.equal(model.weight(layer.name), whole.weight(layer.name))
        assert model.encoding(layer.name) == whole.encoding(layer.name)
    if kind == "gguf":
        out = tmp_path / "again.gguf"
        exporter("gguf").export(quantize(model, as_stored(model, Plan())), model, out, silent)
        assert out.read_bytes() == file.read_bytes()


def test_calibration_gives_the_same_bits(tmp_path: Path, too_small: Callable[[], None]) -> None:
    def observed(model: Model) -> Calibration:
        ids = np.random.default_rng(3).integers(0, 48, (6, 12))
        return calibrate(model, Rows(input_ids=torch.from_numpy(ids)), batch_size=2, seed=5)

    file = exported("llama", "gguf", "q4_0", tmp_path)
    exact = observed(open_model(file))
    too_small()
    result = observed(open_model(file))
    assert result.curvature.keys() == exact.curvature.keys() and result.curvature
    for name, item in exact.curvature.items():
        np.testing.assert_array_equal(result.curvature[name].rows, item.rows)
        np.testing.assert_array_equal(result.curvature[name].weighing, item.weighing)
    assert all(same(result.statistics[place], item) for place, item in exact.statistics.items())


def test_a_graph_is_that_of_memory(tmp_path: Path, too_small: Callable[[], None]) -> None:
    """Weights that are read when they are used made torch capture one size of a batch alone: two texts of 7 tokens."""
    pytest.importorskip("onnx")
    file = exported("llama", "gguf", "q4_0", tmp_path)
    files = []
    for place in (tmp_path / "whole", tmp_path / "later"):
        model, out = open_model(file), place / "model.onnx"
        place.mkdir()
        plan = Plan().assign(["model.layers.*proj"], weights="int8-channel", algorithm="rtn")
        exporter("onnx").export(quantize(model, plan), model, out, silent)
        files.append(out.read_bytes())
        too_small()
    assert files[0] == files[1]


@pytest.mark.parametrize("kind", ["gguf", "compressed-tensors"])
def test_a_disk_without_room_leaves_the_weights(
    kind: str, tmp_path: Path, too_small: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = exported("llama", kind, "q8_0" if kind == "gguf" else "int8-channel", tmp_path)
    too_small()
    monkeypatch.setattr(memory, "LEFT_ON_DISK", 1 << 60)
    summary = open_model(file).summary
    assert summary.layers and "cannot be put on the disk" in str(summary.cannot_run)
