"""Rows of a table that hold pictures or sounds with texts, as conversations: which columns they are, where each picture
and each sound stands."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.errors import DataError
from workbench.models.data.files import SOUNDS
from workbench.models.data.table_file import Columns, read_columns
from workbench.models.data.tables import CHATS, LABELS, TRANSCRIPTS, is_chat, messages_of, named_columns

BESIDE = {
    "image": ("image", "images", "picture", "pictures", "img"),
    "audio": ("audio", "audios", "sound", "sounds", "speech"),
}  # fmt: skip
"""Columns of what a text stands beside, by the type of its parts in a message."""

FILES = ("file_name", "path", "file")
"""Columns of either."""

TEXTS = ("text", "caption", "question", "query", "prompt", "instruction", *TRANSCRIPTS, "sentence")
ANSWERS = ("answer", "answers", "completion", "response", "label")
CONVERSATIONS = (*CHATS, "texts")
WORDS = {"image": "picture", "audio": "sound"}
TYPES = {name: kind for kind in BESIDE for name in (kind, f"{kind}_url", f"input_{kind}")}
"""Types of parts of messages, as transformers and OpenAI have them."""

MARK = re.compile("<(image|audio)>")
"""Where a picture or a sound stands in the conversations of LLaVA's data, which are plain texts."""

IN_PARTS = ("path", "bytes", "url", *TYPES)
"""Where a part of a message has its picture or sound."""

Picture = Path | bytes
Sound = Path | bytes | tuple[Any, float]
"""A file, its bytes, or points and their rate."""

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One sample: a conversation whose messages' ``content`` is parts (``image``, ``audio`` or ``text``), its pictures
    and its sounds in their order, and the answer to it where that is a column of its own."""

    messages: list[Message]
    pictures: list[Picture]
    sounds: list[Sound]
    answer: str | None = None

    @property
    def text(self) -> str:
        """The texts alone, for a processor without a template."""
        parts = [part for message in self.messages for part in message["content"]]
        return "\n".join(part["text"] for part in parts if part["type"] == "text")

    @property
    def answered(self) -> Row:
        """The same with the answer as the conversation's end."""
        if self.answer is None:
            return self
        end = {"role": "assistant", "content": [{"type": "text", "text": self.answer}]}
        return Row([*self.messages, end], self.pictures, self.sounds)


def read_pictured_rows(file: Path, column: str, generates: bool) -> tuple[list[Row], Sequence[Any] | None]:
    """Return a table's rows and their labels, no rows where the table has no pictures.  Raises DataError.

    ``generates``: the network goes on with a text, so that a label is an answer and no class.
    """
    columns = read_columns(file, lambda table: _columns(table, column, file, generates))
    if not columns:
        return [], None
    label = None if generates else next((name for name in LABELS if name in columns), None)
    return _rows({name: each for name, each in columns.items() if name != label}, file), columns.get(label or "")


def _columns(table: Columns, column: str, file: Path, generates: bool) -> list[str]:
    """Return the named columns, or those with usual names; none where no picture is among these."""
    known = list(table.kinds)
    names = named_columns(column, known, file)
    if not names:
        text = next((name for name in (*CONVERSATIONS, *TEXTS) if name in known), None)
        beside = [name for columns in BESIDE.values() for name in [each for each in columns if each in known][:1]]
        names = beside or [name for name in FILES if name in known][:1]
        names += [text] if text else []
        if generates and text not in CONVERSATIONS:
            classes = {name for name in LABELS if table.kinds.get(name) == "number"}
            names += [name for name in ANSWERS if name in known and name not in classes][:1]
        if names == [text] and text not in CONVERSATIONS:
            return []
    return names if generates else names + [name for name in LABELS if name in known and name not in names][:1]


def _rows(columns: Mapping[str, Sequence[Any]], file: Path) -> list[Row]:
    """Return rows of columns, each of which holds conversations, pictures, sounds, or texts (the second: answers); none
    where neither a picture nor a sound is among them."""
    kinds: dict[str, list[Sequence[Any]]] = {"chat": [], "image": [], "audio": [], "text": []}
    for name, values in columns.items():
        first = next((value for value in values if value not in (None, [])), None)
        kinds[_kind_beside(name, first, file) or ("chat" if is_chat(name, first) else "text")].append(values)
    beside = {kind: kinds[kind] for kind in BESIDE}
    if not any(beside.values()) and len(kinds["chat"]) != 1:
        return []
    if len(kinds["chat"]) > 1 or any(len(each) > 1 for each in beside.values()) or len(kinds["text"]) > 2:
        raise DataError(f"{file}: a sample is pictures or sounds and a text, its answer, or a conversation (--column)")
    if not kinds["chat"] and not kinds["text"]:
        what, column = ("pictures", "IMAGE") if beside["image"] else ("sounds", "AUDIO")
        raise DataError(f"{file}: no column of texts stands beside the {what}; name it (--column {column},TEXT)")
    rows = list[Row]()
    for number in range(len(next(iter(columns.values())))):
        own = {kind: _listed(each[0][number]) if each else [] for kind, each in beside.items()}
        if kinds["chat"]:
            rows.append(_conversation(kinds["chat"][0][number], own, file, number))
        else:
            first = [next(iter(_listed(values[number])), None) for values in kinds["text"]]
            first[1:] = [str(each) if isinstance(each, int | float) else each for each in first[1:]]  # how many
            text, *answers = (_text(each, file, number) for each in first)
            row = _conversation([{"role": "user", "content": text}], own, file, number)
            rows.append(replace(row, answer=next(iter(answers), None)))
    return rows


