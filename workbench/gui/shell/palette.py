"""Every action and panel by name: type a few letters, Enter does it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QDialog, QLabel, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from workbench.gui.shell import dialogs

WIDTH, HEIGHT = 560, 380
MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


def score(query: str, text: str) -> int:
    """Return how well ``query`` fits ``text``: 0 not at all, more for words that begin with what was typed."""
    hay, total = text.lower(), 1
    for word in query.lower().split():
        if word not in hay:
            return 0
        total += 2 if any(part.startswith(word) for part in hay.replace("/", " ").split()) else 1
    return total


class Palette(QDialog):
    """Actions that cannot be done now are listed with the reason, and do nothing."""

    def __init__(self, parent: QWidget, actions: list[tuple[str, QAction]]) -> None:
        super().__init__(parent)
        self.setObjectName("palette")
        self.setWindowTitle("Commands")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(WIDTH, HEIGHT)
        self._actions = actions
        self.field = QLineEdit(placeholderText="What do you want to do?")
        self.field.setAccessibleName("Command")
        self.list = QListWidget()
        self.list.setAccessibleName("Commands that fit")
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.reason = QLabel()
        self.reason.setProperty("role", "muted")
        layout = QVBoxLayout(self)
        for widget in (self.field, self.list, self.reason):
            layout.addWidget(widget)
        self.field.textChanged.connect(self._filter)
        self.field.returnPressed.connect(self.accept)
        self.field.installEventFilter(self)
        self.list.itemClicked.connect(lambda _: self.accept())
        self.list.currentItemChanged.connect(lambda item, _: self._tell(item))
        self.accepted.connect(self._do)
        dialogs.framed(self)
        self._filter("")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move in the list with the arrows while the field has the keyboard."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent) and event.key() in MOVES:
            step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -10, Qt.Key.Key_PageDown: 10}
            row = self.list.currentRow() + step[Qt.Key(event.key())]
            self.list.setCurrentRow(min(max(row, 0), self.list.count() - 1))
            return True
        return super().eventFilter(watched, event)

    def chosen(self) -> QAction | None:
        """Return the action that Enter would do."""
        item = self.list.currentItem()
        action = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        return action if isinstance(action, QAction) else None

    def _filter(self, query: str) -> None:
        self.list.clear()
        fitting = [(score(query, title), title, action) for title, action in self._actions]
        for points, title, action in sorted(fitting, key=lambda entry: -entry[0]):
            if not points:
                continue
            keys = action.shortcut().toString()
            item = QListWidgetItem(f"{title}    {keys}" if keys else title, self.list)
            item.setData(Qt.ItemDataRole.UserRole, action)
            if not action.isEnabled():
                item.setForeground(self.palette().placeholderText())
        self.list.setCurrentRow(0)

    def _tell(self, item: QListWidgetItem | None) -> None:
        action = self.chosen()
        self.reason.setText(action.toolTip().replace("\n", " – ") if action is not None else "Nothing fits")

    def _do(self) -> None:
        action = self.chosen()
        if action is not None and action.isEnabled():
            action.trigger()
