"""A compressed-tensors folder in transformers: answers equal to ours, sizes, speed; another plan's is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.deployment.proof.transformers_proof import prove_in_transformers
from workbench.errors import ExportError
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

pytest.importorskip("compressed_tensors")


def test_answers_are_those_of_the_evaluation_and_another_plans_file_is_refused(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama"))
    layers = [layer.name for layer in model.summary.stored if layer.kind == "linear"]
    schemes = ("int4-g32", "int4-g32-asym", "fp8-e4m3-channel", "mxfp4", "int8-channel", "int3-channel-asym")
    plan = Plan()
    for number, name in enumerate(layers):
        plan = plan.assign([name], weights=schemes[number % len(schemes)], algorithm="rtn")
    quantized, out = quantize(model, plan), tmp_path / "out"
    exporter("compressed-tensors").export(quantized, model, out, silent)
    samples = torch.arange(48).reshape(2, 24)
    proof = prove_in_transformers(
        quantized, model, out, samples, (4, 12, 20), data="numbers", text="hello", ids=(1,), threads=1, progress=silent
    )
    assert proof.difference < 1e-9 and proof.agreement == 1 and abs(proof.runtime_loss - proof.plan_loss) < 1e-6
    assert proof.plan_loss > 1e-4 and proof.tensor_bytes < proof.file_bytes and proof.generation_speed > 0
    assert proof.runtime.startswith("transformers ") and proof.tokens.startswith(("differ", "for", "1", "2", "3", "4"))
    assert proof.file_bytes == sum(file.stat().st_size for file in out.iterdir())
    own = prove_in_transformers(quantized, model, None, samples, (4,), data="numbers", threads=1, progress=silent)
    assert own.file_bytes == proof.file_bytes
    with pytest.raises(ExportError, match="q_proj"):
        other = quantize(model, plan.assign([layers[0]], weights="int8-channel"))
        prove_in_transformers(other, model, out, samples, (4,), data="numbers", progress=silent)


def test_what_the_library_rounds_explains_the_difference(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "llama"))
    names = [layer.name for layer in model.summary.stored if layer.kind == "linear"]
    for changes in ({"weights": "nvfp4"}, {"weights": "int8-channel", "inputs": "int8-token"}):
        quantized = quantize(model, Plan().assign(names, algorithm="rtn", **changes))
        samples = torch.arange(48).reshape(2, 24)
        proof = prove_in_transformers(quantized, model, None, samples, (4, 12), data="n", threads=1, progress=silent)
        assert 1e-9 < proof.difference < 4 * proof.rounding < proof.plan_loss * 4
