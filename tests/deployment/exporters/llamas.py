"""Small networks of the architectures that llama.cpp knows, as Hugging Face folders with a tokenizer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
import transformers

from workbench.models.gguf.architectures import ARCHITECTURES, SCALED_HEADS, Architecture
from workbench.models.sources.bundled import bundled_folder

FAMILIES = tuple(each.model_types[0] for each in ARCHITECTURES)
ROWS = 1024
"""Tokens of the vocabulary, those of the bundled language model."""


def folder_of(name: str, place: Path, **changes: Any) -> Path:
    """Write a random network of the architecture that llama.cpp or transformers calls ``name``; ``changes`` of its
    configuration."""
    architecture = next(each for each in ARCHITECTURES if name in (each.name, *each.model_types))
    network = getattr(transformers, architecture.network)
    torch.manual_seed(0)
    model = network(network.config_class(**{**_sizes(architecture, network.config_class), **changes}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4) if parameter.ndim > 1 else parameter.add_(torch.randn_like(parameter) * 0.1)
        for name_of_buffer, buffer in model.named_buffers():
            if name_of_buffer.endswith("e_score_correction_bias"):
                buffer.add_(torch.randn_like(buffer))
    model.save_pretrained(place)
    word_pieces(place) if name == "bert" else _copy_tokenizer(place)
    return place


def _sizes(architecture: Architecture, config: type) -> dict[str, Any]:
    if architecture.name == "gpt2":
        return {"vocab_size": ROWS, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 0,
                "eos_token_id": 0}  # fmt: skip
    sizes: dict[str, Any] = {
        "vocab_size": ROWS, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0,
        "bos_token_id": 0, "eos_token_id": 0,
    }  # fmt: skip
    if architecture.name.startswith("gemma"):
        sizes["head_dim"] = 16
    if architecture.name in SCALED_HEADS:
        sizes |= {"sliding_window": 8, "query_pre_attn_scalar": 16, "num_hidden_layers": 7}
    if architecture.name == "cohere2":
        sizes |= {"sliding_window": 8, "num_hidden_layers": 5}
    if architecture.name == "exaone4":
        sizes |= {"sliding_window": None, "layer_types": ["full_attention"] * 2}
    if architecture.name == "hunyuan-dense":
        sizes["head_dim"] = 16
    if architecture.name == "lfm2":
        sizes |= {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"]}
    if architecture.name == "glm4moe":
        sizes |= {"n_routed_experts": 4, "first_k_dense_replace": 1}
    if architecture.name == "olmoe":
        sizes["num_key_value_heads"] = 4
    if architecture.name.startswith("qwen3"):
        sizes["head_dim"] = 32
    if architecture.name.endswith("moe"):
        sizes |= {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": 96,
            "norm_topk_prob": architecture.name == "qwen3moe",
        }
    if architecture.network == "MixtralForCausalLM":
        sizes |= {"num_local_experts": 4, "num_experts_per_tok": 2}
    if architecture.name == "modern-bert":
        sizes |= {"local_attention": 8, "num_hidden_layers": 4, "cls_token_id": 0, "sep_token_id": 0}
    if architecture.name.endswith("bert"):
        del sizes["num_key_value_heads"]
    if architecture.network == "DistilBertModel":
        sizes["hidden_dim"] = sizes.pop("intermediate_size")
    if architecture.after_padding:
        sizes |= {"pad_token_id": 1, "type_vocab_size": 1}
    return sizes


def _copy_tokenizer(place: Path) -> None:
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(bundled_folder("language-model") / file, place / file)


def word_pieces(place: Path) -> None:
    """Write a WordPiece tokenizer of letters and a few words."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(code) for code in range(97, 123)]
    words = [*special, *letters, *("##" + letter for letter in letters), "hello", "world", "##ing"]
    tokenizer: dict[str, Any] = {
        "version": "1.0", "truncation": None, "padding": None, "post_processor": None, "decoder": None,
        "added_tokens": [
            {"id": place, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": True} for place, word in enumerate(special)
        ],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {word: index for index, word in enumerate(words)}},
    }  # fmt: skip
    (place / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    (place / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
