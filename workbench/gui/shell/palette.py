"""All actions and panels by name: type a few letters and press Enter."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from workbench.gui.shell.dialogs import Popup
from workbench.gui.shell.widgets import fill_dialog, label, named

WIDTH, HEIGHT = 560, 380
STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -10, Qt.Key.Key_PageDown: 10}
"""Rows that a key moves in the list."""


def score(query: str, text: str) -> int:
    """Return how well ``query`` matches ``text``: 0 not at all, more for words that begin with a word of the query."""
    title, total = text.lower(), 1
    for word in query.lower().split():
        if word not in title:
            return 0
        total += 2 if any(part.startswith(word) for part in title.replace("/", " ").split()) else 1
    return total


class Palette(Popup):
    """A list to search in; disabled actions show why they are not possible now."""

    def __init__(self, parent: QWidget, actions: list[tuple[str, QAction]]) -> None:
        super().__init__(parent, "palette", "Commands")
        self.resize(WIDTH, HEIGHT)
        self._actions = actions
        self.field = named(QLineEdit(placeholderText="Type a command or panel"), "Command")
        self.list = named(QListWidget(), "Matching commands")
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.reason = label(role="muted")
        fill_dialog(self, self.field, self.list, self.reason)
        self.field.textChanged.connect(self._filter)
        self.field.returnPressed.connect(self.accept)
        self.field.installEventFilter(self)
        self.list.itemClicked.connect(lambda _: self.accept())
        self.list.currentItemChanged.connect(lambda *_: self._show_reason())
        self.accepted.connect(self._do)
        self._filter("")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move in the list with the arrows while the field has the keyboard."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent) and event.key() in STEPS:
            row = self.list.currentRow() + STEPS[Qt.Key(event.key())]
            self.list.setCurrentRow(min(max(row, 0), self.list.count() - 1))
            return True
        return super().eventFilter(watched, event)

    def chosen(self) -> QAction | None:
        """Return the action that Enter triggers."""
        item = self.list.currentItem()
        action = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        return action if isinstance(action, QAction) else None

    def _filter(self, query: str) -> None:
        self.list.clear()
        scored = [(score(query, title), title, action) for title, action in self._actions]
        matching = [entry for entry in scored if entry[0]]
        for _, title, action in sorted(matching, key=lambda entry: -entry[0]):
            keys = action.shortcut().toString()
            item = QListWidgetItem(f"{title}    {keys}" if keys else title, self.list)
            item.setData(Qt.ItemDataRole.UserRole, action)
            if not action.isEnabled():
                item.setForeground(self.palette().placeholderText())
        self.list.setCurrentRow(0)

    def _show_reason(self) -> None:
        action = self.chosen()
        self.reason.setText(action.toolTip().replace("\n", " – ") if action is not None else "No command matches")

    def _do(self) -> None:
        action = self.chosen()
        if action is not None and action.isEnabled():
            action.trigger()
