"""The image processor of a model's folder, through transformers: its sizes, its crop and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import DataError, first_line
from workbench.limited import limited
from workbench.models.data.inputs import InputSpec
from workbench.models.data.tried import tried
from workbench.models.readers.timm_config import TimmPictures, timm_pictures
from workbench.plain_file import read_json

if TYPE_CHECKING:
    from PIL.Image import Image

FILES = ("preprocessor_config.json", "processor_config.json")
TIMM = "config.json"
"""Where timm says how pictures are made."""

SHAPES = ((60, 90), (90, 60))
"""Height and width of the pictures that tell whether the processor gives one size."""

TOLERANCE = 1e-4
"""Between two orders of the same float32 sums, in units of the network's inputs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureProcessor:
    """``size`` (height, width) where every picture gets that one.

    ``compact``: its answer is bytes after resizing and cropping, scaled to 0..1, then by ``mean`` and ``std``; any
    other processor's answers are stored as floats.
    """

    own: Any
    size: tuple[int, int] | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    compact: bool = False

    def over(self, spec: InputSpec) -> InputSpec:
        """Return ``spec`` with this processor's size, mean and standard deviation."""
        return replace(spec, size=self.size, mean=self.mean, std=self.std)

    def stored(self, pictures: Sequence[Image]) -> dict[str, np.ndarray]:
        """Return ``pixel_values`` of the pictures as they are stored, and what came with them of one row a picture.

        Bytes, samples x height x width x channels, where ``compact``, else floats, samples x channels x height x width.
        """
        return self._bytes(pictures) if self.compact else self.floats(pictures)

    def floats(self, pictures: Sequence[Image]) -> dict[str, np.ndarray]:
        """Return the processor's whole answer (float32, samples x channels x height x width)."""
        answer = dict(self.own(list(pictures), return_tensors="np"))
        return answer | {"pixel_values": np.asarray(answer["pixel_values"], dtype=np.float32)}

    def _bytes(self, pictures: Sequence[Image]) -> dict[str, np.ndarray]:
        answer = dict(self.own(list(pictures), do_rescale=False, do_normalize=False, return_tensors="np"))
        return answer | {"pixel_values": np.moveaxis(answer["pixel_values"], 1, -1)}


def picture_processor(spec: InputSpec) -> PictureProcessor | None:
    """Return the processor in the model's folder, None where it has none; raises DataError for one that fails."""
    if spec.folder is None or spec.takes_sound:
        return None
    files = [TIMM]  # where it is timm's, transformers reads no other either
    try:
        if _timm(spec.folder) is None:
            files = [name for name in FILES if (spec.folder / name).is_file()]
        if not files:
            return None
        stamps = [(name, (spec.folder / name).stat().st_mtime_ns) for name in files]
        return _loaded(spec.folder, spec.channels or 3, *stamps)
    except DataError:
        raise
    except Exception as error:  # transformers raises nearly everything for a folder that it does not understand
        raise DataError(
            f"the image processor in {spec.folder} cannot be used: {first_line(error)}; correct {files[0]}, or "
            "give arrays (.npz) of pixel_values"
        ) from error


def _timm(folder: Path) -> TimmPictures | None:
    return timm_pictures(read_json(folder / TIMM)) if (folder / TIMM).is_file() else None


@lru_cache(maxsize=2)
def _loaded(folder: Path, channels: int, *changed: tuple[str, int]) -> PictureProcessor:
    from PIL import ImageChops, ImageFile, ImageFilter, ImageOps, ImageStat  # noqa: F401 - here, not in the fork

    from workbench.models.sources.lean_transformers import quiet, transformers

    loader: Any = transformers.AutoImageProcessor
    load = partial(loader.from_pretrained, str(folder), local_files_only=True, trust_remote_code=False, backend="pil")
    with quiet():
        own = (_timm(folder) if changed[0][0] == TIMM else None) or tried(
            load, f"the image processor in {folder}", folder
        )
    mean, std = ((getattr(own, name, None) if getattr(own, "do_normalize", False) else None)
                 for name in ("image_mean", "image_std"))  # fmt: skip
    processor = PictureProcessor(own=own, size=None, mean=_numbers(mean), std=_numbers(std))
    probes = [_probe(shape, channels) for shape in SHAPES]

    def work() -> list[np.ndarray]:
        answers = [processor.floats([probe])["pixel_values"] for probe in probes]
        return [*answers, np.array(all(map(_agrees, [processor] * len(probes), probes, answers)))]

    *answers, agrees = limited(work, f"the image processor in {folder}", DataError)  # its sizes may be without end
    if any(answer.ndim != 4 or len(answer) != 1 for answer in answers):
        raise DataError(
            f"the image processor in {folder} gives {answers[0].shape} for one image; samples x channels x height x "
            "width are read: give arrays (.npz) of what the model takes"
        )
    sizes = {answer.shape[2:] for answer in answers}
    height, width = answers[0].shape[2:]
    processor = replace(processor, size=(height, width) if len(sizes) == 1 else None)
    return replace(processor, compact=bool(agrees))


def _agrees(processor: PictureProcessor, probe: Image, answer: np.ndarray) -> bool:
    """Return whether bytes, scaled and normalised, are the processor's own answer (samples x channels x ...)."""
    if answer.ndim != 4:
        return False
    pixels = processor._bytes([probe])["pixel_values"]
    if pixels.dtype != np.uint8 or np.moveaxis(pixels, -1, 1).shape != answer.shape:
        return False
    values = pixels.astype(np.float64) / 255
    values = values if processor.mean is None else values - np.array(processor.mean)
    values = values if processor.std is None else values / np.array(processor.std)
    return bool(np.abs(np.moveaxis(values, -1, 1) - answer).max() < TOLERANCE)


def _numbers(values: Any) -> tuple[float, ...] | None:
    listed = values if values is None or isinstance(values, Sequence) else [values]
    return None if listed is None else tuple(map(float, listed))


def _probe(shape: tuple[int, int], channels: int) -> Image:
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert({1: "L", 4: "RGBA"}.get(channels, "RGB"))
