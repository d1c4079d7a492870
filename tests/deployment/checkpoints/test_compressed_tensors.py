"""compressed-tensors folders: the plan's bytes, the evaluated values by the library, refusals, import again."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import workbench
from tests.deployment.exporters.llamas import folder_of
from workbench.deployment.checkpoints import compressed_tensors
from workbench.deployment.exporters import exporter
from workbench.errors import ExportError
from workbench.models.checkpoints.compressed_tensors import cache_scheme
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.numerics.formats import parse_scheme
from workbench.numerics.ranges import Range
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import plan_totals
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored, start

SCHEMES = ("keep", "int4-g32", "int4-g64-asym", "int8-channel", "fp8-e4m3-channel", "fp8-e4m3-tensor", "mxfp4", "nvfp4",
           "mxfp8-e4m3", "int3-g32-asym", "int4-channel", "fp8-e4m3-b32x64", "int8-tensor", "int8-tensor-asym", "bf16",
           "int5-channel-asym", "int4-b32x32", "int8-b64x64", "int2-g16-asym", "int6-g32-sbf16", "fp32", "fp16",
           "int7-channel")  # fmt: skip
LAST = "model.layers.1.mlp.down_proj"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return open_model(folder_of("llama", tmp_path_factory.mktemp("llama"), intermediate_size=128))


def mixed(model: Model, schemes: Sequence[str], **changes: Any) -> Plan:
    plan = Plan()
    layers = [layer.name for layer in model.summary.stored if layer.kind == "linear"]
    for name, scheme in zip(layers, schemes, strict=False):
        plan = plan.assign([name], weights=scheme, algorithm="rtn", **changes)
    return plan


def export(model: Model, plan: Plan, out: Path) -> dict[str, Any]:
    exporter("compressed-tensors").export(quantize(model, plan), model, out, silent)
    config: dict[str, Any] = json.loads((out / "config.json").read_text(encoding="utf-8"))
    return config


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemes=st.lists(st.sampled_from(SCHEMES), min_size=15, max_size=15))
def test_random_plans_have_the_plans_bytes_and_come_back_as_they_were(
    schemes: list[str], model: Model, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("out") / "folder"
    plan = mixed(model, schemes)
    quantized = quantize(model, plan)
    exporter("compressed-tensors").export(quantized, model, out, silent)
    tensors = load_file(out / "model.safetensors")
    shapes = sum(tensor.nbytes for name, tensor in tensors.items() if name.endswith("weight_shape"))
    bytes_there = sum(tensor.nbytes for tensor in tensors.values()) - shapes - padding(tensors)
    assert bytes_there == plan_totals(model.summary, plan).nbytes
    if not quantized.tensors or set(schemes) <= {"keep", "bf16", "fp16", "fp32"}:
        return
    again = open_model(out)
    evaluated = quantized.bind(model)
    for layer in model.summary.stored:
        ulps = 4e-7 if plan.of(layer.name).weights == "nvfp4" else 0
        assert torch.allclose(again.weight(layer.name).float(), evaluated.weight(layer.name).float(), rtol=ulps, atol=0)
    planned = as_stored(again, Plan())
    for name, assignment in resolve(plan, model.summary.layers).items():
        if assignment.weights not in ("keep", "bf16", "fp16", "fp32"):
            assert planned.of(name).weights == assignment.weights
    export(again, planned, out.with_name("again"))
    second = load_file(out.with_name("again") / "model.safetensors")
    assert second.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(second[name].view(torch.uint8), tensor.view(torch.uint8)), name


def padding(tensors: dict[str, torch.Tensor]) -> int:
    """Return what fills rows of packed codes and columns of packed zero points up to words of 32 bits."""
    extra = 0
    for name, packed in tensors.items():
        if name.endswith("weight_packed") and packed.dtype == torch.int32:
            module = name.removesuffix("weight_packed")
            rows, columns = tensors[module + "weight_shape"].tolist()
            scale, zeros = tensors[module + "weight_scale"], tensors.get(module + "weight_zero_point")
            bits = packed.shape[1] * 32 // columns
            extra += packed.nbytes - rows * -(-columns * bits // 8)
            if zeros is not None:
                extra += zeros.nbytes - -(-scale.numel() * bits // 8)
        elif name.endswith("weight_zero_point") and packed.dtype == torch.int8:
            pass  # one byte for a scheme of 8 bits
    return extra


def test_the_library_and_transformers_read_names_groups_and_values(model: Model, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    plan = mixed(model, ["int4-g32", "int8-channel", "fp8-e4m3-channel", "int4-g32"])
    plan = plan.assign(["model.layers.0.mlp.up_proj"], weights="int8-channel", inputs="int8-token")
    config = export(model, plan, tmp_path / "out")["quantization_config"]
    assert config["format"] == "mixed-precision" and len(config["config_groups"]) == 4
    assert config["config_groups"]["group_0"]["targets"] == [
        "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.o_proj"
    ]  # fmt: skip
    assert "lm_head" in config["ignore"] and "model.layers.1.mlp.down_proj" in config["ignore"]
    network = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    ids = torch.arange(20)[None]
    with torch.no_grad():
        there = network(ids).logits
        ours = quantize(model, plan).bind(model).run({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    assert (there - ours).norm() / ours.norm() < 1e-2  # the library's int8 inputs reach 127.5 steps, ours 127
    weights = network.state_dict()["model.layers.0.self_attn.q_proj.weight"]
    assert torch.equal(weights, quantize(model, plan).bind(model).weight("model.layers.0.self_attn.q_proj"))


def test_one_scheme_is_one_group_for_all_linear_layers(model: Model, tmp_path: Path) -> None:
    plan = Plan().assign(["model.layers.*"], weights="int4-g32", algorithm="rtn")
    config = export(model, plan, tmp_path / "out")["quantization_config"]
    assert [group["targets"] for group in config["config_groups"].values()] == [["Linear"]]
    assert config["format"] == "pack-quantized" and config["ignore"] == ["lm_head"]


def test_shards_and_names_are_those_of_the_original(tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path / "one")
    from transformers import AutoModelForCausalLM

    AutoModelForCausalLM.from_pretrained(folder).save_pretrained(tmp_path / "many", max_shard_size="120KB")
    model = open_model(tmp_path / "many")
    plan = Plan().assign(["model.layers.*"], weights="int4-g32", algorithm="rtn")
    export(model, plan, tmp_path / "out")
    name = "model.safetensors.index.json"
    before = json.loads((tmp_path / "many" / name).read_text())["weight_map"]
    after = json.loads((tmp_path / "out" / name).read_text())["weight_map"]
    assert {key for key in before if "layernorm" in key or "embed" in key} <= after.keys()
    for key, file in after.items():
        assert file == before.get(key, before.get(key.rpartition(".")[0] + ".weight"))
        assert key in load_file(tmp_path / "out" / file)


def test_a_kv_cache_of_all_layers_is_said_and_one_of_some_is_refused(model: Model, tmp_path: Path) -> None:
    plan = Plan().assign(["model.layers.*.self_attn.*_proj"], weights="int4-g32", cache="fp8-e4m3-token")
    config = export(model, plan, tmp_path / "out")["quantization_config"]
    assert config["kv_cache_scheme"]["strategy"] == "token" and config["kv_cache_scheme"]["type"] == "float"
    again = open_model(tmp_path / "out")
    planned = as_stored(again, Plan())
    assert {planned.of(f"model.layers.1.self_attn.{name}_proj").cache for name in "kv"} == {"fp8-e4m3-token"}
    assert planned.of("model.layers.1.self_attn.q_proj").cache is None
    assert export(again, planned, tmp_path / "again")["quantization_config"]["kv_cache_scheme"] == \
        config["kv_cache_scheme"]  # fmt: skip
    some = Plan().assign(["model.layers.0.self_attn.*_proj"], weights="int4-g32", cache="fp8-e4m3-token")
    with pytest.raises(ExportError, match="one scheme for all"):
        export(model, some, tmp_path / "some")
    assert not (tmp_path / "some").exists()


def test_every_layer_that_does_not_fit_is_named_with_its_reason(model: Model, tmp_path: Path) -> None:
    plan = mixed(model, ["q4_0", "nf4-b64", "int4-g48", "int4-g32-asym-zfp16", "fp8-e5m2-channel"])
    with pytest.raises(ExportError) as refused:
        export(model, plan.assign([LAST], weights="int4-g32", inputs=None), tmp_path / "out")
    message = str(refused.value)
    for name, reason in (("q_proj", "has no q4_0"), ("k_proj", "has no nf4-b64"), ("v_proj", "multiples of 48"),
                         ("o_proj", "floating zero points"), ("gate_proj", "has no fp8-e5m2-channel")):  # fmt: skip
        assert reason in message and name in message
    assert not os.listdir(tmp_path)


def test_a_value_that_reads_back_otherwise_keeps_the_folder_as_failed(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = compressed_tensors.layout.scale_entries

    def doubled(*arguments: Any) -> Any:
        for entry in entries(*arguments):
            values = entry.load
            object.__setattr__(entry, "load", lambda values=values: values() * 2)
            yield entry

    monkeypatch.setattr(compressed_tensors.layout, "scale_entries", doubled)
    with pytest.raises(ExportError, match=r"q_proj\[0, 0\] reads back as .* was evaluated.*out.failed"):
        export(model, mixed(model, ["int4-g32"]), tmp_path / "out")
    assert os.listdir(tmp_path) == ["out.failed"] and (tmp_path / "out.failed" / "config.json").is_file()


def test_a_folder_of_others_is_not_replaced(model: Model, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(ExportError, match="holds more than an earlier export"):
        export(model, mixed(model, ["int4-g32"]), tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["thesis.txt"]


def test_kept_experts_and_their_router_are_ignored_by_the_names_of_their_modules(tmp_path: Path) -> None:
    from compressed_tensors.utils.match import match_name

    own = open_model(folder_of("qwen2moe", tmp_path / "source"))
    names = [layer.name for layer in own.summary.stored if "shared_expert." in layer.name]
    quantized = quantize(own, Plan().assign(names, weights="int8-channel", algorithm="rtn"))
    exporter("compressed-tensors").export(quantized, own, tmp_path / "out", silent)
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    ignore = config["quantization_config"]["ignore"]
    for name in ("gate", "experts", "experts.3.gate_proj", "shared_expert_gate"):
        assert any(match_name(f"model.layers.1.mlp.{name}", each) for each in ignore), name
    assert not any(match_name("model.layers.1.mlp.shared_expert.up_proj", each) for each in ignore)


@pytest.mark.parametrize("weights, inputs", [
    ("int8-channel", "int8-tensor"), ("int8-tensor", "int8-tensor-asym"), ("fp8-e4m3-tensor", "fp8-e4m3-tensor"),
])  # fmt: skip
def test_static_inputs_come_back_with_their_ranges(model: Model, tmp_path: Path, weights: str, inputs: str) -> None:
    names = [layer.name for layer in model.summary.stored if "mlp" in layer.name]
    ranges = {(name, "input"): Range(low=-0.3 - place, high=1.7, method="min-max", clipped=0.0)
              for place, name in enumerate(names)}  # fmt: skip
    plain = quantize(model, Plan().assign(names, weights=weights, algorithm="rtn"))
    plan = plain.plan.assign(names, inputs=inputs)
    exporter("compressed-tensors").export(
        dataclasses.replace(plain, plan=plan, ranges=ranges), model, tmp_path / "out", silent
    )
    again = open_model(tmp_path / "out")
    session = start(again)
    assert {session.plan.of(name).inputs for name in names} == {inputs}
    for name in names:
        ours = parse_scheme(inputs).fit_range(ranges[name, "input"].low, ranges[name, "input"].high)
        stated = session.active_ranges[name, "input"]
        assert torch.equal(parse_scheme(inputs).fit_range(stated.low, stated.high).scale, ours.scale)
    exporter("compressed-tensors").export(
        workbench.quantize(again, session.plan, session=session), again, tmp_path / "second", silent
    )
    second, first = (load_file(tmp_path / name / "model.safetensors") for name in ("second", "out"))
    assert second.keys() == first.keys()
    assert all(torch.equal(second[name].view(torch.uint8), first[name].view(torch.uint8)) for name in first)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_static_scale_that_is_none_leaves_the_inputs_as_they_are(model: Model, tmp_path: Path, scale: float) -> None:
    name = "model.layers.0.mlp.up_proj"
    plain = quantize(model, Plan().assign([name], weights="int8-channel", algorithm="rtn"))
    fixed = dataclasses.replace(plain, plan=plain.plan.assign([name], inputs="int8-tensor"), ranges={
        (name, "input"): Range(low=-1.0, high=1.0, method="min-max", clipped=0.0)
    })  # fmt: skip
    exporter("compressed-tensors").export(fixed, model, tmp_path / "out", silent)
    tensors = load_file(tmp_path / "out" / "model.safetensors")
    tensors[f"{name}.input_scale"].fill_(scale)
    save_file(tensors, tmp_path / "out" / "model.safetensors", {"format": "pt"})
    session = start(open_model(tmp_path / "out"))
    assert session.plan.of(name).inputs is None and not session.active_ranges


def test_a_plan_that_packs_nothing_is_a_folder_that_opens_as_it_was(model: Model, tmp_path: Path) -> None:
    exporter("compressed-tensors").export(quantize(model, Plan()), model, tmp_path / "out", silent)
    assert "quantization_config" not in json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert open_model(tmp_path / "out").summary.source.kind == "huggingface"


@pytest.mark.parametrize("messages", [
    {}, [], "fp8", {"strategy": "token"}, {"strategy": "token", "num_bits": 8},
    {"strategy": "tensor", "num_bits": 8, "type": "float", "symmetric": True},
])  # fmt: skip
def test_a_cache_that_no_plan_can_say_is_left_out(messages: Any) -> None:
    scheme, unsaid = cache_scheme({"kv_cache_scheme": messages})
    assert scheme is None and unsaid
