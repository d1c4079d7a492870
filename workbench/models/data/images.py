"""Images: from class folders, and from stored arrays to what a network takes."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from workbench.errors import DataError, first_line
from workbench.limited import MEMORY, limited
from workbench.models.data.files import PICTURES, Stored
from workbench.models.data.inputs import InputSpec
from workbench.plain_file import read_bytes

MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def read_images(folder: Path, spec: InputSpec) -> Stored:
    """List the images of a folder; the names of class folders, sorted, are the labels 0, 1, ...

    Images that lie in the folder itself have no labels.  Raises DataError where there is none.
    """
    classes = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    entries = [(file, label) for label, entry in enumerate(classes) for file in _pictures(entry)]
    labelled = bool(entries)
    entries = entries or [(file, 0) for file in _pictures(folder)]
    if not entries:
        raise DataError(f"{folder} holds no images; expected class folders of {', '.join(PICTURES[:3])} files")
    return read_pictures([file for file, _ in entries], [label for _, label in entries] if labelled else None, spec)


def read_pictures(sources: Sequence[Path | bytes], labels: Sequence[float] | None, spec: InputSpec) -> Stored:
    """Return images, from paths or bytes, as samples that are decoded when they are drawn."""

    def load(indices: np.ndarray) -> dict[str, torch.Tensor]:
        tensors = {"inputs": _stack([sources[index] for index in indices], spec)}
        if labels is not None:
            tensors["labels"] = torch.tensor([labels[index] for index in indices])
        return tensors

    return Stored(count=len(sources), load=load, prepare=preparation(spec))


def _pictures(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in PICTURES)


def _stack(paths: list[Path | bytes], spec: InputSpec) -> torch.Tensor:
    """Return the images (uint8, samples x height x width x channels), resized where the model has one size."""
    arrays = _decoded(paths, spec)
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        odd = next(path for path, array in zip(paths, arrays, strict=True) if array.shape != arrays[0].shape)
        raise DataError(
            f"the images have different sizes ({_name(paths[0])}: {arrays[0].shape[:2]}, {_name(odd)}: another) and "
            "the model states none; give images of one size"
        )
    return torch.from_numpy(np.stack(arrays))


def _name(source: Path | bytes) -> str:
    return source.name if isinstance(source, Path) else "an image of the table"


def _decoded(sources: Sequence[Path | bytes], spec: InputSpec) -> list[np.ndarray]:
    """Decode in a limited process; raises DataError naming the image."""
    from PIL import Image

    Image.init()  # loads every codec, which the limited process cannot
    try:
        contents = [read_bytes(source) if isinstance(source, Path) else source for source in sources]
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read: {error.strerror}") from None
    pairs = list(zip(contents, sources, strict=True))
    what = str(sources[0]) if len(sources) == 1 else f"one of {len(sources)} images from {_name(sources[0])} on"
    size = int(np.prod(spec.size or (0, 0))) * (spec.channels or 3)
    return limited(
        lambda: [_decode(content, source, spec) for content, source in pairs], what, DataError,
        seconds=10 + 0.1 * len(sources), memory=MEMORY + 2 * size * len(sources),
    )  # fmt: skip


def _decode(content: bytes, path: Path | bytes, spec: InputSpec) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            picture = image.convert(MODES.get(spec.channels or 3, "RGB"))
            if spec.size is not None and picture.size != (spec.size[1], spec.size[0]):
                picture = picture.resize((spec.size[1], spec.size[0]), Image.Resampling.BILINEAR)
            array = np.array(picture)
    except Exception as error:  # the codecs raise nearly everything
        name = path if isinstance(path, Path) else _name(path)
        raise DataError(f"{name} cannot be read as an image: {first_line(error)}") from None
    return array[..., None] if array.ndim == 2 else array


def preparation(spec: InputSpec) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the function from a batch of stored images to what the model takes: its own ``preprocess`` if it has one,
    which is passed a numpy array and may return one or a tensor.
    """
    own = spec.preprocess
    if own is None:
        return lambda images: images_to_floats(images, spec)
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
