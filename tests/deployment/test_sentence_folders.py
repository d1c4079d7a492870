"""Folders of sentence-transformers: evaluated as that library pools, exported so that others pool so, too."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.deployment.exporters.llamas import folder_of
from tests.models.readers.test_pooling import state
from workbench.deployment.exporters import exporter
from workbench.deployment.gguf_file import remarks_on
from workbench.deployment.proof.transformers_proof import prove_in_transformers
from workbench.errors import ExportError
from workbench.models.gguf.architectures import architecture_of, metadata_of
from workbench.models.model import Model
from workbench.models.readers.pooling import Pooling
from workbench.models.sources import open_model
from workbench.models.summary import OutputKind
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

BATCH = {"input_ids": torch.arange(60).reshape(3, 20), "attention_mask": torch.ones(3, 20, dtype=torch.int64)}
BATCH["attention_mask"][1, 15:] = 0
CLS, LAST = {"pooling_mode": "cls"}, {"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False}


@torch.no_grad()
def reference(folder: Path, pooling: Pooling) -> torch.Tensor:
    states = transformers.AutoModel.from_pretrained(folder).eval()(**BATCH).last_hidden_state
    places = BATCH["attention_mask"].sum(1) - 1 if pooling is Pooling.LAST else torch.zeros(3, dtype=torch.int64)
    return states[torch.arange(3), places]


def opened(name: str, settings: dict[str, Any], place: Path) -> Model:
    return open_model(state(folder_of(name, place), settings, "Normalize"))


@pytest.mark.parametrize("name, settings, pooling", [("bert", CLS, Pooling.FIRST), ("qwen3", LAST, Pooling.LAST)])
def test_embeddings_are_those_of_the_folder_here_and_in_exports(
    name: str, settings: dict[str, Any], pooling: Pooling, tmp_path: Path
) -> None:
    model = opened(name, settings, tmp_path / "folder")
    output = model.run(BATCH)
    assert model.inputs.pooling is pooling and model.summary.output is OutputKind.EMBEDDING
    torch.testing.assert_close(output, reference(tmp_path / "folder", pooling), rtol=0, atol=1e-6)
    kinds = {"gguf": "model.gguf", "compressed-tensors": "packed", **({"onnx": "model.onnx"} if name == "bert" else {})}
    for kind, out in ((kind, tmp_path / file) for kind, file in kinds.items()):
        exporter(kind).export(quantize(model, Plan()), model, out, silent)
        again = open_model(out)
        assert again.summary.output is OutputKind.EMBEDDING
        torch.testing.assert_close(again.run(BATCH), output, rtol=1e-5, atol=1e-4)


def test_an_export_has_the_modules_behind_the_network_and_is_replaced(tmp_path: Path) -> None:
    model = opened("bert", CLS, tmp_path / "folder")
    out = tmp_path / "out"
    for _ in range(2):
        written = exporter("huggingface").export(quantize(model, Plan()), model, out, silent)
    assert json.loads((out / "1_Pooling" / "config.json").read_text()) == CLS
    assert out / "1_Pooling" / "config.json" in written and out / "modules.json" in written
    (out / "1_Pooling" / "other").write_text("")
    with pytest.raises(ExportError, match="holds more than an earlier export"):
        exporter("huggingface").export(quantize(model, Plan()), model, out, silent)


def test_transformers_pools_by_the_last_token(tmp_path: Path) -> None:
    model = opened("qwen3", LAST, tmp_path / "folder")
    quantized = quantize(model, Plan().assign(["layers.0.mlp.up_proj"], weights="int4-channel"))
    proof = prove_in_transformers(
        quantized, model, None, BATCH["input_ids"], (), data="numbers", threads=1, progress=silent
    )
    assert proof.plan_loss > 1e-6 and abs(proof.difference) < 1e-9


def test_a_pooling_that_llama_cpp_lacks_is_refused(tmp_path: Path) -> None:
    model = opened("bert", {"pooling_mode_max_tokens": True}, tmp_path / "folder")
    assert any("pools tokens by max_tokens" in note for note in model.notes)
    with pytest.raises(ExportError, match="pools by max_tokens; llama.cpp takes the mean, the first or the last"):
        exporter("gguf").export(quantize(model, Plan()), model, tmp_path / "model.gguf", silent)


def test_a_file_for_llama_cpp_says_what_it_leaves_out_and_is_refused_without_the_pooling(tmp_path: Path) -> None:
    model = open_model(state(folder_of("bert", tmp_path / "folder"), CLS, "Dense"))
    quantized = quantize(model, Plan())
    assert remarks_on(model.summary) == [
        "2_Dense behind the network is left out: llama.cpp's embeddings are those before it"
    ]
    (tmp_path / "folder" / "1_Pooling" / "config.json").unlink()
    with pytest.raises(ExportError, match="1_Pooling/config.json, which modules.json in .* names, is missing"):
        exporter("gguf").export(quantized, model, tmp_path / "model.gguf", silent)


@pytest.mark.parametrize("padding", [None, -1, 63])
def test_a_table_of_positions_without_rows_for_tokens_is_refused(padding: int | None) -> None:
    roberta = architecture_of("roberta", ExportError)
    config = {"pad_token_id": padding, "max_position_embeddings": 64}
    with pytest.raises(ExportError, match="positions begin in the row after pad_token_id"):
        metadata_of(roberta, config, ExportError)


def test_positions_before_the_first_token_hold_none(tmp_path: Path) -> None:
    model = open_model(folder_of("roberta", tmp_path))  # 64 rows, the padding's is row 1
    assert model.inputs.positions == 62
    assert model.run({"input_ids": torch.arange(4, 66)[None]}).isfinite().all()
