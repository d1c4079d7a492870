"""A data set's samples for the user to read: text, small pictures, or numbers in words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import DataError
from workbench.models.data.inputs import InputSpec, fast_tokenizer
from workbench.models.data.tokenizing import Rows, texts_of

if TYPE_CHECKING:
    from workbench.models.data.datasets import Dataset

Decode = Callable[[Rows], list[str]]
"""From rows of token ids to their texts."""

MOST_PIXELS = 96
"""The longer side of a thumbnail; larger pictures are averaged over square blocks."""

SHOWN = 24
"""Token ids that are shown where no tokenizer turns them into text."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One sample: ``text`` always; ``picture`` uint8 ``[height, width, 3]`` where it is an image, else None.

    ``label`` is None where there are no labels; ``tokens`` is 0 where the sample has no tokens.
    """

    index: int
    text: str
    picture: np.ndarray | None = None
    label: int | None = None
    tokens: int = 0


def read_samples(dataset: Dataset, spec: InputSpec, start: int, count: int) -> tuple[Sample, ...]:
    """Return the samples ``start`` to ``start + count`` (fewer at the end); raises DataError for a negative start."""
    if start < 0 or count < 1:
        raise DataError(f"samples from {start}, {count} of them, were asked for; give a start from 0 and at least one")
    import torch

    part = {name: tensor[start : start + count] for name, tensor in dataset.tensors.items()}
    labelled = "labels" in part and part["labels"].ndim == 1 and not part["labels"].is_floating_point()
    labels = part["labels"].tolist() if labelled else repeat(None)
    shown: list[dict[str, Any]]
    if "input_ids" in part:
        decode, ids = decoder(spec), part["input_ids"]
        masks = part.get("attention_mask", torch.ones_like(ids)) != 0
        rows = [row[mask].tolist() for row, mask in zip(ids, masks, strict=True)]
        shown = [{"text": text, "tokens": len(row)} for text, row in zip(decode(rows), rows, strict=True)]
        seen = (each for name, each in part.items() if name.startswith("pixel_values") and each.ndim > 3)
        for entry, array in zip(shown, next(seen, torch.empty(0)).numpy(), strict=False):
            tiles = [tile for tile in array.reshape(-1, *array.shape[-3:]) if tile.min() < tile.max()]
            entry["picture"] = thumbnail(tiles[-1]) if tiles else None  # the last one shows all
    else:
        arrays = next(each for name, each in part.items() if name != "labels").numpy()
        shown = [{"text": _in_words(array), "picture": thumbnail(array)} for array in arrays]
    pairs = zip(shown, labels, strict=False)
    return tuple(Sample(index=index, label=label, **each) for index, (each, label) in enumerate(pairs, start))


def decoder(spec: InputSpec) -> Decode:
    """Return what turns rows of token ids into texts: the model's tokenizer, or their first ids as numbers.

    Without one, or where it fails on them, which the log says.
    """
    tokenizer, folder = fast_tokenizer(spec.tokenizer), spec.tokenizer
    if tokenizer is None or folder is None:
        return lambda rows: [_numbers(row) for row in rows]

    def decode(rows: Rows) -> list[str]:
        try:
            return texts_of(partial(tokenizer.decode, skip_special_tokens=False), folder, rows)
        except DataError as error:
            logging.getLogger(__name__).warning("token ids are shown as numbers: %s", error)
            return [_numbers(row) for row in rows]

    return decode


def _numbers(ids: Sequence[int]) -> str:
    more = f" … ({len(ids)} tokens)" if len(ids) > SHOWN else ""
    return " ".join(map(str, ids[:SHOWN])) + more


def thumbnail(array: np.ndarray) -> np.ndarray | None:
    """Return an image as uint8 ``[height, width, 3]`` of at most ``MOST_PIXELS`` a side; None for what is not an image.

    Takes ``[height, width]``, ``[height, width, channels]`` and ``[channels, height, width]`` with 1, 3 or 4 channels;
    values that are not bytes are scaled from the least to the greatest.
    """
    from PIL import Image

    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or min(array.shape) < 1:
        return None
    if array.shape[-1] not in (1, 3, 4):
        if array.shape[0] not in (1, 3, 4):
            return None
        array = np.moveaxis(array, 0, -1)
    step = -(-max(array.shape[:2]) // MOST_PIXELS)
    with np.errstate(over="ignore"):  # values that float32 cannot hold are shown as 0
        values = np.nan_to_num(array[..., :3].astype(np.float32), posinf=0.0, neginf=0.0)
    bands = [np.asarray(Image.fromarray(band).reduce(step)) for band in np.moveaxis(values, -1, 0)]
    if array.dtype != np.uint8:
        low, high = float(np.min(bands)), float(np.max(bands))
        bands = [(band - low) * (255.0 / (high - low)) if high > low else np.zeros_like(band) for band in bands]
    picture = np.stack(bands * (3 // len(bands)), axis=-1)
    return np.asarray(np.clip(picture.round(), 0, 255), dtype=np.uint8)


def _in_words(array: np.ndarray) -> str:
    finite = array[np.isfinite(array)]
    ends = f"from {float(finite.min()):.4g} to {float(finite.max()):.4g}" if finite.size else "none finite"
    return f"{' × '.join(map(str, array.shape)) or 'one'} values {ends}"
