"""Experts in MLX folders: one tensor for each projection, as mlx-lm loads them; read back by MLX's formula, run in
mlx-lm where it is, opened again, refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from tests.deployment.exporters.llamas import _copy_tokenizer
from workbench.deployment.checkpoints.sizes import more_bytes
from workbench.deployment.exporters import exporter
from workbench.deployment.proof.transformers_proof import prove_in_folder
from workbench.deployment.targets import target
from workbench.errors import ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan, resolve
from workbench.planning.totals import totals
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.quantization.quantized_model import QuantizedModel
from workbench.steps.files.first_session import as_stored

FAMILIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "qwen2_moe": ("Qwen2MoeForCausalLM", {"num_experts": 5, "shared_expert_intermediate_size": 96}, "mlp"),
    "qwen3_moe": ("Qwen3MoeForCausalLM", {"num_experts": 11, "norm_topk_prob": True, "head_dim": 32}, "mlp"),
    "mixtral": ("MixtralForCausalLM", {"num_local_experts": 3, "intermediate_size": 64}, "block_sparse_moe"),
}
SCHEMES = ("int4-g32", "mxfp4", "int5-g32-asym-zbf16-sbf16", "keep", "int3-g32", "mxfp8-e4m3", "fp16", "int8-g32")
BATCH = {"input_ids": 7 * torch.arange(24)[None], "attention_mask": torch.ones(1, 24, dtype=torch.int64)}


def save(family: str, place: Path, dtype: str = "float32", *, fused: bool = False, **changes: Any) -> Path:
    name, own, _ = FAMILIES[family]
    network = getattr(transformers, name)
    sizes = {
        "vocab_size": 1024, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "num_experts_per_tok": 2,
        "moe_intermediate_size": 96, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
    }  # fmt: skip
    torch.manual_seed(0)
    model = network(network.config_class(**{**sizes, **own, **changes}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4) if parameter.ndim > 1 else parameter.add_(torch.randn_like(parameter) * 0.1)
    model.to(getattr(torch, dtype)).save_pretrained(place, save_original_format=not fused)
    _copy_tokenizer(place)
    return place


@pytest.fixture(scope="module", params=[(family, dtype) for family in FAMILIES for dtype in ("float32", "bfloat16")])
def mixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Model]:
    family, dtype = request.param
    return family, open_model(save(family, tmp_path_factory.mktemp(family), dtype))


def planned(model: Model, first: int = 0) -> Plan:
    """Give each layer of experts, and those around them, schemes in turn; routers stay."""
    plan, number = Plan(), first
    for kind in ("experts", "linear"):
        for layer in (each for each in model.summary.stored if each.kind == kind and each.name.endswith("_proj")):
            plan = plan.assign([layer.name], weights=SCHEMES[number % len(SCHEMES)], algorithm="rtn")
            number += 1
    return plan


def exported(model: Model, plan: Plan, out: Path) -> QuantizedModel:
    quantized = quantize(model, plan)
    exporter("mlx").export(quantized, model, out, silent)
    return quantized


def decoded(tensors: Mapping[str, torch.Tensor], module: str, settings: Mapping[str, Any]) -> np.ndarray:
    """Return what MLX's documentation says that a module's tensors are, float32 ``[experts, outputs, inputs]``."""
    weight = tensors[f"{module}.weight"]
    if f"{module}.scales" not in tensors:
        values: np.ndarray = weight.float().numpy()
        return values
    own = settings.get(module, settings)
    experts, outputs, words = weight.shape
    bits, size = own["bits"], own["group_size"]
    stream = np.unpackbits(weight.numpy().view(np.uint8).reshape(-1, 4 * words), axis=1, bitorder="little")
    codes = (stream.reshape(experts, outputs, -1, bits).astype(np.int64) << np.arange(bits)).sum(-1)
    scales = tensors[f"{module}.scales"]
    assert scales.shape == (experts, outputs, codes.shape[-1] // size)
    if own["mode"] == "affine":
        biases = tensors[f"{module}.biases"]
        assert (biases.shape, biases.dtype) == (scales.shape, scales.dtype)
        wide, added = (each.float().numpy().repeat(size, -1) for each in (scales, biases))
        return wide * codes.astype(np.float32) + added
    powers = 2.0 ** (scales.numpy().astype(np.float32) - 127)
    if own["mode"] == "mxfp8":
        numbers = torch.from_numpy(codes.astype(np.uint8)).view(torch.float8_e4m3fn).float().numpy()
    else:
        magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
        numbers = np.concatenate([magnitudes, -magnitudes])[codes]
    return powers.repeat(size, -1) * numbers


@pytest.mark.parametrize("first", [0, 3])
def test_every_projection_is_one_tensor_of_the_evaluated_values(
    first: int, mixture: tuple[str, Model], tmp_path: Path
) -> None:
    family, model = mixture
    quantized = exported(model, planned(model, first), tmp_path / "out")
    tensors = load_file(tmp_path / "out" / "model.safetensors")
    settings = json.loads((tmp_path / "out" / "config.json").read_text())["quantization"]
    assert not any(".experts." in name for name in (*tensors, *settings))
    for layer in (each for each in model.summary.stored if each.kind == "experts"):
        owner = f"{layer.block}.{FAMILIES[family][2]}.switch_mlp"
        projections = ("gate_proj", "up_proj") if layer.name.endswith("gate_up_proj") else ("down_proj",)
        values = np.concatenate([decoded(tensors, f"{owner}.{each}", settings) for each in projections], axis=1)
        assert values.shape == layer.shape
        assert np.array_equal(values.reshape(layer.matrix), quantized.bind(model).weight(layer.name).float().numpy())
    assignments = resolve(quantized.plan, model.summary.layers)
    told = totals(model.summary, assignments).nbytes + more_bytes("mlx", model.summary.layers, assignments)
    assert sum(tensor.nbytes for tensor in tensors.values()) == told


@pytest.mark.parametrize("first", [0, 3, 5])
def test_mlx_lm_gives_the_answers_of_the_evaluation(first: int, mixture: tuple[str, Model]) -> None:
    pytest.importorskip("mlx_lm")
    _, model = mixture
    proof = prove_in_folder(
        "mlx", quantize(model, planned(model, first)), model, None, torch.arange(96).reshape(2, 48), (4, 12, 40),
        data="n", progress=silent,
    )  # fmt: skip
    assert proof.difference < 1e-9 < proof.plan_loss and proof.agreement == 1 and proof.generation_speed > 0


def test_it_opens_again_and_another_plan_is_exported_from_it(mixture: tuple[str, Model], tmp_path: Path) -> None:
    _, model = mixture
    quantized = exported(model, planned(model), tmp_path / "out")
    again = open_model(tmp_path / "out")
    assert again.summary.cannot_run is None and again.notes == ()
    assert torch.equal(again.run(BATCH), quantized.bind(model).run(BATCH))
    read = resolve(as_stored(again, Plan()), again.summary.layers)
    for name, each in resolve(quantized.plan, model.summary.layers).items():
        assert read[name].weights == ("keep" if each.weights == "fp16" else each.weights), name
    other = exported(again, planned(again, 1), tmp_path / "other")
    assert torch.equal(open_model(tmp_path / "other").run(BATCH), other.bind(again).run(BATCH))


@pytest.mark.parametrize("family", FAMILIES)
def test_experts_that_a_checkpoint_has_together_are_written_the_same(family: str, tmp_path: Path) -> None:
    written = []
    for fused in (False, True):
        model = open_model(save(family, tmp_path / f"model{fused}", "bfloat16", fused=fused))
        exported(model, planned(model), tmp_path / f"out{fused}")
        written.append(load_file(tmp_path / f"out{fused}" / "model.safetensors"))
    assert written[0].keys() == written[1].keys()
    assert all(torch.equal(tensor, written[1][name]) for name, tensor in written[0].items())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_opened_for_its_weights_takes_one_scheme_for_a_projection(family: str, tmp_path: Path) -> None:
    """Its experts are layers of their own."""
    network = open_model(save(family, tmp_path / "model"))
    model = open_model(tmp_path / "model" / "model.safetensors")
    experts = [layer.name for layer in model.summary.stored if ".experts." in layer.name]
    assert {bond for bond in target("mlx").bonds(model.summary.layers) if set(bond) <= {*experts}}
    downs = [name for name in experts if name.endswith(("down_proj", "w2"))]
    plan = Plan().assign(experts, weights="int4-g32", algorithm="rtn").assign(downs, weights="fp16", algorithm="rtn")
    exported(model, plan, tmp_path / "out")
    together = [layer.name for layer in network.summary.stored if layer.kind == "experts"]
    downs = [name for name in together if name.endswith("down_proj")]
    same = Plan().assign(together, weights="int4-g32", algorithm="rtn").assign(downs, weights="fp16", algorithm="rtn")
    exported(network, same, tmp_path / "same")
    first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("out", "same"))
    assert first == second
    with pytest.raises(
        ExportError, match=r"1\.\w+: it lies in one tensor with .*0\.\w+, in int4-g32, and cannot be in"
    ):
        odd = next(name for name in experts if ".experts.1." in name and name.endswith(("up_proj", "w3")))
        exported(model, plan.assign([odd], weights="int8-g32", algorithm="rtn"), tmp_path / "odd")


@pytest.mark.parametrize(("changes", "message"), [
    ({"norm_topk_prob": True}, "with norm_topk_prob True"), ({"mlp_only_layers": [1]}, "with mlp_only_layers"),
    ({"decoder_sparse_step": 2}, "with decoder_sparse_step 2"),
])  # fmt: skip
def test_what_mlx_lm_computes_otherwise_of_qwen2s_mixtures_is_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    model = open_model(save("qwen2_moe", tmp_path / "model", **changes))
    with pytest.raises(ExportError, match=message):
        exported(model, planned(model), tmp_path / "out")


def test_dense_blocks_and_shards_of_their_own(tmp_path: Path) -> None:
    changes = {"num_hidden_layers": 3, "mlp_only_layers": [0]}
    model = open_model(save("qwen3_moe", tmp_path / "whole", **changes))
    network: Any = transformers.AutoModelForCausalLM
    network.from_pretrained(tmp_path / "whole").save_pretrained(tmp_path / "model", max_shard_size="200KB")
    _copy_tokenizer(tmp_path / "model")
    shards = open_model(tmp_path / "model")
    exported(model, planned(model), tmp_path / "out")
    exported(shards, planned(shards), tmp_path / "sharded")
    files = sorted((tmp_path / "sharded").glob("*.safetensors"))
    index = json.loads((tmp_path / "sharded" / "model.safetensors.index.json").read_text())["weight_map"]
    assert len(files) > 2
    parts = {name: (file.name, tensor) for file in files for name, tensor in load_file(file).items()}
    assert {name: file for name, (file, _) in parts.items()} == index
    whole = load_file(tmp_path / "out" / "model.safetensors")
    assert whole.keys() == parts.keys() and all(torch.equal(tensor, parts[name][1]) for name, tensor in whole.items())
