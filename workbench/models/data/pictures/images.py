"""Images: from class folders, and from stored arrays to what a network takes.

The processor in the model's folder decides over sizes, crops and numbers; without one the model's size is stretched to.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from workbench.errors import DataError, first_line
from workbench.limited import SECONDS, limited
from workbench.models.data.classes import Classes, classes_of
from workbench.models.data.files import EXPECTED, PICTURES, Stored, in_class_folders
from workbench.models.data.inputs import InputSpec
from workbench.models.data.pictures.processor import PictureProcessor, picture_processor
from workbench.plain_file import read_bytes
from workbench.readable import few

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "TIFF", "GIF", "PPM")
"""What is decoded, whatever a file is called: of the others some start programs (EPS: Ghostscript) or open files."""

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
LEAST, ROOM = 1 << 29, 40
"""Memory that decoding any picture may take, and what a byte of its file adds."""

MASKS = frozenset(["mask", "masks", "annotations", "segmentations", "SegmentationClass"])
"""Folders beside that of the pictures, in data sets of segmentation."""

PNG, CHUNK = b"\x89PNG\r\n\x1a\n", 1024
"""What such files begin with, and the bytes that their chunks have at least, beyond some thousands."""

ORIENTATION = 0x0112
TURNS: dict[Any, int] = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
"""Pillow's ``Transpose`` by the orientation that EXIF states."""

PIXEL = 8
"""Bytes that Pillow takes for a pixel while it turns or converts a picture; a photograph's file takes about 0.3."""

DEEP = ("I", "I;16", "I;16L", "I;16B", "I;16N", "F")
"""Pillow's modes of one channel with more than a byte."""


def read_images(folder: Path, spec: InputSpec) -> Stored:
    """List the images of a folder; the names of class folders are the labels (``classes_of``).

    Images that lie in the folder itself have no labels.  Raises DataError where there is none.
    """
    files, names = in_class_folders(folder, PICTURES)
    if not files:
        deeper = [
            each.name for each in sorted(folder.iterdir()) if each.is_dir() and in_class_folders(each, PICTURES)[0]
        ]
        found = f"pictures in the folders of {few(deeper)}; give one of these" if deeper else ""
        raise DataError(f"{folder} holds {found or f'nothing that is read; expected {EXPECTED}'}")
    if masks := {*(names or ())} & MASKS:
        raise DataError(f"{folder / min(masks)} holds masks, which are not a class of pictures; give the pictures and "
                        "masks as arrays (.npz of pixel_values, and labels: samples x height x width)")  # fmt: skip
    return read_pictures(files, classes_of(names, spec.folder, folder), spec)


def read_pictures(sources: Sequence[Path | bytes], classes: Classes, spec: InputSpec) -> Stored:
    """Return images, from paths or bytes, as samples that are decoded when they are drawn."""
    processor = picture_processor(spec)

    def load(indices: np.ndarray) -> dict[str, torch.Tensor]:
        chosen = [sources[index] for index in indices]
        tensors = _stack(chosen, spec) if processor is None else _processed(chosen, processor, spec)
        if classes.numbers is not None:
            tensors["labels"] = torch.tensor([classes.numbers[index] for index in indices])
        return tensors

    stored = processor is not None and not processor.compact
    unsaid = processor is None and spec.folder is not None and spec.mean is None
    notes = (*classes.notes, _unsaid(spec)) if unsaid else classes.notes
    return Stored(count=len(sources), load=load, prepare=None if stored else preparation(spec), notes=notes)


def _unsaid(spec: InputSpec) -> str:
    sized = "as they come" if spec.size is None else f"resized to {spec.size[0]} x {spec.size[1]} pixels"
    return (
        "the model's folder says nothing of how its pictures are made (preprocessor_config.json; for timm, "
        f"pretrained_cfg of config.json): they are {sized} and scaled to 0..1; add the file, or give arrays (.npz of "
        "pixel_values)"
    )


