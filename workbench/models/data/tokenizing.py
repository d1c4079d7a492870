"""Tokenizers at work, in a limited process: an untrusted expression takes for ever on some texts, or has Rust panic."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from workbench.errors import DataError
from workbench.limited import MEMORY, SECONDS, limited
from workbench.models.data.tried import Made, made

Rows = Sequence[Sequence[int]]

CHARACTERS_PER_SECOND = 50_000
"""Characters that are tokenized in a second at least, or ids that become text."""

BYTES_PER_CHARACTER = 400
"""Memory that tokenizing may take beyond the usual: libraries keep places, words and copies."""

PARALLEL = "TOKENIZERS_PARALLELISM"


def tokenized(work: Callable[[], Sequence[Rows]], tokenizer: Path, texts: Sequence[str]) -> list[list[list[int]]]:
    """Return the tables of ids that ``work`` makes of ``texts`` with the tokenizer of a folder or file.

    What ``work`` imports has to be imported already.  Raises DataError where the tokenizer fails.
    """
    arrays = _aside(work, _arrays, tokenizer, sum(map(len, texts)))
    return [
        [part.tolist() for part in np.split(values, lengths.cumsum()[:-1])] if len(lengths) else []
        for lengths, values in zip(arrays[::2], arrays[1::2], strict=True)
    ]


def texts_of(decode: Callable[[list[int]], str], tokenizer: Path, rows: Rows) -> list[str]:
    """Return each row of ids as ``decode`` writes it with the tokenizer of a folder or file.

    What ``decode`` imports has to be imported already.  Raises DataError where the tokenizer fails.
    """
    lists = [list(row) for row in rows]

    def answer(texts: list[str]) -> list[np.ndarray]:
        return [np.frombuffer(json.dumps(texts).encode(), np.uint8)]

    (written,) = _aside(lambda: [str(decode(row)) for row in lists], answer, tokenizer, sum(map(len, lists)))
    texts: list[str] = json.loads(written.tobytes())
    return texts


def _aside(
    work: Callable[[], Made], answer: Callable[[Made], list[np.ndarray]], tokenizer: Path, size: int
) -> list[np.ndarray]:
    """Return the arrays that ``answer`` makes of what ``work`` makes of ``size`` characters or ids."""
    what, before = f"the tokenizer in {tokenizer}", os.environ.get(PARALLEL)

    def task() -> list[np.ndarray]:
        os.environ[PARALLEL] = "false"  # the threads of the library are not in the fork
        try:
            return answer(made(work, what))
        finally:  # where there are no forks
            del os.environ[PARALLEL]
            os.environ.update({} if before is None else {PARALLEL: before})

    seconds, memory = SECONDS + size / CHARACTERS_PER_SECOND, MEMORY + BYTES_PER_CHARACTER * size
    return limited(task, what, DataError, seconds=seconds, memory=memory)


def _arrays(tables: Sequence[Rows]) -> list[np.ndarray]:
    return [np.fromiter(each, np.int64) for rows in tables for each in (map(len, rows), chain.from_iterable(rows))]
