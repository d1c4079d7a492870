"""Rows of a table that hold pictures and texts, as conversations: which columns they are, where each picture stands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.errors import DataError
from workbench.models.data.table_file import Columns, read_columns
from workbench.models.data.tables import CHATS, LABELS, is_chat, messages_of, named_columns

PICTURES = ("image", "images", "picture", "pictures", "img", "file_name")
TEXTS = ("text", "caption", "question", "query", "prompt", "instruction")
ANSWERS = ("answer", "answers", "completion", "response", "label")
CONVERSATIONS = (*CHATS, "texts")

MARK = "<image>"
"""Where a picture stands in the conversations of LLaVA's data, which are plain texts."""

IN_PARTS = ("image", "path", "bytes", "url", "image_url")
"""Where a part of a message has its picture."""

Source = Path | bytes
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One sample: a conversation whose messages' ``content`` is parts (``image`` or ``text``), its pictures in their
    order, and the answer to it where that is a column of its own."""

    messages: list[Message]
    pictures: list[Source]
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
        return Row([*self.messages, end], self.pictures)


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
        names = [name for name in [next((each for each in PICTURES if each in known), None), text] if name]
        if generates and text not in CONVERSATIONS:
            classes = {name for name in LABELS if table.kinds.get(name) == "number"}
            names += [name for name in ANSWERS if name in known and name not in classes][:1]
        if not {*names} & {*PICTURES, *CONVERSATIONS}:
            return []
    return names if generates else names + [name for name in LABELS if name in known and name not in names][:1]


def _rows(columns: Mapping[str, Sequence[Any]], file: Path) -> list[Row]:
    """Return rows of columns, each of which holds conversations, pictures, or texts (the second: answers); none where
    no picture is among them."""
    kinds: dict[str, list[Sequence[Any]]] = {"chat": [], "pictures": [], "text": []}
    for name, values in columns.items():
        first = next((value for value in values if value not in (None, [])), None)
        pictured = name in PICTURES or _holds_pictures(first, file)
        kind = "pictures" if pictured else "chat" if is_chat(name, first) else "text"
        kinds[kind].append(values)
    if not kinds["pictures"] and len(kinds["chat"]) != 1:
        return []
    if len(kinds["chat"]) > 1 or len(kinds["pictures"]) > 1 or len(kinds["text"]) > 2:
        raise DataError(f"{file}: a sample is pictures and a text, its answer, or a conversation (--column)")
    if not kinds["chat"] and not kinds["text"]:
        raise DataError(f"{file}: no column of texts stands beside the pictures; name it (--column IMAGE,TEXT)")
    beside, rows = next(iter(kinds["pictures"]), None), list[Row]()
    for number in range(len(next(iter(columns.values())))):
        pictures = _listed(beside[number]) if beside is not None else []
        if kinds["chat"]:
            rows.append(_conversation(kinds["chat"][0][number], pictures, file, number))
        else:
            first = [next(iter(_listed(values[number])), None) for values in kinds["text"]]
            first[1:] = [str(each) if isinstance(each, int | float) else each for each in first[1:]]  # how many
            text, *answers = (_text(each, file, number) for each in first)
            row = _conversation([{"role": "user", "content": text}], pictures, file, number)
            rows.append(replace(row, answer=next(iter(answers), None)))
    return rows


def _holds_pictures(value: Any, file: Path) -> bool:
    first = next(iter(_listed(value)), None)
    is_file = isinstance(first, str) and os.path.isfile(file.parent / first)
    return is_file or isinstance(first, bytes) or (isinstance(first, dict) and bool({*first} & {"bytes", "path"}))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any, file: Path, row: int) -> str:
    if not isinstance(value, str):
        raise DataError(f"{file}: row {row + 1} has no text beside its picture; name the column of texts (--column)")
    return value


def _source(value: Any, file: Path, row: int) -> Source:
    """Return a picture's bytes, or its path beside the table."""
    own = value if isinstance(value, dict) else {"bytes": value, "path": value}
    if isinstance(own.get("bytes"), bytes):
        return bytes(own["bytes"])
    name = own.get("path")
    if not isinstance(name, str) or not os.path.isfile(file.parent / name):
        what = repr(name[:60]) if isinstance(name, str) else type(value).__name__
        raise DataError(
            f"{file}: a picture of row {row + 1} is {what}; expected its bytes, or a path beside the table (nothing is "
            "downloaded)"
        )
    return file.parent / name


def _conversation(value: Any, beside: list[Any], file: Path, row: int) -> Row:
    """Return a conversation whose pictures are its parts' own, or stand beside it in the order of their places.

    Places are parts of type ``image``, or MARK in plain texts; without any, the pictures come first in what the user
    says, as templates leave out those of a system message.
    """
    left, pictures, messages = list(beside), list[Any](), list[Message]()
    for message in messages_of(_turns(value), file, row):
        parts = list[Message]()
        for part in _parts(message.get("content")):
            if part.get("type") in ("image", "image_url"):
                own = next((part[name] for name in IN_PARTS if part.get(name) is not None), None)
                if own is None and not left:
                    raise DataError(f"{file}: row {row + 1} has more places for pictures than pictures")
                pictures.append(left.pop(0) if own is None else own)
                part = {"type": "image"}
            parts.append(part)
        messages.append({**message, "content": parts})
    if left and pictures:
        raise DataError(f"{file}: row {row + 1} has more pictures than places for them")
    if left:
        first = next((message for message in messages if message["role"] == "user"), messages[0])
        first["content"] = [*({"type": "image"} for _ in left), *first["content"]]
    return Row(messages, [_source(picture, file, row) for picture in [*pictures, *left]])


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
    pieces = str(content or "").split(MARK)
    marked = [{"type": "text", "text": pieces[0]}]
    for piece in pieces[1:]:
        marked += [{"type": "image"}, {"type": "text", "text": piece.removeprefix("\n")}]
    return [part for part in marked if part["type"] == "image" or part["text"]]


def _part(part: Any) -> Message:
    """Return a part with its type, which some data leave out, and a text's text."""
    own = dict(part) if isinstance(part, dict) else {"text": part}
    kind = own.get("type") or ("image" if own.get("text") is None else "text")
    return {**own, "type": kind} | ({"text": str(own.get("text") or "")} if kind == "text" else {})
