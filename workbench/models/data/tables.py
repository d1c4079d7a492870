"""Tables (JSON Lines, JSON, CSV, Parquet, Arrow) and folders of texts: which columns are samples, which are labels."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.errors import DataError, nearest
from workbench.models.data.table_file import Columns, read_columns
from workbench.models.data.table_paths import suffix_of
from workbench.plain_file import read_text
from workbench.readable import few

CHATS = ("messages", "conversations", "conversation")
TEXTS = ("text", "sentence", "content", "document", "prompt", "question", "input_ids", "image", "audio", "file_name")
FILES = ("audio", "image", "file_name", "path", "sound", "picture", "img", "file")
"""Columns of sounds or pictures, for a model that takes such."""

PAIRS = (("sentence1", "sentence2"), ("sentence_A", "sentence_B"), ("text1", "text2"), ("premise", "hypothesis"),
         ("source", "target"), ("tokens", "ner_tags"), ("tokens", "tags"), ("words", "tags"))  # fmt: skip
WORDS = ("tokens", "words")
"""Columns of lists of words."""

CONTINUED = (("prompt", "completion"), ("prompt", "chosen"))
"""Columns whose text is that of the first followed by that of the second, as trl names them."""

TRANSCRIPTS = ("transcription", "transcript")
WRITTEN = ("text", "sentence", "caption")
"""Columns of what sounds and pictures say, for a network that writes it."""

LABELS = ("label", "labels", "score", "similarity_score", "relatedness_score", *TRANSCRIPTS)
KINDS: Mapping[type, str] = {str: "a text", dict: "an object", bytes: "bytes"}
BESIDE_IDS = ("attention_mask", "token_type_ids", "labels")
"""Columns that belong to token ids where they are there."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character of UTF-16."""