def _stack(paths: list[Path | bytes], spec: InputSpec) -> dict[str, torch.Tensor]:
    """Return the images (uint8, samples x height x width x channels), resized where the model has one size."""
    size = int(np.prod(spec.size or (0, 0))) * (spec.channels or 3)
    arrays = _limited(paths, lambda pictures: [_array(picture, spec) for picture in pictures], spec, size)
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        odd = next(path for path, array in zip(paths, arrays, strict=True) if array.shape != arrays[0].shape)
        raise DataError(
            f"the images have different sizes ({_name(paths[0])}: {arrays[0].shape[:2]}, {_name(odd)}: another) and "
            "the model states none; give images of one size"
        )
    return {"inputs": torch.from_numpy(np.stack(arrays))}


def _processed(sources: list[Path | bytes], processor: PictureProcessor, spec: InputSpec) -> dict[str, torch.Tensor]:
    """Return what the processor makes of the images: ``inputs``, and what the model takes besides (``pixel_mask``).

    One by one where all get one size, so that no more than one is held as it came; else all together, filled up to the
    largest.
    """
    extras: list[str] = []  # the limited process hands over arrays without names

    def work(pictures: Iterator[Image]) -> list[np.ndarray]:
        if processor.size is not None:
            return [processor.stored([picture])["pixel_values"] for picture in pictures]
        answer = processor.stored(list(pictures))
        return [answer[name] for name in ("pixel_values", *extras) if name in answer]

    if processor.size is None and "pixel_mask" in spec.takes:
        extras.append("pixel_mask")
    size = 4 * int(np.prod(processor.size or (1024, 1024))) * (spec.channels or 3)
    arrays = _limited(sources, work, spec, size)
    if processor.size is not None:
        return {"inputs": torch.from_numpy(np.concatenate(arrays))}
    if len(arrays[0]) != len(sources):
        raise DataError(f"the image processor in {spec.folder} gives {arrays[0].shape} for {len(sources)} images")
    return {name: torch.from_numpy(each.copy()) for name, each in zip(("inputs", *extras), arrays, strict=False)}


def _name(source: Path | bytes) -> str:
    return source.name if isinstance(source, Path) else "an image of the table"


def _limited(
    sources: Sequence[Path | bytes], work: Callable[[Iterator[Image]], list[np.ndarray]], spec: InputSpec, size: int
) -> list[np.ndarray]:
    """Return what ``work`` makes of the images, of about ``size`` bytes each; decoded one by one in a limited process.

    Raises DataError naming the image.
    """
    load_codecs()
    contents = contents_of(sources)
    pairs = list(zip(contents, sources, strict=True))
    what = str(sources[0]) if len(sources) == 1 else f"one of {len(sources)} images from {_name(sources[0])} on"
    return limited(
        lambda: work(decode(content, source, spec) for content, source in pairs), what, DataError,
        seconds=SECONDS + 0.1 * len(sources) + sum(map(len, contents)) / 1e7,
        memory=LEAST + ROOM * max(map(len, contents)) + 2 * size * len(sources),
    )  # fmt: skip


def _require_few_chunks(content: bytes) -> None:
    """Raise ValueError for a PNG file of very many chunks: each is an object for Pillow, whatever little it holds."""
    at, left = len(PNG), (1 << 14) + len(content) // CHUNK
    while content.startswith(PNG) and at < len(content):
        at, left = at + 12 + int.from_bytes(content[at : at + 4], "big"), left - 1
        if left < 0:
            raise ValueError("it is in too many pieces for a file of its size")


def load_codecs() -> None:
    """Load every codec, which the limited process cannot."""
    from PIL import Image

    Image.init()
    with suppress(ImportError):
        importlib.import_module("PIL.ImageCms")  # turns LAB into RGB


def contents_of(sources: Sequence[Path | bytes]) -> list[bytes]:
    """Return the bytes of pictures' files; raises DataError."""
    try:
        return [read_bytes(source) if isinstance(source, Path) else source for source in sources]
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read: {error.strerror}") from None


