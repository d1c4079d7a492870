"""Settings of strangers: refused before anything is built where weights cannot fill them or other files are named."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import Llama4ForCausalLM, Llama4TextConfig

from workbench.errors import NotAModelError, UnsafeModelError
from workbench.models.sources import open_model
from workbench.models.sources.huggingface import _without_others_weights

SWIN = {"model_type": "swin", "depths": [2, 2, 10**8, 2]}


@pytest.mark.parametrize("settings", [
    {"model_type": "convnext", "depths": [3, 3, 10**8, 3]}, {"model_type": "resnet", "depths": [3, 4, 10**8, 3]}, SWIN,
    {"model_type": "mask2former", "backbone_config": SWIN}, {"model_type": "mask2former", "parts": [SWIN]},
    {"model_type": "wav2vec2", "conv_dim": [512] * 10**5}, {"model_type": "funnel", "block_sizes": [4, 10**8]},
    {"model_type": "align", "vision_config": {"num_block_repeats": [1, 10**8]}},
    {"model_type": "hgnet_v2", "stage_numb_of_layers": [6, 10**8]}, {"model_type": "cvt", "depth": [1, 2, 10**8]},
    {"model_type": "sam2", "vision_config": {"backbone_config": {"blocks_per_stage": [1, 2, 10**8]}}},
], ids=lambda value: str(value)[:40])  # fmt: skip
def test_lists_that_count_blocks_without_end(tmp_path: Path, settings: dict[str, Any]) -> None:
    save_file({"a.weight": torch.ones(8, 8)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(
        NotAModelError, match=r"config.json counts [0-9,]+ blocks in \w+, but the weights are 1 tensors"
    ):
        open_model(tmp_path)


@pytest.mark.parametrize(("settings", "key"), [
    ({"num_classes": 10**12}, "num_classes"), ({"num_classes": 4 * 10**6}, "num_classes"),
    ({"model_args": {"depth": 10**9}}, "depth"), ({"model_args": {"embed_dim": [64, 10**12]}}, "embed_dim"),
    ({"model_args": {"in_chans": 10**12}}, "in_chans"), ({"model_args": {"num_heads": [4, 10**6]}}, "num_heads"),
    ({"model_args": {"cls_attn_layers": 10**6}}, "cls_attn_layers"), ({"model_args": {"num_vit": 10**6}}, "num_vit"),
    ({"model_args": {"stages": [3, 10**8]}}, "stages"), ({"model_args": {"depths": [[2, 10**8]]}}, "depths"),
    ({"model_args": {"cfg": {"stage1": {"num_modules": 10**7}}}}, "num_modules"),
    ({"model_type": "bert", "num_labels": 4 * 10**6}, "num_labels"),
], ids=lambda value: str(value)[:40])  # fmt: skip
def test_sizes_by_which_timm_would_fill_the_memory(tmp_path: Path, settings: dict[str, Any], key: str) -> None:
    save_file({"a.weight": torch.ones(8, 8)}, tmp_path / "model.safetensors")
    config = {"architecture": "test_vit", "pretrained_cfg": {"input_size": [3, 32, 32]}, **settings}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(NotAModelError, match=rf"config.json (says|counts [0-9,]+ blocks in) {key}.* but the weights"):
        open_model(tmp_path)


def test_lists_of_the_layers_that_are_experts_count_nothing(tmp_path: Path) -> None:
    """Llama 4 numbers them: 48 layers whose numbers add up to 1,128, of which its checkpoints have no such count."""
    settings = Llama4TextConfig(
        hidden_size=32, intermediate_size=64, intermediate_size_mlp=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, head_dim=16, vocab_size=64, num_local_experts=2, moe_layers=list(range(48)),
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    Llama4ForCausalLM(settings).save_pretrained(tmp_path)
    assert any("experts" in layer.name for layer in open_model(tmp_path).summary.layers)


def test_no_other_file_is_read_in_the_place_of_the_settings_that_were_checked(tmp_path: Path) -> None:
    """transformers reads the newest of ``configuration_files``: it could name pickles, code, sizes without end."""
    save_file({"a.weight": torch.ones(8, 8)}, tmp_path / "model.safetensors")
    settings = {"model_type": "bert", "configuration_files": ["config.4.0.0.json"]}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "config.4.0.0.json").write_text(json.dumps({"model_type": "timm_wrapper", "architecture": "hf-hub:x"}))
    with pytest.raises(UnsafeModelError, match="configuration_files"):
        open_model(tmp_path)


def test_no_part_begins_with_weights_of_its_own() -> None:
    """However deep it lies: a path is as good a name of a backbone as one of the Hub's."""

    class Settings(SimpleNamespace):
        model_type = "x"

    inner = Settings(use_pretrained_backbone=True)
    whole = Settings(encoder=Settings(vision_config=Settings(backbone_config=inner)), sizes=[1], name="x")
    _without_others_weights(whole)
    assert inner.use_pretrained_backbone is False
