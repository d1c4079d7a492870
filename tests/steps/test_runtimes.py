"""Which runtime runs a plan's file where none is named, and the loss of outputs that are no classes."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import workbench as wb
from tests.models.execution.test_uses import opened
from tests.models.networks import Rows
from workbench.deployment.proof import onnx_proof
from workbench.measurement.evaluate import evaluate
from workbench.models.summary import OutputKind
from workbench.planning.plan import Plan
from workbench.quantization.quantize import quantize
from workbench.steps.checks.runtime import RuntimeOptions, runtime_of
from workbench.steps.files.first_session import start


class Boxes(torch.nn.Module):
    """Answers 6 numbers at each of 5 places, the first ones a hundred times as large."""

    def __init__(self, numbers: int = 30) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.out = torch.nn.Linear(8, 16), torch.nn.Linear(16, numbers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.out.out_features == 1:
            return torch.sigmoid(self.out(torch.relu(self.hidden(x))))
        answers = self.out(torch.relu(self.hidden(x))).unflatten(-1, (5, 6))
        return answers * torch.tensor([100.0, 1, 1, 1, 1])[:, None]


def test_the_runtime_is_that_of_the_choice_the_file_the_target_or_the_model(llama: Path, tmp_path: Path) -> None:
    texts = start(wb.open(llama))
    assert runtime_of(texts, RuntimeOptions(runtime="mlx", file="model.gguf")) == "mlx"
    assert runtime_of(texts, RuntimeOptions()) == "llama.cpp"
    for name, runtime in (("vllm", "transformers"), ("onnxruntime", "onnxruntime"), ("tensorrt", "onnxruntime"),
                          ("any runtime", "llama.cpp"), ("a later one", "llama.cpp"),
                          ("gguf", "llama.cpp"), ("openvino", "openvino")):  # fmt: skip
        assert runtime_of(replace(texts, target=name), RuntimeOptions()) == runtime
    assert runtime_of(texts, RuntimeOptions(file="m.onnx")) == "onnxruntime"
    config = tmp_path / "config.json"
    for settings, runtime in (({"quantization_config": {"quant_method": "torchao"}}, "torchao"), ({}, "transformers"),
                              ({"quantization": {"bits": 4}}, "mlx"), ([], "transformers")):  # fmt: skip
        config.write_text(json.dumps(settings))
        assert runtime_of(replace(texts, target="onnxruntime"), RuntimeOptions(file=str(tmp_path))) == runtime
    os.truncate(config, 1 << 40)
    assert runtime_of(texts, RuntimeOptions(file=str(tmp_path))) == "transformers"
    shutil.copytree(llama, tmp_path / "other")
    settings = json.loads((llama / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "other" / "config.json").write_text(json.dumps({**settings, "model_type": "helium"}))
    elsewhere = replace(texts.model, source=replace(texts.model.source, path=str(tmp_path / "other")))
    assert runtime_of(replace(texts, model=elsewhere), RuntimeOptions()) == "onnxruntime"
    pictures = start(wb.open("demo:digits-classifier"))
    assert runtime_of(pictures, RuntimeOptions()) == "onnxruntime"


@pytest.mark.filterwarnings("ignore")
def test_a_proof_measures_the_cosine_that_the_evaluation_measures() -> None:
    rows = {"inputs": torch.randn(6, 8, generator=torch.Generator().manual_seed(1))}
    model = opened(Boxes(), OutputKind.EMBEDDING, Rows(**rows))
    quantized = quantize(model, Plan.uniform(model.summary.layers, "int4-channel", algorithm="rtn"))
    evaluated = evaluate(model, quantized.bind(model), Rows(**rows))["cosine"].value
    proof = onnx_proof.prove_in_onnx(quantized, model, None, rows, [], data="rows", threads=1)
    assert proof.plan_loss == pytest.approx(1 - evaluated, rel=1e-6) and proof.positions == 6
    assert proof.runtime_loss == pytest.approx(proof.plan_loss, rel=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_one_number_for_each_sample_is_compared_by_its_error() -> None:
    rows = {"inputs": torch.randn(6, 8, generator=torch.Generator().manual_seed(1))}
    model = opened(Boxes(1), OutputKind.EMBEDDING, Rows(**rows))
    quantized = quantize(model, Plan.uniform(model.summary.layers, "int4-channel", algorithm="rtn"))
    own, rounded = (each.run(rows).double() for each in (model, quantized.bind(model)))
    proof = onnx_proof.prove_in_onnx(quantized, model, None, rows, [], data="rows", threads=1)
    assert proof.unit == "relative squared error"
    expected = float((rounded - own).square().sum() / own.square().sum())
    assert proof.plan_loss == pytest.approx(expected) and proof.runtime_loss == pytest.approx(expected, rel=1e-3)
