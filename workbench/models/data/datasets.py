"""Data sets: batches of what a model takes, from a file, a folder or the bundled sets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from workbench.errors import DataError, naming_damage
from workbench.models.data.arrays import read_arrays
from workbench.models.data.classes import classes_of
from workbench.models.data.files import ALL, SOUNDS, TEXT, Part, Prepare, Stored, half_of, in_class_folders, locate
from workbench.models.data.inputs import InputSpec, entries_of
from workbench.models.data.pictures.images import read_images
from workbench.models.data.pictures.pictured_texts import read_pictured_texts
from workbench.models.data.reading import SENTENCES, STREAM, USUAL_WINDOW, WINDOWS, Reading
from workbench.models.data.record import DataRecord
from workbench.models.data.rows import captioned, read_rows, running
from workbench.models.data.sounds import read_sounds
from workbench.models.data.tables import Table, read_table, read_texts
from workbench.models.data.text import Transcriber, encode, first_tokens, read_text
from workbench.models.dtypes import hash_of
from workbench.models.model import Batch, Model

BESIDE_TEXT = frozenset(["pixel_values", "input_features", "input_values"])
"""Inputs of pictures or sounds, of networks that may also take texts."""

FEW = 8
"""Windows below which a text is cut into shorter ones."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Samples as stored, and ``prepare``, which turns a batch of them into what the model takes.

    ``tensors`` have the sample as their first axis: ``input_ids`` (int64, samples x tokens) or ``inputs``, and
    ``labels`` (int64) where there are any.  ``notes`` say in words what differs from what was asked for.  ``paired``:
    two samples that follow each other belong together, and no batch parts them.  ``trimmed``: batches end where their
    longest sample does.  ``text`` turns ids of transcripts into text.
    """

    record: DataRecord
    tensors: Batch
    prepare: Prepare = None
    notes: tuple[str, ...] = ()
    paired: bool = False
    trimmed: bool = False
    text: Transcriber | None = None

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """Yield batches of at most ``batch_size`` samples in a fixed order; the last may be smaller."""
        if batch_size < 1:
            raise DataError(f"the batch size is {batch_size}; it must be at least 1")
        batch_size = max(batch_size // 2 * 2, 2) if self.paired else batch_size
        for start in range(0, len(self), batch_size):
            batch = {name: tensor[start : start + batch_size] for name, tensor in self.tensors.items()}
            batch = without_empty_ends(batch) if self.trimmed else batch
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
    usual_window: int = USUAL_WINDOW,
    recorded: bool = False,
) -> Dataset:
    """Open a data set for ``model``.

    ``path``: a text file; a table (JSON Lines, JSON, CSV, Parquet, Arrow); a ``.npy``, ``.npz``, ``.pt`` or
    ``.safetensors`` file of arrays; a folder of texts, of sounds or of images in class folders; a folder with
    ``calibration.*`` and ``evaluation.*``; or a bundled set (``demo:language-model``).  Options may follow it
    (``a.csv?column=text&window=2048``, see :class:`workbench.models.data.reading.Reading`).
    ``split`` is ``calibration``, ``evaluation`` or ``all``.  Files named after a split are taken whole; of any other
    file, calibration takes one half and evaluation the other, whatever the seed, the number of samples and the
    sequence length.  ``samples`` are drawn from the split with ``seed`` (None: all of it, in order); fewer are taken
    where there are fewer, and ``notes`` says so.  ``sequence_length`` in tokens (default: ``usual_window`` where the
    model has room for it, else at most 256).  ``recorded``: the path is a record's, where text without an option is
    ``stream``.  Raises DataError.
    """
    if samples is not None and samples < 1:
        raise DataError(f"{samples} samples were asked for; at least 1 is needed")
    place, stated = Reading.of(path)
    part, reading = locate(place, split), stated.over(Reading(window=sequence_length))
    for name, tokens in (("window", reading.window), ("stride", reading.stride)):
        if tokens is not None and tokens < 1:
            raise DataError(f"the {name} is {tokens} tokens; at least 1 is needed")
    with naming_damage(part.file, DataError):
        return _opened(part, model.inputs, reading, split, samples, seed, usual_window, recorded)


def _opened(
    part: Part, spec: InputSpec, reading: Reading, split: str, samples: int | None, seed: int, usual_window: int,
    recorded: bool,
) -> Dataset:  # fmt: skip
    reading, rows = _rows(part, spec, _with_mode(part, spec, reading, recorded), usual_window)
    half = half_of(rows.count, None if rows.halved else part.half, rows.groups)
    chosen, notes = _choose(len(half), samples, seed, part, rows.usual)
    tensors = rows.load(half[chosen])
    _check(tensors, spec, part.file)
    if rows.prepare is not None:
        _try(rows.prepare, tensors["inputs"], part.file)
    record = DataRecord(
        name=part.name, path=reading.after(part.recorded), split=split, samples=len(chosen), seed=seed,
        content_hash=content_hash(tensors), pooling=spec.pooling,
    )  # fmt: skip
    return Dataset(
        record=record, tensors=tensors, prepare=rows.prepare, paired=rows.paired,
        notes=(*notes, *rows.notes, *_left_out(part, reading, tensors), *_repeats(tensors, part)), text=rows.text,
        trimmed=reading.text == SENTENCES and spec.length is None,
    )  # fmt: skip


def _with_mode(part: Part, spec: InputSpec, reading: Reading, recorded: bool) -> Reading:
    """Return ``reading`` with how text is read: what is asked for, what the record means, or what suits the model."""
    if part.kind not in ("text", "texts", "table") or not spec.tokens:
        return replace(reading, text="")
    usual = STREAM if recorded else SENTENCES if spec.sentences else WINDOWS
    mode = reading.text or usual
    if mode == WINDOWS and (spec.tokenizer is None or not first_tokens(spec, part.file)):
        mode = STREAM
    return replace(reading, text=mode)


def _rows(part: Part, spec: InputSpec, reading: Reading, usual: int) -> tuple[Reading, Stored]:
    """Return the samples of ``part`` and how they were read, as it is recorded.

    Windows of ``usual`` tokens are only for a text that gives a few of them.
    """
    short = _length(spec, reading.window, USUAL_WINDOW)
    length = _length(spec, reading.window, usual)
    rows = _read(part, spec, reading, length)
    if length != short and rows.count < FEW and not rows.by_rows:
        note = f"{part.name} gives {rows.count} windows of {length} tokens: windows of {short} are taken"
        length, rows = short, replace(_read(part, spec, reading, short), notes=(note,))
    mode = "" if reading.text == STREAM else reading.text
    cut = rows.halved and length != short and reading.window is None
    return replace(reading, text=mode, window=length if cut else reading.window), rows


def _length(spec: InputSpec, requested: int | None, usual: int) -> int:
    """Return the tokens of a window: ``usual`` where the model has room for them, else at most USUAL_WINDOW."""
    most = spec.length or spec.positions
    usual = usual if spec.positions and usual <= spec.positions else min(USUAL_WINDOW, spec.positions or USUAL_WINDOW)
    length = requested or spec.length or usual
    if length < 2 or (most is not None and length > most) or (spec.length and length != spec.length):
        expected = f"exactly {spec.length}" if spec.length else f"2 to {most}" if most else "at least 2"
        raise DataError(f"the sequence length is {length} tokens, the model takes {expected}")
    return length


def _read(part: Part, spec: InputSpec, reading: Reading, length: int) -> Stored:
    if part.kind == "text":
        text = read_text(part.file, spec)
        if reading.text == SENTENCES:
            lines = [line for line in text.splitlines() if line.strip()]
            return read_rows(Table(values={"line": lines}, labels=None), part.file, spec, reading, length, part.half)
        ids = torch.tensor(encode(text, spec, part.file), dtype=torch.int64)
        return running(ids, part.file, spec, reading, length, part.half)
    if part.kind in ("images", "sounds") and spec.tokens and "pixel_values" not in spec.takes:
        raise DataError(f"{part.file} holds {part.kind}, the model takes token ids; give a text file or token windows")
    if part.kind == "images":
        if spec.takes_sound:
            raise DataError(f"{part.file} holds images, the model takes sounds; give a folder or a table of sounds")
        images = read_images(part.file, spec)
        return captioned(images, None, part.file, spec, reading) if spec.has_decoder else images
    if part.kind == "sounds":
        files, names = in_class_folders(part.file, SOUNDS) if part.file.is_dir() else ([part.file], None)
        classes = classes_of(names, spec.folder, part.file)  # not transcripts, which texts would be
        sounds = read_sounds(files, classes.numbers, part.file, spec, reading)
        return replace(sounds, notes=(*sounds.notes, *classes.notes))
    if part.kind in ("table", "texts"):
        if part.kind == "table" and "input_ids" in spec.takes and {*spec.takes} & BESIDE_TEXT:
            pictured = read_pictured_texts(part.file, reading.column, spec, reading.window)
            if pictured is not None:
                return pictured
        takes = "texts" if spec.tokens is not False else "sounds" if spec.takes_sound else "pictures"
        takes = "texts in pictures" if takes == "pictures" and spec.has_decoder else takes
        texts = part.kind == "texts"
        table = read_texts(part.file, TEXT) if texts else read_table(part.file, reading.column, takes)
        return read_rows(table, part.file, spec, reading, length, part.half)
    requested = length if reading.window or spec.length else None
    return read_arrays(part.file, spec, requested, length, part.half, reading.stride)


def without_empty_ends(batch: Batch) -> dict[str, torch.Tensor]:
    """Return the batch without the columns at the end that are padding in every sample."""
    mask = batch["attention_mask"] if "attention_mask" in batch else torch.ones(1, 1)
    width = int(mask.any(dim=0).nonzero().max()) + 1
    return {name: each[:, :width] if each.shape == mask.shape else each for name, each in batch.items()}


REPEATED = 0.1
"""Where so many samples repeat others, a note says so."""


def _choose(
    count: int, samples: int | None, seed: int, part: Part, usual: int | None
) -> tuple[np.ndarray, tuple[str, ...]]:  # fmt: skip
    if count == 0:
        which = "" if part.half is None else f" for its {part.split} half"
        raise DataError(f"{part.file} holds no sample{which}; give a file with more data, or a smaller sequence length")
    notes: tuple[str, ...] = ()
    name = part.name if part.half is None else f"the {part.split} half of {part.name}"
    if samples is None and usual is not None and count > usual:
        notes = (f"{name} holds {count:,} samples: {usual:,} of them, drawn at random, are taken (--samples)",)
        samples = usual
    if samples is None or samples >= count:
        missed = samples is not None and samples > count
        note = f"{name} holds {count} samples, {samples} were asked for: all {count} are used"
        return np.arange(count), (note,) if missed else ()
    return np.sort(np.random.default_rng(seed).permutation(count)[:samples]), notes


def _left_out(part: Part, reading: Reading, tensors: Batch) -> tuple[str, ...]:
    """Return notes on options that say nothing of such data."""
    tables = reading.column and part.kind != "table"
    notes = (f"{part.name} is no table: the column {reading.column} is left out",) if tables else ()
    if reading.stride is None or "scored" in tensors:
        return notes
    return (*notes, f"{part.name}: the stride is left out, as samples are no windows of running text")


def _repeats(tensors: Batch, part: Part) -> tuple[str, ...]:
    """Return a note where many samples are the same as others: they say no more than one of them does."""
    count = len(next(iter(tensors.values())))
    values = (tensor if tensor.ndim > 1 else tensor[:, None] for tensor in tensors.values())
    columns = [each.contiguous().view(torch.uint8).flatten(1).numpy() for each in values]
    rows = (b"".join(column[row].tobytes() for column in columns) for row in range(count))
    different = len({hashlib.sha256(row).digest() for row in rows})
    if count - different < REPEATED * count:
        return ()
    return (
        f"{part.name}: {count - different:,} of {count:,} samples repeat others: losses are as sure as {different:,} "
        "samples make them, and intervals are narrower than that",
    )


def _check(tensors: Batch, spec: InputSpec, file: Path) -> None:
    if "input_ids" in tensors:
        low, high = (int(bound) for bound in torch.aminmax(tensors["input_ids"]))
        if low < 0 or (spec.vocabulary is not None and high >= spec.vocabulary):
            top = "" if spec.vocabulary is None else f" to {spec.vocabulary - 1}"
            raise DataError(
                f"{file} holds token ids from {low} to {high}, the model knows 0{top}; give data made with the model's "
                "tokenizer"
            )
    given = {name: entries_of(name, tensor) for name, tensor in tensors.items() if name != "labels"}
    floating = (tensor for tensor in given.values() if tensor.is_floating_point())
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
