"""A data set's samples as people read them: text, small pictures, or numbers in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import DataError
from workbench.models.data.inputs import InputSpec

if TYPE_CHECKING:
    from workbench.models.data.datasets import Dataset

MOST_PIXELS = 96
"""The longer side of a thumbnail; larger pictures are averaged over blocks."""

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
    part = {name: tensor[start : start + count] for name, tensor in dataset.tensors.items()}
    labels = part["labels"].reshape(-1).tolist() if "labels" in part else None
    ids = part.get("input_ids")
    if ids is not None:
        rows = ids.tolist()
        read = decoder(spec)
        shown = [Sample(index=start + n, text=read(row), tokens=len(row)) for n, row in enumerate(rows)]
    else:
        arrays = part["inputs"].numpy()
        shown = [
            Sample(index=start + n, text=_in_words(array), picture=thumbnail(array)) for n, array in enumerate(arrays)
        ]
    if labels is None:
        return tuple(shown)
    return tuple(
        Sample(index=sample.index, text=sample.text, picture=sample.picture, label=label, tokens=sample.tokens)
        for sample, label in zip(shown, labels, strict=True)
    )


def decoder(spec: InputSpec) -> Callable[[Sequence[int]], str]:
    """Return what turns token ids into text: the model's tokenizer, or the first ids as numbers without one."""
    folder = spec.tokenizer
    if folder is not None and (folder / "tokenizer.json").is_file():
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the tokenizers' own errors have no common type
            raise DataError(f"the tokenizer in {folder} cannot be used: {error}") from error
        return lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=False))
    return _numbers


def _numbers(ids: Sequence[int]) -> str:
    more = f" … ({len(ids)} tokens)" if len(ids) > SHOWN else ""
    return " ".join(map(str, ids[:SHOWN])) + more


def thumbnail(array: np.ndarray) -> np.ndarray | None:
    """Return an image as uint8 ``[height, width, 3]`` of at most ``MOST_PIXELS`` a side; None for what is not an image.

    Takes ``[height, width]``, ``[height, width, channels]`` and ``[channels, height, width]`` with 1, 3 or 4 channels;
    values that are not bytes are scaled from the least to the greatest.
    """
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or min(array.shape) < 1:
        return None
    if array.shape[-1] not in (1, 3, 4):
        if array.shape[0] not in (1, 3, 4):
            return None
        array = np.moveaxis(array, 0, -1)
    values = _smaller(np.nan_to_num(array[..., :3].astype(np.float64), posinf=0.0, neginf=0.0))
    if array.dtype != np.uint8:
        low, high = float(values.min()), float(values.max())
        values = (values - low) * (255.0 / (high - low)) if high > low else np.zeros_like(values)
    picture = np.clip(values.round(), 0, 255).astype(np.uint8)
    return np.repeat(picture, 3, axis=-1) if picture.shape[-1] == 1 else np.ascontiguousarray(picture)


def _smaller(values: np.ndarray) -> np.ndarray:
    """Average over square blocks, so that the longer side has at most ``MOST_PIXELS``; a rest at the edge is left."""
    step = -(-max(values.shape[:2]) // MOST_PIXELS)
    height, width = (max(size // step, 1) for size in values.shape[:2])
    if step == 1 or min(values.shape[:2]) < step:
        return values[::step, ::step]
    cut = values[: height * step, : width * step]
    averaged: np.ndarray = cut.reshape(height, step, width, step, -1).mean(axis=(1, 3))
    return averaged


def _in_words(array: np.ndarray) -> str:
    finite = array[np.isfinite(array)]
    ends = f"from {float(finite.min()):.4g} to {float(finite.max()):.4g}" if finite.size else "none finite"
    return f"{' × '.join(map(str, array.shape)) or 'one'} values {ends}"
