"""Texts without the names of the user's files: what the log and a report of a problem hold unless the user agrees."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from workbench.readable import readable

NAMES_VARIABLE = "WORKBENCH_LOG_NAMES"
"""Set in the environment, this lets the log name the user's files."""

_OWN = str(Path(__file__).parents[1])
_LIBRARIES = re.compile(r"[^\"'\n]*[/\\](site-packages|lib/python3[.0-9]*)[/\\]")
_QUOTED = re.compile(r"([\"'“])((?:~|[A-Za-z]:)?[/\\][^\"'”\n]*)([\"'”])")
_ENDINGS = (
    "arrow bin ckpt csv feather flac gguf gif jpeg jpg json jsonl mp3 npy npz ogg onnx parquet png pt pt2 pth py qwb "
    "safetensors svg tiff txt wav webp zip html"
)
_ENDING = rf"\.(?:{_ENDINGS.replace(' ', '|')})(?!\w)"
_WORDS = re.compile(r"[^\s\"'“”«»<>]+")
_START = re.compile(r"(?<![\w./\\])(?:file:/{0,2})?(?:~|[A-Za-z]:)?[/\\]")
_ENDS = re.compile(rf"{_ENDING}\W*$", re.IGNORECASE)
_NO_FILES = re.compile(r"https?://.*|n/a\W*|and/or\W*|[(]?[\w.%]*/(s|ms|step|token|sample|weight|second)s?\W*")
_BARE = re.compile(rf"(?!.*{_ENDING}$)[^\s/\\:]{{2,}}", re.IGNORECASE)
_CLOSING = ":,;.)!?]}"
_WITHIN = 6
"""A path that begins with a slash goes on where one of so many words behind it has a slash or an ending, too."""
_FILES = re.compile(rf"(?<![\w/<>.-])[^\s\"',;:()<>/\\]+({_ENDING})", re.IGNORECASE)

_OPTIONS = ("checkpoint", "data", "file", "imatrix", "model", "other", "out", "path", "plan", "session", "tasks",
            "weights")  # fmt: skip
"""The options of commands and steps that are names of files."""

_PLAIN = frozenset(["calibration", "data", "evaluation", "file", "model", "out", "output", "plan", "session", "text"])
"""Names of files that tell nothing, and words of most messages."""

_hidden: set[str] = set()


def hide(*words: object, **options: object) -> None:
    """Have names with spaces among ``words`` and ``options`` (of a command line, a step) replaced wherever they stand.

    Such a name without a folder before it cannot be told from the text around it; nor can one without an ending, of
    which those that ``options`` give are replaced.
    """
    named = (
        str(options[name]).partition("?")[0] for name in _OPTIONS if isinstance(options.get(name), str | os.PathLike)
    )
    _hidden.update(name for name in named if _BARE.fullmatch(name) and name.lower() not in _PLAIN)
    for word in (*words, *options.values()):
        text = str(word).strip() if isinstance(word, str | os.PathLike) else ""
        if " " in text and len(_hidden) < 1000 and (_ENDS.search(text) or Path(text[:4000]).exists()):
            _hidden.update({text, re.split(r"[/\\]", text.rstrip("/\\"))[-1]})


def _names_a_file(word: str) -> bool:
    slashed = any(mark in word for mark in "/\\") and not word.rstrip(_CLOSING).replace("/", "").isnumeric()
    return (slashed and word.strip("/\\") != "" and not _NO_FILES.fullmatch(word)) or _ENDS.search(word) is not None


def _without_paths(line: str) -> str:
    """Return a line with ``<file>`` for each path, whose name may have spaces; what closes a clause stays."""
    words, parts, place, number = list(_WORDS.finditer(line)), list[str](), 0, 0
    while number < len(words):
        word = words[number]
        number += 1
        if not _names_a_file(word[0]) or not any(mark in word[0] for mark in "/\\"):
            continue
        begins, last = _START.search(word[0]), word
        ahead = number if begins else len(words)
        while ahead < min(number + _WITHIN, len(words)):
            before, after = words[ahead - 1], words[ahead]
            if line[before.end() : after.start()] != " " or before[0][-1] in ":;,":
                break
            ahead += 1
            if _names_a_file(after[0]):
                last, number = after, ahead
        parts += [line[place : word.start() + (begins.start() if begins else 0)], "<file>"]
        place = last.end() - (len(last[0]) - len(last[0].rstrip(_CLOSING)))
    return "".join([*parts, line[place:]])


def without_names(text: str, *others: str) -> str:
    """Return ``text`` with the names of files and folders replaced by ``<file>``; those of programs stay, shortened.

    ``others`` are names that are replaced wherever they stand, such as those of the document and its model.
    """
    for name in sorted(filter(None, others), key=len, reverse=True):
        text = text.replace(name, "<name>")
    for name in sorted(_hidden, key=len, reverse=True):
        text = re.sub(rf"(?<![\w./\\-]){re.escape(name)}(?![\w-]|[./\\]\w)", "<file>", text)
    text = text.replace(f"{_OWN}{os.sep}", "")
    home = str(Path.home())
    text = text.replace(home, "~") if len(home) > 1 else text
    lines = []
    for line in text.split("\n"):
        if line.startswith('  File "'):  # of a traceback: what is not a program's is the user's
            line = _LIBRARIES.sub("", line)
        line = _QUOTED.sub(r"\1<file>\3", line)
        if not line.startswith('  File "'):
            line = _FILES.sub(r"<file>\1", _without_paths(line))
        lines.append(line)
    return "\n".join(lines)


class PrivateFormatter(logging.Formatter):
    """Formats records without the names of the user's files, and with what no terminal should get escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, and its traceback."""
        text = super().format(record)
        return readable(text if os.environ.get(NAMES_VARIABLE) else without_names(text), lines=True)
