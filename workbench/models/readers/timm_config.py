"""config.json as timm writes it: a network's ``architecture`` and how its pictures are made (``pretrained_cfg``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

INTERPOLATION = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
"""Pillow's numbers of the ways to resize."""

MOST = 1024
"""The most channels of a picture."""

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Those of ImageNet, which timm takes where the file says nothing."""


def is_timm(config: Any) -> bool:
    """Return whether ``config`` is timm's own, which names no ``model_type``."""
    return isinstance(config, Mapping) and "model_type" not in config and isinstance(config.get("pretrained_cfg"), dict)


def wrapped(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the names of transformers' class around timm's network."""
    head = "ForImageClassification" if config.get("num_classes", 1) else "Model"
    return config | {"model_type": "timm_wrapper", "architectures": [f"TimmWrapper{head}"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimmPictures:
    """What timm makes of pictures for evaluation, called as image processors of transformers are.

    ``size`` (height, width) is cut out of the middle after resizing to ``scaled``: "center" keeps the proportions and
    covers that size, "border" keeps them and stays within, "squash" does not keep them.
    """

    channels: int
    size: tuple[int, int]
    scaled: tuple[int, int]
    mode: str
    resample: int
    image_mean: tuple[float, ...]
    image_std: tuple[float, ...]
    do_normalize: bool = True

    def __call__(
        self, pictures: Sequence[Image], *, do_rescale: bool = True, do_normalize: bool = True, return_tensors: str = ""
    ) -> dict[str, np.ndarray]:
        """Return ``pixel_values``: float32, or bytes unless ``do_rescale``; samples x channels x height x width."""
        arrays = [np.asarray(self._cut(picture)) for picture in pictures]
        pixels = np.stack([array if array.ndim == 3 else array[..., None] for array in arrays])
        if pixels.shape[-1] != self.channels:
            raise ValueError(f"pictures have {pixels.shape[-1]} channels, and the model takes {self.channels}")
        values = pixels.astype(np.float32) / 255 if do_rescale else pixels
        if do_normalize:
            values = (values - np.array(self.image_mean, np.float32)) / np.array(self.image_std, np.float32)
        return {"pixel_values": np.moveaxis(values, -1, 1)}

    def _cut(self, picture: Image) -> Image:
        from PIL import Image, ImageOps

        picture = picture.resize(self._resized(picture.height, picture.width)[::-1], Image.Resampling(self.resample))
        missing = [max(0, most - own) for most, own in zip(self.size[::-1], picture.size, strict=True)]
        if any(missing):
            fill = tuple(round(255 * mean) if self.mode == "border" else 0 for mean in self.image_mean)
            before, after = [each // 2 for each in missing], [(each + 1) // 2 for each in missing]
            picture = ImageOps.expand(picture, (*before, *after), fill if len(fill) > 1 else fill[0])
        left, top = (round((own - most) / 2) for most, own in zip(self.size[::-1], picture.size, strict=True))
        return picture.crop((left, top, left + self.size[1], top + self.size[0]))

    def _resized(self, height: int, width: int) -> tuple[int, int]:
        ratios = height / self.scaled[0], width / self.scaled[1]
        if self.mode == "squash":
            return self.scaled
        if self.mode == "border" or self.scaled[0] != self.scaled[1]:
            ratio = max(ratios) if self.mode == "border" else min(ratios)
            return max(1, round(height / ratio)), max(1, round(width / ratio))
        long = int(self.scaled[0] * max(height, width) / min(height, width))
        return (self.scaled[0], long) if height <= width else (long, self.scaled[0])


def timm_pictures(config: Any) -> TimmPictures | None:
    """Return how timm makes pictures by its own ``config``, or by transformers' settings around it; None for others'.

    Raises ValueError for settings that make no sense.
    """
    own = config.get("pretrained_cfg") if isinstance(config, Mapping) else None
    if not isinstance(own, Mapping) or config.get("model_type", "timm_wrapper") != "timm_wrapper":
        return None
    try:
        return _pictures({key: each for key, each in own.items() if each}, config.get("model_args") or {})
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:  # they are untrusted
        raise ValueError(f"pretrained_cfg makes no sense ({type(error).__name__}: {error})") from None


def _pictures(own: Mapping[str, Any], arguments: Mapping[str, Any]) -> TimmPictures:
    channels, height, width = own.get("input_size", (3, 224, 224))
    channels = arguments.get("in_chans") or channels
    if (side := arguments.get("img_size")) and own.get("fixed_input_size"):
        height, width = (side, side) if isinstance(side, int) else side
    if not all(type(each) is int and 0 < each <= 1 << 24 for each in (channels, height, width)) or channels > MOST:
        raise ValueError(f"input_size {str(own.get('input_size'))[:60]}")
    mode = own.get("crop_mode")
    scaled = [math.floor(side / own.get("crop_pct", 0.875)) for side in (height, width)]
    mean, std = (_of_each(own.get(key, usual), channels) for key, usual in (("mean", MEAN), ("std", STD)))
    if min(scaled) < 1 or not all(map(math.isfinite, mean)) or not all(0 < each < math.inf for each in std):
        raise ValueError("crop_pct, mean or std")
    return TimmPictures(
        channels=channels, size=(height, width), scaled=(scaled[0], scaled[1]), image_mean=mean, image_std=std,
        mode=mode if mode in ("squash", "border") else "center",
        resample=INTERPOLATION[own.get("interpolation", "bicubic")],
    )  # fmt: skip


def _of_each(values: Any, channels: int) -> tuple[float, ...]:
    """Return the numbers of the channels; as timm does, their mean for each where they are those of others."""
    numbers = [float(each) for each in (values if isinstance(values, list | tuple) else [values])]
    return tuple(numbers if len(numbers) == channels else [sum(numbers) / len(numbers)] * channels)