ROLES = {"human": "user", "gpt": "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The columns that make the samples, one entry for each row: one or two of values (any number of numbers, or token
    ids with their mask), and labels or scores or None.  Entries of one column are of one kind."""

    values: Mapping[str, Sequence[Any]]
    labels: Sequence[Any] | None
    tools: Sequence[Any] | None = None
    """What conversations may call, for the chat template."""

    @property
    def holds_words(self) -> bool:
        """Whether a row is a list of words."""
        return next(iter(self.values)) in WORDS

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))


def read_table(file: Path, column: str, takes: str = "texts") -> Table:
    """Read the columns ``column`` (by commas; a column of numbers is the label) or, for none, those with usual names:
    of files, with their texts or classes, for a model that ``takes`` "pictures", "texts in pictures" or "sounds".

    Nothing is fetched and no code of a data set runs.  Raises DataError, and BackendUnavailableError without pyarrow.
    """
    columns = read_columns(file, lambda table: _columns(table, column, file, takes))
    tools = columns.pop("tools", None) if len(columns) > 1 else None
    return replace(_table(columns, list(columns), file), tools=tools)


def _columns(table: Columns, column: str, file: Path, takes: str) -> list[str]:
    """Return the names of the columns to read."""
    known = list(table.kinds)
    names = named_columns(column, known, file) or _usual(known, table, file, takes)
    if "input_ids" in names:
        return names + [name for name in BESIDE_IDS if name in known and name not in names]
    if names[0].rpartition(".")[2] in CHATS and len(names) == 1:
        return names + [name for name in ("tools",) if name in known]
    spoken = WRITTEN if takes in ("sounds", "texts in pictures") and names[0] in FILES else ()
    labels = [name for name in (*LABELS, *spoken) if name in known and name not in names]
    numbers = [table.kinds[name] == "number" for name in names]
    if takes == "texts" and all(numbers):
        raise DataError(f"{file}: the column {names[0]} holds numbers, the model takes text (--column)")
    return names if any(numbers) and not all(numbers) else names + labels[:1]


def named_columns(column: str, known: list[str], file: Path) -> list[str]:
    """Return the columns that ``column`` names by commas; raises DataError where the table lacks one."""
    names = list(dict.fromkeys(name.strip() for name in column.split(",") if name.strip()))
    for name in names:
        if name not in known:
            raise DataError(f"{file} has no column {name!r}{nearest(name, known)}; its columns are {few(known, 20)} "
                            "(--column)")  # fmt: skip
    return names


def _usual(known: list[str], table: Columns, file: Path, takes: str) -> list[str]:
    if takes != "texts" and (files := [name for name in FILES if name in known]):
        return files[:1]
    pair = next((list(pair) for pair in (*PAIRS, *CONTINUED) if set(pair) <= set(known)), None)
    name = next((name for name in (*CHATS, *TEXTS) if name in known), None)
    if pair or name:
        return pair or [str(name)]
    strings = [name for name in known if table.kinds[name] == "string"]
    numbers = [name for name in known if table.kinds[name] == "number" and name not in LABELS]
    if len(strings) == 1:
        return strings
    if not strings and numbers:
        return numbers
    raise DataError(f"{file}: which column is meant? The columns are {few(known, 20)} (--column)")


def _table(columns: dict[str, list[Any]], names: list[str], file: Path) -> Table:
    """Divide the columns into values and labels; empty entries are refused."""
    ids_or_words = "input_ids" in names or names[0] in WORDS
    for name in names:
        if None in columns[name]:
            empty = [row for row, value in enumerate(columns[name]) if value is None]
            if len(empty) == len(columns[name]):
                raise DataError(f"{file}: the column {name} is empty; name another (--column)")
            raise DataError(f"{file}: {len(empty)} rows have no {name}, the first is row {empty[0] + 1}; remove them")
        if not ids_or_words:  # whose rows have a reader of their own
            _require_alike(name, columns[name], file)
        _require_text(name, columns[name], file)
    texts = [name for name in names if name not in LABELS and not isinstance(columns[name][0], int | float)]
    if not texts:
        texts = [name for name in names if name in TRANSCRIPTS or name not in LABELS] or names[:1]
    own = set(texts)  # a table may have a column for each of a million numbers
    labels = [name for name in names if name not in own]
    if labels and labels[0] in TRANSCRIPTS:  # digits, too, are words that were spoken
        columns = {**columns, labels[0]: [str(value) for value in columns[labels[0]]]}
    if len(texts) > 2 and isinstance(columns[texts[0]][0], str):
        raise DataError(f"{file}: a sample is one text or a pair of them, not {few(texts)} (--column)")
    return Table(values={name: columns[name] for name in texts}, labels=columns[labels[0]] if labels else None)


def _require_alike(name: str, values: list[Any], file: Path) -> None:
    """Raise DataError where a value is of another kind than the first one, or a number is beyond 64 bits."""
    types = set(map(type, values))
    if types in ({str}, {float}) or (types == {int} and _fits(min(values)) and _fits(max(values))):
        return
    for row, value in enumerate(values):
        if (kind := kind_of(value)) is None:
            raise DataError(f"{file}: the {name} of row {row + 1} is a number beyond 64 bits, or a list of such")
        if kind != kind_of(values[0]):
            raise DataError(
                f"{file}: the {name} of row {row + 1} is {kind}, that of row 1 is {kind_of(values[0])}; give one kind"
            )


def kind_of(value: Any) -> str | None:
    """Return what a cell holds, in words; None for numbers that no tensor holds."""
    if isinstance(value, int | float):
        return "a number" if _fits(value) else None
    if isinstance(value, list):
        if not value or not isinstance(value[0], int):
            return "a list"
        if not all(map(_fits, value)):
            return None if all(isinstance(each, int | float) for each in value) else "a list of several kinds"
        return "a list of whole numbers" if all(isinstance(each, int) for each in value) else "a list of numbers"
    return KINDS.get(type(value), type(value).__name__)


def _fits(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and -(2**63) <= value < 2**63)


def _require_text(name: str, values: list[Any], file: Path) -> None:
    """Raise DataError for what is not whole text: bytes of another encoding, half a character."""
    if {str, bytes}.isdisjoint(map(type, values)):
        return
    for row, value in enumerate(values):
        if isinstance(value, bytes) and suffix_of(file)[:4] in (".csv", ".tsv"):
            raise DataError(f"{file}: row {row + 1} of the column {name} is not UTF-8; save the file as UTF-8")
        if isinstance(value, str) and SURROGATE.search(value):
            raise DataError(f"{file}: row {row + 1} of the column {name} holds half a character (a surrogate); fix it")


def read_texts(folder: Path, suffixes: Sequence[str]) -> Table:
    """Read every text file of a folder (and of the folders in it) as one row, in the order of their paths.

    Raises DataError where one cannot be read, and where all are empty.
    """
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in suffixes and file.is_file())
    texts = []
    for file in files:
        try:
            texts.append(read_text(file))
        except (OSError, ValueError) as error:
            raise DataError(f"{file} cannot be read as UTF-8 text: {error}") from None
    if not any(text.strip() for text in texts):
        raise DataError(f"{folder} has no file with text in it; give at least one")
    return Table(values={"text": [text for text in texts if text.strip()]}, labels=None)


def is_chat(name: str, value: Any) -> bool:
    """Return whether an entry of the column ``name`` is a conversation: a list of messages, or its JSON."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        try:
            return name in CHATS or isinstance(json.loads(value), list)
        except (ValueError, RecursionError):
            return False
    return isinstance(value, list) and (name in CHATS or (bool(value) and isinstance(value[0], dict)))


def messages_of(value: Any, file: Path, row: int) -> list[dict[str, Any]]:
    """Return a conversation as role and content; raises DataError for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    messages = [_message(each) for each in value] if isinstance(value, list) else []
    if not messages or not all(each.get("role") for each in messages):
        raise DataError(f"{file}: row {row + 1} is not a conversation; expected messages with role and content")
    return messages


def _message(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    fields = {name: each for name, each in value.items() if each is not None}
    if "from" in fields and "value" in fields:  # ShareGPT's names
        role = fields["from"]
        return {"role": ROLES.get(role, role) if isinstance(role, str) else None, "content": fields["value"]}
    return fields
