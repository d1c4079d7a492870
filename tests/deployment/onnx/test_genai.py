"""A folder for ONNX Runtime GenAI: it generates what transformers generates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from tests.deployment.onnx.networks import tagger
from workbench.deployment.exporters import exporter
from workbench.errors import ExportError
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)


@pytest.mark.parametrize(
    "name", ("llama", *(pytest.param(name, marks=pytest.mark.slow) for name in ("qwen2", "qwen3", "phi3")))
)
def test_it_generates_what_the_quantized_model_generates(name: str, tmp_path: Path) -> None:
    genai = pytest.importorskip("onnxruntime_genai")
    model = open_model(folder_of(name, tmp_path / "source"))
    names = [layer.name for layer in model.summary.stored if "mlp" in layer.name]
    quantized = quantize(model, Plan().assign(names, weights="int4-g32-asym", algorithm="rtn"))
    out = tmp_path / "genai"
    exporter("onnx-genai").export(quantized, model, out, silent)
    settings = json.loads((out / "genai_config.json").read_text(encoding="utf-8"))
    assert settings["model"]["type"] == name
    assert settings["model"]["decoder"]["num_hidden_layers"] == 2 and (out / "tokenizer.json").is_file()
    tokens = [5, 6, 7, 8, 9, 10, 11]
    program = genai.Model(str(out))
    parameters = genai.GeneratorParams(program)
    parameters.set_search_options(max_length=len(tokens) + 12, do_sample=False)
    generator = genai.Generator(program, parameters)
    generator.append_tokens([tokens])
    for _ in range(12):
        if generator.is_done():
            break
        generator.generate_next_token()
    theirs = [int(token) for token in generator.get_sequence(0)]
    ours, bound = list(tokens), quantized.bind(model)
    while len(ours) < len(theirs):
        with torch.no_grad():
            ours.append(int(bound.run({"input_ids": torch.tensor([ours])})[0, -1].argmax()))
    assert theirs == ours and len(theirs) > len(tokens)


def test_an_architecture_that_it_does_not_know_is_refused(tmp_path: Path) -> None:
    model = open_model(folder_of("starcoder2", tmp_path / "source"))
    with pytest.raises(ExportError, match="does not know the architecture starcoder2"):
        exporter("onnx-genai").export(quantize(model, Plan()), model, tmp_path / "out", silent)
    assert not (tmp_path / "out").exists()


def test_other_networks_are_refused(tmp_path: Path) -> None:
    from workbench.deployment.onnx.decoder import capture_decoder

    with pytest.raises(ExportError, match="not a language model of transformers"):
        capture_decoder(tagger())
