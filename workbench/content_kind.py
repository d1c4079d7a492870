"""What a file holds, by its first bytes: a name that is given by mistake must not cost a session or a model."""

from __future__ import annotations

import os
import re
from pathlib import Path

from workbench.errors import WorkbenchError

HEAD = 4096
"""The first bytes of a file that are looked at."""

SESSION, PLAN, PAGE = "an HDF5 file, such as a session", "a plan", "a page of HTML"
ARCHIVE = "an archive, such as a .pt, .pt2 or .npz file"
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (rb"\x89HDF\r\n\x1a\n", SESSION),
    (rb"GGUF", "a GGUF file"),
    (rb"PK\x03\x04", ARCHIVE),
    (rb"\x93NUMPY", "a NumPy array"),
    (rb"PAR1", "a Parquet table"),
    (rb"ARROW1", "an Arrow table"),
    (rb"\x08[\x01-\x1f][\x12\x1a\x22\x28\x32\x3a\x42]", "an ONNX file"),
    (rb"[\s\S]{5}\x00\x00\x00\{", "a safetensors file"),  # eight bytes of the header's length, less than 1 TB
    (rb"\x89PNG\r\n", "a picture"),
    (rb"%PDF-", "a PDF file"),
    (rb"\s*<(?:!DOCTYPE html|html)", PAGE),
    (rb'\s*\{\s*"type":\s*"quantization-workbench/plan"', PLAN),
    (rb"\s*[\{\[]", "a JSON file"),
)
"""How contents begin, the first that fits counts."""

NAMES = {
    ".py": "a Python file", ".csv": "a table", ".jsonl": "a table", ".txt": "a text", ".md": "a text",
    ".wav": "a sound", ".flac": "a sound", ".jpg": "a picture", ".jpeg": "a picture",
}  # fmt: skip
"""What a file is by its name where its beginning does not tell."""


def content_kind(path: Path, name: str = "") -> str | None:
    """Return what the file at ``path`` holds; by the ending of ``name``, if any, where its first bytes do not tell.

    None for an empty file, for one that is not there or cannot be read, and for any other text.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            head = stream.read(HEAD)
    except OSError:
        return None
    known = (kind for start, kind in SIGNATURES if re.match(start, head))
    return next(known, NAMES.get(os.path.splitext(name)[1].lower()) if head else None)


def require_replaceable(path: Path, kind: str | None, error: type[WorkbenchError], what: str) -> None:
    """Raise ``error`` where a file lies at ``path`` that holds something else than ``kind``, which would replace it.

    ``kind`` None is a text whose beginning says nothing: it replaces any other such text.  Through a link, nothing
    else does.
    """
    there = content_kind(path, "" if kind is None else path.name)
    if there is None and kind is not None and path.is_symlink() and path.is_file() and path.stat().st_size:
        there = "a file of another kind"  # to which a link leads that somebody else may have made
    if there is not None and there != kind:
        raise error(
            f"{what} cannot be written to {path}: that is {there}, which it would replace; choose another name, or "
            "remove that file first"
        )
