"""Every text that a window shows: labels, tips, names for screen readers, headings, cells, entries of lists."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFileDialog,
    QHeaderView,
    QListView,
    QTableView,
    QTabWidget,
    QTreeView,
    QWidget,
)

ROWS = 30
"""Rows of a table that are read."""

GETTERS = ("text", "title", "placeholderText", "specialValueText", "suffix", "toolTip", "accessibleName",
           "accessibleDescription")  # fmt: skip


def texts(widget: QWidget) -> Iterator[tuple[str, str]]:
    """Yield the texts of a widget and of all inside it, with where each stands."""
    for part in (widget, *widget.findChildren(QWidget)):
        where = type(part).__name__
        getters = ((name, getattr(part, name, None)) for name in GETTERS)
        yield from ((f"{where}.{name}", getter()) for name, getter in getters if callable(getter))
        if isinstance(part, QComboBox):
            yield from ((f"{where}.item", part.itemText(place)) for place in range(part.count()))
        if isinstance(part, QTabWidget):
            yield from ((f"{where}.tab", part.tabText(place)) for place in range(part.count()))
        yield from ((f"{where}.action", text) for each in part.actions() for text in (each.text(), each.toolTip()))
        is_table = isinstance(part, QTableView | QTreeView | QListView) and not isinstance(part, QHeaderView)
        if is_table and not isinstance(part.window(), QFileDialog):  # which lists files
            yield from ((f"{where}.cell", text) for text in _cells(part))


def _cells(view: QAbstractItemView) -> Iterator[str]:
    model, root = view.model(), view.rootIndex()
    for column in range(1 if isinstance(view, QListView) else model.columnCount(root)):
        for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            yield str(model.headerData(column, Qt.Orientation.Horizontal, role) or "")
            for row in range(min(model.rowCount(root), ROWS)):
                yield str(model.index(row, column, QModelIndex() if not root.isValid() else root).data(role) or "")
