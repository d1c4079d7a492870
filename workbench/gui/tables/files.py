"""Any table or tree of the window as rows of text, and as a CSV file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from PySide6.QtCore import QAbstractItemModel, QModelIndex, Qt

from workbench.atomic import replacing
from workbench.errors import ExportError


def rows_of(model: QAbstractItemModel) -> list[list[str]]:
    """Return the headings and every row as they are shown; the rows of a tree in its order, below their parents."""
    columns = range(model.columnCount())
    heading = [_text(model.headerData(column, Qt.Orientation.Horizontal)) for column in columns]
    return [heading, *_below(model, QModelIndex())]


def _below(model: QAbstractItemModel, parent: QModelIndex) -> list[list[str]]:
    found = []
    for row in range(model.rowCount(parent)):
        first = model.index(row, 0, parent)
        found.append([
            _text(model.data(model.index(row, column, parent))) for column in range(model.columnCount(parent))
        ])  # fmt: skip
        found += _below(model, first)
    return found


def _text(value: object) -> str:
    return "" if value is None else str(value)


def as_csv(model: QAbstractItemModel) -> str:
    """Return the table as comma-separated values (RFC 4180)."""
    text = io.StringIO()
    csv.writer(text).writerows(rows_of(model))
    return text.getvalue()


def save_csv(model: QAbstractItemModel, path: Path) -> None:
    """Write the table as UTF-8 with the mark that spreadsheets want; raises ExportError."""
    with replacing(path, ExportError, "the table") as temporary:
        temporary.write_text(as_csv(model), encoding="utf-8-sig", newline="")
