"""Folders whose activations are rotated while the model runs: opened with the rotations, against their own library."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.exporters import exporter
from workbench.errors import ExportError, NotAModelError
from workbench.models.execution.resume import layer_outputs
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize

transforms = pytest.importorskip("compressed_tensors.transform")
transformers = pytest.importorskip("transformers")

IDS = torch.arange(40).reshape(2, 20)
BATCH = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}
LINEAR, DOWN = {"targets": ["Linear"], "ignore": ["lm_head"]}, {"targets": ["re:.*down_proj$"]}


def group(kind: str, block: int | None, *applied: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": kind, "head_dim": block, "apply": list(applied)}


def r4(kind: str, block: int | None) -> dict[str, Any]:
    return {"R4": group(kind, block, {**DOWN, "location": "input"},
                        {**DOWN, "location": "weight_input", "inverse": True})}  # fmt: skip


QUIP = {
    "v": group("random-hadamard", 32, {**LINEAR, "location": "input"},
               {**LINEAR, "location": "weight_input", "inverse": True}),
    "u": group("random-hadamard", 32, {**LINEAR, "location": "weight_output"},
               {**LINEAR, "location": "output", "inverse": True}),
}  # fmt: skip
SPIN = r4("hadamard", 16)
ATTENTION = {"R3": group("hadamard", 16, {"targets": ["LlamaAttention"], "location": "q_attn"},
                         {"targets": ["LlamaAttention"], "location": "k_cache"})}  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of("llama", tmp_path_factory.mktemp("plain"))


def written(plain: Path, place: Path, groups: Mapping[str, Any], also: Mapping[str, Any] | None = None) -> torch.Tensor:
    """Write what llm-compressor would, by the library that it uses; return what that computes."""
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config

    network = transformers.LlamaForCausalLM.from_pretrained(plain, dtype=torch.float32).eval()
    torch.manual_seed(1)
    transforms.apply_transform_config(
        network, transforms.TransformConfig.model_validate({"config_groups": groups}), 
    )  # fmt: skip
    weights = {"num_bits": 8, "strategy": "channel", "symmetric": True}
    whole = {"config_groups": {"g": {"targets": ["Linear"], "weights": weights}}, "ignore": ["lm_head"]}
    apply_quantization_config(
        network, QuantizationConfig.model_validate({**whole, "quant_method": "compressed-tensors"})
    )
    for module in network.modules():
        if hasattr(module, "quantization_scheme"):
            module.weight_scale.data.copy_(module.weight.abs().amax(1, keepdim=True) / 127.5)
    with torch.no_grad():
        computed: torch.Tensor = network(input_ids=IDS).logits
    compressor = ModelCompressor.from_pretrained_model(network)
    compressor.compress_model(network)
    network.save_pretrained(place)
    compressor.update_config(place)
    config = json.loads((place / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"]["transform_config"]["config_groups"] |= also or {}
    (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return computed


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).detach().norm() / other.detach().norm())


@pytest.mark.parametrize("groups", [SPIN, QUIP], ids=["R4", "QuIP"])
def test_the_network_computes_what_the_library_computes(plain: Path, tmp_path: Path, groups: Mapping[str, Any]) -> None:
    computed = written(plain, tmp_path / "made", groups, ATTENTION)
    model = open_model(tmp_path / "made")
    assert apart(model.run(BATCH), computed) < 1e-5
    assert {model.encoding(layer.name) for layer in model.summary.layers if layer.name.endswith("proj")} == {
        "int8-channel"
    }
    (turned,) = (note for note in model.notes if "R3" in note)
    assert "leaves their products as they are" in turned and any("rotates inputs" in note for note in model.notes)
    assert not any("no place" in note for note in model.notes)


@pytest.mark.parametrize("groups", [SPIN, QUIP], ids=["R4", "QuIP"])
def test_another_plan_is_written_with_the_rotations_and_nowhere_else(
    plain: Path, tmp_path: Path, groups: Mapping[str, Any]
) -> None:
    written(plain, tmp_path / "made", groups)
    model = open_model(tmp_path / "made")
    names = [layer.name for layer in model.summary.layers if layer.name.endswith("proj")]
    made = quantize(model, Plan().assign(names, weights="int4-g32", algorithm="rtn"))
    exporter("compressed-tensors").export(made, model, tmp_path / "out", silent)
    evaluated = made.bind(model).run(BATCH)
    again = open_model(tmp_path / "out")
    assert torch.equal(again.run(BATCH), evaluated) and again.encoding(names[0]) == "int4-g32"
    settings = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["quantization_config"]
    network = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    config = transforms.TransformConfig.model_validate(settings["transform_config"])
    if groups is SPIN:  # the others' matrices are random, and those of the files are not read by this call
        transforms.apply_transform_config(network, config)
        assert apart(network(input_ids=IDS).logits, evaluated) < 1e-5
    assert {each.location for scheme in config.config_groups.values() for each in scheme.apply} <= {"input", "output"}
    for kind in ("safetensors", "huggingface", "state-dict"):
        with pytest.raises(ExportError, match="rotates activations while it runs .*export to compressed-tensors"):
            exporter(kind).export(made, model, tmp_path / kind, silent)


def test_a_layer_alone_runs_its_rotation_once_and_its_output_is_that_of_its_weight(plain: Path, tmp_path: Path) -> None:
    written(plain, tmp_path / "made", QUIP)
    model = open_model(tmp_path / "made")
    name = "model.layers.0.mlp.down_proj"
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    with torch.no_grad():
        model.run(BATCH, layers=(name,), tap=lambda _, rows, output: seen.append((rows, output)))
        ((rows, output),) = seen
        torch.testing.assert_close(output, rows @ model.weight(name).T, rtol=1e-4, atol=1e-5)
        ((alone,),) = layer_outputs(model, BATCH, name, [model.weight(name)])
    torch.testing.assert_close(alone, output, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"type": "random-matrix"}, "transformed by random-matrix while the model runs"),
        ({"randomize": True}, "differently for each layer"),
        ({"head_dim": 7}, "rotates 7 of the 96 features of model.layers.0.mlp.down_proj"),
        ({"head_dim": "many"}, "rotates many of the 96 features"),
        ({"head_dim": 96}, "Hadamard matrix of 96, no power of two"),
        ({"head_dim": 8, "type": "random-hadamard"}, "random matrix of 8 x 8, which the files lack"),
        ({"apply": [{"targets": "re:.*nowhere$", "location": "input"}]}, "no such modules"),
        ({"apply": [{"targets": ["Embedding"], "location": "input"}]}, "of linear layers alone is that read"),
        ({"apply": [{"targets": ["Linear"], "location": "between"}]}, "transformed at between"),
        ({"apply": [{"targets": ["LlamaAttention"], "location": "q_attn"}]}, "queries and keys differently"),
        ({"apply": 3}, "does not say what compressed-tensors needs"),
    ],
)
def test_rotations_that_are_not_read_are_refused_by_name(
    plain: Path, made: Path, tmp_path: Path, change: Mapping[str, Any], said: str
) -> None:
    shutil.copytree(made, tmp_path / "bad")
    config = json.loads((made / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"]["transform_config"]["config_groups"]["R4"] |= change
    (tmp_path / "bad" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(NotAModelError, match=said):
        open_model(tmp_path / "bad")


@pytest.fixture(scope="module")
def made(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made") / "r4"
    written(plain, place, SPIN)
    return place


def test_what_their_library_does_not_take_is_one_line(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "newer")
    config = json.loads((made / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"]["transform_config"]["config_groups"]["R4"]["note"] = 1
    (tmp_path / "newer" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model = open_model(tmp_path / "newer")
    with pytest.raises(ExportError, match="does not take the model's own rotations: .* note Extra inputs") as refused:
        plan = Plan().assign(["model.layers.0.*"], weights="int4-g32", algorithm="rtn")
        exporter("compressed-tensors").export(quantize(model, plan), model, tmp_path / "out", silent)
    assert "\n" not in str(refused.value)


def test_what_is_rotated_already_is_not_rotated_again(made: Path) -> None:
    from workbench.errors import TransformError

    model = open_model(made)
    names = [layer.name for layer in model.summary.layers if layer.name.endswith("down_proj")]
    plan = replace(Plan().assign(names, weights="int4-g32", algorithm="rtn"), transforms=("online-rotation",))
    with pytest.raises(TransformError, match="finds nothing to rotate"):
        quantize(model, plan)
