"""Experts in compressed-tensors: one by one, as checkpoints have them; read by transformers, opened again, refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

from tests.deployment.exporters.llamas import _copy_tokenizer, folder_of
from workbench.deployment.exporters import exporter
from workbench.deployment.proof.transformers_process import load
from workbench.deployment.targets import target
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

pytest.importorskip("compressed_tensors")

IDS = torch.arange(20)[None]


@pytest.fixture(scope="module", params=["qwen3moe", "mixtral"])
def mixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    place = tmp_path_factory.mktemp(request.param)
    if request.param != "mixtral":
        return open_model(folder_of(request.param, place))
    torch.manual_seed(0)
    network = transformers.MixtralForCausalLM(transformers.MixtralConfig(
        vocab_size=1024, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, num_local_experts=4, num_experts_per_tok=2,
    ))  # fmt: skip
    network.save_pretrained(place)
    _copy_tokenizer(place)
    return open_model(place)


def names(model: Model, kind: str) -> list[str]:
    return [layer.name for layer in model.summary.stored if layer.kind == kind and "attn" in layer.name + "attn" * (
        kind == "experts")]  # fmt: skip


def written(model: Model, plan: Plan, out: Path) -> list[str]:
    """Export, and return the lines of config.json that name experts."""
    exporter("compressed-tensors").export(quantize(model, plan), model, out, silent)
    groups = json.loads((out / "config.json").read_text())["quantization_config"]["config_groups"]
    return [target for group in groups.values() for target in group["targets"] if "experts" in target]


def answers_are_ours(model: Model, plan: Plan, out: Path) -> bool:
    with torch.no_grad():
        there = load(str(out))(input_ids=IDS, use_cache=False).logits
        ours = quantize(model, plan).bind(model).run({"input_ids": IDS, "attention_mask": torch.ones_like(IDS)})
    return bool((there - ours).norm() < 1e-3 * ours.norm())  # groups have scales in 16 bits, in which it multiplies


@pytest.mark.parametrize("kind", ["compressed-tensors", "torchao"])
def test_experts_in_plain_numbers_are_written_one_by_one(mixture: Model, tmp_path: Path, kind: str) -> None:
    """They were refused: the checkpoint stores them in several tensors."""
    plan = Plan().assign(names(mixture, "linear"), weights="int8-channel", algorithm="rtn")
    for name in names(mixture, "experts"):
        plan = plan.assign([name], weights="fp16" if "gate_up" in name else "fp32", algorithm="rtn")
    exporter(kind).export(quantize(mixture, plan), mixture, tmp_path / "out", silent)
    tensors = load_file(tmp_path / "out" / "model.safetensors")
    widths = {re.sub(r".*experts\.", "", name): tensor for name, tensor in tensors.items() if ".experts.3." in name}
    assert len(widths) == 3 and {tensor.dtype for tensor in widths.values()} == {torch.float16, torch.float32}
    if kind == "compressed-tensors":
        assert answers_are_ours(mixture, plan, tmp_path / "out")


@pytest.mark.parametrize("experts, others", [("int8-channel", "int4-g32-asym"), ("int4-g32", "int4-g32")])
def test_experts_are_read_by_transformers_and_opened_again(
    mixture: Model, tmp_path: Path, experts: str, others: str
) -> None:
    plan = Plan().assign(names(mixture, "experts"), weights=experts, algorithm="rtn")
    plan = plan.assign(names(mixture, "linear"), weights=others, algorithm="rtn")
    targets = written(mixture, plan, tmp_path / "out")
    tensors = load_file(tmp_path / "out" / "model.safetensors")
    single = [name for name in tensors if re.search(r"experts\.3\.\w+\.weight_packed$", name)]
    assert len(single) == 2 * 3 and all(name.startswith("re:") for name in targets)
    if targets:
        assert all(any(re.match(each[3:], name.removesuffix(".weight_packed")) for each in targets) for name in single)
    assert answers_are_ours(mixture, plan, tmp_path / "out")
    again = open_model(tmp_path / "out")
    planned = as_stored(again, Plan())
    assert {planned.of(name).weights for name in names(mixture, "experts")} == {experts}
    assert plan_totals(again.summary, planned).nbytes == plan_totals(mixture.summary, plan).nbytes
    written(again, planned, tmp_path / "second")
    second = load_file(tmp_path / "second" / "model.safetensors")
    assert second.keys() == tensors.keys()
    assert all(torch.equal(second[name].view(torch.uint8), tensors[name].view(torch.uint8)) for name in tensors)


def test_a_mixture_whose_experts_are_kept_is_loaded_by_transformers(mixture: Model, tmp_path: Path) -> None:
    plan = Plan().assign(names(mixture, "linear"), weights="int8-channel", algorithm="rtn")
    assert written(mixture, plan, tmp_path / "out") == ["re:^experts are not quantized$"]
    network = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    assert network is not None and answers_are_ours(mixture, plan, tmp_path / "out")


@pytest.mark.parametrize("first, second, reason", [
    ("int4-g32", "keep", "all experts by one scheme, and the plan has int4-g32, keep"),
    ("int4-g32", "int8-channel", "all experts by one scheme"), ("int4-g32-asym", "int4-g32-asym", "symmetric integers"),
    ("fp8-e4m3-channel", "fp8-e4m3-channel", "symmetric integers"), ("int4-g32", "fp16", "all experts by one"),
    ("int8-tensor", "int8-tensor", "symmetric integers"),
])  # fmt: skip
def test_what_loaders_do_not_read_of_experts_is_refused(
    mixture: Model, tmp_path: Path, first: str, second: str, reason: str
) -> None:
    experts = names(mixture, "experts")
    plan = Plan().assign(experts[:2], weights=first, algorithm="rtn")
    if second != "keep":
        plan = plan.assign(experts[2:], weights=second, algorithm="rtn")
    with pytest.raises(ExportError, match=reason):
        written(mixture, plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_target_refuses_experts_that_the_export_refuses(mixture: Model) -> None:
    layer = next(layer for layer in mixture.summary.stored if layer.kind == "experts")
    assert "symmetric" in str(target("vllm").legal(layer, "int4-g32-asym"))
    assert target("vllm").legal(layer, "fp8-e4m3-channel", "fp8-e4m3-token")
    (bond,) = [bond for bond in target("vllm").bonds(mixture.summary.layers) if layer.name in bond]
    assert set(bond) == set(names(mixture, "experts"))
