"""Makers of small widgets: each with its accessible name, tip and role."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLayout,
    QMenu,
    QPushButton,
    QSplitter,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from workbench.gui.shell.fitted_label import FittedLabel
from workbench.gui.shell.foreign import Isolating, as_line, as_tip, elided, isolated
from workbench.gui.shell.words import tr
from workbench.readable import LONGEST, readable

W = TypeVar("W", bound=QWidget)
B = TypeVar("B", bound=QPushButton | QToolButton | QCheckBox)
L = TypeVar("L", bound=QBoxLayout)

Item = QWidget | QLayout | None
"""What stands in a row or column; None is the room that no other item gets."""

TEXT_MARGIN = 1
"""Pixels that a style leaves on both sides of a box's text."""

PAGE_TOP = 4
"""Pixels between the tabs and the page below them."""


def named(widget: W, name: str, tip: str = "") -> W:
    """Give a widget its accessible name and its tooltip; returns it."""
    widget.setAccessibleName(tr(name))
    if tip:
        widget.setToolTip(as_tip(tr(tip)))
    return widget


def set_role(widget: QWidget, role: str) -> None:
    """Give a widget another look of the style sheet, such as ``error`` or ``muted``."""
    widget.setProperty("role", role)
    widget.style().polish(widget)


class Label(QLabel):
    """Shows texts with foreign names in them as they are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Show a text without control characters."""
        super().setText(readable(tr(text), LONGEST, lines=True))

    def setToolTip(self, text: str) -> None:
        """Explain the label."""
        super().setToolTip(as_tip(tr(text)))


def label(
    text: str = "", role: str = "", *, name: str = "", tip: str = "", wrap: bool = False, buddy: QWidget | None = None,
    rich: bool = False,
) -> QLabel:  # fmt: skip
    """Return a label; with ``buddy`` its mnemonic gives that widget the keyboard.  Only a ``rich`` one takes markup."""
    widget = QLabel(text) if rich else Label(text)
    widget.setWordWrap(wrap)
    widget.setToolTip(as_tip(tr(tip)))
    if role:
        widget.setProperty("role", role)
    if name:
        widget.setAccessibleName(tr(name))
    if buddy is not None:
        widget.setBuddy(buddy)
    return widget


def fitted(text: str = "", role: str = "muted", *, name: str = "") -> FittedLabel:
    """Return a line that shows as much of its text as fits."""
    widget = FittedLabel(text)
    widget.setProperty("role", role)
    if name:
        widget.setAccessibleName(tr(name))
    return widget


def button(
    text: str, clicked: Callable[[], object] | None = None, tip: str = "", *, name: str = "", role: str = ""
) -> QPushButton:
    """Return a button; ``clicked`` is called without arguments."""
    widget = QPushButton(isolated(tr(text)))
    widget.setAutoDefault(True)  # outside dialogs, too, Return presses it
    widget.setToolTip(as_tip(tr(tip)))
    if name:
        widget.setAccessibleName(tr(name))
    if role:
        widget.setProperty("role", role)
    if clicked is not None:
        widget.clicked.connect(lambda _: clicked())
    return widget


def switch(widget: B, text: str, toggled: Callable[[bool], object] | None, tip: str, *, on: bool = False) -> B:
    """Make a check box or button one that is on or off; ``toggled`` is called on changes."""
    widget.setText(isolated(tr(text)))
    widget.setCheckable(True)
    widget.setChecked(on)
    widget.setToolTip(as_tip(tr(tip)))
    if toggled is not None:
        widget.toggled.connect(lambda checked: toggled(checked))
    return widget


class Still(QWidget if TYPE_CHECKING else object):  # type: ignore[misc]  # before a field's Qt class
    """A field that the wheel turns only where it has the keyboard: scrolling past it would change its value."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to what scrolls."""
        super().wheelEvent(event) if self.hasFocus() else event.ignore()


