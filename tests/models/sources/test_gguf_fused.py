"""GGUF files whose tensors hold several parameters, or whose metadata are those of the first mixtures."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from tests.deployment.exporters.llamas import folder_of
from tests.models.sources.gguf_copies import copied
from workbench.deployment.exporters import exporter
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.models.sources.roles import SHARED_GATE
from workbench.models.summary import quantizable
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.first_session import as_stored

ATTENTION = {"attn_qkv.weight": ("attn_q.weight", "attn_k.weight", "attn_v.weight")}
BIASES = {"attn_qkv.bias": ("attn_q.bias", "attn_k.bias", "attn_v.bias")}
EXPERTS = {"ffn_gate_up_exps.weight": ("ffn_gate_exps.weight", "ffn_up_exps.weight")}
TOKENS = {"input_ids": torch.arange(3, 23).reshape(1, 20), "attention_mask": torch.ones(1, 20, dtype=torch.int64)}


def written(model: Model, plan: Plan, out: Path) -> Path:
    exporter("gguf").export(quantize(model, plan), model, out, silent)
    return out


def quantized(name: str, place: Path) -> Path:
    """Write a file of the architecture with every matrix of the blocks in eight bits."""
    model = open_model(folder_of(name, place / name))
    names = [layer.name for layer in quantizable(model.summary.stored) if "layer" in layer.name]
    return written(model, Plan().assign(names, weights="q8_0", algorithm="rtn"), place / "plain.gguf")


def answers(model: Model) -> torch.Tensor:
    assert model.summary.cannot_run is None, model.summary.cannot_run
    with torch.no_grad():
        return model.run(TOKENS)


@pytest.mark.parametrize(("name", "fused"), [
    ("nomic_bert", ATTENTION), ("bert", ATTENTION | BIASES), ("llama", ATTENTION), ("qwen2", ATTENTION | BIASES),
    ("qwen3_moe", ATTENTION | EXPERTS), ("mixtral", EXPERTS),
])  # fmt: skip
def test_tensors_of_several_parameters_are_the_same_network(
    name: str, fused: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    plain = quantized(name, tmp_path)
    file = copied(plain, tmp_path / "fused.gguf", fused=fused)
    model, apart = open_model(file), open_model(plain)
    assert torch.equal(answers(model), answers(apart))
    plan = as_stored(model, Plan())
    assert plan.rules == as_stored(apart, Plan()).rules
    assert written(model, plan, tmp_path / "same.gguf").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(("name", "query", "gone"), [
    ("llama", "model.layers.0.self_attn.q_proj", "attn_qkv"),
    ("bert", "encoder.layer.0.attention.self.query", "attn_qkv"),
    ("qwen3_moe", "model.layers.0.mlp.experts.gate_up_proj", ""),
])  # fmt: skip
def test_a_change_of_one_parameter_leaves_the_others_codes(name: str, query: str, gone: str, tmp_path: Path) -> None:
    fused = ATTENTION | (BIASES if name == "bert" else {}) | (EXPERTS if "moe" in name else {})
    plain = quantized(name, tmp_path)
    model = open_model(copied(plain, tmp_path / "fused.gguf", fused=fused))
    plan = as_stored(model, Plan()).assign([query], weights="q4_0", algorithm="rtn")
    changed = quantize(model, plan)
    out = written(model, plan, tmp_path / "changed.gguf")
    with torch.no_grad():
        assert torch.equal(answers(open_model(out)), changed.bind(model).run(TOKENS))
    before = {tensor.name: tensor for tensor in gguf.GGUFReader(plain).tensors}
    after = {tensor.name: tensor for tensor in gguf.GGUFReader(out).tensors}
    assert not gone or not any(each.startswith(f"blk.0.{gone}") for each in after)
    shared = before.keys() & after.keys()
    other = [each for each in shared if not np.array_equal(before[each].data, after[each].data)]
    assert other == (["blk.0.attn_q.weight"] if gone else []) and ("blk.0.attn_k.weight" in shared) == bool(gone)


def test_experts_in_two_types_are_kept_and_said_to_be(tmp_path: Path) -> None:
    plain, up = quantized("mixtral", tmp_path), "blk.0.ffn_up_exps.weight"
    tensor = next(each for each in gguf.GGUFReader(plain).tensors if each.name == up)
    kind = gguf.GGMLQuantizationType.Q4_0
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)

    def change(writer: gguf.GGUFWriter) -> None:
        writer.add_tensor(up, gguf.quants.quantize(values, kind), raw_dtype=kind)

    file, experts = copied(plain, tmp_path / "m.gguf", change, without=(up,)), "model.layers.0.mlp.experts.gate_up_proj"
    model = open_model(file)
    plan = as_stored(model, Plan())
    weight = model.weight(experts).reshape(4, 2, -1, 64)
    stored = gguf.quants.dequantize(gguf.quants.quantize(values, kind), kind)
    assert plan.of(experts).weights == "keep" and np.array_equal(weight[:, 1].numpy(), stored)
    assert experts in " ".join(model.notes) and "(Q4_0, Q8_0)" in " ".join(model.notes)
    assert written(model, plan, tmp_path / "same.gguf").read_bytes() == file.read_bytes()
    again = open_model(written(model, plan.assign([experts], weights="q4_0", algorithm="rtn"), tmp_path / "one.gguf"))
    assert again.encoding(experts) == "q4_0" and not again.notes


def test_the_first_files_of_mixtures_do_not_state_the_sizes_of_experts(tmp_path: Path) -> None:
    plain = quantized("qwen2_moe", tmp_path)
    old = copied(plain, tmp_path / "old.gguf", without=tuple(
        f"qwen2moe.expert_{kind}feed_forward_length" for kind in ("", "shared_")
    ))  # fmt: skip
    assert torch.equal(answers(open_model(old)), answers(open_model(plain)))


@pytest.mark.parametrize("rows", [3, 96, 160])
def test_a_fused_tensor_of_another_size_leaves_the_weights(rows: int, tmp_path: Path) -> None:
    plain = quantized("llama", tmp_path)

    def change(writer: gguf.GGUFWriter) -> None:
        writer.add_tensor("blk.0.attn_qkv.weight", np.ones((rows, 64), np.float32))

    without = tuple(f"blk.0.{part}" for part in ATTENTION["attn_qkv.weight"])
    summary = open_model(copied(plain, tmp_path / "m.gguf", change, without=without)).summary
    assert summary.layers and f"blk.0.attn_qkv.weight has ({rows}, 64)" in str(summary.cannot_run)


def test_the_gate_of_a_shared_expert_is_kept_like_the_router_beside_it(tmp_path: Path) -> None:
    layers = open_model(folder_of("qwen2_moe", tmp_path)).summary.by_name
    kept = {name: layer.keep for name, layer in layers.items() if layer.keep}
    assert kept["model.layers.0.mlp.shared_expert_gate"] == SHARED_GATE and kept["model.layers.0.mlp.gate.weight"]
    assert len(kept) == 4
