"""Everything by its name, as commands, layers, metrics and the guide: type a few letters and press Enter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QStyle, QStyleOptionViewItem, QWidget

from workbench.gui.shell import settings
from workbench.gui.shell.dialogs import Popup
from workbench.gui.shell.foreign import Isolating, isolated
from workbench.gui.shell.widgets import fill_dialog, label, named
from workbench.gui.shell.words import tr

WIDTH, HEIGHT = 620, 420
SHOWN = 200
"""Entries in the list at most."""
Index = QModelIndex | QPersistentModelIndex
KEYS = Qt.ItemDataRole.UserRole
STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -10, Qt.Key.Key_PageDown: 10}
"""Rows that a key moves in the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What can be found and done; ``why_not`` says why it is not possible now.

    ``listed``: it stands in the list before anything is typed.
    """

    title: str
    run: Callable[[], object]
    keys: str = ""
    tip: str = ""
    why_not: str = ""
    listed: bool = True


def score(words: Sequence[str], title: str) -> int:
    """Return how well ``words`` match ``title``, all of small letters: 0 not at all, less for words whose letters only
    follow in order."""
    total = 1
    for word in words:
        place = title.find(word)
        if place >= 0:
            total += 8 if not place or not title[place - 1].isalnum() else 4
            continue
        letters = iter(title)
        if not all(letter in letters for letter in word):
            return 0
        total += 1
    return total


class WithKeys(Isolating):
    """Writes the keys of an entry at the other end of its row."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        super().paint(painter, option, index)
        painter.setPen(option.palette.placeholderText().color())
        side = QStyle.visualAlignment(option.direction, Qt.AlignmentFlag.AlignRight) | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(option.rect.adjusted(6, 0, -6, 0), side, isolated(index.data(KEYS) or ""))

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return super().sizeHint(option, index) + QSize(0, 6)


class Palette(Popup):
    """A list to search in, the entries used last first; those that are not possible now say why."""

    def __init__(self, parent: QWidget, entries: Sequence[Entry]) -> None:
        super().__init__(parent, "palette", "Commands")
        self.resize(WIDTH, HEIGHT)
        recent = settings.recent_commands()
        order = {title: place for place, title in enumerate(recent)}
        self._entries = sorted(entries, key=lambda entry: order.get(entry.title, len(recent)))
        self._titles = [entry.title.lower() for entry in self._entries]
        self._found: tuple[str, Sequence[int]] = ("", range(len(self._entries)))
        self._shown: list[Entry] = []
        hint = "Type a command, panel, layer, scheme, plan, metric, target or word of the guide"
        self.field = named(QLineEdit(placeholderText=tr(hint)), "Command")
        self.list = named(QListWidget(), "Matching commands")
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(WithKeys(self.list))
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

    def chosen(self) -> Entry | None:
        """Return the entry that Enter triggers."""
        row = self.list.currentRow()
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def _filter(self, query: str) -> None:
        if query.strip():
            words, titles, (before, found) = query.lower().split(), self._titles, self._found
            places = found if query.startswith(before) else range(len(titles))  # what is typed on finds no more
            scored = [(-points, len(titles[at]), at) for at in places if (points := score(words, titles[at]))]
            self._found = query, [at for _, _, at in scored]
            self._shown = [self._entries[at] for _, _, at in nsmallest(SHOWN, scored)]
        else:
            self._shown = [entry for entry in self._entries if entry.listed]
        self.list.clear()
        for entry in self._shown:
            item = QListWidgetItem(entry.title, self.list)
            item.setData(KEYS, entry.keys)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{entry.title} {entry.keys}".rstrip())
            if entry.why_not:
                item.setForeground(self.palette().placeholderText())
        self.list.setCurrentRow(0)

    def _show_reason(self) -> None:
        entry = self.chosen()
        words = "Nothing matches" if entry is None else entry.why_not or entry.tip or entry.title
        self.reason.setText(words.replace("\n", " – "))

    def _do(self) -> None:
        entry = self.chosen()
        if entry is not None and not entry.why_not:
            settings.remember_command(entry.title)
            entry.run()
