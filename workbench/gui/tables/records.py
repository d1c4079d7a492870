"""A table of records: columns say how a record becomes a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QAbstractItemView, QApplication, QHeaderView, QTableView, QWidget

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column: ``text(record)`` is shown, ``key(record)`` sorts and ``told(record)`` is the tooltip (the text where
    they are None)."""

    title: str
    text: Callable[[Any], str]
    tip: str = ""
    numeric: bool = False
    key: Callable[[Any], Any] | None = None
    told: Callable[[Any], str] | None = None


class RecordsModel(QAbstractTableModel):
    """Shows a tuple of records, which it never changes; sorting orders a list of numbers."""

    def __init__(self, columns: Sequence[Field], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.records: tuple[Any, ...] = ()
        self._order: list[int] = []
        self._sorted: tuple[int, Qt.SortOrder] | None = None

    def show_records(self, records: Sequence[Any]) -> None:
        """Show other records; where their number is the same, the selection stays."""
        same = len(records) == len(self.records)
        if not same:
            self.beginResetModel()
        self.records = tuple(records)
        self._arrange()
        if not same:
            self.endResetModel()
        elif self.records:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.records) - 1, len(self.columns) - 1))

    def record(self, row: int) -> Any:
        """Return the record in a row."""
        return self.records[self._order[row]]

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1: as given."""
        self.layoutAboutToBeChanged.emit()
        self._sorted = (column, order) if column >= 0 else None
        self._arrange()
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        self._order = list(range(len(self.records)))
        if self._sorted is not None:
            column, order = self._sorted
            key = self.columns[column].key or self.columns[column].text
            self._order.sort(key=lambda n: key(self.records[n]), reverse=order == Qt.SortOrder.DescendingOrder)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.records)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.tip or column.title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column.numeric)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        column = self.columns[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            told = column.told if role == Qt.ItemDataRole.ToolTipRole else None
            return (told or column.text)(self.record(index.row()))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column.numeric)
        return None


def _alignment(numeric: bool) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if numeric else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


class RecordsView(QTableView):
    """A table with whole rows to select, fixed heights, and Ctrl+C that copies them."""

    def __init__(self, name: str, columns: Sequence[Field], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.records = RecordsModel(columns, self)
        self.setModel(self.records)
        self.setAccessibleName(name)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 7)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)
        header = self.horizontalHeader()
        header.setSortIndicatorShown(False)  # its arrow would take room in every column
        header.sortIndicatorChanged.connect(lambda column, _: header.setSortIndicatorShown(column >= 0))

    def show_records(self, records: Sequence[Any]) -> None:
        """Show other records; columns are fitted to the first ones."""
        grown = len(records) != len(self.records.records)
        self.records.show_records(records)
        if grown and records and not self.horizontalHeader().stretchLastSection():
            self.resizeColumnsToContents()

    def copy(self) -> None:
        """Copy the selected rows (all, if none is) as text with tabs."""
        rows = sorted({index.row() for index in self.selectedIndexes()}) or range(self.records.rowCount())
        lines = ["\t".join(column.title for column in self.records.columns)]
        lines += ["\t".join(column.text(self.records.record(row)) for column in self.records.columns) for row in rows]
        QApplication.clipboard().setText("\n".join(lines))

    def keyPressEvent(self, event: Any) -> None:
        """Copy on Ctrl+C."""
        if event.key() == Qt.Key.Key_C and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.copy()
            return
        super().keyPressEvent(event)
