"""Rows of token ids or of words in a table, with what stands beside them: masks, segments, labels of tokens, of words
or of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from workbench.errors import DataError
from workbench.models.data.arrays import read_mask, rows_of, with_decoder_mask
from workbench.models.data.classes import NO_CLASSES, classes_of, stated_classes
from workbench.models.data.files import Stored
from workbench.models.data.inputs import InputSpec
from workbench.models.data.text import longest_text, padded, tokenizer_of
from workbench.models.data.tokenizing import Rows, tokenized
from workbench.readable import few

IGNORED = -100
"""The label of a token that counts for nothing, in transformers."""


def read_ids(columns: Mapping[str, Sequence[Any]], file: Path, spec: InputSpec, requested: int | None) -> Stored:
    """Return rows of token ids as samples (int64, samples x the longest), filled up and masked where they differ.

    ``columns``: the ids first; ``attention_mask``, ``token_type_ids`` and lists of ``labels`` have an entry for each id
    (labels of an encoder-decoder are the answer's ids).  Rows are cut to ``asked`` tokens, or to what the model takes,
    and a note says so.  Raises DataError.
    """
    names = list(columns)
    ids = [_row(row, names[0], number, file) for number, row in enumerate(columns[names[0]])]
    empty = [number for number, row in enumerate(ids) if not row]
    if empty:
        raise DataError(f"{file}: {len(empty)} rows have no token ids, the first is row {empty[0] + 1}; remove them")
    most = requested or spec.length or spec.positions
    free = {"labels"} if spec.has_decoder else ()  # answers have a length of their own
    beside = {name: _beside(columns[name], name, None if name in free else ids, file) for name in names[1:]
              if isinstance(columns[name][0], list)}  # fmt: skip
    notes: tuple[str, ...] = ()
    tensors, ones = {"input_ids": padded(_cut(ids, most), 0)}, [[1] * len(row) for row in ids]
    if "attention_mask" in beside or len({len(row) for row in _cut(ids, most)}) > 1:
        mask = padded(_cut(beside.get("attention_mask", ones), most), 0)
        tensors["attention_mask"], notes = read_mask(mask, file)
    if "token_type_ids" in beside and "token_type_ids" in spec.takes:
        tensors["token_type_ids"] = padded(_cut(beside["token_type_ids"], most), 0)
    classes = NO_CLASSES if "labels" in beside else classes_of(columns.get("labels"), spec.folder, file)
    tensors.update(classes.tensors())
    if "labels" in beside:
        tensors["labels"] = padded(_cut(beside["labels"], spec.positions if spec.has_decoder else most), IGNORED)
    if spec.has_decoder:
        if tensors.get("labels", torch.zeros(1)).ndim != 2:
            raise DataError(f"{file}: the model also needs the answers: labels, a list of token ids in each row")
        tensors = with_decoder_mask(tensors)
    cut = sum(len(row) > most for row in ids) if most else 0
    notes += (f"{file.name}: {cut} of {len(ids)} rows were cut to {most} tokens",) if cut else ()
    return Stored(count=len(ids), load=lambda chosen: rows_of(tensors, chosen), notes=(*notes, *classes.notes))


def read_words(
    rows: Sequence[list[str]], tags: Sequence[Any] | None, file: Path, spec: InputSpec, requested: int | None
) -> Stored:
    """Return rows of words as samples (int64, samples x tokens), the ``tags`` of words (classes by name or number) as
    labels of their first tokens, as transformers trains them.  Raises DataError."""
    tokenizer, folder = tokenizer_of(spec, file), spec.tokenizer
    assert folder is not None
    most = longest_text(spec, tokenizer, requested)
    longest = min(requested or most, most)

    def work() -> list[Rows]:
        encoded = tokenizer(list(rows), is_split_into_words=True, truncation=True, max_length=longest)
        places = [[-1 if place is None else place for place in encoded.word_ids(row)] for row in range(len(rows))]
        uncut = tokenizer(list(rows), is_split_into_words=True, verbose=False)["input_ids"]
        return [encoded["input_ids"], places, [[len(ids)] for ids in uncut]]

    worded = [isinstance(row, list) and bool(row) and all(isinstance(word, str) for word in row) for row in rows]
    odd = next((number for number, holds in enumerate(worded) if not holds), None)
    if odd is not None:
        raise DataError(f"{file}: row {odd + 1} is no list of words: {str(rows[odd])[:60]}; fix or remove it")
    if not tokenizer.is_fast:
        raise DataError(f"{file} holds words, and the tokenizer in {folder} has no tokenizer.json; give token ids")
    ids, places, lengths = tokenized(work, folder, [" ".join(row) for row in rows])
    tensors = {"input_ids": padded(ids, tokenizer.pad_token_id or 0, spec.length or 0)}
    tensors["attention_mask"] = padded([[1] * len(row) for row in ids], 0, spec.length or 0)
    if tags is not None:
        numbered = _beside(_numbered(tags, spec, file), "tags", rows, file, "words")
        labels = [_of_first_tokens(own, row) for row, own in zip(places, numbered, strict=True)]
        tensors["labels"] = padded(labels, IGNORED, spec.length or 0)
    cut = sum(length > longest for (length,) in lengths)
    notes = (f"{file.name}: {cut} of {len(ids)} texts were cut to {longest} tokens",) if cut else ()
    return Stored(count=len(ids), load=lambda chosen: rows_of(tensors, chosen), notes=notes)


def _of_first_tokens(tags: Sequence[int], places: Sequence[int]) -> list[int]:
    """Return the tag of each token's word, whose number is its place, where the token is the word's first."""
    first = [place >= 0 and (at == 0 or places[at - 1] != place) for at, place in enumerate(places)]
    return [tags[place] if begins else IGNORED for place, begins in zip(places, first, strict=True)]


def _numbered(tags: Sequence[Any], spec: InputSpec, file: Path) -> Sequence[Any]:
    """Return tags with the model's numbers of those that are names."""
    names = {each for row in tags if isinstance(row, list) for each in row if isinstance(each, str)}
    if not names:
        return tags
    own = stated_classes(spec.folder)
    if unknown := sorted(map(repr, names - own.keys()))[:1]:
        raise DataError(f"{file}: the model has no class {few(unknown)}; its classes are {few(own, 8) or 'not named'}")
    return [[own.get(each, each) if isinstance(each, str) else each for each in row] for row in tags]


def _cut(rows: Sequence[list[int]], most: int | None) -> list[list[int]]:
    return [row[:most] for row in rows]


def _beside(
    rows: Sequence[Any], name: str, ids: Sequence[Sequence[Any]] | None, file: Path, what: str = "token ids"
) -> list[list[int]]:
    """Return the rows of another column; raises DataError where they have not an entry for each of the ``ids``."""
    read = [_row(row, name, number, file) for number, row in enumerate(rows)]
    odd = next((number for number, row in enumerate(read) if ids is not None and len(row) != len(ids[number])), None)
    if ids is not None and odd is not None:
        counts = f"{len(ids[odd])} {what} and {len(read[odd])} of {name}"
        raise DataError(f"{file}: row {odd + 1} has {counts}; give one for each")
    return read


def _row(row: Any, name: str, number: int, file: Path) -> list[int]:
    """Return a row of whole numbers; raises DataError for anything else."""
    entries = row if isinstance(row, list) else [row]
    odd = next((each for each in entries if not isinstance(each, int)), None if isinstance(row, list) else row)
    if not isinstance(row, list) or not all(isinstance(each, int) for each in entries):
        shown = few([repr(odd)])
        raise DataError(f"{file}: row {number + 1} of {name} holds {shown}, a list of whole numbers was expected")
    if not all(-(2**63) <= each < 2**63 for each in entries):
        raise DataError(f"{file}: row {number + 1} of {name} holds a number beyond 64 bits")
    return [int(each) for each in entries]
