"""Rows of token ids in a table, with what stands beside them: masks, segments, labels of tokens or of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from workbench.errors import DataError
from workbench.models.data.arrays import read_mask, rows_of, with_decoder_mask
from workbench.models.data.classes import NO_CLASSES, classes_of
from workbench.models.data.files import Stored
from workbench.models.data.inputs import InputSpec
from workbench.models.data.text import padded

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


def _cut(rows: Sequence[list[int]], most: int | None) -> list[list[int]]:
    return [row[:most] for row in rows]


def _beside(rows: Sequence[Any], name: str, ids: Sequence[list[int]] | None, file: Path) -> list[list[int]]:
    """Return the rows of another column; raises DataError where they have not an entry for each of the ``ids``."""
    read = [_row(row, name, number, file) for number, row in enumerate(rows)]
    odd = next((number for number, row in enumerate(read) if ids is not None and len(row) != len(ids[number])), None)
    if ids is not None and odd is not None:
        counts = f"{len(ids[odd])} token ids and {len(read[odd])} of {name}"
        raise DataError(f"{file}: row {odd + 1} has {counts}; give one for each")
    return read


def _row(row: Any, name: str, number: int, file: Path) -> list[int]:
    """Return a row of whole numbers; raises DataError for anything else."""
    entries = row if isinstance(row, list) else [row]
    odd = next((each for each in entries if not isinstance(each, int)), None if isinstance(row, list) else row)
    if not isinstance(row, list) or not all(isinstance(each, int) for each in entries):
        raise DataError(f"{file}: row {number + 1} of {name} holds {odd!r}, a list of whole numbers was expected")
    if not all(-(2**63) <= each < 2**63 for each in entries):
        raise DataError(f"{file}: row {number + 1} of {name} holds a number beyond 64 bits")
    return [int(each) for each in entries]
