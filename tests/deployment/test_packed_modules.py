"""Networks that run from packed files: every scheme, K-quants too; other networks' files are refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.deployment.exporters.packed_safetensors import PackedFile
from workbench.deployment.packed_modules import load_packed
from workbench.errors import ExportError
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

SCHEMES = ("q4_k", "q2_k", "q6_k", "iq4_nl", "mxfp4-gguf", "tq1_0", "int4-g32-asym", "nf4-b64", "nvfp4", "int3-channel",
           "fp8-e4m3-b32x32", "bf16", "q3_k", "q5_k", "int2-g32-asym-zfp16")  # fmt: skip


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_the_network_runs_from_the_file_as_it_was_evaluated(architecture: str, tmp_path: Path) -> None:
    sizes = {"hidden_size": 256, "intermediate_size": 512} if architecture == "llama" else {"n_embd": 256}
    folder = folder_of(architecture, tmp_path / "folder", **sizes)
    model = open_model(folder)
    plan = Plan()
    for number, layer in enumerate(model.summary.stored):
        plan = plan.assign([layer.name], weights=SCHEMES[number % len(SCHEMES)], algorithm="rtn")
    quantized = quantize(model, plan)
    exporter("safetensors").export(quantized, model, tmp_path / "m.safetensors", silent)
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.arange(12)[None]
    load_packed(tmp_path / "m.safetensors", network)
    packed = sum(buffer.nbytes for name, buffer in network.named_buffers() if "_packed_" in name)
    weights = sum(stored.nbytes for stored in quantized.tensors.values())
    assert packed == weights + (quantized.tensors["transformer.wte"].nbytes if architecture == "gpt2" else 0)
    with torch.no_grad():
        there = network(ids).logits
        ours = quantized.bind(model).run({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    assert torch.equal(there, ours)


def test_ggml_blocks_are_those_that_the_package_gguf_decodes(tmp_path: Path) -> None:
    import gguf

    model = open_model(folder_of("llama", tmp_path / "folder", hidden_size=256, intermediate_size=512))
    plan = Plan().assign(["model.layers.*.mlp.*"], weights="q4_k", algorithm="rtn")
    exporter("safetensors").export(quantize(model, plan), model, tmp_path / "m.safetensors", silent)
    file, name = PackedFile(tmp_path / "m.safetensors"), "model.layers.0.mlp.up_proj.weight"
    assert file.schemes["q4_k"]["ggml"] == "Q4_K"
    blocks = file.store.read(f"{name}.blocks").numpy()
    assert np.array_equal(gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q4_K), file.read(name))


def test_a_file_of_another_network_is_refused(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama"))
    exporter("safetensors").export(quantize(model, Plan()), model, tmp_path / "m.safetensors", silent)
    other = transformers.AutoModelForCausalLM.from_pretrained(folder_of("gpt2", tmp_path / "gpt2"))
    with pytest.raises(ExportError, match="which the network lacks"):
        load_packed(tmp_path / "m.safetensors", other)
    wider = folder_of("llama", tmp_path / "wider", intermediate_size=128)
    with pytest.raises(ExportError, match="the network has"):
        load_packed(tmp_path / "m.safetensors", transformers.AutoModelForCausalLM.from_pretrained(wider))
