"""Every kind of checkpoint: whole or not at all, for models with transforms, from sources that it can copy."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.errors import CancelledError, ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

KINDS = ("compressed-tensors", "gptq", "mlx", "torchao")
Q = "model.layers.0.self_attn.q_proj"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama")))


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_and_a_cancelled_export_leave_what_was_there(
    kind: str, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantized, out = quantize(model, Plan().assign([Q], weights="int4-g32", algorithm="rtn")), tmp_path / "out"
    exporter(kind).export(quantized, model, out, silent)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    def cancelling(fraction: float, text: str, partial: Any = None) -> None:
        if fraction > 0.3:
            raise CancelledError("stop")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(ExportError, match="the disk is full"):
            exporter(kind).export(quantize(model, Plan().assign([Q], weights="int8-g32")), model, out, silent)
    with pytest.raises(CancelledError):
        exporter(kind).export(quantized, model, out, cancelling)
    assert os.listdir(tmp_path) == ["out"] and {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize("kind", KINDS)
def test_what_transforms_change_is_written_as_it_was_evaluated(kind: str, tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama", tie_word_embeddings=True))
    plan = Plan(transforms=("rotation",)).assign(["model.layers.*"], weights="int4-g32", algorithm="rtn")
    quantized, out = quantize(model, plan), tmp_path / "out"
    exporter(kind).export(quantized, model, out, silent)
    evaluated, tensors = quantized.bind(model), load_file(out / "model.safetensors")
    norm = "model.layers.0.input_layernorm.weight"
    assert torch.equal(tensors[norm], evaluated.other(norm)) and not torch.equal(tensors[norm], model.other(norm))
    if kind != "torchao":
        again = open_model(out) if kind != "mlx" else None
        ids = torch.arange(12)[None]
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        assert again is None or torch.equal(again.run(batch), evaluated.run(batch))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_came_from_elsewhere_is_refused_with_what_to_do(kind: str, tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "llama")
    (folder / "config.json").unlink()
    bare = open_model(folder / "model.safetensors")
    with pytest.raises(ExportError, match="no config.json.*export to state-dict or safetensors"):
        exporter(kind).export(quantize(bare, Plan()), bare, tmp_path / "out", silent)


def test_a_tied_table_is_refused_but_by_mlx_which_looks_up_and_multiplies_with_one(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama", tie_word_embeddings=True))
    plan = Plan().assign(["model.embed_tokens"], weights="int4-g32", algorithm="rtn")
    for kind in ("compressed-tensors", "torchao"):
        with pytest.raises(ExportError, match="model.embed_tokens: it shares its tensor with another layer"):
            exporter(kind).export(quantize(model, plan), model, tmp_path / "out", silent)
    exporter("mlx").export(quantize(model, plan), model, tmp_path / "out", silent)
    assert "model.embed_tokens.scales" in load_file(tmp_path / "out" / "model.safetensors")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_the_plan_says_of_kept_layers_is_dropped(kind: str, tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama", tie_word_embeddings=True))
    plan = Plan().assign([Q], weights="int4-g32", algorithm="rtn")
    if kind != "compressed-tensors":
        with pytest.raises(ExportError, match="keys and values"):
            cached = plan.assign(["model.layers.*.self_attn.k_proj"], cache="int8-token")
            exporter(kind).export(quantize(model, cached), model, tmp_path / "out", silent)
    with pytest.raises(ExportError, match="lm_head: its weight is another layer's"):
        heads = plan.assign(["lm_head"], inputs="int8-token")
        exporter(kind).export(quantize(model, heads), model, tmp_path / "out", silent)
    with pytest.raises(ExportError, match="k_proj: "):
        inputs = plan.assign(["model.layers.0.self_attn.k_proj"], inputs="int8-token")
        exporter(kind).export(quantize(model, inputs), model, tmp_path / "out", silent)


@pytest.mark.parametrize("kind", KINDS)
def test_a_safetensors_file_beside_its_configuration_will_do(kind: str, tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "llama", tie_word_embeddings=True)
    plan = Plan().assign(["model.layers.*"], weights="int4-g32", algorithm="rtn")
    for name, model in (("whole", open_model(folder)), ("bare", open_model(folder / "model.safetensors"))):
        exporter(kind).export(quantize(model, plan), model, tmp_path / name, silent)
    whole, bare = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "bare"))
    assert whole.keys() == bare.keys() and all(torch.equal(whole[name], bare[name]) for name in whole)
    if kind == "compressed-tensors":
        assert torch.equal(open_model(tmp_path / "bare").weight(Q), open_model(tmp_path / "whole").weight(Q))


def as_one_shard(folder: Path) -> Path:
    """Give a folder's only file the name of the first shard of one, with an index beside it."""
    name = "model-00001-of-00001.safetensors"
    names = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder / name)
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", [*KINDS, "gguf"])
def test_tensors_beside_their_configuration_need_no_network_and_any_name(kind: str, tmp_path: Path) -> None:
    folder = as_one_shard(folder_of("llama", tmp_path / "llama", tie_word_embeddings=False))
    bare = open_model(folder / "model.safetensors.index.json")
    assert bare.summary.cannot_run is not None
    scheme = "q4_0" if kind == "gguf" else "int4-g32"
    out = tmp_path / ("out.gguf" if kind == "gguf" else "out")
    quantized = quantize(bare, Plan().assign([Q], weights=scheme, algorithm="rtn"))
    exporter(kind).export(quantized, bare, out, silent)
    again = open_model(out)
    assert again.summary.cannot_run is None
    stored = again.encoded(Q)
    assert stored is not None and stored.scheme == scheme
    for part, values in stored.arrays.items():
        assert values.tobytes() == quantized.tensors[Q].arrays[part].tobytes()
