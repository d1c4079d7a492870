"""Rows of a table, lines of a text: from values to the tensors that a model takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from workbench.errors import DataError
from workbench.models.data.arrays import rows_of, with_decoder_mask
from workbench.models.data.classes import NO_CLASSES, classes_of
from workbench.models.data.files import HALVING_SEED, Stored, half_of
from workbench.models.data.id_rows import read_ids, read_words
from workbench.models.data.inputs import InputSpec
from workbench.models.data.pictures.images import read_pictures
from workbench.models.data.reading import SENTENCES, Reading
from workbench.models.data.sounds import read_sounds
from workbench.models.data.tables import CONTINUED, Table, is_chat, kind_of
from workbench.models.data.text import answer_ids, chat_texts, encode, first_tokens, padded, sentences, windows
from workbench.readable import few

MOST_TEXT, MOST_ROWS = 1 << 23, 1 << 14
"""Characters of a table that are read as running text, two million tokens; rows that are drawn where nobody says how
many: each of them is tokenized."""


def read_rows(table: Table, file: Path, spec: InputSpec, reading: Reading, length: int, half: int | None) -> Stored:
    """Return a table's rows as samples; running text where ``reading`` says so, else one sample for each row.

    Values are texts, conversations, pairs of texts, token ids, numbers, or images and sounds (bytes, or paths beside
    ``file``).  Raises DataError.
    """
    if spec.tokens is not False and table.holds_words:
        words, *tags = table.values.values()
        return read_words(words, tags[0] if tags else None, file, spec, reading.window)
    if spec.tokens is not False and not spec.has_decoder and len(table.values) == 2:
        table, notes = _joined(table, reading.text != SENTENCES, file)
        if notes:
            rows = read_rows(table, file, spec, reading, length, half)
            return replace(rows, notes=(*notes, *rows.notes))
    (name, first), *others = table.values.items()
    kind = type(first[0])
    if spec.tokens is False or (kind is dict and "bytes" in first[0]):
        if kind in (int, float, bool):
            return _numbers(table, file)
        spoken = others[0][1] if others and table.labels is None else table.labels
        _require_file(name, first[0], file)
        return _files(first, spoken, file, spec, reading)
    if name == "input_ids" or (kind is list and first[0] and isinstance(first[0][0], int)):
        labels = {} if table.labels is None else {"labels": table.labels}
        return read_ids({**table.values, **labels}, file, spec, reading.window)
    chat = is_chat(name, first[0])
    if not chat and kind is not str:
        _refuse_values(name, first[0], file)
    if not chat and reading.text != SENTENCES and not spec.has_decoder:
        text, notes = _enough(first, half_of(len(first), half), file)
        ids = torch.tensor(encode(text, spec, file), dtype=torch.int64)
        return replace(running(ids, file, spec, reading, length, None), notes=notes)
    return _sentences(table, file, spec, reading, chat)


def _enough(texts: Sequence[str], rows: np.ndarray, file: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text of ``rows`` (int64, ascending): of all, or MOST_TEXT of it, of some at random, and a note."""
    lengths = np.array([len(texts[row]) for row in rows])
    if lengths.sum() <= MOST_TEXT:
        return "\n\n".join(texts[row] for row in rows), ()
    order = np.random.default_rng(HALVING_SEED).permutation(len(rows))
    count = int(np.searchsorted(lengths[order].cumsum(), MOST_TEXT, "right"))
    if not count:
        note = f"{file.name}: the first {MOST_TEXT:,} characters of 1 of {len(rows):,} rows are read"
        return texts[rows[order[0]]][:MOST_TEXT], (note,)
    note = f"{file.name}: the text of {count:,} of {len(rows):,} rows, drawn at random, is read"
    return "\n\n".join(texts[row] for row in rows[np.sort(order[:count])]), (note,)


def _joined(table: Table, running_text: bool, file: Path) -> tuple[Table, tuple[str, ...]]:
    """Return a table whose two texts (or conversations) in a row are one, and a note: where the second continues the
    first, or the text runs on over all rows; any other table as it is."""
    (name, first), (other, second) = table.values.items()
    texts = all(isinstance(each[0], str | list) for each in (first, second)) and type(first[0]) is type(second[0])
    continued = (name, other) in CONTINUED
    if not texts or not (continued or running_text) or name == "input_ids":
        return table, ()
    between: Any = "\n" if isinstance(first[0], str) and not continued else first[0][:0]
    rows = [one + between + two for one, two in zip(first, second, strict=True)]
    note = f"{file.name}: the text of a row is its {name} followed by its {other}"
    return replace(table, values={name: rows}), (note,)


def running(ids: torch.Tensor, file: Path, spec: InputSpec, reading: Reading, length: int, half: int | None) -> Stored:
    """Return a stream of token ids as windows, after the tokenizer's first tokens where ``reading`` asks for them."""
    first = first_tokens(spec, file) if reading.text == "windows" else []
    tensors = windows(ids, length, half, first, reading.stride)
    return Stored(count=len(tensors["input_ids"]), load=lambda rows: rows_of(tensors, rows), halved=True)


