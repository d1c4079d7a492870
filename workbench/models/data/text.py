"""Text and token streams to windows of tokens."""

from __future__ import annotations

from pathlib import Path

import torch

from workbench.errors import DataError
from workbench.models.data.inputs import InputSpec, fast_tokenizer


def read_text(file: Path, spec: InputSpec, length: int, half: int | None) -> torch.Tensor:
    """Return the windows of a text file (int64, windows x ``length``), without special tokens."""
    if spec.tokens is False:
        raise DataError(f"{file} is text, but the model does not take token ids; give images or arrays")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read as UTF-8 text: {error}") from None
    if not text.strip():
        raise DataError(f"{file} is empty; give a text of at least {length} tokens")
    return windows(torch.tensor(encode(text, spec, file), dtype=torch.int64), length, half)


def encode(text: str, spec: InputSpec, file: Path) -> list[int]:
    """Return the token ids of ``text``; raises DataError where the model has no tokenizer."""
    folder = spec.tokenizer
    if folder is None:
        raise DataError(
            f"{file} is text, but the model has no tokenizer; put tokenizer.json into its folder, or give token "
            "windows (.npy)"
        )
    tokenizer = fast_tokenizer(folder)
    try:
        if tokenizer is not None:
            tokenizer.no_truncation()
            tokenizer.no_padding()
            return list(tokenizer.encode(text, add_special_tokens=False).ids)
        from workbench.models.sources.lean_transformers import transformers

        slow = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        return list(slow(text, add_special_tokens=False, verbose=False)["input_ids"])
    except Exception as error:  # the tokenizers' own errors have no common type
        raise DataError(f"the tokenizer in {folder} cannot be used: {error}") from error


def windows(tokens: torch.Tensor, length: int, half: int | None) -> torch.Tensor:
    """Cut a stream (int64, tokens) into windows x ``length``; the stream's halves are first cut apart.

    The remainder at the end is left out, so the halves share no token, whatever the length.
    """
    middle = (len(tokens) + 1) // 2
    part = tokens if half is None else tokens[:middle] if half == 0 else tokens[middle:]
    count = len(part) // length
    return part[: count * length].reshape(count, length)
