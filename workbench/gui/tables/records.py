"""A table of records, sorted by any column; what is selected is a record, not a row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, QObject, Qt
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from workbench.gui.shell.foreign import as_line, as_tip, isolated
from workbench.gui.shell.words import tr
from workbench.gui.tables.copying import Index, copy_rows, offer_copies, selected_rows
from workbench.gui.tables.fields import Field, order_of, plain
from workbench.gui.tables.files import RAW

Identity = Callable[[Any], Hashable]

DIGITS = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute
"""Numbers stand at the right in a window from right to left, too: their last digits belong below each other."""

MOST_LETTERS = 44
"""Letters of a column's width: longer names end with an ellipsis, and their tooltips are whole."""

FEW = 50
"""Records up to which every change is looked through for texts that no longer fit."""


class RecordsModel(QAbstractTableModel):
    """Shows a tuple of records.

    A newer record with the same ``identity(record)`` replaces an older one and stays selected.
    """

    def __init__(self, columns: Sequence[Field], identity: Identity = id, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.records: tuple[Any, ...] = ()
        self.unit = ""  # of the sensitivity metric that is shown
        self._identity = identity
        self._order: list[int] = []
        self._sorted: tuple[int, bool] | None = None

    def show_records(self, records: Sequence[Any]) -> None:
        """Show other records."""
        if len(records) != len(self.records):
            self.beginResetModel()  # the view selects the records again
            self._arrange(tuple(records))
            self.endResetModel()
            return
        before = self._identities()
        if not self._sorted and before == [self._identity(record) for record in records]:
            self.records = tuple(records)
        else:
            self._move(lambda: self._arrange(tuple(records)), before)
        if self.records:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.records) - 1, len(self.columns) - 1))

    def show_unit(self, unit: str) -> None:
        """Name the unit of the sensitivity metric that is shown."""
        if unit != self.unit:
            self.unit = unit
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)

    def record(self, row: int) -> Any:
        """Return the record in a row."""
        return self.records[self._order[row]]

    def identity(self, row: int) -> Hashable:
        """Return the identity of the record in a row."""
        return self._identity(self.record(row))

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1: in the original order."""
        self._sorted = (column, order == Qt.SortOrder.DescendingOrder) if column >= 0 else None
        self._move(lambda: self._arrange(self.records), self._identities())

    def _identities(self) -> list[Hashable]:
        return [self.identity(row) for row in range(len(self.records))]

    def _move(self, change: Callable[[], None], before: list[Hashable]) -> None:
        """Do a ``change`` that moves records to other rows, and let the views' indices follow their records."""
        self.layoutAboutToBeChanged.emit()
        change()
        rows = {identity: row for row, identity in enumerate(self._identities())}
        indices = self.persistentIndexList()
        moved = [self.index(rows.get(before[index.row()], -1), index.column()) for index in indices]
        self.changePersistentIndexList(indices, moved)
        self.layoutChanged.emit()

    def _arrange(self, records: tuple[Any, ...]) -> None:
        self.records = records
        self._order = list(range(len(records)))
        if self._sorted is not None:
            column, descending = self._sorted
            key = self.columns[column].key or self.columns[column].value
            self._order = order_of([key(record) for record in records], descending=descending)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.records)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        return heading(self.columns[section], role, self.unit) if orientation == Qt.Orientation.Horizontal else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        column = self.columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return as_line(column.shown(self.record(index.row())))
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(column.explained(self.record(index.row())))
        if role == RAW:
            return plain(column.value(self.record(index.row())))
        if role == Qt.ItemDataRole.DecorationRole and column.colour is not None:
            return QColor(column.colour(self.record(index.row())))
        return alignment(column) if role == Qt.ItemDataRole.TextAlignmentRole else None


def heading(column: Field, role: int, unit: str) -> Any:
    """Return a role of a column's heading."""
    if role == Qt.ItemDataRole.DisplayRole:
        return isolated(column.heading(unit))
    if role == Qt.ItemDataRole.ToolTipRole:
        return tr(column.tip or column.title)
    if role == RAW:
        return column.heading(unit, exported=True)
    return alignment(column) if role == Qt.ItemDataRole.TextAlignmentRole else None


def alignment(column: Field) -> Qt.AlignmentFlag:
    """Return the alignment of a column's texts."""
    side = DIGITS if column.numeric else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