def _sentences(table: Table, file: Path, spec: InputSpec, reading: Reading, chat: bool) -> Stored:
    """Return texts, conversations or pairs of texts as samples, each tokenized when it is loaded; of an embedding
    model's pairs, both texts as samples in a row."""
    first, *others = table.values.values()
    seconds = others[0] if others else None
    if seconds is not None and not isinstance(seconds[0], str):
        _refuse_values(list(table.values)[1], seconds[0], file)
    if spec.has_decoder and seconds is None:
        raise DataError(
            f"{file}: an encoder-decoder takes two texts a row, its own and the answer: give a table of pairs (.jsonl, "
            ".csv) and the names of both columns (--column A,B)"
        )
    paired = seconds is not None and spec.embeds and not spec.has_decoder
    classes = NO_CLASSES if paired or spec.has_decoder else classes_of(table.labels, spec.folder, file)
    scores = [0.0] * len(first) if table.labels is None or not paired else _scores(table.labels, file)
    notes, own = list(classes.notes), classes.tensors()

    def load(chosen: np.ndarray) -> dict[str, torch.Tensor]:
        rows = chosen.tolist()
        texts, after = ([each[row] for row in rows] if each is not None else None for each in (first, seconds))
        assert texts is not None
        if chat:
            texts = chat_texts(texts, spec, file, table.tools and [table.tools[row] for row in rows], rows)
        if paired and after is not None:
            texts, after = [text for pair in zip(texts, after, strict=True) for text in pair], None
            rows = np.repeat(chosen, 2).tolist()
        answers = after if spec.has_decoder else None
        tensors, more = sentences(texts, None if answers else after, spec, file, rows, reading.window, not chat)
        notes.extend(more)
        if answers is not None:
            ids, more = answer_ids(answers, spec, file, reading.window)
            notes.extend(more)
            return with_decoder_mask({**tensors, "labels": padded(ids, -100)})
        beside = {"scores": torch.tensor([scores[row] for row in rows])} if paired else rows_of(own, chosen)
        return {**tensors, **beside}

    return Stored(count=len(first), load=load, notes=notes, paired=paired, by_rows=True, usual=MOST_ROWS)


def _scores(labels: Sequence[Any], file: Path) -> list[float]:
    if not all(isinstance(label, int | float) for label in labels):
        raise DataError(f"{file}: the score of a pair is {few([repr(labels[0])])}; give a number (--column A,B,SCORE)")
    return [float(label) for label in labels]


def _numbers(table: Table, file: Path) -> Stored:
    """Return columns of numbers as inputs (float32, samples x columns)."""
    columns = list(table.values.values())
    if not all(isinstance(column[0], int | float) for column in columns):
        raise DataError(f"{file}: columns of numbers and of texts cannot be mixed (--column)")
    classes = classes_of(table.labels, None, file)
    tensors = {"inputs": torch.tensor(np.array(columns, dtype=np.float32).T.copy()), **classes.tensors()}
    return Stored(count=len(table), load=lambda chosen: rows_of(tensors, chosen), notes=classes.notes)


def _refuse_values(name: str, value: Any, file: Path) -> NoReturn:
    raise DataError(f"{file}: the column {name} holds {kind_of(value) or 'numbers'}, the model takes text (--column)")


def _require_file(name: str, value: Any, file: Path) -> None:
    """Raise DataError where a column holds texts instead of the files that lie beside the table."""
    if isinstance(value, str) and not os.path.isfile(file.parent / value):
        raise DataError(
            f"{file}: the model takes pictures or sounds, and the column {name} holds {value[:60]!r}, which is not "
            "a file beside the table; name the column of files (--column)"
        )


def _source(value: Any, file: Path) -> Any:
    own = value if isinstance(value, dict) else {"bytes" if isinstance(value, bytes) else "path": value}
    if isinstance(own.get("bytes"), bytes):
        return own["bytes"]
    if own.get("array") is not None and isinstance(own.get("sampling_rate"), int | float):
        return own["array"], own["sampling_rate"]
    if not isinstance(own.get("path"), str):
        what = f"an object of {few(own, 4)}" if isinstance(value, dict) else type(value).__name__
        raise DataError(
            f"{file}: an image or a sound is {what}; give its bytes or its path, or of a sound the array and the "
            "sampling_rate (an object of both)"
        )
    return file.parent / own["path"]


def _files(
    values: Sequence[Any], labels: Sequence[Any] | None, file: Path, spec: InputSpec, reading: Reading
) -> Stored:
    """Return images or sounds as samples: bytes, paths beside the table, or decoded sounds with their rates."""
    sources = [_source(value, file) for value in values]
    if spec.takes_sound:
        return read_sounds(sources, labels, file, spec, reading)
    if spec.has_decoder:
        return captioned(read_pictures(sources, NO_CLASSES, spec), labels, file, spec, reading)
    return read_pictures(sources, classes_of(labels, spec.folder, file), spec)


def captioned(
    stored: Stored, texts: Sequence[Any] | None, file: Path, spec: InputSpec, reading: Reading
) -> Stored:  # fmt: skip
    """Return pictures with the texts that an encoder-decoder reads from them; raises DataError where there are none."""
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise DataError(
            f"{file}: the model also needs the texts of the pictures; give a table with image and text columns "
            "(--column IMAGE,TEXT)"
        )
    ids, notes = answer_ids(texts, spec, file, reading.window)
    answers = with_decoder_mask({"labels": padded(ids, -100)})
    return replace(
        stored, load=lambda rows: {**stored.load(rows), **rows_of(answers, rows)}, notes=(*stored.notes, *notes)
    )
