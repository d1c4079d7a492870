"""The tokenizer of a folder without tokenizer.json as such a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.models.data.inputs import InputSpec
from workbench.models.data.text import tokenizer_of
from workbench.models.readers.tokenizer import holds_tokenizer


def converted_tokenizer(folder: Path, error: type[WorkbenchError]) -> dict[str, Any] | None:
    """Return tokenizer.json as transformers makes it of the folder's other files; None where that is not needed, or
    where there is no tokenizer.  Raises ``error`` where it makes none.
    """
    if (folder / "tokenizer.json").is_file() or not holds_tokenizer(folder):
        return None
    try:
        own = tokenizer_of(InputSpec(tokenizer=folder, tokens=True), folder)
    except WorkbenchError as failure:
        raise error(str(failure)) from failure
    fast = getattr(own, "backend_tokenizer", None)
    if fast is None:
        raise error(f"the tokenizer in {folder} has no tokenizer.json, and transformers makes none of it")
    document: dict[str, Any] = json.loads(fast.to_str())
    return document
