"""The rows of JSON: one a line, a list, an object with its rows under a name, or one of columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.errors import first_line

ROWS = ("data", "rows", "examples", "instances", "train")
"""Where a JSON file that is one object has its rows."""

LISTS = ("messages", "conversations", "conversation", "tokens", "words", "input_ids", "tools")
"""Columns whose cells are lists: an object that has such a one with something else in it is a row."""


def json_rows(text: str, suffix: str) -> list[dict[str, Any]]:
    """Return the rows of the text of a file with that suffix; raises ValueError for what has none."""
    rows = _whole(text) if suffix == ".json" else None
    rows = list(_json_lines(text)) if rows is None else rows
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("its rows are not tables of names and values")
    return rows


def _whole(text: str) -> list[Any] | None:
    """Return the rows of a JSON file: a list, that of an object (``data``), those of an object of columns, or the
    object; None for JSON Lines."""
    try:
        value = json.loads(text)
    except ValueError:
        if text.lstrip()[:1] == "[":
            raise
        return None
    lists = [value.get(name) for name in ROWS] if isinstance(value, dict) else [value]
    rows = (each for each in lists if isinstance(each, list) and all(isinstance(row, dict) for row in each))
    return next(rows, value if isinstance(value, list) else _of_columns(value) or [value])


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


def _json_lines(text: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):  # other line ends may stand within a string
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON ({first_line(error)})") from None
