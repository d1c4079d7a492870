"""Data sets: batches of what a model takes, from a file, a folder or the bundled sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from workbench.errors import DataError
from workbench.models.data.arrays import read_arrays, rows_of
from workbench.models.data.files import ALL, Part, Prepare, Stored, half_of, locate
from workbench.models.data.images import read_images
from workbench.models.data.inputs import InputSpec
from workbench.models.data.record import DataRecord
from workbench.models.data.text import read_text
from workbench.models.dtypes import hash_of
from workbench.models.model import Batch, Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Samples as stored, and ``prepare``, which turns a batch of them into what the model takes.

    ``tensors`` have the sample as their first axis: ``input_ids`` (int64, samples x tokens) or ``inputs``, and
    ``labels`` (int64) where there are any.  ``notes`` say in words what differs from what was asked for.
    """

    record: DataRecord
    tensors: Batch
    prepare: Prepare = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.record.samples

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield batches of at most ``batch_size`` samples in a fixed order; the last may be smaller."""
        if batch_size < 1:
            raise DataError(f"the batch size is {batch_size}; it must be at least 1")
        for start in range(0, len(self), batch_size):
            batch = {name: tensor[start : start + batch_size] for name, tensor in self.tensors.items()}
            if self.prepare is not None and "inputs" in batch:
                batch["inputs"] = self.prepare(batch["inputs"])
            yield batch


def open_dataset(
    path: str | Path,
    model: Model,
    *,
    split: str = ALL,
    samples: int | None = None,
    seed: int = 0,
    sequence_length: int | None = None,
) -> Dataset:
    """Open a data set for ``model``.

    ``path``: a text file; a ``.npy``, ``.npz``, ``.pt`` or ``.safetensors`` file of arrays; a folder of images in class
    folders; a folder with ``calibration.*`` and ``evaluation.*``; or a bundled set (``demo:language-model``).
    ``split`` is ``calibration``, ``evaluation`` or ``all``.  Files named after a split are taken whole; of any other
    file, calibration takes one half and evaluation the other, whatever the seed, the number of samples and the
    sequence length.  ``samples`` are drawn from the split with ``seed`` (None: all of it, in order); fewer are taken
    where there are fewer, and ``notes`` says so.  ``sequence_length`` in tokens (default: 256, or what the model
    takes at most).  Raises DataError.
    """
    if samples is not None and samples < 1:
        raise DataError(f"{samples} samples were asked for; at least 1 is needed")
    spec, part = model.inputs, locate(path, split)
    length = _length(spec, sequence_length)
    rows = _read(part, spec, length, asked=sequence_length is not None)
    half = half_of(rows.count, None if rows.halved else part.half)
    chosen, notes = _choose(len(half), samples, seed, part)
    tensors = rows.load(half[chosen])
    _check(tensors, spec, part.file)
    if rows.prepare is not None:
        _try(rows.prepare, tensors["inputs"], part.file)
    record = DataRecord(
        name=part.name, path=part.recorded, split=split, samples=len(chosen), seed=seed,
        content_hash=content_hash(tensors),
    )  # fmt: skip
    return Dataset(record=record, tensors=tensors, prepare=rows.prepare, notes=notes)


def _length(spec: InputSpec, asked: int | None) -> int:
    most = spec.length or spec.positions
    length = asked or spec.length or min(256, spec.positions or 256)
    if length < 2 or (most is not None and length > most) or (spec.length and length != spec.length):
        expected = f"exactly {spec.length}" if spec.length else f"2 to {most}" if most else "at least 2"
        raise DataError(f"the sequence length is {length} tokens, the model takes {expected}")
    return length


def _read(part: Part, spec: InputSpec, length: int, asked: bool) -> Stored:
    if part.kind == "text":
        tensors = {"input_ids": read_text(part.file, spec, length, part.half)}
        return Stored(count=len(tensors["input_ids"]), load=lambda rows: rows_of(tensors, rows), halved=True)
    if part.kind == "images":
        if spec.tokens:
            raise DataError(f"{part.file} holds images, the model takes token ids; give a text file or token windows")
        return read_images(part.file, spec)
    return read_arrays(part.file, spec, length if asked or spec.length else None, length, part.half)


def _choose(count: int, samples: int | None, seed: int, part: Part) -> tuple[np.ndarray, tuple[str, ...]]:
    if count == 0:
        which = "" if part.half is None else f" for its {part.split} half"
        raise DataError(f"{part.file} holds no sample{which}; give a file with more data, or a smaller sequence length")
    if samples is None or samples >= count:
        missed = samples is not None and samples > count
        note = f"{part.name} holds {count} samples, {samples} were asked for: all {count} are used"
        return np.arange(count), (note,) if missed else ()
    return np.sort(np.random.default_rng(seed).permutation(count)[:samples]), ()


def _check(tensors: Batch, spec: InputSpec, file: Path) -> None:
    if "input_ids" in tensors:
        low, high = (int(bound) for bound in torch.aminmax(tensors["input_ids"]))
        if low < 0 or (spec.vocabulary is not None and high >= spec.vocabulary):
            top = "" if spec.vocabulary is None else f" to {spec.vocabulary - 1}"
            raise DataError(
                f"{file} holds token ids from {low} to {high}, the model knows 0{top}; give data made with the model's "
                "tokenizer"
            )
    floating = (tensor for name, tensor in tensors.items() if tensor.is_floating_point() and name != "labels")
    if not all(bool(torch.isfinite(tensor).all()) for tensor in floating):
        raise DataError(f"{file} holds NaN or infinite values; give finite inputs")


def _try(prepare: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor, file: Path) -> None:
    try:
        prepare(inputs[:1])
    except DataError:
        raise
    except Exception as error:
        shape = f"{tuple(inputs.shape[1:])} {inputs.dtype}".replace("torch.", "")
        raise DataError(f"the model cannot take the samples of {file} (each {shape}): {error}") from error


def content_hash(tensors: Mapping[str, torch.Tensor]) -> str:
    """Return ``sha256:`` and the hash over every tensor's name, dtype, shape and bytes, in the order of names."""
    ordered = sorted(tensors.items())
    return hash_of((f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0", tensor) for name, tensor in ordered)
