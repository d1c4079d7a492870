"""What a right click on any table or tree offers: a cell, rows or the whole table as plain numbers, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, Qt
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu

from workbench.gui.shell.copying import Copying, put
from workbench.gui.shell.words import tr
from workbench.gui.tables.files import RAW, as_cell, raw_rows

Index = QModelIndex | QPersistentModelIndex


def tabbed(rows: Iterable[Iterable[str]]) -> str:
    """Return rows as text with tabs, which spreadsheets take."""
    return "\n".join("\t".join(map(as_cell, row)) for row in rows)


def cell_text(index: Index) -> str:
    """Return a cell as plain text: the exact number where there is one."""
    raw = index.data(RAW)
    return str(index.data(Qt.ItemDataRole.DisplayRole) or "" if raw is None else raw)


def selected_rows(view: QAbstractItemView) -> list[QModelIndex]:
    """Return the first cell of every selected row; Qt's own ``selectedRows`` takes seconds for thousands."""
    model, selection = view.model(), view.selectionModel().selection()
    parts = map(selection.at, range(selection.count()))
    ranges = ((each.parent(), range(each.top(), each.bottom() + 1)) for each in parts)
    return [model.index(row, 0, parent) for parent, rows in ranges for row in rows]


def row_text(view: QAbstractItemView) -> str:
    """Return the selected rows, all for none, below their headings."""
    model = view.model()
    chosen = selected_rows(view)
    if not chosen:
        return tabbed(raw_rows(model))
    across, columns = Qt.Orientation.Horizontal, range(model.columnCount())
    head = [str(model.headerData(at, across, RAW) or model.headerData(at, across)) for at in columns]
    rows = ([cell_text(index.siblingAtColumn(at)) for at in columns] for index in sorted(chosen))
    return tabbed([head, *rows])


def add_copies(menu: QMenu, view: QAbstractItemView, index: Index) -> None:
    """Add the ways to copy from a table to a menu; ``index`` is the cell that was clicked."""
    if index.isValid():
        text = cell_text(index)
        menu.addAction(tr("Copy the C&ell"), lambda: put(text))
        menu.addAction(tr("Copy the &Rows"), lambda: put(row_text(view)))
    menu.addAction(tr("Copy the &Table"), lambda: copy_table(view))
    menu.addAction(tr("Copy the &Picture"), lambda: QApplication.clipboard().setPixmap(view.grab()))


def offer_copies(view: QAbstractItemView) -> None:
    """Let a right click, or the menu key, on a table offer what can be copied from it."""

    def offer(where: QPoint) -> None:
        menu = QMenu(view)
        menu.setObjectName("copies")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        add_copies(menu, view, view.indexAt(where))
        menu.popup(view.viewport().mapToGlobal(where))

    view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
    view.customContextMenuRequested.connect(offer)


def copy_table(view: QAbstractItemView, done: Callable[[], object] = lambda: None) -> None:
    """Copy a whole table as plain numbers, then call ``done``; start again if the table changes meanwhile."""
    model = view.model()
    copying = Copying(view, lambda: (tabbed([row]) for row in raw_rows(model)), done)
    for changed in (model.modelReset, model.layoutChanged):
        changed.connect(copying.start)
    copying.start()
