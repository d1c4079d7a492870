"""Settings of strangers: refused before anything is built where weights cannot fill them or other files are named."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from workbench.errors import NotAModelError, UnsafeModelError
from workbench.models.sources import open_model
from workbench.models.sources.huggingface import _without_others_weights

SWIN = {"model_type": "swin", "depths": [2, 2, 10**8, 2]}


@pytest.mark.parametrize("settings", [
    {"model_type": "convnext", "depths": [3, 3, 10**8, 3]}, {"model_type": "resnet", "depths": [3, 4, 10**8, 3]}, SWIN,
    {"model_type": "mask2former", "backbone_config": SWIN}, {"model_type": "mask2former", "parts": [SWIN]},
    {"model_type": "wav2vec2", "conv_dim": [512] * 10**5},
], ids=lambda value: str(value)[:40])  # fmt: skip
def test_lists_that_count_blocks_without_end(tmp_path: Path, settings: dict[str, Any]) -> None:
    save_file({"a.weight": torch.ones(8, 8)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(NotAModelError, match=r"config.json counts [0-9,]+ blocks in (depths|conv_dim)"):
        open_model(tmp_path)


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
