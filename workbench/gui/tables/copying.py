"""What a right click on any table or tree offers: a cell, rows or the whole table as plain numbers, and a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, Qt
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu

from workbench.gui.shell.copying import Lines, copy_lines, put
from workbench.gui.shell.words import tr
from workbench.gui.tables.files import RAW, as_cell, raw_rows
from workbench.readable import readable

Index = QModelIndex | QPersistentModelIndex


def tabbed(cells: Iterable[str]) -> str:
    """Return a row as text with tabs, which spreadsheets take."""
    return "\t".join(map(as_cell, cells))


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


def copy_rows(view: QAbstractItemView) -> None:
    """Copy the selected rows, all for none, below their headings."""
    follow(view, copy_lines(view, partial(_row_lines, view)))


def _row_lines(view: QAbstractItemView) -> Iterator[str]:
    rows, chosen = raw_rows(view.model()), selected_rows(view)
    columns = range(view.model().columnCount())
    yield tabbed(next(rows))
    for index in sorted(chosen):
        yield tabbed(cell_text(index.siblingAtColumn(at)) for at in columns)
    yield from () if chosen else map(tabbed, rows)


def add_copies(menu: QMenu, view: QAbstractItemView, index: Index) -> None:
    """Add the ways to copy from a table to a menu; ``index`` is the cell that was clicked."""
    if index.isValid():
        text = readable(cell_text(index))
        menu.addAction(tr("Copy the C&ell"), lambda: put(text))
        menu.addAction(tr("Copy the &Rows"), lambda: copy_rows(view))
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
    """Copy a whole table as plain numbers, then call ``done``."""
    model = view.model()
    follow(view, copy_lines(view, lambda: map(tabbed, raw_rows(model)), done))


def follow(view: QAbstractItemView, lines: Lines) -> None:
    """Begin again with the lines of a table if it changes before all are there."""
    for changed in (view.model().modelReset, view.model().layoutChanged):
        changed.connect(lines.begin_again)
