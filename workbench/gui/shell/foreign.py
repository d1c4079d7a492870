"""Texts with foreign names in them as Qt shows them: never as markup, never with control characters."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtGui import Qt as Text  # the module of texts, under the same name
from PySide6.QtWidgets import QStyledItemDelegate

from workbench.readable import LONGEST, LONGEST_LISTED, readable

LONGEST_TIP = 4000
"""Characters of a tooltip: a plan's largest is a few hundred."""


def as_line(text: str) -> str:
    """Return a text of one line for a cell, a label or a menu."""
    return readable(text, LONGEST)


def as_entry(text: str) -> str:
    """Return a short text for a menu, none of whose letters is a key."""
    return readable(text, LONGEST_LISTED).replace("&", "&&")


def as_spoken(text: str) -> str:
    """Return a text that a screen reader reads out."""
    return readable(text, LONGEST_TIP, lines=True)


def isolated(text: str) -> str:
    """Return a text that runs, in a window from right to left, in the direction of its own first letter.

    Labels do so by themselves; buttons, lists and menus would put dots at its end, and numbers at its beginning, at the
    other side.
    """
    return f"\u2068{text}\u2069" if text and QGuiApplication.isRightToLeft() else text


def not_isolated(text: str) -> str:
    """Return a label's text as it was before it was :func:`isolated`."""
    return text.strip("\u2068\u2069")


def as_tip(text: str) -> str:
    """Return a text for a tooltip or a message box, where Qt would take what looks like tags for markup."""
    text = readable(text, LONGEST_TIP, lines=True)
    return Text.convertFromPlainText(text, Qt.WhiteSpaceMode.WhiteSpaceNormal) if Text.mightBeRichText(text) else text


def elided(metrics: QFontMetrics, text: str, room: int, cut: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> str:
    """Return as much of a text as fits into ``room`` pixels, as it may be painted."""
    return isolated(metrics.elidedText(as_line(text), cut, room))


class Readable(QStyledItemDelegate):
    """Paints the names of files."""

    def displayText(self, value: object, locale: QLocale | QLocale.Language) -> str:
        return as_line(super().displayText(value, locale))


class Isolating(QStyledItemDelegate):
    """Paints the entries of a list as :func:`isolated` texts."""

    def displayText(self, value: object, locale: QLocale | QLocale.Language) -> str:
        return isolated(super().displayText(value, locale))
