"""What a command prints: one report, which is both the JSON object and the readable text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np

Row = Mapping[str, object]
"""A JSON object: numbers, words, None, and lists and objects of them."""


def figure(value: object) -> str:
    """Return a value as a table shows it: a float with four digits, ``-`` where it is unknown."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def percent(value: float | None) -> str:
    """Return a share as a percentage with one decimal."""
    return "-" if value is None or math.isnan(value) else f"{value:.1%}"


def readable_bytes(count: float) -> str:
    """Return ``3.2 MB``: decimal units, as files and budgets are named."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError


def star(differs: bool) -> str:
    """Mark a row."""
    return "*" if differs else ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the rows' key, the heading (default: the key) and how a value is shown."""

    key: str
    title: str | None = None
    show: Callable[[Any], str] = figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of which the text shows ``columns``; the JSON object holds the whole rows under ``key``, if there is one.

    ``titles``: whether the text has headings.
    """

    rows: Sequence[Row]
    columns: Sequence[Column]
    key: str = ""
    titles: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The JSON object is ``facts``, the rows of the tables that have a key, and ``notes`` unless they are None.

    The text is ``parts``: lines, and tables with an empty line before and after them; then the notes, one a line.
    ``exit_code`` is that of the command: 1 where the answer is "no".
    """

    facts: Row
    parts: Sequence[str | Table] = ()
    notes: Sequence[str] | None = None
    exit_code: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints; what is not finite becomes null."""
        rows = {part.key: part.rows for part in self.parts if isinstance(part, Table) and part.key}
        noted = {} if self.notes is None else {"notes": self.notes}
        plain: dict[str, Any] = _plain({**self.facts, **rows, **noted})
        return plain


def _plain(value: object) -> Any:
    match value:
        case Mapping():
            return {str(key): _plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_plain(entry) for entry in value]
        case float():
            return float(value) if math.isfinite(value) else None
        case None | bool() | int():
            return value
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case _:
            return str(value)


def described(title: str, result: object) -> Report:
    """Return the report of any result: plain fields of a record as lines, its lists of records as tables."""
    values = asdict(result) if is_dataclass(result) and not isinstance(result, type) else {"result": result}
    lines: list[str] = []
    tables: list[str | Table] = []
    for name, value in values.items():
        if isinstance(value, list | tuple) and value and all(isinstance(row, dict) for row in value):
            tables += [name, Table(rows=value, columns=[Column(key, key.replace("_", " ")) for key in value[0]])]
        else:
            lines.append(f"{name.replace('_', ' ')}: {figure(_plain(value))}")
    return Report(facts=values, parts=[title, *lines, *tables])
