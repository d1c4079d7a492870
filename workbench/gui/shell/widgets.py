"""Makes the small widgets that every panel has: each with the name that screen readers say, its tip and its role."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from PySide6.QtWidgets import QBoxLayout, QComboBox, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

W = TypeVar("W", bound=QWidget)


def named(widget: W, name: str, tip: str = "") -> W:
    """Give a widget its accessible name and its tooltip; returns it."""
    widget.setAccessibleName(name)
    if tip:
        widget.setToolTip(tip)
    return widget


def label(
    text: str = "", role: str = "", *, name: str = "", wrap: bool = False, buddy: QWidget | None = None
) -> QLabel:
    """Return a label; with ``buddy`` its mnemonic gives that widget the keyboard."""
    widget = QLabel(text)
    widget.setWordWrap(wrap)
    if role:
        widget.setProperty("role", role)
    if name:
        widget.setAccessibleName(name)
    if buddy is not None:
        widget.setBuddy(buddy)
    return widget


def button(
    text: str, clicked: Callable[[], object] | None = None, tip: str = "", *, name: str = "", role: str = ""
) -> QPushButton:
    """Return a button; ``clicked`` is called without arguments."""
    widget = QPushButton(text)
    widget.setToolTip(tip)
    if name:
        widget.setAccessibleName(name)
    if role:
        widget.setProperty("role", role)
    if clicked is not None:
        widget.clicked.connect(lambda _: clicked())
    return widget


def combo(
    name: str, items: Iterable[str | tuple[str, object]] = (), chosen: Callable[[], object] | None = None,
    tip: str = "",
) -> QComboBox:  # fmt: skip
    """Return a combo box of texts or ``(text, data)``; ``chosen`` is called when the user chooses."""
    widget = named(QComboBox(), name, tip)
    for item in items:
        text, data = item if isinstance(item, tuple) else (item, item)
        widget.addItem(text, data)
    if chosen is not None:
        widget.activated.connect(lambda _: chosen())
    return widget


def row(*widgets: QWidget, stretch: QWidget | None = None, margins: bool = True) -> QHBoxLayout:
    """Return a horizontal layout; ``stretch`` is the widget that takes the free width."""
    return _filled(QHBoxLayout(), widgets, stretch, margins)


def column(*widgets: QWidget, stretch: QWidget | None = None, margins: bool = True) -> QVBoxLayout:
    """Return a vertical layout; ``stretch`` is the widget that takes the free height."""
    return _filled(QVBoxLayout(), widgets, stretch, margins)


L = TypeVar("L", bound=QBoxLayout)


def _filled(layout: L, widgets: Iterable[QWidget], stretch: QWidget | None, margins: bool) -> L:
    if not margins:
        layout.setContentsMargins(0, 0, 0, 0)
    for widget in widgets:
        layout.addWidget(widget, 1 if widget is stretch else 0)
    return layout
