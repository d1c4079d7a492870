"""Tokenizers are tried in a limited process before the library of Rust reads them here: it panics, hangs and aborts."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import DataError, first_line
from workbench.limited import MEMORY, SECONDS, limited
from workbench.plain_file import read_json, read_text

if TYPE_CHECKING:
    import numpy as np

FILES = (
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model",
    "spm.model", "source.spm",
)  # fmt: skip
"""Any of them is enough for a tokenizer."""

BYTES = {"ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer"}
"""Tokenizers of bytes or characters, which have no such file."""


def holds_tokenizer(folder: Path) -> bool:
    """Return whether there are a tokenizer's files in a folder, or the name of one that needs none."""
    if any((folder / name).is_file() for name in FILES):
        return True
    try:
        settings = read_json(folder / "tokenizer_config.json")
    except (OSError, ValueError):
        return False
    return isinstance(settings, dict) and str(settings.get("tokenizer_class")).removesuffix("Fast") in BYTES


def require_tokenizer(file: Path) -> None:
    """Raise DataError where reading ``tokenizer.json`` fails, hangs, crashes or fills the memory: tried aside, once."""
    status = file.stat()
    _tried(file, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _tried(file: Path, changed: int, size: int) -> None:
    try:
        document = read_text(file)
    except (OSError, ValueError) as error:
        raise DataError(f"the tokenizer {file} cannot be read: {first_line(error)}") from None
    require_document(document, f"the tokenizer {file}")


def require_document(document: str, what: str) -> None:
    """Raise DataError, which begins with ``what``, for a tokenizer.json that is damaged or malicious."""
    from tokenizers import Tokenizer

    def work() -> list[np.ndarray]:
        Tokenizer.from_str(document).encode("Some text: 1 ä")
        return []

    size = len(document)
    limited(work, what, DataError, seconds=SECONDS + size / 1e6, memory=MEMORY + 100 * size)
