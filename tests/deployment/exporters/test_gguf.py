"""GGUF files: what the plan says, bit for bit, by the package's own reader; what does not fit is refused by layer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from gguf.quants import dequantize
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.deployment.exporters.llamas import folder_of
from workbench.deployment import gguf_tensors
from workbench.deployment.exporters import exporter
from workbench.deployment.networks import unknown_network
from workbench.errors import ExportError
from workbench.models.data.converted import converted_tokenizer
from workbench.models.execution.network import NetworkModel
from workbench.models.gguf.architectures import ARCHITECTURES, by_name, scale_size
from workbench.models.gguf.vocabulary import vocabulary
from workbench.models.model import Model
from workbench.models.sources import open_model
from workbench.planning.plan import Plan
from workbench.planning.totals import plan_totals
from workbench.progress import Progress, silent
from workbench.quantization.quantize import quantize

TYPES = ("keep", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4-gguf", "fp16", "bf16", "fp32", "q2_k", "q3_k",
         "iq4_xs", "iq1_m", "iq2_xxs", "iq3_s", "q4_k", "q5_k", "q6_k", "tq1_0", "tq2_0")  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    place = tmp_path_factory.mktemp("llama")
    return open_model(folder_of("llama", place, hidden_size=256, intermediate_size=512, head_dim=64))


def export(model: Model, plan: Plan, out: Path, *options: str) -> Any:
    exporter("gguf", options).export(quantize(model, plan), model, out, silent)
    return gguf.GGUFReader(out)


def text(reader: Any, key: str) -> Any:
    return reader.fields[key].contents()


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(types=st.lists(st.sampled_from(TYPES), min_size=16, max_size=16))
def test_random_plans_have_the_plans_bytes_and_the_evaluated_values(
    types: list[str], model: Model, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("out") / "model.gguf"
    plan = Plan()
    for layer, scheme in zip(model.summary.stored, types, strict=True):
        plan = plan.assign([layer.name], weights=scheme, algorithm="rtn")
    result = quantize(model, plan)
    exporter("gguf").export(result, model, out, silent)
    tensors = gguf.GGUFReader(out).tensors
    assert sum(tensor.n_bytes for tensor in tensors) == plan_totals(model.summary, plan).nbytes
    evaluated = result.bind(model)
    by_name = {tensor.name: tensor for tensor in tensors}
    heads = {"q": 4, "k": 2}
    for short, long in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj")):
        stored = by_name[f"blk.1.attn_{short}.weight"]
        values = dequantize(np.asarray(stored.data), stored.tensor_type)
        if short in heads:  # naively: each head's neighbours are its halves
            count = heads[short]
            values = np.concatenate([np.concatenate((head[0::2], head[1::2])) for head in np.split(values, count)])
        assert np.array_equal(values, evaluated.weight(f"model.layers.1.self_attn.{long}").float().numpy())


def test_a_kept_table_is_not_converted_for_every_piece(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_tensors, "BAND", 512)  # two rows
    asked, stored = list[str](), NetworkModel._stored

    def counted(own: NetworkModel, name: str, dtype: str) -> torch.Tensor:
        asked.append(name)
        return stored(own, name, dtype)

    monkeypatch.setattr(NetworkModel, "_stored", counted)
    reader = export(model, Plan(), tmp_path / "x")
    assert len(reader.tensors) > 10 and not {name: asked.count(name) for name in asked if asked.count(name) > 4}


def test_metadata_tokenizer_and_types(model: Model, tmp_path: Path) -> None:
    plan = Plan().assign(["model.layers.*.mlp.*"], weights="q4_k")
    reader = export(model, plan, tmp_path / "model.gguf")
    assert text(reader, "general.architecture") == "llama" and text(reader, "llama.attention.head_count_kv") == 2
    assert text(reader, "llama.rope.dimension_count") == 64 and text(reader, "tokenizer.ggml.model") == "gpt2"
    assert text(reader, "tokenizer.ggml.pre") == "gpt-2" and len(reader.fields["tokenizer.ggml.tokens"].data) == 1024
    kinds = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert kinds["blk.0.ffn_up.weight"] == "Q4_K" and kinds["blk.0.attn_q.weight"] == "F32"
    assert "output.weight" in kinds and os.listdir(tmp_path) == ["model.gguf"]


def test_every_layer_that_does_not_fit_is_named_with_its_reason(tmp_path: Path) -> None:
    model = open_model(folder_of("gpt2", tmp_path / "gpt2"))
    plan = Plan().assign(["transformer.wpe"], weights="q8_0")
    plan = plan.assign(["transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_fc"], weights="q4_k")
    plan = plan.assign(["transformer.h.0.mlp.c_proj"], weights="int4-g64")
    with pytest.raises(ExportError) as refused:
        export(model, plan, tmp_path / "model.gguf")
    message = str(refused.value)
    assert "4 tensors" in message and "nothing was written" in message and not (tmp_path / "model.gguf").exists()
    assert "transformer.h.0.attn.c_attn, transformer.h.1.mlp.c_fc: q4_k stores blocks of 256" in message
    assert "takes q5_0 there" in message and "transformer.h.0.mlp.c_proj: int4-g64 is not a GGUF type" in message
    assert "transformer.wpe: llama.cpp reads position_embd.weight in float32" in message


@pytest.mark.parametrize("name, changes, message", [
    ("llama", {"hidden_act": "relu"}, "activation is relu"),
    ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}, "kind dynamic"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "with scale_attn_by_inverse_layer_idx True"),
    ("gemma2", {"query_pre_attn_scalar": 64}, "with query_pre_attn_scalar 64"),
    ("gemma3", {"layer_types": ["sliding_attention"] * 7}, "with layer_types"),
    *[(each, {"attention_bias": True}, "with attention_bias True") for each in
      ("qwen3", "qwen3moe", "gemma2", "gemma3", "olmo", "olmo2")],
    ("starcoder2", {"use_bias": False}, "with use_bias False"),
    ("gemma2", {"attn_logit_softcapping": None}, "with attn_logit_softcapping None"),
    *[(each, {"head_dim": 32}, "with head_dim 32") for each in ("qwen2", "phi3", "starcoder2", "olmo", "olmo2")],
    *[(each, {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0,
                                  "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}, "kind llama3")
      for each in ("qwen2", "qwen3", "olmo2")],
    *[("llama", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                                     "original_max_position_embeddings": 32, member: value}}, f"{member} {value}")
      for member, value in (("beta_fast", 16.0), ("truncate", False))],
])  # fmt: skip
def test_a_configuration_that_llama_cpp_does_not_compute_is_refused(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    model = open_model(folder_of(name, tmp_path / "folder", **changes))
    with pytest.raises(ExportError, match=message):
        export(model, Plan(), tmp_path / "model.gguf")


def test_an_unknown_architecture_is_named_with_those_that_are_known(tmp_path: Path) -> None:
    import transformers

    config = transformers.OPTConfig(
        vocab_size=64, hidden_size=32, ffn_dim=32, num_hidden_layers=1, num_attention_heads=2, word_embed_proj_dim=32
    )
    transformers.OPTForCausalLM(config).save_pretrained(tmp_path / "opt")
    model = open_model(tmp_path / "opt")
    with pytest.raises(ExportError, match="architecture opt cannot be written.*llama, mistral.*qwen2.*bert"):
        export(model, Plan(), tmp_path / "model.gguf")


def test_a_value_that_reads_back_otherwise_fails_the_proof(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.deployment import gguf_tensors

    plain = gguf_tensors.plain

    def flipped(values: torch.Tensor, kind: str) -> np.ndarray:
        octets = plain(values, kind).copy()
        octets[-1] ^= 1
        return octets

    monkeypatch.setattr(gguf_tensors, "plain", flipped)
    with pytest.raises(ExportError, match=r"token_embd.weight\[1023, 255\] reads back as [-e.\d]+, [-e.\d]+ was"):
        export(model, Plan(), tmp_path / "model.gguf")
    assert os.listdir(tmp_path) == ["model.gguf.failed"]


def test_metadata_that_read_back_otherwise_fail_the_proof(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.deployment import gguf_file

    write = gguf_file.write

    def damaged(path: Path, content: gguf_file.Content, progress: Progress) -> None:
        write(path, content, progress)
        token = content.metadata["tokenizer.ggml.tokens"].data[-1]
        octets = path.read_bytes()
        at = octets.index(token, octets.index(b"tokenizer.ggml.tokens"))
        path.write_bytes(octets[:at] + bytes([octets[at] ^ 1]) + octets[at + 1 :])

    monkeypatch.setattr(gguf_file, "write", damaged)
    with pytest.raises(ExportError, match="the metadata tokenizer.ggml.tokens do not read back as they were written"):
        export(model, Plan(), tmp_path / "model.gguf")
    assert os.listdir(tmp_path) == ["model.gguf.failed"]


@pytest.mark.parametrize("network", ["BertForSequenceClassification", "BertForMaskedLM"])
def test_an_encoder_with_another_head_than_embeddings_is_refused_for_that(network: str, tmp_path: Path) -> None:
    """Each of its tensors was said to have no place, since the names of the whole network begin otherwise."""
    folder = folder_of("bert", tmp_path / "model")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    getattr(transformers, network)(transformers.BertConfig(**config)).save_pretrained(folder)
    with pytest.raises(
        ExportError, match="model has a head for another answer than embeddings, and llama.cpp's bert has none"
    ) as refused:
        export(model := open_model(folder), Plan(), tmp_path / "model.gguf")
    assert unknown_network("gguf", model.summary) == str(refused.value), "it is said while the plan is made"


@pytest.mark.parametrize("target", ["gguf", "mlx"])
def test_a_decoder_with_another_head_than_for_the_next_token_is_refused_for_that(target: str, tmp_path: Path) -> None:
    """llama.cpp was said to have no place for the layer score, and mlx-lm was given what it does not load."""
    folder = folder_of("llama", tmp_path / "model")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    transformers.LlamaForSequenceClassification(transformers.LlamaConfig(**config)).save_pretrained(folder)
    model = open_model(folder)
    with pytest.raises(ExportError, match="model has a head for another answer than the next token, and") as refused:
        exporter(target).export(quantize(model, Plan()), model, tmp_path / "out", silent)
    assert unknown_network(target, model.summary) == str(refused.value)
    assert not unknown_network("vllm", model.summary) and os.listdir(tmp_path) == ["model"]


def test_every_architecture_is_listed_once() -> None:
    kinds = [kind for each in ARCHITECTURES for kind in each.model_types]
    assert len(set(kinds)) == len(kinds)
    assert {each.name for each in ARCHITECTURES} <= set(gguf.MODEL_ARCH_NAMES.values())


@pytest.mark.parametrize("document", [
    {"model": {}}, {"model": {"type": "BPE", "vocab": {"a": "x"}, "merges": [["a"]]}},
    {"model": {"type": "BPE", "vocab": {"a": -5}, "merges": [5]}}, {"model": {"type": "Unigram", "vocab": [["a"]]}},
    {"model": {"type": "WordPiece", "vocab": {"a": 0}}, "added_tokens": [{}]},
])  # fmt: skip
def test_a_tokenizer_that_makes_no_sense_is_one_line(document: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with pytest.raises(ExportError) as caught:
        vocabulary(tmp_path, 8, "", ExportError)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_in_other_files_is_converted(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(97, 123)), "hello", "##ing"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    keys = vocabulary(
        tmp_path, len(words), "", ExportError, kinds=1, converted=converted_tokenizer(tmp_path, ExportError)
    )
    assert keys["tokenizer.ggml.model"] == "bert" and keys["tokenizer.ggml.token_type_count"] == 1
    assert keys["tokenizer.ggml.tokens"][-2:] == ["▁hello", "ing"]


def test_gemmas_of_27_billion_divide_attention_by_the_hidden_size_for_each_head() -> None:
    for name, blocks in (("gemma2", 46), ("gemma3", 62)):
        architecture = by_name(name)
        assert architecture is not None
        sizes = {"hidden_size": 4608, "num_attention_heads": 32, "head_dim": 128}
        assert scale_size(architecture, {**sizes, "num_hidden_layers": blocks}) == 144
        assert scale_size(architecture, {**sizes, "num_hidden_layers": 26}) == 128


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    model = open_model(folder_of("bert", tmp_path / "folder", type_vocab_size=0))
    with pytest.raises(ExportError, match=r"token_type_embeddings.weight: it is empty \(0 x 64\), and llama.cpp"):
        exporter("gguf").export(quantize(model, Plan()), model, tmp_path / "model.gguf", silent)
