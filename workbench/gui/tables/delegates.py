"""How cells are edited: fixed heights, and a list of schemes to choose from."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QAbstractItemModel, QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import QApplication, QComboBox, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from workbench.gui.tables.copying import Index

END = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter

FACTS = Qt.ItemDataRole.UserRole
"""What an entry of a list costs, as text."""

GAP = 24
"""Pixels between an entry and what it costs, and beyond that."""

INSET = 6
"""Pixels between the costs and the edge of the list, and between two rows."""

BUTTON_MS = 20
"""How often it is looked whether the mouse's button, whose release would choose at once, is up."""


class EntryDelegate(QStyledItemDelegate):
    """Draws what an entry costs at the right of it."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        facts = option.fontMetrics.horizontalAdvance(str(index.data(FACTS) or ""))
        return super().sizeHint(option, index) + QSize(facts + 2 * GAP if facts else 0, INSET)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        super().paint(painter, option, index)
        end = QStyle.visualAlignment(option.direction, END)
        chosen = option.state & QStyle.StateFlag.State_Selected
        role = QPalette.ColorRole.HighlightedText if chosen else QPalette.ColorRole.Text
        painter.save()
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # numbers stand before their units
        area, text = option.rect.adjusted(INSET, 0, -INSET, 0), str(index.data(FACTS) or "")
        option.widget.style().drawItemText(painter, area, end, option.palette, True, text, role)
        painter.restore()


class OpenList(QComboBox):
    """A list that opens by itself; ``dismissed`` is emitted when it is closed, whether something was chosen or not."""

    dismissed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setItemDelegate(EntryDelegate(self))
        self.view().installEventFilter(self)
        QTimer.singleShot(0, self, self._open)

    def _open(self) -> None:
        if QApplication.mouseButtons() != Qt.MouseButton.NoButton:
            QTimer.singleShot(BUTTON_MS, self, self._open)
        elif self.isVisible():
            self.view().setMinimumWidth(self.view().sizeHintForColumn(0))
            self.showPopup()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Report that the list was closed, after the choice."""
        if event.type() == QEvent.Type.Hide and watched is self.view():
            QTimer.singleShot(0, self, self.dismissed.emit)
        return super().eventFilter(watched, event)


class RowDelegate(QStyledItemDelegate):
    """Gives every row the same height, which is what makes 10,000 rows scroll."""

    def __init__(self, height: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._height = height

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(40, self._height)


class SchemeDelegate(RowDelegate):
    """Edits a scheme in place with a list of what ``choices(index)`` says can be chosen there, beside each what it
    costs."""

    def __init__(
        self, height: int, name: str, choices: Callable[[Index], dict[str, str]], parent: QObject | None = None
    ) -> None:
        super().__init__(height, parent)
        self._name, self._choices = name, choices

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        """Return a list that opens; choosing commits at once."""
        editor = OpenList(parent)
        editor.dismissed.connect(lambda: self.closeEditor.emit(editor))
        editor.setAccessibleName(self._name)
        for row, (scheme, facts) in enumerate(self._choices(index).items()):
            editor.addItem(scheme)
            editor.setItemData(row, facts, FACTS)
        editor.activated.connect(lambda _: self._commit(editor))
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        assert isinstance(editor, QComboBox)
        present = str(index.data(Qt.ItemDataRole.EditRole))
        if editor.findText(present) < 0:
            editor.addItem(present)
        editor.setCurrentText(present)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        """Put the list over the cell, as wide as its longest entry."""
        area = option.rect
        area.setWidth(max(area.width(), editor.sizeHint().width()))
        editor.setGeometry(area)

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        assert isinstance(editor, QComboBox)
        if editor.currentText() != index.data(Qt.ItemDataRole.EditRole):
            model.setData(index, editor.currentText())

    def _commit(self, editor: QComboBox) -> None:
        self.commitData.emit(editor)
        self.closeEditor.emit(editor)
