"""Any table or tree of the window as raw values: for a CSV file and for the clipboard."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from PySide6.QtCore import QAbstractItemModel, QModelIndex, Qt

from workbench.atomic import replacing
from workbench.errors import ExportError
from workbench.readable import readable

RAW = Qt.ItemDataRole.UserRole
"""The role in which a model gives its exact values, and headings with their units, as text."""

FORMULA = ("=", "+", "-", "@")
"""What spreadsheets begin a formula with."""


def raw_rows(model: QAbstractItemModel) -> Iterator[list[str]]:
    """Yield the headings and every row as raw values; the rows of a tree in its order, below their parents."""
    yield [_heading(model, column) for column in range(model.columnCount())]
    yield from _below(model)


def _heading(model: QAbstractItemModel, column: int) -> str:
    across = Qt.Orientation.Horizontal
    return str(model.headerData(column, across, RAW) or model.headerData(column, across))


def _below(model: QAbstractItemModel, parent: QModelIndex | None = None) -> Iterator[list[str]]:
    above = parent or QModelIndex()
    for row in range(model.rowCount(above)):
        yield [model.data(model.index(row, column, above), RAW) for column in range(model.columnCount(above))]
        yield from _below(model, model.index(row, 0, above))


def as_cell(value: object) -> str:
    """Return a value as a cell of a spreadsheet: one line of text or a number, and never a formula, which can run
    programs and send other cells away (an apostrophe before it says that it is text)."""
    text = readable(str(value))
    if text[:1] not in FORMULA or len(text) == 1:
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def csv_lines(model: QAbstractItemModel) -> Iterator[str]:
    """Yield the table as lines of comma-separated values with their ends (RFC 4180)."""
    for row in raw_rows(model):
        text = io.StringIO()
        csv.writer(text).writerow(map(as_cell, row))
        yield text.getvalue()


def save_csv(lines: Iterable[str], path: Path) -> None:
    """Write lines as UTF-8 with the byte order mark that spreadsheets need; raises ExportError."""
    with replacing(path, ExportError, "the table") as temporary:
        temporary.write_text("".join(lines), encoding="utf-8-sig", newline="")
