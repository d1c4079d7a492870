"""The field for numbers: the same notation in every locale; it explains what is wrong with a text and drops nothing.

Numbers have a decimal point, or a comma where the user has chosen that, and no separators of thousands.  Qt's own spin
boxes follow the locale: they drop separators anywhere and read ``4,5`` as 45, or ``0.001`` as 1 in German.
"""

from __future__ import annotations

import re

from PySide6.QtCore import QLocale, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPalette, QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QWidget

from workbench.gui.shell.widgets import Still
from workbench.insight import quantities

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
_MAX_DECIMALS = 12


def parse_number(text: str) -> float:
    """Return the number that ``text`` means; raises ValueError with a sentence for the user."""
    text = text.strip()
    if not text:
        raise ValueError("Enter a number")
    if quantities.marked(".") == ",":
        if _THOUSANDS.fullmatch(text) or ("," in text and not {".", ","}.isdisjoint(text.replace(",", "", 1))):
            advice = "use a decimal comma and no separator of thousands, for example 4,5"
            raise ValueError(f"“{text}” can be read in two ways: {advice}")
        text = text.replace(",", ".")
    if "," in text:
        raise ValueError(f"“{text}” has a comma: use a decimal point and no separator of thousands, for example 4.5")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"“{text}” is not a number: expected digits and a decimal point, for example 4.5")
    return float(text)


MARGINS = 8
"""Pixels of a field above and below its text, frame included."""


class NumberField(Still, QDoubleSpinBox):
    """A number from ``low`` to ``high``; whole numbers only where ``decimals`` is 0.

    A text that is not such a number stays in the field but is never used; ``problem`` explains why.  ``number`` is then
    the last valid number, which :meth:`restore` shows again.  With ``empty``, that word means no number (None) and is
    one step below ``low``.
    """

    changed = Signal()
    """The number or the problem changed, at every key."""
    problem_changed = Signal(str)
    entered = Signal()
    """The user pressed Return."""

    def __init__(
        self, low: float, high: float, value: float | None, *, decimals: int = _MAX_DECIMALS, step: float = 1.0,
        unit: str = "", empty: str = "", parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel gives it no keyboard
        self.problem, self._low, self._empty = "", low, empty
        locale = QLocale.c()
        locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator | QLocale.NumberOption.RejectGroupSeparator)
        self.setLocale(locale)
        self.setDecimals(decimals)
        self.setRange(low - step if empty else low, high)
        self.setSingleStep(step)
        self.setSuffix(f" {unit}" if unit else "")
        self.setSpecialValueText(empty)
        self.setValue(self.minimum() if value is None else value)
        self.setKeyboardTracking(False)  # a half-typed number is not final
        self.lineEdit().textEdited.connect(self._edited)
        self.valueChanged.connect(self._stepped)

    @property
    def number(self) -> float | None:
        """The number in the field, or the last valid one; an int where ``decimals`` is 0."""
        value = self.value() if self.problem else self.valueFromText(self.lineEdit().text())
        if self.specialValueText() and value == self.minimum():
            return None
        return value if self.decimals() else round(value)

    def restore(self) -> str:
        """Replace a text that is not valid by the last valid number; returns the problem of the text."""
        problem = self.problem
        if problem:
            self.lineEdit().setText(self.textFromValue(self.value()) + self.suffix())
            self.selectAll()
            self._set_problem("")
        return problem

    def show_count(self, count: int) -> None:
        """Say beside the word for no number how many these are; 0: that is not known."""
        if self._empty and (self.value() != self.minimum() or self._is_special(self.lineEdit().text())):  # not typed in
            self.setSpecialValueText(f"{self._empty} {count}" if count else self._empty)

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Let the user type anything; only a number within the range is acceptable."""
        state = QValidator.State.Intermediate if self._problem_of(text) else QValidator.State.Acceptable
        return state, text, position

    def fixup(self, text: str) -> str:
        return text

    def valueFromText(self, text: str) -> float:
        text = self._bare(text)
        return self.minimum() if self._is_special(text) else parse_number(text)

    def textFromValue(self, value: float) -> str:
        """Return the shortest text of the number."""
        text = f"{value:.{self.decimals()}f}"
        return quantities.marked(text.rstrip("0").rstrip(".") if "." in text else text)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the frame of other fields: that of the style cannot be seen on dark."""
        super().paintEvent(event)
        if not self.hasFocus():
            with QPainter(self) as painter:
                painter.setPen(self.palette().color(QPalette.ColorRole.Mid))
                painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 2, 2)

    def sizeHint(self) -> QSize:
        """Return the height of other fields: by the style sheet's margins Qt would cut letters below the line."""
        return super().sizeHint().expandedTo(QSize(0, self.fontMetrics().height() + MARGINS))

    def minimumSizeHint(self) -> QSize:
        """Return no more than the field may be: Qt's hint is as wide as the largest number."""
        return QSize(super().minimumSizeHint().boundedTo(self.maximumSize()).width(), self.sizeHint().height())

    def stepBy(self, steps: int) -> None:
        """Step from the last valid number."""
        self.restore()
        super().stepBy(steps)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keep a text that is not a number when Return is pressed; Qt would replace it by the last valid number."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
            return
        if self.problem:
            event.ignore()
        else:
            super().keyPressEvent(event)
        self.entered.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Keep a text that is not a number when the field loses the focus."""
        if self.problem:
            self.lineEdit().event(event)
            QWidget.focusOutEvent(self, event)
        else:
            super().focusOutEvent(event)

    def _problem_of(self, text: str) -> str:
        text = self._bare(text)
        if self._is_special(text):
            return ""
        low, high = f"{self._low:.12g}", f"{self.maximum():.12g}"
        not_whole = f"“{text}” is not a whole number: expected a number from {low} to {high}"
        try:
            value = parse_number(text)
        except ValueError as error:
            return str(error) if self.decimals() or not text else not_whole
        if not self._low <= value <= self.maximum():
            return f"“{text}” is out of range: expected a number from {low} to {high}"
        if not self.decimals() and (value != round(value) or not {".", ","}.isdisjoint(text)):  # 1.000 is a thousand?
            return not_whole
        return ""

    def _bare(self, text: str) -> str:
        """Return the text without the unit."""
        return text.strip().removesuffix(self.suffix().strip()).strip()

    def _is_special(self, text: str) -> bool:
        return bool(self._empty) and text in (self._empty, self.specialValueText())

    def _edited(self, text: str) -> None:
        self._set_problem(self._problem_of(text))
        self.changed.emit()

    def _stepped(self, value: float) -> None:
        self._set_problem("")
        self.changed.emit()

    def _set_problem(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self.problem_changed.emit(problem)