def decode(content: bytes, path: Path | bytes, spec: InputSpec) -> Image:
    """Return the first frame, upright by its EXIF rotation, with the model's channels and bytes of 0 to 255."""
    from PIL import Image

    try:
        _require_few_chunks(content)
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            most = (LEAST + ROOM * len(content)) // PIXEL
            if image.width * image.height > most:
                raise ValueError(f"it has {image.width:,} x {image.height:,} pixels, and a file of its size may have "
                                 f"{most:,}; scale it down")  # fmt: skip
            image.load()
            turn = TURNS.get(image.getexif().get(ORIENTATION))  # Pillow's own turn writes all of the EXIF again
            upright = image if turn is None else image.transpose(Image.Transpose(turn))
            # Pillow's conversion of deep pictures cuts values off at 255.
            picture = _in_bytes(upright) if upright.mode in DEEP else upright
            mode = MODES.get(spec.channels or 3, "RGB")
            return picture if picture.mode == mode else picture.convert(mode)
    except Exception as error:  # the codecs raise nearly everything
        name = path if isinstance(path, Path) else _name(path)
        raise DataError(f"{name} cannot be read as an image: {first_line(error)}") from None


def _in_bytes(picture: Image) -> Image:
    """Return a picture of one deep channel in grey: whole numbers of 16 bits, floats of 0 to 1."""
    from PIL import Image

    values = np.asarray(picture).astype(np.float64)
    if picture.mode != "F" and values.max(initial=0) > 65535:
        raise ValueError(f"it holds numbers up to {values.max():,.0f}; save it with 8 or 16 bits")
    scaled = values * 255 if picture.mode == "F" and values.max(initial=0) <= 1 else values
    scaled = scaled / 257 if picture.mode != "F" and values.max(initial=0) > 255 else scaled
    return Image.fromarray(np.clip(scaled.round(), 0, 255).astype(np.uint8))


def _array(picture: Image, spec: InputSpec) -> np.ndarray:
    from PIL import Image

    if spec.size is not None and picture.size != (spec.size[1], spec.size[0]):
        picture = picture.resize((spec.size[1], spec.size[0]), Image.Resampling.BILINEAR)
    array = np.array(picture)
    return array[..., None] if array.ndim == 2 else array


def preparation(spec: InputSpec) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the function from a batch of stored images to what the model takes: its own ``preprocess`` if it has one,
    which is passed a numpy array and may return one or a tensor.
    """
    own = spec.preprocess
    if own is None:
        processor = picture_processor(spec)
        known = spec if processor is None else processor.over(spec)
        return lambda images: images_to_floats(images, known)
    return lambda images: torch.as_tensor(own(images.numpy())).to(torch.float32)


def images_to_floats(images: torch.Tensor, spec: InputSpec) -> torch.Tensor:
    """Return uint8 images (samples x height x width x channels, or without channels) as the network takes them.

    Float32, samples x channels x height x width, in 0..1, then ``(value - mean) / std`` of each channel.  Raises
    DataError where the number of channels or the size is not the model's.
    """
    if images.ndim == 3:
        images = images.unsqueeze(-1)
    channels, size = images.shape[-1], tuple(images.shape[1:3])
    if spec.channels is not None and channels != spec.channels:
        raise DataError(f"the images have {channels} channels, the model takes {spec.channels}; convert them")
    if spec.size is not None and size != spec.size:
        raise DataError(f"the images are {size[0]} x {size[1]} pixels, the model takes {spec.size[0]} x {spec.size[1]}")
    values = images.permute(0, 3, 1, 2).to(torch.float32) / 255
    return normalised(values, spec.mean, spec.std)


def normalised(values: torch.Tensor, mean: tuple[float, ...] | None, std: tuple[float, ...] | None) -> torch.Tensor:
    """Return ``(values - mean) / std`` for samples x channels x ...; one number of each serves all channels."""
    for name, numbers in (("mean", mean), ("std", std)):
        if numbers is not None and len(numbers) not in (1, values.shape[1]):
            raise DataError(f"{name} has {len(numbers)} values for {values.shape[1]} channels")
    shape = (1, -1) + (1,) * (values.ndim - 2)
    if mean is not None:
        values = values - torch.tensor(mean).reshape(shape)
    return values if std is None else values / torch.tensor(std).reshape(shape)
