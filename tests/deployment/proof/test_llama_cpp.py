"""Exported files in llama.cpp itself: every architecture, every type, damage, a missing runtime."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.deployment.exporters.llamas import FAMILIES, ROWS, folder_of
from workbench.deployment.exporters import exporter
from workbench.deployment.proof import llama_cpp
from workbench.deployment.proof.runtime_proof import prove_in_llama_cpp
from workbench.errors import BackendUnavailableError, ExportError
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.progress import silent
from workbench.quantization.quantize import quantize
from workbench.steps.files.export import applied
from workbench.steps.files.first_session import as_stored

pytestmark = pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")

YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32}
LINEAR, PLAIN = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}, {"rope_type": "default", "rope_theta": 1e4}
TOKENS = torch.arange(3, 27).reshape(1, 24)


def proof(model: Model, plan: Plan, **options: Any) -> Any:
    positions = [2, 9, 17, 22]
    return prove_in_llama_cpp(
        quantize(model, plan), model, options.pop("file", None), TOKENS, positions, data="tokens", threads=1,
        progress=silent, **options,
    )  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_llama_cpp_computes_every_architecture(name: str, tmp_path: Path) -> None:
    model = open_model(folder_of(name, tmp_path))
    result = proof(model, Plan())
    assert result.plan_loss == pytest.approx(0, abs=1e-9)
    assert result.difference < 1e-5  # its table of GELU has 16 bits
    assert result.difference > -1e-9 and result.tensor_bytes < result.file_bytes


@pytest.mark.parametrize("name, changes", [
    ("llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0,
                                   "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}),
    ("llama", {"rope_parameters": LINEAR}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"tie_word_embeddings": True}),
    ("phi3", {"partial_rotary_factor": 0.5}),
    ("llama", {"rope_parameters": {**YARN, "attention_factor": 1.5}}),
    ("qwen2", {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.0}}),
    ("phi3", {"max_position_embeddings": 1024, "original_max_position_embeddings": 256, "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 256,
        "short_factor": [1 + place / 9 for place in range(8)], "long_factor": [4.0] * 8}}),
    ("bert", {"type_vocab_size": 1}), ("nomic_bert", {"type_vocab_size": 1}),
    ("modernbert", {"global_attn_every_n_layers": 2}),
    ("modernbert", {"layer_types": ["full_attention", *["sliding_attention"] * 3]}),
    ("smollm3", {"num_hidden_layers": 5}), ("granite", {"attention_bias": True, "mlp_bias": True}),
    ("granite", {"attention_multiplier": 0.3, "logits_scaling": 4.0, "residual_multiplier": 0.5,
                 "embedding_multiplier": 3.0}),
    ("seed_oss", {"attention_bias": True, "head_dim": 32}), ("glm4", {"attention_bias": True, "head_dim": 32}),
    ("stablelm", {"use_qkv_bias": True}), ("glm4", {"attention_bias": False}), ("cohere", {"logit_scale": 0.3}),
    ("gpt_neox", {"use_parallel_residual": False}),
    ("olmo3", {"sliding_window": 8, "num_hidden_layers": 5, "rope_parameters": {
        "full_attention": YARN, "sliding_attention": PLAIN}}),
    ("glm4_moe", {"use_qk_norm": True, "attention_bias": True, "head_dim": 32, "routed_scaling_factor": 2.5,
                  "n_shared_experts": 2, "norm_topk_prob": False}),
    ("hunyuan_v1_dense", {"head_dim": 32, "rope_parameters": {
        "rope_type": "dynamic", "rope_theta": 1e4, "alpha": 1000.0, "factor": 1.0}}),
    ("nemotron", {"attention_bias": True, "mlp_bias": True}),
    ("exaone4", {"sliding_window": 8, "layer_types": None, "num_hidden_layers": 64}),
    ("lfm2", {"block_auto_adjust_ff_dim": False, "conv_L_cache": 4, "tie_word_embeddings": False}),
], ids=["llama3", "linear", "biases", "tied", "partly turned", "yarn", "mscale", "longrope", "type", "turned encoder",
        "each second window", "one without", "unturned blocks", "granite's biases", "granite's scales", "seed", "glm",
        "stable", "unbiased", "cohere", "one after the other", "turned windows", "glm's experts", "hunyuan",
        "nemotron's biases", "exaone's windows", "lfm's own width"])  # fmt: skip
def test_variants_and_the_way_back(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = open_model(folder_of(name, tmp_path / "folder", **copy.deepcopy(changes)))
    assert proof(model, Plan()).difference < 1e-6
    tokens = {"input_ids": TOKENS, "attention_mask": torch.ones_like(TOKENS)}
    out = tmp_path / "model.gguf"
    exporter("gguf").export(quantize(model, Plan()), model, out, silent)
    again = open_model(out)
    assert again.summary.cannot_run is None
    with torch.no_grad():
        assert torch.allclose(again.run(tokens), model.run(tokens), rtol=1e-4, atol=1e-4)


def test_every_type_is_run(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path, hidden_size=256, intermediate_size=256, head_dim=64))
    names = [layer.name for layer in model.summary.stored if layer.name != "model.embed_tokens"]
    types = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "mxfp4-gguf",
             "fp16", "iq4_xs", "tq2_0"]  # fmt: skip
    plan = Plan()
    for name, scheme in zip(names, types, strict=True):
        plan = plan.assign([name], weights=scheme, algorithm="rtn")
    result = proof(model, plan.assign(["model.embed_tokens"], weights="q6_k", algorithm="rtn"))
    assert result.plan_loss > 0.05 and result.difference < 0.1 * result.plan_loss and result.agreement >= 0.75


def test_samples_as_long_as_the_context_are_run_and_timed(tmp_path: Path) -> None:
    model = open_model(folder_of("qwen2", tmp_path, max_position_embeddings=TOKENS.shape[1]))
    result = proof(model, Plan())
    assert result.difference < 1e-6 and result.prompt_speed > 0 and result.generation_speed > 0


def test_layers_that_a_transform_changed_and_the_plan_keeps_are_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_model(folder_of("llama", tmp_path / "folder"))
    plan = Plan(transforms=("equalize",)).assign(["model.layers.*.mlp.up_proj"], weights="q4_0", algorithm="rtn")
    out = tmp_path / "model.gguf"
    exporter("gguf").export(quantize(model, plan), model, out, silent)
    monkeypatch.chdir(tmp_path)
    for file in (out, Path(out.name), None):  # llama.cpp runs in another folder
        assert proof(model, plan, file=file).plan_loss > 1e-6


@pytest.mark.parametrize("given", [False, True])
def test_the_size_is_that_of_the_exported_file_though_a_stand_in_for_its_tokenizer_is_run(
    given: bool, tmp_path: Path
) -> None:
    model, plan = open_model(folder_of("llama", tmp_path / "folder")), Plan()
    out = tmp_path / "model.gguf"
    exporter("gguf").export(quantize(model, plan), model, out, silent)
    result = proof(model, plan, file=out if given else None)
    assert result.tokens == "no tokenizer" and result.file_bytes == out.stat().st_size


def test_a_file_of_another_plan_is_told_by_its_first_tensor(tmp_path: Path) -> None:
    model = open_model(folder_of("llama", tmp_path / "folder"))
    out = tmp_path / "model.gguf"
    exporter("gguf").export(quantize(model, Plan()), model, out, silent)
    other = Plan().assign(["model.layers.0.mlp.up_proj"], weights="q8_0")
    with pytest.raises(ExportError, match="blk.0.ffn_up.weight was written as Q8_0 and reads back as F32"):
        proof(model, other, file=out)


def test_the_answers_of_another_network_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.deployment import gguf_tensors

    model = open_model(folder_of("llama", tmp_path))
    monkeypatch.setattr(gguf_tensors, "row_order", lambda *given: None)  # queries and keys in transformers' order
    with pytest.raises(ExportError, match="computes something other than what was evaluated"):
        proof(model, Plan())


def test_a_file_that_llama_cpp_refuses_ends_in_its_own_words(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ExportError, match="llama.cpp does not run the file: .*load"):
        llama_cpp.run(path, [[1, 2, 3]], [1], ROWS)
    with pytest.raises(ExportError, match="did not end within 0 seconds"):
        llama_cpp.run(path, [[1, 2, 3]], [1], ROWS, seconds=0.0)


def test_a_missing_runtime_is_named_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'quantization-workbench\[llama-cpp\]'"):
        llama_cpp.require_llama_cpp()


@pytest.mark.parametrize("name", ["qwen2moe", "qwen3moe", "mixtral"])
def test_experts_in_their_own_types(name: str, tmp_path: Path) -> None:
    model = open_model(folder_of(name, tmp_path))
    plan = Plan()
    for layer in model.summary.stored:
        if layer.name.endswith("experts.gate_up_proj"):
            plan = plan.assign([layer.name], weights="q8_0", algorithm="rtn")
        elif layer.name.endswith("down_proj"):
            plan = plan.assign([layer.name], weights="q5_1", algorithm="rtn")
    result = proof(model, plan)
    assert result.plan_loss > 1e-5 and result.difference < result.plan_loss
    out = tmp_path / "out" / "model.gguf"
    out.parent.mkdir()
    exporter("gguf").export(quantize(model, plan), model, out, silent)
    again = open_model(out)
    assert again.encoding("model.layers.0.mlp.experts.gate_up_proj") == "q8_0"
    assert proof(again, as_stored(again, Plan()), file=out).difference < result.plan_loss


def test_a_name_at_which_llama_cpp_looks_for_tokens_of_phi_3(tmp_path: Path) -> None:
    model, out = open_model(folder_of("llama", tmp_path / "my-Phi-3-copy")), tmp_path / "model.gguf"
    exporter("gguf").export(quantize(model, Plan()), model, out, silent)
    assert proof(model, Plan(), file=out).difference < 1e-6


@pytest.mark.parametrize("name", [name for name in FAMILIES if "bert" not in name])
def test_a_tied_head_is_computed_or_refused(name: str, tmp_path: Path) -> None:
    model = open_model(folder_of(name, tmp_path / "m", tie_word_embeddings=True))
    heads = ("qwen2_moe", "olmo2", "olmo3", "olmoe", "stablelm", "gpt_neox", "phi", "nemotron")
    if name in heads:  # llama.cpp looks for a head of its own there
        with pytest.raises(ExportError, match="computes no network with tie_word_embeddings True"):
            exporter("gguf").export(quantize(model, Plan()), model, tmp_path / "model.gguf", silent)
    else:
        assert proof(model, Plan()).difference < 1e-5


def test_experts_that_llama_cpp_computes_otherwise_are_refused(tmp_path: Path) -> None:
    for changes in ({"norm_topk_prob": False}, {"mlp_only_layers": [0]}, {"decoder_sparse_step": 2}):
        model = open_model(folder_of("qwen3moe", tmp_path / next(iter(changes)), **changes))
        with pytest.raises(ExportError, match=f"computes no network with {next(iter(changes))}"):
            exporter("gguf").export(quantize(model, Plan()), model, tmp_path / "model.gguf", silent)


@pytest.mark.parametrize("name, changes, named", [
    ("modernbert", {"layer_types": ["sliding_attention", *["full_attention"] * 3]}, "layer_types"),
    ("modernbert", {"layer_types": ["full_attention"] * 4}, "layer_types"),
    ("modernbert", {"attention_bias": True}, "attention_bias"), ("modernbert", {"norm_bias": True}, "norm_bias"),
    ("modernbert", {"mlp_bias": True}, "mlp_bias"), ("smollm3", {"mlp_bias": True}, "mlp_bias"),
    ("smollm3", {"no_rope_layer_interval": 2}, "no_rope_layers"), ("arcee", {"mlp_bias": True}, "mlp_bias"),
    ("olmoe", {"num_key_value_heads": 2}, "num_key_value_heads 2"), ("olmoe", {"clip_qkv": 1.0}, "clip_qkv"),
    ("stablelm", {"use_parallel_residual": True}, "use_parallel_residual"), ("cohere", {"head_dim": 32}, "head_dim 32"),
    ("gpt_neox", {"attention_bias": False}, "attention_bias"), ("phi", {"rope_parameters": LINEAR}, "linear"),
    ("olmo3", {"layer_types": ["full_attention"] * 2}, "layer_types"),
    ("olmo3", {"rope_parameters": {"full_attention": PLAIN, "sliding_attention": {**PLAIN, "rope_theta": 9.0}}},
     "theta"),
    ("exaone4", {"sliding_window": 8, "layer_types": None, "num_hidden_layers": 5}, "sliding_window 8"),
    ("exaone4", {"num_hidden_layers": 64, "layer_types": ["full_attention"] * 64}, "sliding_window None"),
    ("lfm2", {"conv_bias": True}, "conv_bias"), ("glm4_moe", {"n_group": 2, "topk_group": 1}, "n_group"),
    ("cohere2", {"sliding_window": None}, "sliding_window"),
    ("hunyuan_v1_dense", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "dynamic"),
    ("gemma3_text", {"rope_parameters": {"full_attention": PLAIN, "sliding_attention": LINEAR}}, "linear"),
])  # fmt: skip
def test_what_llama_cpp_does_not_compute_is_refused(
    name: str, changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    model = open_model(folder_of(name, tmp_path, **copy.deepcopy(changes)))  # transformers changes rope_parameters
    with pytest.raises(ExportError, match=f"computes no network with .*{named}"):
        exporter("gguf").export(quantize(model, Plan()), model, tmp_path / "model.gguf", silent)


@pytest.mark.parametrize("name, network, settings", [
    ("gemma3", "Gemma3ForConditionalGeneration", {"mm_tokens_per_image": 4, "text_config": {
        "sliding_window": 8, "query_pre_attn_scalar": 16, "num_hidden_layers": 7, "head_dim": 16}}),
    ("llava", "LlavaForConditionalGeneration", {"text_config": {"model_type": "llama"}}),
    ("mistral3", "Mistral3ForConditionalGeneration", {"text_config": {
        "model_type": "mistral", "sliding_window": None}}),
])  # fmt: skip
def test_of_a_network_of_texts_and_pictures_the_file_holds_that_of_texts(
    name: str, network: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    import transformers

    cls = getattr(transformers, network)
    llama = json.loads((folder_of("llama", tmp_path / "model") / "config.json").read_text("utf-8"))
    sizes = {key: llama[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size",
                                         "num_attention_heads", "num_key_value_heads", "pad_token_id")}  # fmt: skip
    seen = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
            "image_size": 28, "patch_size": 14, "head_dim": 16, "projection_dim": 32}  # fmt: skip
    kind = {"llava": "clip_vision_model", "mistral3": "pixtral"}.get(name)
    torch.manual_seed(0)
    cls(cls.config_class(
        text_config=sizes | settings.pop("text_config"), vision_config=seen | ({"model_type": kind} if kind else {}),
        image_token_index=1000, **settings,
    )).bfloat16().save_pretrained(tmp_path / "model")  # fmt: skip
    model = open_model(tmp_path / "model")
    pictures = [layer.name for layer in model.summary.stored if "vision_tower" in layer.name]
    plan = Plan().assign(pictures, weights="int8-channel", algorithm="rtn")
    assert proof(model, plan).difference < 1e-4
    out = tmp_path / "model.gguf"
    quantized, _ = applied(model, plan, "gguf", out, session=None, settings=(), progress=silent)
    assert "--mmproj" in quantized.notes[-1] and pictures[0] in quantized.notes[-2]
    again, tokens = open_model(out), {"input_ids": TOKENS, "attention_mask": torch.ones_like(TOKENS)}
    assert again.summary.cannot_run is None
    with torch.no_grad():
        assert torch.allclose(again.run(tokens), model.run(tokens), rtol=1e-4, atol=1e-4)


def test_a_network_around_a_known_one_of_texts_is_refused_where_it_is_not_known(tmp_path: Path) -> None:
    """PaliGemma's Gemma sees all of a prompt at each place of it."""
    from transformers import PaliGemmaConfig, PaliGemmaForConditionalGeneration

    gemma = {"model_type": "gemma", "vocab_size": ROWS, "head_dim": 16}
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    folder = folder_of("llama", tmp_path / "model")
    PaliGemmaForConditionalGeneration(PaliGemmaConfig(
        text_config=gemma | sizes | {"num_key_value_heads": 1}, image_token_index=1000,
        vision_config=sizes | {"model_type": "siglip_vision_model", "image_size": 28, "patch_size": 14},
    )).save_pretrained(folder)  # fmt: skip
    model = open_model(folder)
    with pytest.raises(ExportError, match="the architecture paligemma cannot be written as GGUF"):
        exporter("gguf").export(quantize(model, Plan()), model, tmp_path / "model.gguf", silent)
