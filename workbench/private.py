"""Texts without the names of the user's files: what the log and a report of a problem hold unless the user agrees."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

NAMES_VARIABLE = "WORKBENCH_LOG_NAMES"
"""Set in the environment, this lets the log name the user's files."""

_OWN = str(Path(__file__).parents[1])
_LIBRARIES = re.compile(r"[^\"'\n]*[/\\](site-packages|lib/python3[.0-9]*)[/\\]")
_QUOTED = re.compile(r"([\"'“])((?:~|[A-Za-z]:)?[/\\][^\"'”\n]*)([\"'”])")
_PART, _LAST = r"[^\s\"',;:()<>]*", r"[^\s\"',;:.()<>]"
_PATHS = re.compile(rf"(?<![\w./<>:])(?:~|[A-Za-z]:)?[/\\]{_PART}{_LAST}(?: {_PART}[/\\]{_PART}{_LAST})*")
_ENDINGS = (
    "arrow bin ckpt csv flac gguf gif jpeg jpg json jsonl mp3 npy npz ogg onnx parquet png pt pt2 pth py qwb "
    "safetensors svg tiff txt wav webp zip html"
)
_FILES = re.compile(rf"(?<![\w/<>.-])[^\s\"',;:()<>/\\\\]+\.({_ENDINGS.replace(' ', '|')})\b")


def without_names(text: str, *others: str) -> str:
    """Return ``text`` with the names of files and folders replaced by ``<file>``; those of programs stay, shortened.

    ``others`` are names that are replaced wherever they stand, such as those of the document and its model.
    """
    for name in sorted(filter(None, others), key=len, reverse=True):
        text = text.replace(name, "<name>")
    text = text.replace(f"{_OWN}{os.sep}", "")
    home = str(Path.home())
    text = text.replace(home, "~") if len(home) > 1 else text
    lines = []
    for line in text.split("\n"):
        if line.startswith('  File "'):  # of a traceback: what is not a program's is the user's
            line = _LIBRARIES.sub("", line)
        line = _QUOTED.sub(r"\1<file>\3", line)
        line = _PATHS.sub("<file>", line)
        lines.append(line if line.startswith('  File "') else _FILES.sub(r"<file>.\1", line))
    return "\n".join(lines)


class PrivateFormatter(logging.Formatter):
    """Formats records without the names of the user's files."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, and its traceback."""
        text = super().format(record)
        return text if os.environ.get(NAMES_VARIABLE) else without_names(text)
