"""What rounding explains of a difference: llama.cpp's blocks of inputs, and a wrong file of a coarse plan."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters.onnx import Onnx
from workbench.deployment.proof import onnx_proof, runtime_proof
from workbench.deployment.proof.record import RuntimeProof, require_as_evaluated
from workbench.deployment.proof.rounding import as_in_llama_cpp, with_plain_inputs
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

TOKENS = torch.arange(3, 51).reshape(2, 24)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama"), tie_word_embeddings=True))


def coarse(model: Model, weights: str, **changes: Any) -> Plan:
    names = [layer.name for layer in model.summary.stored if layer.kind == "linear"]
    return Plan().assign(names, weights=weights, algorithm="rtn", **changes)


def test_inputs_are_rounded_by_the_type_beside_them(llama: Model) -> None:
    plan = coarse(llama, "q4_0").assign(["model.embed_tokens"], weights="q8_0")
    plan = plan.assign(["model.layers.0.mlp.up_proj"], weights="bf16").assign(["*.1.*.down_proj"], weights="keep")
    there = as_in_llama_cpp(quantize(llama, plan)).plan
    assert there.of("model.layers.0.self_attn.q_proj").inputs == "int8-g32" == there.of("lm_head").inputs
    assert there.of("model.layers.0.mlp.up_proj").inputs == "bf16"
    assert there.of("model.embed_tokens").inputs is None is there.of("model.layers.1.mlp.down_proj").inputs
    wide = as_in_llama_cpp(replace(quantize(llama, plan), tensors={}))
    assert wide.plan.of("model.layers.0.self_attn.q_proj").inputs is None  # float32, as it is kept


def test_a_plan_that_rounds_no_inputs_has_nothing_to_explain_a_difference(llama: Model) -> None:
    assert with_plain_inputs(quantize(llama, coarse(llama, "int8-channel"))) is None
    plain = with_plain_inputs(quantize(llama, coarse(llama, "int8-channel", inputs="int8-token")))
    assert plain is not None and plain.plan.of("model.layers.0.mlp.up_proj").inputs is None
    assert plain.plan.of("model.layers.0.mlp.up_proj").weights == "int8-channel"


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_a_coarse_plan_of_which_one_layer_is_wrong_is_told(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = coarse(llama, "int2-g16")
    batch = {"input_ids": TOKENS, "attention_mask": torch.ones_like(TOKENS)}
    proof = onnx_proof.prove_in_onnx(quantize(llama, plan), llama, None, batch, [4, 12, 20], data="tokens", threads=1)
    assert proof.plan_loss > 0.1 and proof.rounding == 0 and abs(proof.difference) < 1e-6
    wrong = quantize(llama, plan.assign(["model.layers.1.mlp.up_proj"], weights="keep")).bind(llama)
    values = wrong.run(batch)[:, [4, 12, 20]].detach().numpy()
    outcome = onnx_proof.Run(values=values, runtime="", seconds=1, peak_bytes=1)
    monkeypatch.setattr(onnx_proof, "_run", lambda *arguments: outcome)
    with pytest.raises(ExportError, match="rounding of inputs explains 0;") as refused:
        onnx_proof.prove_in_onnx(quantize(llama, plan), llama, None, batch, [4, 12, 20], data="tokens", threads=1)
    apart = float(str(refused.value).partition("its outputs are ")[2].partition(" ")[0])
    assert apart < proof.plan_loss  # which was the bound before


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
@pytest.mark.parametrize("options", [{"standard": True}, {"accuracy": 4}], ids=["standard", "accuracy"])
def test_what_onnx_runtime_rounds_by_itself_explains_the_difference(
    llama: Model, tmp_path: Path, options: dict[str, Any]
) -> None:
    quantized, batch = quantize(llama, coarse(llama, "int4-g32")), {"input_ids": TOKENS}
    Onnx(**options).export(quantized, llama, tmp_path / "m.onnx", silent)
    proof = onnx_proof.prove_in_onnx(
        quantized, llama, tmp_path / "m.onnx", batch, [4, 12, 20], data="tokens", threads=1
    )
    assert 1e-8 < proof.difference < 4 * proof.rounding < proof.plan_loss
    plain = onnx_proof.prove_in_onnx(quantized, llama, None, batch, [4, 12, 20], data="tokens", threads=1)
    assert abs(plain.difference) < 1e-8 and plain.rounding == 0


def test_keys_and_values_that_transformers_does_not_round_explain_the_difference(llama: Model) -> None:
    plan = coarse(llama, "int8-channel").assign(["model.layers.*.self_attn.[kv]_proj"], cache="int8-token")
    plain = with_plain_inputs(quantize(llama, plan))
    assert plain is not None and plain.plan.of("model.layers.0.self_attn.k_proj").cache is None


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
@pytest.mark.parametrize("weights", ["q4_0", "q8_0", "iq4_nl"])
def test_llama_cpps_own_rounding_is_foreseen(llama: Model, weights: str) -> None:
    proof = runtime_proof.prove_in_llama_cpp(
        quantize(llama, coarse(llama, weights)), llama, None, TOKENS, (4, 12, 20), data="tokens", threads=1,
        progress=silent,
    )  # fmt: skip
    assert 0.25 < proof.difference / proof.rounding < 2.5


def test_the_bound_is_the_rounding_and_not_the_plans_loss() -> None:
    proof = RuntimeProof(
        runtime="", plan="", plan_name="", file_bytes=1, tensor_bytes=1, plan_loss=3.0, runtime_loss=3.1, agreement=1,
        difference=0.02, unit="nats", positions=1, prompt_speed=1, generation_speed=1, peak_bytes=1, tokens="",
        data="", rounding=0.006,
    )  # fmt: skip
    assert require_as_evaluated(proof, "it") is proof
    for changes in ({"rounding": 0.004}, {"rounding": 0.0}, {"difference": float("nan")}):
        with pytest.raises(ExportError, match="something other than what was evaluated"):
            require_as_evaluated(replace(proof, **changes), "it")
