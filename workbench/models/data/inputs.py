"""What a model takes: enough for a data set to make batches of it, and to say what is wrong with other data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputSpec:
    """``tokens`` tells whether the model takes token ids (None: unknown, as for weights-only models).

    Token models: ``vocabulary`` ids from 0, at most ``positions`` of them in one sample (None: unknown), exactly
    ``length`` where the program was exported for one length; ``tokenizer`` is the folder with the tokenizer's files.
    Image models: ``channels`` of axis 1, ``size`` as (height, width) in pixels, ``mean`` and ``std`` of each channel
    for images scaled to 0..1.  ``preprocess`` is the model's own function from arrays as stored to what it takes; where
    there is one, nothing else is done to the arrays.
    """

    tokens: bool | None = None
    vocabulary: int | None = None
    positions: int | None = None
    length: int | None = None
    tokenizer: Path | None = None
    channels: int | None = None
    size: tuple[int, int] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    preprocess: Callable[[Any], Any] | None = None


def fast_tokenizer(folder: Path | None) -> Any:
    """Return the tokenizer of ``tokenizer.json`` in ``folder``, None without one; DataError for a damaged one."""
    if folder is None or not (folder / "tokenizer.json").is_file():
        return None
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the tokenizers' own errors have no common type
        raise DataError(f"the tokenizer in {folder} cannot be used: {error}") from error