def _kind_beside(name: str, value: Any, file: Path) -> str | None:
    """Return the type of what a column holds, None for texts and conversations."""
    named = next((kind for kind, names in BESIDE.items() if name in names), "image" if name == FILES[0] else None)
    first = next(iter(_listed(value)), None)
    if named == "audio" or (isinstance(first, dict) and "sampling_rate" in first):
        return "audio"
    path = first.get("path") if isinstance(first, dict) else first
    heard = isinstance(path, str) and Path(path).suffix.lower() in SOUNDS
    is_file = isinstance(first, str) and os.path.isfile(file.parent / first)
    is_object = isinstance(first, bytes) or (isinstance(first, dict) and bool({*first} & {"bytes", "path"}))
    return ("audio" if heard else "image") if named or is_file or is_object else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any, file: Path, row: int) -> str:
    if not isinstance(value, str):
        raise DataError(
            f"{file}: row {row + 1} has no text beside its picture or sound; name the column of texts (--column)"
        )
    return value


def _source(value: Any, kind: str, file: Path, row: int) -> Any:
    """Return a picture's or a sound's bytes, its path beside the table, or a sound's points with their rate."""
    own = value if isinstance(value, dict) else {"bytes": value, "path": value}
    if isinstance(own.get("bytes"), bytes):
        return bytes(own["bytes"])
    if kind == "audio" and own.get("array") is not None and isinstance(own.get("sampling_rate"), int | float):
        return own["array"], own["sampling_rate"]
    name = own.get("path")
    if not isinstance(name, str) or not os.path.isfile(file.parent / name):
        what = repr(name[:60]) if isinstance(name, str) else type(value).__name__
        raise DataError(
            f"{file}: a {WORDS[kind]} of row {row + 1} is {what}; expected its bytes, or a path beside the table "
            "(nothing is downloaded)"
        )
    return file.parent / name


def _conversation(value: Any, beside: Mapping[str, list[Any]], file: Path, row: int) -> Row:
    """Return a conversation whose pictures and sounds are its parts' own, or stand beside it in the order of their
    places.

    Places are parts of their type, or MARK in plain texts; without any, they come first in what the user says, as
    templates leave out those of a system message.
    """
    left, found = {kind: list(each) for kind, each in beside.items()}, {kind: list[Any]() for kind in BESIDE}
    messages = list[Message]()
    for message in messages_of(_turns(value), file, row):
        parts = list[Message]()
        for part in _parts(message.get("content")):
            kind = TYPES.get(part["type"])
            if kind is not None:
                own = next((part[name] for name in IN_PARTS if part.get(name) is not None), None)
                if own is None and not left[kind]:
                    words = WORDS[kind]
                    raise DataError(f"{file}: row {row + 1} has more places for {words}s than {words}s")
                found[kind].append(left[kind].pop(0) if own is None else own)
                part = {"type": kind}
            parts.append(part)
        messages.append({**message, "content": parts})
    for kind, more in left.items():
        if more and found[kind]:
            raise DataError(f"{file}: row {row + 1} has more {WORDS[kind]}s than places for them")
        first = next((message for message in messages if message["role"] == "user"), messages[0])
        first["content"] = [*({"type": kind} for _ in more), *first["content"]]
        found[kind] += more
    pictures, sounds = ([_source(each, kind, file, row) for each in found[kind]] for kind in BESIDE)
    return Row(messages, pictures, sounds)


def _turns(value: Any) -> Any:
    """Return a conversation as messages where it is pairs of what ``user`` and ``assistant`` say (The Cauldron)."""
    if not isinstance(value, list) or not all(
        isinstance(each, dict) and {"user", "assistant"} <= {*each} for each in value
    ):
        return value
    return [{"role": role, "content": pair[role]} for pair in value for role in ("user", "assistant")]


def _parts(content: Any) -> list[Message]:
    if isinstance(content, list | dict):
        return list(map(_part, content if isinstance(content, list) else [content]))
    text, *marked = MARK.split(str(content or ""))
    parts = [{"type": "text", "text": text}]
    for kind, after in zip(marked[::2], marked[1::2], strict=True):
        parts += [{"type": kind}, {"type": "text", "text": after.removeprefix("\n")}]
    return [part for part in parts if part["type"] != "text" or part["text"]]


def _part(part: Any) -> Message:
    """Return a part with its type, which some data leave out, and a text's text."""
    own = dict(part) if isinstance(part, dict) else {"text": part}
    unsaid = next((TYPES[name] for name in TYPES if own.get(name) is not None), "image")
    kind = str(own.get("type") or (unsaid if own.get("text") is None else "text"))
    return {**own, "type": kind} | ({"text": str(own.get("text") or "")} if kind == "text" else {})
