"""config.json as timm writes it: a network's ``architecture`` and how its pictures are made (``pretrained_cfg``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.plain_file import read_json

INTERPOLATION = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
"""Pillow's numbers of the ways to resize."""

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Those of ImageNet, which timm takes where the file says nothing."""


def is_timm(config: Any) -> bool:
    """Return whether ``config`` is timm's own, which names no ``model_type``."""
    return isinstance(config, Mapping) and "model_type" not in config and isinstance(config.get("pretrained_cfg"), dict)


def wrapped(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the names of transformers' class around timm's network."""
    head = "ForImageClassification" if config.get("num_classes", 1) else "Model"
    return config | {"model_type": "timm_wrapper", "architectures": [f"TimmWrapper{head}"]}


def picture_settings(folder: Path) -> dict[str, Any] | None:
    """Return the settings by which CLIP's image processor makes of pictures what timm does for evaluation.

    None where ``folder`` is not timm's, its pictures are padded or not square, or the settings make no sense.
    """
    file = folder / "config.json"
    try:
        config = read_json(file) if file.is_file() else None
        if not isinstance(config, dict) or not is_timm(config):
            return None
        own = {key: each for key, each in config["pretrained_cfg"].items() if each}
        _, height, width = own.get("input_size", (3, 224, 224))
        mode, scaled = own.get("crop_mode", "center"), math.floor(height / own.get("crop_pct", 0.875))
        resample = INTERPOLATION.get(own.get("interpolation", ""), 3)
    except (OSError, TypeError, ValueError, ArithmeticError):  # they are untrusted
        return None
    if height != width or mode not in ("center", "squash"):
        return None
    size = {"shortest_edge": scaled} if mode == "center" else {"height": scaled, "width": scaled}
    return {
        "size": size, "crop_size": {"height": height, "width": width}, "image_mean": own.get("mean", MEAN),
        "image_std": own.get("std", STD), "resample": resample,
        "do_convert_rgb": True,
    }  # fmt: skip