class LeftToRight(QStyledItemDelegate):
    """Keeps numbers before their units, and names as they are written, where the window runs from right to left; all
    stand where their heading does."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        super().initStyleOption(option, index)
        option.displayAlignment = QStyle.visualAlignment(Qt.LayoutDirection.RightToLeft, option.displayAlignment)
        option.direction = Qt.LayoutDirection.LeftToRight


class RecordsView(QTableView):
    """A table with whole rows to select, fixed heights, and Ctrl+C that copies them."""

    def __init__(
        self, name: str, columns: Sequence[Field], identity: Identity = id, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.records = RecordsModel(columns, identity, self)
        self.setModel(self.records)
        self._most, self._fitted = self.fontMetrics().averageCharWidth() * MOST_LETTERS, dict[int, int]()
        self.setAccessibleName(tr(name))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        offer_copies(self)
        if self.isRightToLeft():
            self.setItemDelegate(LeftToRight(self))
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 7)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)
        header.setSortIndicatorShown(False)  # its arrow would take room in every column
        header.sortIndicatorChanged.connect(lambda column, _: header.setSortIndicatorShown(column >= 0))

    def show_records(self, records: Sequence[Any], unit: str = "") -> None:
        """Show other records, losses in ``unit``; the selected ones stay selected, columns are fitted to the first.

        Those of a short table only grow while it changes: fitting takes half a frame, and they would jump.
        """
        if unit != self.records.unit:
            self.records.show_unit(unit)
            if not records and not self.horizontalHeader().stretchLastSection():
                self.resizeColumnsToContents()  # to the headings with their unit
        before = len(self.records.records)
        if len(records) == before:
            self.records.show_records(records)
            self._widen()
            return
        selected = [self.records.identity(row) for row in self.selected_rows()]
        current = self.currentIndex()
        focused = self.records.identity(current.row()) if current.isValid() else None
        self.records.show_records(records)
        self._select(selected, focused, current.column())
        if records and not self.horizontalHeader().stretchLastSection():
            grown = self._fitted and 0 < before <= FEW and len(records) <= FEW
            self._widen() if grown else self._fit_columns()

    def showEvent(self, event: QShowEvent) -> None:
        """Give the headings of an empty table the room that they need in the window's style; widths that were set stay
        where the last column takes the rest."""
        super().showEvent(event)
        if not self.records.records and not self.horizontalHeader().stretchLastSection():
            self.resizeColumnsToContents()

    def _fit_columns(self) -> None:
        """Make columns as wide as their texts, but none so wide that a long name hides the others."""
        self.resizeColumnsToContents()
        for column in range(self.records.columnCount()):
            self.setColumnWidth(column, min(self.columnWidth(column), self._most))
            self._fitted[column] = self.columnWidth(column)
        self._use_room()

    def _use_room(self) -> None:
        """Give columns that are cut, and that nobody has made wider or narrower, what room the others leave."""
        cut = [column for column, width in self._fitted.items() if self.columnWidth(column) == width >= self._most]
        for column in cut if len(self.records.records) <= FEW else ():
            self.setColumnWidth(column, self._most)
            room = self.viewport().width() - self.horizontalHeader().length()
            self.setColumnWidth(column, self._most + max(min(self.sizeHintForColumn(column) - self._most, room), 0))
            self._fitted[column] = self.columnWidth(column)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._use_room()

    def _widen(self) -> None:
        """Give columns that nobody has made wider or narrower the room that the texts of other records need."""
        for column, width in self._fitted.items() if len(self.records.records) <= FEW else ():
            if self.columnWidth(column) == width < self.sizeHintForColumn(column):
                self.setColumnWidth(column, min(self.sizeHintForColumn(column), self._most))
                self._fitted[column] = self.columnWidth(column)

    def selectRow(self, row: int) -> None:
        """Select a row alone; in a window from right to left Qt's own selects none where columns leave room."""
        self.setCurrentIndex(self.records.index(row, 0))

    def selected_rows(self) -> list[int]:
        """Return the selected rows from top to bottom."""
        return sorted({index.row() for index in selected_rows(self)})

    def selected(self) -> list[Any]:
        """Return the selected records from top to bottom."""
        return [self.records.record(row) for row in self.selected_rows()]

    def _select(self, identities: Sequence[Hashable], focused: Hashable, column: int) -> None:
        """Select records again after all rows were replaced."""
        flags, model = QItemSelectionModel.SelectionFlag, self.selectionModel()
        rows = {self.records.identity(row): row for row in range(self.records.rowCount())}
        if focused in rows:
            model.setCurrentIndex(self.records.index(rows[focused], column), flags.NoUpdate)
        for identity in identities:
            if identity in rows:
                model.select(self.records.index(rows[identity], 0), flags.Select | flags.Rows)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            copy_rows(self)
            return
        super().keyPressEvent(event)
