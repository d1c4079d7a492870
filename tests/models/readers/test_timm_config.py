"""Folders of timm: config.json without a model_type; pictures as timm makes them, against Pillow and NumPy."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from workbench.errors import NotAModelError
from workbench.models.data.inputs import InputSpec
from workbench.models.data.picture_processor import picture_processor
from workbench.models.readers.timm_config import is_timm, picture_settings, wrapped
from workbench.models.sources import open_model

PRETRAINED = {
    "input_size": [3, 40, 40], "interpolation": "bicubic", "crop_pct": 0.8, "crop_mode": "center",
    "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3],
}  # fmt: skip


def write(folder: Path, **changes: Any) -> Path:
    settings = {"architecture": "test_vit", "num_classes": 10, "pretrained_cfg": PRETRAINED | changes}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.mark.parametrize("mode", ["center", "squash"])
def test_pictures_are_resized_and_cropped_as_timm_does(tmp_path: Path, mode: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    picture = Image.fromarray(noise).resize((90, 60))
    processor = picture_processor(InputSpec(tokens=False, channels=3, folder=write(tmp_path, crop_mode=mode)))
    assert processor is not None
    size = (75, 50) if mode == "center" else (50, 50)  # 50 = 40 / 0.8
    resized = np.asarray(picture.resize(size, Image.Resampling.BICUBIC))
    left = (size[0] - 40) // 2
    expected = (resized[5:45, left : left + 40] / 255 - PRETRAINED["mean"]) / PRETRAINED["std"]
    np.testing.assert_allclose(processor.floats([picture])["pixel_values"][0], np.moveaxis(expected, 2, 0), atol=1e-5)


@pytest.mark.parametrize("odd", [
    {"input_size": "large"}, {"input_size": [3]}, {"crop_pct": "all"}, {"crop_pct": 1e-320}, {"crop_mode": "border"},
    {"input_size": [3, 40, 80]}, {"interpolation": ["bicubic"]},
])  # fmt: skip
def test_settings_that_make_no_sense_are_not_used(tmp_path: Path, odd: dict[str, Any]) -> None:
    assert picture_settings(write(tmp_path, **odd)) is None


def test_the_class_is_transformers_wrapper() -> None:
    config = {"architecture": "test_vit", "num_classes": 0, "pretrained_cfg": {}}
    assert wrapped(config)["architectures"] == ["TimmWrapperModel"]
    assert wrapped(config | {"num_classes": 3})["architectures"] == ["TimmWrapperForImageClassification"]
    assert not is_timm(config | {"model_type": "vit"}) and not is_timm({"architecture": "x"}) and not is_timm([])


@pytest.mark.skipif(importlib.util.find_spec("timm") is not None, reason="timm is installed")
def test_without_timm_its_folders_say_what_is_missing(tmp_path: Path) -> None:
    save_file({"head.weight": torch.zeros(10, 4)}, write(tmp_path) / "model.safetensors")
    with pytest.raises(NotAModelError, match="requires the timm library"):
        open_model(tmp_path)
