"""How cells are edited: fixed heights, and a list of schemes to choose from."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt
from PySide6.QtWidgets import QComboBox, QStyledItemDelegate, QStyleOptionViewItem, QWidget

Index = QModelIndex | QPersistentModelIndex


class RowDelegate(QStyledItemDelegate):
    """Gives every row the same height, which is what makes 10,000 rows scroll."""

    def __init__(self, height: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._height = height

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the fixed height."""
        return QSize(40, self._height)


class SchemeDelegate(RowDelegate):
    """Edits a scheme in place with a list of what ``choices(index)`` says can be chosen there."""

    def __init__(
        self, height: int, name: str, choices: Callable[[Index], tuple[str, ...]], parent: QObject | None = None
    ) -> None:
        super().__init__(height, parent)
        self._name, self._choices = name, choices

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        """Return an open list; choosing commits at once."""
        editor = QComboBox(parent)
        editor.setAccessibleName(self._name)
        editor.addItems(list(self._choices(index)))
        editor.activated.connect(lambda _: self._commit(editor))
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Select the present scheme."""
        assert isinstance(editor, QComboBox)
        present = str(index.data(Qt.ItemDataRole.EditRole))
        if editor.findText(present) < 0:
            editor.addItem(present)
        editor.setCurrentText(present)

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        """Hand the choice to the model."""
        assert isinstance(editor, QComboBox)
        if editor.currentText() != index.data(Qt.ItemDataRole.EditRole):
            model.setData(index, editor.currentText())

    def _commit(self, editor: QComboBox) -> None:
        self.commitData.emit(editor)
        self.closeEditor.emit(editor)
