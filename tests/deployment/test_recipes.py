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


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> ModelSummary:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama"))).summary


def written(summary: ModelSummary, plan: Plan, tool: str, out: Path) -> Any:
    bare = QuantizedModel(summary=summary, plan=plan, tensors={})
    exporter("recipe", [f"tool={tool}"]).export(bare, None, out, silent)
    return yaml.safe_load(out.read_text(encoding="utf-8"))


def mixed() -> Plan:
    plan = Plan().assign([Q], weights="int4-g32").assign([K], weights="fp8-e4m3-channel", inputs="fp8-e4m3-token")
    return plan.assign([V], weights="nvfp4").assign([OUT], weights="int8-channel", inputs="int8-token")


def test_llm_compressor(summary: ModelSummary, tmp_path: Path) -> None:
    quant_scheme = pytest.importorskip("compressed_tensors.quantization.quant_scheme")
    recipe = written(summary, mixed(), "llm-compressor", tmp_path / "recipe.yaml")
    modifier = recipe["quantization_stage"]["quantization_modifiers"]["QuantizationModifier"]
    groups = [quant_scheme.QuantizationScheme(**group) for group in modifier["config_groups"].values()]
    assert [(group.targets, group.weights.num_bits, group.weights.strategy) for group in groups] == [
        ([Q], 4, "group"), ([K], 8, "channel"), ([V], 4, "tensor_group"), ([OUT], 8, "channel"),
    ]  # fmt: skip
    assert groups[1].input_activations.dynamic is True and groups[0].input_activations is None
    assert "lm_head" in modifier["ignore"] and Q not in modifier["ignore"]


def test_llm_compressor_parses_it(summary: ModelSummary, tmp_path: Path) -> None:
    recipe = pytest.importorskip("llmcompressor.recipe")
    written(summary, mixed(), "llm-compressor", tmp_path / "recipe.yaml")
    parsed = recipe.Recipe.create_instance(str(tmp_path / "recipe.yaml"))
    assert [type(each).__name__ for each in parsed.modifiers] == ["QuantizationModifier"]


def test_modelopt(summary: ModelSummary, tmp_path: Path) -> None:
    content = written(summary, mixed(), "modelopt", tmp_path / "modelopt.json")
    rules = content["quant_cfg"]
    assert rules[f"*{Q}.weight_quantizer"] == {"num_bits": 4, "block_sizes": {"-1": 32}, "enable": True}
    assert rules["default"] == {"enable": False} and rules[f"*{Q}.input_quantizer"] == {"enable": False}
    with pytest.raises(ExportError, match=f"{V}: ModelOpt has no int4-g32-asym"):
        written(summary, mixed().assign([V], weights="int4-g32-asym"), "modelopt", tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()


def test_modelopt_parses_it(summary: ModelSummary, tmp_path: Path) -> None:
    config = pytest.importorskip("modelopt.torch.quantization.config")
    content = written(summary, mixed(), "modelopt", tmp_path / "modelopt.json")
    assert config.QuantizeConfig(**content).algorithm == "max"


def test_auto_round(summary: ModelSummary, tmp_path: Path) -> None:
    layers = written(summary, mixed(), "auto-round", tmp_path / "auto-round.json")["layer_config"]
    message = {"bits": 4, "group_size": 32, "sym": True, "data_type": "int", "act_bits": 16}
    assert layers[Q] == message and layers["lm_head"] == {"bits": 16, "data_type": "float"}
    assert layers[K]["data_type"] == "fp" and layers[K]["act_bits"] == 8 and layers[V]["data_type"] == "nv_fp"


def test_unknown_tools_and_rewritten_models_are_refused(summary: ModelSummary, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="'autoround'; the closest are auto-round"):
        written(summary, mixed(), "autoround", tmp_path / "x")
    with pytest.raises(ExportError, match="rewrites the model first .fold-norms."):
        written(summary, Plan(transforms=("fold-norms",)), "auto-round", tmp_path / "x")
    assert json.dumps(list(tmp_path.iterdir()), default=str) == "[]"
