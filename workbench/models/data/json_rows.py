"""The rows of JSON: one a line, a list, an object with its rows under a name, or one of columns."""

from __future__ import annotations

import codecs
import json
import mmap
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from workbench.errors import first_line
from workbench.memory import size_text

Names = TypeVar("Names", list[str], set[str])

LONGEST, PIECE = 1 << 27, 1 << 24
"""Bytes of the longest value of a table (a picture, a sound of an hour), and of what is read of a list at once."""

MOST_COLUMNS = 1 << 18
"""Columns of any table: a million take longer to name than to read."""

ROWS = ("data", "rows", "examples", "instances", "train")
"""Where a JSON file that is one object has its rows."""

NO_ROWS = "its rows are not tables of names and values"
TOO_LONG = f"is longer than {size_text(LONGEST)}, the most for a row; cut it, or write a list of rows or JSON Lines"
"""What a line or a row is."""

BLANKS, BETWEEN = re.compile(rb"\s*"), re.compile(r"[ \t\n\r]*(,?)[ \t\n\r]*")

LISTS = ("messages", "conversations", "conversation", "tokens", "words", "input_ids", "tools")
"""Columns whose cells are lists: an object that has such a one with something else in it is a row."""


def json_rows(data: bytes | mmap.mmap, suffix: str) -> list[dict[str, Any]]:
    """Return the rows of a file with that suffix, of which no more lies here at once than its longest value.

    Raises ValueError for what has none.
    """
    start = 3 * (data[:3] == codecs.BOM_UTF8)
    first = _after(BLANKS, data, start)
    rows = None
    if suffix == ".json" and data[first : first + 1] == b"[":
        rows = _of_list(data, first + 1)
    elif suffix == ".json" and len(data) <= LONGEST:
        rows = _whole(data[start:].decode())
    rows = list(_json_lines(data, start)) if rows is None else rows
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError(NO_ROWS)
    return rows


def _after(pattern: re.Pattern[bytes], data: Any, start: int) -> int:
    found = pattern.match(data, start)
    return found.end() if found else start


def _of_list(data: bytes | mmap.mmap, start: int) -> list[Any]:
    """Return the rows of a list whose first one begins at ``start``."""
    rows: list[Any] = []
    text, decoded = "", codecs.getincrementaldecoder("utf-8")()
    while True:
        piece = data[start : start + max(PIECE, min(len(text), LONGEST - len(text)))]
        start += len(piece)
        rest, fault = _taken(text + decoded.decode(piece, start == len(data)), rows)
        if not fault:
            if rest.strip() or _after(BLANKS, data, start) < len(data):
                raise ValueError("something follows its list")
            return rows
        if not piece:
            raise ValueError(f"row {len(rows) + 1} is not JSON ({fault})")
        if len(rest) > LONGEST:
            raise ValueError(f"row {len(rows) + 1} {TOO_LONG}")
        text = rest


def _taken(text: str, rows: list[Any]) -> tuple[str, str]:
    """Add the whole rows at the start of a text to ``rows``; returns what follows, and what is wrong with it, which
    more text may end, or nothing at the list's end."""
    at, decoder, fault = 0, json.JSONDecoder(), "it ends within the list"
    while (between := BETWEEN.match(text, at)) and (mark := text[between.end() : between.end() + 1]):
        if mark == "]" and not between[1]:
            return text[between.end() + 1 :], ""
        if mark != "{":
            raise ValueError(NO_ROWS)
        if bool(between[1]) != bool(rows):
            raise ValueError(f"row {len(rows) + 1} is not JSON (a comma is missing or too much)")
        try:
            row, at = decoder.raw_decode(text, between.end())
        except json.JSONDecodeError as error:
            fault = error.msg
            break
        rows.append(row)
    return text[at:], fault


def _whole(text: str) -> list[Any] | None:
    """Return the rows of a JSON file: those of an object (``data``), those of an object of columns, or the object;
    None for JSON Lines."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    lists = [value.get(name) for name in ROWS] if isinstance(value, dict) else []
    rows = (each for each in lists if isinstance(each, list) and all(isinstance(row, dict) for row in each))
    return next(rows, _of_columns(value) or [value])


def _of_columns(value: Any) -> list[Any]:
    """Return the rows of an object of columns or of rows as pandas writes them; none for one that is a row.

    Columns are lists, or objects whose keys are the rows' numbers; rows are objects under their numbers, or lists
    beside the names of the ``columns``.
    """
    columns = value if isinstance(value, dict) else {}
    if columns and all(isinstance(column, dict) for column in columns.values()):
        names = [[*column] for column in columns.values()]
        alike = names.count(names[0]) == len(names)
        if alike and _are_numbers(columns) and not _are_numbers(names[0]):
            return [*columns.values()]
        numbered = alike and _are_numbers(names[0])
        columns = {name: [*column.values()] for name, column in columns.items()} if numbered else {}
    elif columns.keys() - {"index"} == {"columns", "data"}:
        names, rows = columns["columns"], columns["data"]
        whole = isinstance(names, list) and all(isinstance(name, str) for name in names) and isinstance(rows, list)
        if whole and all(isinstance(row, list) and len(row) == len(names) for row in rows):
            return [dict(zip(names, row, strict=True)) for row in rows]
    elif any(isinstance(column, list) and not all(isinstance(each, list) for each in column)
             for name, column in columns.items() if name in LISTS):  # fmt: skip
        return []
    if not columns or not all(isinstance(column, list) for column in columns.values()):
        return []
    if len(set(map(len, columns.values()))) > 1:
        return []
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _are_numbers(names: Iterable[str]) -> bool:
    """Return whether names are rows' numbers, in any order: those of a part of a table are not 0, 1, 2."""
    return all(name.removeprefix("-").isdecimal() for name in names)


def _json_lines(data: bytes | mmap.mmap, start: int) -> Iterator[Any]:
    while (start := _after(BLANKS, data, start)) < len(data):
        end = data.find(b"\n", start, start + LONGEST)  # other line ends may stand within a string
        if end < 0 and len(data) - start > LONGEST:
            raise ValueError(f"line {_line(data, start)} {TOO_LONG}")
        end = len(data) if end < 0 else end
        try:
            yield json.loads(data[start:end].decode())
        except ValueError as error:
            raise ValueError(f"line {_line(data, start)} is not JSON ({first_line(error)})") from None
        start = end


def _line(data: bytes | mmap.mmap, start: int) -> int:
    """Return the number of the line in which a byte is."""
    return 1 + sum(data[at : min(at + PIECE, start)].count(b"\n") for at in range(0, start, PIECE))


def bounded(names: Names) -> Names:
    """Return the names of a table's columns; raises ValueError for more than it may have."""
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"it has {len(names):,} columns, and {MOST_COLUMNS:,} are the most")
    return names
