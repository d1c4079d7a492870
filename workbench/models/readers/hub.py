"""Models of the Hugging Face Hub that were fetched before, by their names; nothing is fetched here."""

from __future__ import annotations

import re
from pathlib import Path

NAME = re.compile(r"[\w.-]+/[\w.-]+")


def fetched(name: str) -> Path | None:
    """Return the folder in the Hugging Face cache of the model ``OWNER/NAME``; None where it was not fetched."""
    if not NAME.fullmatch(name):
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError, OSError):
        return None
