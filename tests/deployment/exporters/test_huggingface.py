"""The Hugging Face folder, loaded by transformers itself."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.deployment.exporters.models import plan_of
from workbench.deployment.checkpoints.folder import MARKER
from workbench.deployment.exporters import exporter
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    path = tmp_path_factory.mktemp("source")
    transformers.GPT2LMHeadModel(config).to(torch.bfloat16).save_pretrained(path)
    (path / "tokenizer.json").write_text("{}", encoding="utf-8")
    (path / "LICENSE").write_text("free", encoding="utf-8")
    (path / "modeling.py").write_text("raise SystemExit", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return open_model(folder)


@pytest.fixture(scope="module")
def result(model: Model) -> QuantizedModel:
    plan = Plan(fingerprint=model.summary.fingerprint).assign(
        ["transformer.h.*.attn.c_attn", "transformer.h.*.mlp.*", "transformer.wte"], weights="int4-g8-asym"
    )
    return quantize(model, plan)


def test_transformers_computes_what_was_evaluated(model: Model, result: QuantizedModel, tmp_path: Path) -> None:
    written = exporter("huggingface").export(result, model, tmp_path / "out", silent)
    assert {path.name for path in written} == set(os.listdir(tmp_path / "out"))
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    assert loaded.dtype == torch.float32
    tokens = torch.arange(10).reshape(1, 10)
    with torch.no_grad():
        expected = result.bind(model).run({"input_ids": tokens})
        assert torch.equal(loaded(input_ids=tokens).logits, expected)
        assert not torch.equal(model.run({"input_ids": tokens}), expected)
    assert loaded.lm_head.weight is loaded.transformer.wte.weight


def test_settings_are_copied_and_code_is_not(model: Model, result: QuantizedModel, tmp_path: Path) -> None:
    exporter("huggingface").export(result, model, tmp_path / "out", silent)
    names = set(os.listdir(tmp_path / "out"))
    assert {"config.json", "model.safetensors", "tokenizer.json", "LICENSE", MARKER} <= names
    assert "modeling.py" not in names
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert config.get("dtype", config.get("torch_dtype")) == "float32"


def test_links_out_of_the_folder_are_not_copied(folder: Path, tmp_path: Path) -> None:
    """A stranger's archive may hold one to a private file, which the export would then show to everybody."""
    own = tmp_path / "snapshots" / "1"
    shutil.copytree(folder, own)
    (tmp_path / "blobs").mkdir()
    (own / "LICENSE").rename(tmp_path / "blobs" / "abc")
    (own / "LICENSE").symlink_to("../../blobs/abc")  # as the Hub's cache has it
    opened = open_model(own)
    result = quantize(opened, Plan())
    exporter("huggingface").export(result, opened, tmp_path / "whole", silent)
    assert (tmp_path / "whole" / "LICENSE").read_text() == "free"
    (tmp_path / "secret").write_text("private")
    (own / "NOTICE.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(ExportError, match=r"NOTICE.txt is a link to .*secret, outside the model's folder"):
        exporter("huggingface").export(result, opened, tmp_path / "out", silent)
    assert not (tmp_path / "out").exists()


def test_an_earlier_export_is_replaced_and_anything_else_is_not(
    model: Model, result: QuantizedModel, folder: Path, tmp_path: Path
) -> None:
    out, huggingface = tmp_path / "out", exporter("huggingface")
    huggingface.export(result, model, out, silent)
    huggingface.export(quantize(model, Plan()), model, out, silent)
    assert os.listdir(tmp_path) == ["out"]
    assert json.loads((out / MARKER).read_text(encoding="utf-8"))["plan"] == Plan().hash
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="holds more than an earlier export"):
        huggingface.export(result, model, out, silent)
    assert (out / "notes.txt").read_text(encoding="utf-8") == "mine"
    with pytest.raises(ExportError, match="choose a new folder"):
        huggingface.export(result, model, folder, silent)
    assert (folder / "modeling.py").exists()


def test_an_empty_folder_is_taken(model: Model, result: QuantizedModel, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    exporter("huggingface").export(result, model, tmp_path / "out", silent)
    assert (tmp_path / "out" / "config.json").exists()


def test_wrong_values_do_not_pass_the_proof(
    model: Model, result: QuantizedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.deployment.exporters import huggingface

    def other(folder: Path, **options: Any) -> Model:
        first = next(iter(model.summary.stored))
        return open_model(folder, **options).with_weights({first.name: torch.zeros(first.matrix)})

    monkeypatch.setattr("workbench.models.sources.open_model", other)
    with pytest.raises(ExportError, match=r"wte.weight\[0, 0\] reads back as 0.0, .* was written; please report"):
        huggingface.HuggingFaceFolder().export(result, model, tmp_path / "out", silent)
    assert os.listdir(tmp_path) == ["out.failed"]


def test_a_full_disk_leaves_the_earlier_export(
    model: Model, result: QuantizedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    exporter("huggingface").export(quantize(model, Plan()), model, out, silent)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExportError, match="the disk is full"):
        exporter("huggingface").export(result, model, out, silent)
    assert os.listdir(tmp_path) == ["out"]
    assert json.loads((out / MARKER).read_text(encoding="utf-8"))["plan"] == Plan().hash


def test_quantized_inputs_do_not_fit(model: Model, tmp_path: Path) -> None:
    plan = Plan(rules=plan_of(inputs="int8-token", **{"transformer.h.0.mlp.c_fc": "int8-channel"}).rules)
    with pytest.raises(ExportError, match="quantizes the inputs of 1 layer,"):
        exporter("huggingface").export(quantize(model, plan), model, tmp_path / "out", silent)
