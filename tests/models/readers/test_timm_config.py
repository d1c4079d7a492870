"""Folders of timm: config.json without a model_type; pictures as timm makes them, against Pillow and NumPy."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from workbench.errors import DataError, NotAModelError
from workbench.models.data.inputs import InputSpec
from workbench.models.data.pictures.processor import PictureProcessor, picture_processor
from workbench.models.readers.timm_config import is_timm, timm_pictures, wrapped
from workbench.models.sources import open_model

PRETRAINED = {
    "input_size": [3, 40, 40], "interpolation": "bicubic", "crop_pct": 0.8, "crop_mode": "center",
    "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3],
}  # fmt: skip


def write(folder: Path, **changes: Any) -> Path:
    settings = {"architecture": "test_vit", "num_classes": 10, "pretrained_cfg": PRETRAINED | changes}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 13, 3), dtype=np.uint8)).resize((90, 60))
MIDDLE = {"center": (75, 50), "squash": (50, 50), "border": (50, 33)}
"""To which width and height 90 x 60 pixels are resized; 50 = 40 / 0.8."""


def processor_of(folder: Path, channels: int = 3) -> PictureProcessor:
    processor = picture_processor(InputSpec(tokens=False, channels=channels, folder=folder))
    assert processor is not None and processor.compact
    return processor


@pytest.mark.parametrize("mode", MIDDLE)
def test_pictures_are_resized_and_cropped_as_timm_does(tmp_path: Path, mode: str) -> None:
    width, height = MIDDLE[mode]
    whole = Image.new("RGB", (width, max(height, 40)), (128, 102, 76))  # the mean, in bytes
    whole.paste(NOISE.resize((width, height), Image.Resampling.BICUBIC), (0, (whole.height - height) // 2))
    left, top = (width - 40) // 2, (whole.height - 40) // 2
    pixels = np.asarray(whole)[top : top + 40, left : left + 40]
    if width == 75:  # 17.5 is rounded to the even number
        pixels = np.asarray(whole)[top : top + 40, 18:58]
    expected = (pixels / 255 - PRETRAINED["mean"]) / PRETRAINED["std"]
    answer = processor_of(write(tmp_path, crop_mode=mode)).floats([NOISE])["pixel_values"][0]
    np.testing.assert_allclose(answer, np.moveaxis(expected, 2, 0), atol=1e-5)


def test_pictures_that_are_not_square(tmp_path: Path) -> None:
    """48 / 0.8 is 60 and 40 / 0.8 is 50: 60 pixels in height become 50."""
    processor = processor_of(write(tmp_path, input_size=[3, 40, 48]))
    pixels = np.asarray(NOISE.resize((75, 50), Image.Resampling.BICUBIC))[5:45, 14:62]  # 13.5, to the even number
    expected = (pixels / 255 - PRETRAINED["mean"]) / PRETRAINED["std"]
    np.testing.assert_allclose(processor.floats([NOISE])["pixel_values"][0], np.moveaxis(expected, 2, 0), atol=1e-5)
    assert processor.size == (40, 48)


@pytest.mark.parametrize("mode", MIDDLE)
def test_grey_pictures(tmp_path: Path, mode: str) -> None:
    folder = write(tmp_path, input_size=[1, 28, 28], mean=[0.125], std=[0.5], crop_mode=mode)
    pixels = processor_of(folder, 1).floats([NOISE.convert("L"), Image.new("L", (60, 90), 255)])["pixel_values"]
    assert pixels.shape == (2, 1, 28, 28) and pixels[1].max() == (1 - 0.125) / 0.5
    write(tmp_path, input_size=[1, 28, 28], mean=[0.5, 0.4, 0.6])  # timm takes the mean of what is for other channels
    assert processor_of(folder, 1).mean == pytest.approx((0.5,))


def test_settings_of_transformers_around_timm(tmp_path: Path) -> None:
    settings = {"model_type": "timm_wrapper", "pretrained_cfg": PRETRAINED}
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    assert processor_of(tmp_path).mean == (0.5, 0.4, 0.3)
    settings |= {"model_args": {"in_chans": 1, "img_size": 32}, "pretrained_cfg": PRETRAINED | {"fixed_input_size": 1}}
    made = timm_pictures(settings)
    assert made is not None and (made.channels, made.size, made.scaled) == (1, (32, 32), (40, 40))
    assert timm_pictures(settings | {"model_type": "vit"}) is None


def test_the_file_that_is_read_is_followed(tmp_path: Path) -> None:
    """timm's config.json counts, not the preprocessor_config.json beside it; a changed file is read again."""
    own = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 64}, "crop_size": 56}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(own), encoding="utf-8")
    write(tmp_path)
    assert processor_of(tmp_path).size == (40, 40)
    write(tmp_path, input_size=[3, 48, 48])
    os.utime(tmp_path / "config.json", ns=(0, 0))
    assert processor_of(tmp_path).size == (48, 48)
    write(tmp_path, std=[0])
    with pytest.raises(DataError, match=r"correct config\.json, or give"):
        processor_of(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "clip"}), encoding="utf-8")
    assert processor_of(tmp_path).size == (56, 56)


@pytest.mark.parametrize("odd", [
    {"input_size": "large"}, {"input_size": [3]}, {"crop_pct": "all"}, {"crop_pct": 1e-320}, {"std": [0.5, 0, 0.5]},
    {"input_size": [3, -40, 40]}, {"input_size": [10**9, 40, 40]}, {"interpolation": ["bicubic"]}, {"crop_pct": 100},
    {"interpolation": "unknown"}, {"mean": ["a", "b", "c"]}, {"mean": {"r": 1}},
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    spec = InputSpec(tokens=False, channels=3, folder=write(tmp_path, **odd))
    with pytest.raises(DataError, match=r"pretrained_cfg makes no sense \(.*\); correct config\.json, or give arrays"):
        picture_processor(spec)


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
