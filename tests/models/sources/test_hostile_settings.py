"""Settings of strangers whose lists count more blocks than the weights can fill: refused before anything is built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from workbench.errors import NotAModelError
from workbench.models.sources import open_model

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
