"""Tokenizers at work, in a limited process: a stranger's expression takes for ever on some texts, or has Rust panic."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from workbench.errors import DataError
from workbench.limited import MEMORY, SECONDS, limited
from workbench.models.data.tried import made

Rows = Sequence[Sequence[int]]

CHARACTERS_PER_SECOND = 50_000
"""Characters that are tokenized in a second at least."""

BYTES_PER_CHARACTER = 400
"""Memory that tokenizing may take beyond the usual: libraries keep places, words and copies."""

PARALLEL = "TOKENIZERS_PARALLELISM"


def tokenized(work: Callable[[], Sequence[Rows]], tokenizer: Path, texts: Sequence[str]) -> list[list[list[int]]]:
    """Return the tables of ids that ``work`` makes of ``texts`` with the tokenizer of a folder or file.

    What ``work`` imports has to be imported already.  Raises DataError where the tokenizer fails.
    """
    what, size, before = f"the tokenizer in {tokenizer}", sum(map(len, texts)), os.environ.get(PARALLEL)

    def answer() -> list[np.ndarray]:
        os.environ[PARALLEL] = "false"  # the threads of the library are not in the fork
        try:
            tables = made(work, what)
        finally:  # where there are no forks
            del os.environ[PARALLEL]
            os.environ.update({} if before is None else {PARALLEL: before})
        return [_numbers(each) for rows in tables for each in (map(len, rows), chain.from_iterable(rows))]

    arrays = limited(
        answer, what, DataError, seconds=SECONDS + size / CHARACTERS_PER_SECOND,
        memory=MEMORY + BYTES_PER_CHARACTER * size,
    )  # fmt: skip
    return [
        [part.tolist() for part in np.split(values, lengths.cumsum()[:-1])] if len(lengths) else []
        for lengths, values in zip(arrays[::2], arrays[1::2], strict=True)
    ]


def _numbers(values: object) -> np.ndarray:
    return np.fromiter(values, np.int64)  # type: ignore[call-overload,no-any-return]