class Combo(Still, QComboBox):
    """A combo box that ends a text for which there is no room with an ellipsis, where Qt's cuts through a letter."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel gives it no keyboard
        if self.isRightToLeft():
            self.setItemDelegate(Isolating(self))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the box and as much of its text as fits."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        painter = QStylePainter(self)
        with painter:
            painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
            place = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, self)
            room = place.width() - 2 * TEXT_MARGIN
            option.currentText = elided(self.fontMetrics(), option.currentText, room)
            painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)


def combo(
    name: str, items: Iterable[str | tuple[str, object]] = (), chosen: Callable[[], object] | None = None,
    tip: str = "", *, letters: int = 0,
) -> QComboBox:  # fmt: skip
    """Return a combo box of texts or ``(text, data)``; ``chosen`` is called when the user chooses.

    ``letters``: as wide as so many, whatever its items.
    """
    widget = named(Combo(), name, tip)
    add_items(widget, items)
    if chosen is not None:
        widget.activated.connect(lambda _: chosen())
    if letters:
        widget.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        widget.setMinimumContentsLength(letters)
    return widget


def add_items(box: QComboBox, items: Iterable[str | tuple[str, object]]) -> None:
    """Add texts, which are their own data, or ``(text, data)``."""
    for item in items:
        text, data = item if isinstance(item, tuple) else (item, item)
        box.addItem(as_line(tr(text)), data)


def offer(box: QComboBox, items: Sequence[tuple[str, object]], usual: object = None) -> None:
    """Replace the items where they differ; the chosen one stays, else ``usual`` or the first is chosen."""
    items = [(as_line(tr(text)), data) for text, data in items]
    places = range(box.count())
    if [(box.itemText(place), box.itemData(place)) for place in places] == items:
        return
    chosen = box.currentData()
    box.clear()
    add_items(box, items)
    data = [value for _, value in items]
    choice = chosen if chosen in data else usual
    box.setCurrentIndex(data.index(choice) if choice in data else 0)


def choice(menu: QMenu, text: str, toggled: Callable[[bool], object], *, on: bool, tip: str = "") -> None:
    """Add an entry that is on or off to a menu; ``toggled`` is called on changes."""
    action = menu.addAction(isolated(tr(text)))
    action.setToolTip(as_tip(tr(tip)))
    action.setCheckable(True)
    action.setChecked(on)
    action.toggled.connect(lambda checked: toggled(checked))


def open_menu(button: QToolButton, menu: QMenu) -> None:
    """Let a button open a menu; the arrow stands beside its text, where Qt's own would lie over its last letter."""
    button.setText(f"{button.text()} ▾")
    button.setMenu(menu)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    button.setProperty("role", "menu")


def row(*items: Item, stretch: Item = None) -> QHBoxLayout:
    """Return a horizontal layout without margins; ``stretch`` is the item that gets the free width."""
    return _filled(QHBoxLayout(), items, stretch)


def column(*items: Item, stretch: Item = None) -> QVBoxLayout:
    """Return a vertical layout without margins; ``stretch`` is the item that gets the free height."""
    return _filled(QVBoxLayout(), items, stretch)


def fill(widget: W, *items: Item, stretch: Item = None, top: int = PAGE_TOP, gap: int = -1) -> W:
    """Give a widget its content, one item ``gap`` pixels (-1: the style's) below the other; returns it."""
    layout = column(*items, stretch=stretch)
    layout.setContentsMargins(0, top, 0, 0)
    layout.setSpacing(gap)
    widget.setLayout(layout)
    return widget


def fill_dialog(dialog: QWidget, *items: Item, stretch: Item = None) -> QVBoxLayout:
    """Give a dialog its content with the margins of the style; returns the layout."""
    layout = column(*items, stretch=stretch)
    layout.unsetContentsMargins()
    dialog.setLayout(layout)
    return layout


def page(*items: Item, stretch: Item = None, top: int = PAGE_TOP, gap: int = -1) -> QWidget:
    """Return a widget with items below each other."""
    return fill(QWidget(), *items, stretch=stretch, top=top, gap=gap)


def tabs(name: str, pages: Iterable[tuple[str, QWidget] | tuple[str, QWidget, str]]) -> QTabWidget:
    """Return pages behind tabs: title, content and, if need be, the tab's tip."""
    widget = named(QTabWidget(), name)
    widget.setDocumentMode(True)
    for title, content, *tips in pages:
        place = widget.addTab(content, tr(title))
        widget.setTabToolTip(place, tr("".join(tips)))
    return widget


def splitter(*widgets: QWidget, sizes: Sequence[int] = (), vertical: bool = False) -> QSplitter:
    """Return widgets with movable borders between them."""
    parts = QSplitter(Qt.Orientation.Vertical if vertical else Qt.Orientation.Horizontal)
    for widget in widgets:
        parts.addWidget(widget)
    if sizes:
        parts.setSizes(list(sizes))
    return parts


def _filled(layout: L, items: Iterable[Item], stretch: Item) -> L:
    layout.setContentsMargins(0, 0, 0, 0)
    for item in items:
        if item is None:
            layout.addStretch()
        elif isinstance(item, QLayout):
            layout.addLayout(item, int(item is stretch))
        else:
            layout.addWidget(item, int(item is stretch))
    return layout
