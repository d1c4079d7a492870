"""Recipes for other quantizers, parsed by these where they are installed; the schemes' own classes always are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.errors import ExportError
from workbench.models.sources import open_model
from workbench.models.summary import ModelSummary
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantized_model import QuantizedModel

Q, K, V, OUT = (f"model.layers.0.self_attn.{name}_proj" for name in "qkvo")
DOWN = "model.layers.0.mlp.down_proj"


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> ModelSummary:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama"))).summary


def written(summary: ModelSummary, plan: Plan, tool: str, out: Path) -> Any:
    bare = QuantizedModel(summary=summary, plan=plan, tensors={})
    exporter("recipe", [f"tool={tool}"]).export(bare, None, out, silent)
    return yaml.safe_load(out.read_text(encoding="utf-8"))


def mixed() -> Plan:
    plan = Plan().assign([Q], weights="int4-g32").assign([K], weights="fp8-e4m3-channel", inputs="fp8-e4m3-token")
    plan = plan.assign([V], weights="mxfp4").assign([OUT], weights="int8-channel", inputs="int8-token")
    return plan.assign([DOWN], weights="nvfp4", inputs="nvfp4")


def test_llm_compressor(summary: ModelSummary, tmp_path: Path) -> None:
    quant_scheme = pytest.importorskip("compressed_tensors.quantization.quant_scheme")
    recipe = written(summary, mixed(), "llm-compressor", tmp_path / "recipe.yaml")
    modifier = recipe["quantization_stage"]["quantization_modifiers"]["QuantizationModifier"]
    groups = [quant_scheme.QuantizationScheme(**group) for group in modifier["config_groups"].values()]
    assert [(group.targets, group.weights.num_bits, group.weights.strategy) for group in groups] == [
        ([Q], 4, "group"), ([K], 8, "channel"), ([V], 4, "group"), ([OUT], 8, "channel"), ([DOWN], 4, "tensor_group"),
    ]  # fmt: skip
    assert groups[1].input_activations.dynamic is True and groups[0].input_activations is None
    assert "lm_head" in modifier["ignore"] and Q not in modifier["ignore"]


def test_llm_compressor_parses_it(summary: ModelSummary, tmp_path: Path) -> None:
    recipe = pytest.importorskip("llmcompressor.recipe")
    written(summary, mixed(), "llm-compressor", tmp_path / "recipe.yaml")
    parsed = recipe.Recipe.create_instance(str(tmp_path / "recipe.yaml"))
    assert [type(each).__name__ for each in parsed.modifiers] == ["QuantizationModifier"]


def test_modelopt(summary: ModelSummary, tmp_path: Path) -> None:
    first, *others = written(summary, mixed(), "modelopt", tmp_path / "modelopt.yaml")["quant_cfg"]
    rules = {rule["quantizer_name"]: rule["cfg"] for rule in others if rule["enable"]}
    assert first == {"quantizer_name": "*", "enable": False}
    assert rules[f"{Q}.weight_quantizer"] == {"num_bits": 4, "block_sizes": {-1: 32}}
    assert f"{Q}.input_quantizer" not in rules and f"{K}.input_quantizer" in rules
    with pytest.raises(ExportError, match=f"{V}: ModelOpt has no int4-g32-asym"):
        written(summary, mixed().assign([V], weights="int4-g32-asym"), "modelopt", tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()


def test_modelopt_parses_it(summary: ModelSummary, tmp_path: Path) -> None:
    config = pytest.importorskip("modelopt.torch.quantization.config")
    content = written(summary, mixed(), "modelopt", tmp_path / "modelopt.yaml")
    assert config.QuantizeConfig(**content).algorithm == "max"


def test_modelopt_quantizes_these_layers_and_no_others(tmp_path: Path) -> None:
    quantization = pytest.importorskip("modelopt.torch.quantization")
    import torch
    import transformers

    folder = folder_of("llama", tmp_path / "llama")
    plan = mixed().assign([V, DOWN], weights="int8-tensor", inputs="int8-tensor")  # its MXFP4 and NVFP4 need a GPU
    content = written(open_model(folder).summary, plan, "modelopt", tmp_path / "modelopt.yaml")
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    quantization.quantize(network, content, lambda network: network(torch.arange(24)[None]))
    enabled = {name for name, each in network.named_modules() if getattr(each, "is_enabled", False) is True}
    weights = {f"{name}.weight_quantizer" for name in (Q, K, V, OUT, DOWN)}
    assert enabled == weights | {f"{name}.input_quantizer" for name in (K, V, OUT, DOWN)}


def test_auto_round(summary: ModelSummary, tmp_path: Path) -> None:
    layers = written(summary, mixed(), "auto-round", tmp_path / "auto-round.json")["layer_config"]
    settings = {"bits": 4, "group_size": 32, "sym": True, "data_type": "int", "act_bits": 16}
    assert layers[Q] == settings and layers["lm_head"] == {"bits": 16, "data_type": "float"}
    inputs = {"act_bits": 8, "act_group_size": -1, "act_data_type": "fp8", "act_dynamic": True, "act_sym": True}
    assert layers[K] == {"bits": 8, "group_size": -1, "sym": True, "data_type": "fp", **inputs}
    assert layers[DOWN]["data_type"] == "nv_fp" and layers[DOWN]["act_group_size"] == 16


def test_auto_round_takes_these_layers(tmp_path: Path) -> None:
    auto_round = pytest.importorskip("auto_round")
    import torch
    import transformers

    folder = folder_of("llama", tmp_path / "llama")
    layers = written(open_model(folder).summary, mixed(), "auto-round", tmp_path / "auto-round.json")["layer_config"]
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    _, taken = auto_round.AutoRound(
        network, tokenizer, scheme="W4A16", layer_config=layers, iters=0, nsamples=2, seqlen=16,
        dataset=["hello world " * 40] * 2, device_map="cpu",
    ).quantize()  # fmt: skip
    for name in (Q, K, V, OUT, DOWN):
        assert {key: taken[name][key] for key in layers[name]} == layers[name]


@pytest.mark.parametrize("tool", ["modelopt", "auto-round", "llm-compressor"])
def test_what_a_tool_cannot_be_told_is_refused(tool: str, summary: ModelSummary, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=f"{Q}: its inputs are quantized and its weights are not"):
        written(summary, Plan().assign([Q], inputs="int8-token"), tool, tmp_path / "x")
    if tool == "llm-compressor":
        with pytest.raises(ExportError, match=f"{Q}: llm-compressor gives nvfp4 to all of .*{V} or to none"):
            written(summary, Plan().assign([Q], weights="nvfp4"), tool, tmp_path / "x")
        return
    with pytest.raises(ExportError, match=f"{V}: its KV cache is quantized"):
        written(summary, Plan().assign([V], weights="int8-channel", cache="fp8-e4m3-token"), tool, tmp_path / "x")


@pytest.mark.parametrize("tool, architecture, refused", [
    ("llm-compressor", "gpt2", "c_proj: .* not ones that the model stores inputs x outputs; keep it"),
    ("llm-compressor", "qwen3moe", "experts.down_proj: .* not experts whose matrices"), ("modelopt", "gpt2", ""),
    ("modelopt", "qwen3moe", "down_proj: ModelOpt quantizes modules by their names"),
    ("auto-round", "gpt2", ""), ("auto-round", "llama", "embed_tokens: AutoRound .* not embedding ones"),
    ("auto-round", "qwen3moe", "mlp.gate.weight: .* not weights of other modules, such as routers"),
])  # fmt: skip
def test_layers_that_a_tool_passes_over_are_refused(tool: str, architecture: str, refused: str, tmp_path: Path) -> None:
    """What the tools quantize, of these recipes: all the others they left as they were, without a word."""
    summary = open_model(folder_of(architecture, tmp_path / "model")).summary
    tied = {layer.tied_to for layer in summary.tied}
    plan = Plan().assign([x.name for x in summary.stored if x.name not in tied], weights="int8-channel")
    if not refused:
        if tool == "auto-round":
            plan = plan.assign([x.name for x in summary.stored if x.kind != "linear"], weights="keep")
        written(summary, plan, tool, tmp_path / "recipe")
        return
    with pytest.raises(ExportError, match=refused):
        written(summary, plan, tool, tmp_path / "recipe")


def test_unknown_tools_and_rewritten_models_are_refused(summary: ModelSummary, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="'autoround'; the closest are auto-round"):
        written(summary, mixed(), "autoround", tmp_path / "x")
    with pytest.raises(ExportError, match="rewrites the model first .fold-norms."):
        written(summary, Plan(transforms=("fold-norms",)), "auto-round", tmp_path / "x")
    assert json.dumps(list(tmp_path.iterdir()), default=str) == "[]"
