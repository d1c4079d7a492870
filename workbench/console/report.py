"""What a command prints: one report, which is both the JSON object and the readable text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import numpy as np

from workbench.memory import size_text
from workbench.session.results import StepResult

Row = Mapping[str, object]
"""A JSON object: numbers, words, None, and lists and objects of them."""


def row(record: object, names: str, **others: object) -> dict[str, Any]:
    """Return a JSON object: attributes of a record by name (``bytes=nbytes``: under another key), and ``others``."""
    pairs = (name.partition("=") for name in names.split())
    return {key: getattr(record, attribute or key) for key, _, attribute in pairs} | others


def figure(value: object) -> str:
    """Return a value as a table shows it: a float with four digits, ``-`` where it is unknown."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def percent(value: float | None) -> str:
    """Return a share as a percentage with one decimal."""
    return "-" if value is None or math.isnan(value) else f"{value:.1%}"


def _star(differs: bool) -> str:
    return "*" if differs else ""


def _speed(per_second: float) -> str:
    return f"{per_second:.0f}" if per_second > 0 else "-"


FORMATS: Mapping[str, Callable[[Any], str]] = {
    "size": size_text, "bytes": "{:,}".format, "parameters": "{:,}".format, "weights": "{:,}".format,
    "shape": lambda shape: " x ".join(map(str, shape)), "differs": _star, "used": _star, "share": percent,
    "most_moved": percent, "above_share": "{:.2%}".format, "clipped": "{:.3%}".format, "sigmas": "{:.1f}".format,
    "times_median": "{:.1f}".format, "bits_per_weight": "{:.4f}".format, "speedup": "{:.2f}x".format,
    "file_bytes": size_text, "peak_bytes": size_text, "agreement": percent,
    "prompt_speed": _speed, "generation_speed": _speed,
}  # fmt: skip


def shown(key: str, value: object) -> str:
    """Return a value as the column of ``key`` shows it: ``-`` where it is unknown, nothing for an empty text."""
    return figure(value) if value in (None, "") else FORMATS.get(key, figure)(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of which the text shows ``columns``; the JSON object holds the whole rows under ``key``, if there is one.

    ``columns`` are the rows' keys in order, separated by bars, each with a heading if it is not the key:
    ``name=layer | kind | bytes=size``.  ``titles``: whether the text has headings.  ``above`` is a line above the
    table; the text has neither where there are no rows.
    """

    rows: Sequence[Row]
    columns: str
    key: str = ""
    titles: bool = True
    above: str = ""

    @property
    def headings(self) -> dict[str, str]:
        """The heading of every key that is shown."""
        parts = (column.strip().partition("=") for column in self.columns.split("|"))
        return {key: title if sign else key for key, sign, title in parts}


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
    if isinstance(result, StepResult):
        return _stored(title, result)
    values = asdict(result) if is_dataclass(result) and not isinstance(result, type) else {"result": result}
    lines: list[str] = []
    tables: list[str | Table] = []
    for name, value in values.items():
        if isinstance(value, list | tuple) and value and all(isinstance(row, dict) for row in value):
            tables += [name, Table(rows=value, columns="|".join(value[0]))]
        else:
            lines.append(f"{name.replace('_', ' ')}: {figure(_plain(value))}")
    return Report(facts=values, parts=[title, *lines, *tables])


def _stored(title: str, result: StepResult) -> Report:
    """Return the report of a stored result: facts as lines, but for hashes, which say nothing to a reader; a table."""
    lists = [cells.tolist() if isinstance(cells, np.ndarray) else cells for cells in result.columns.values()]
    rows = [dict(zip(result.columns, row, strict=True)) for row in zip(*lists, strict=True)]
    shown = {name: value for name, value in result.facts.items() if not str(value).startswith("sha256:")}
    lines = [f"{name.replace('_', ' ')}: {figure(value)}" for name, value in shown.items()]
    table = Table(rows=rows, columns="|".join(result.columns), key="rows")
    return Report(facts=result.facts, parts=[title, *lines, table])
