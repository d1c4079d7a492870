"""A field for a size that takes whatever is typed, and says what is wrong with it instead of swallowing the keys."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QWidget


class BudgetBox(QDoubleSpinBox):
    """Keeps its last good value where nonsense is typed; ``nonsense`` then says why.  ``entered``: Return."""

    entered = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.nonsense = ""
        self.setKeyboardTracking(False)  # what is half typed is no good value yet
        self.lineEdit().textEdited.connect(self._typed)
        self.valueChanged.connect(self._changed)

    def taken(self) -> float:
        """Return the value, of what was typed but not finished too."""
        self.interpretText()
        return self.value()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Tell of Return once what was typed is taken or refused; Qt's own signal may come twice."""
        super().keyPressEvent(event)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()

    def validate(self, text: str, place: int) -> tuple[QValidator.State, str, int]:
        """Let anything be typed; only what is a number within the range is acceptable."""
        state, text, place = super().validate(text, place)
        refused = state == QValidator.State.Invalid or self.locale().groupSeparator() in text
        return QValidator.State.Intermediate if refused else state, text, place

    def fixup(self, text: str) -> str:
        """Leave the text as it is: Qt would drop separators of thousands wherever they stand and take 4,5 for 45."""
        return text

    def _changed(self, value: float) -> None:
        """Forget nonsense once another value is there, by the arrows or another unit."""
        self.nonsense = ""

    def _typed(self, text: str) -> None:
        """Note whether the text would be refused as it stands."""
        good = self.validate(text, len(text))[0] == QValidator.State.Acceptable
        least, most = self.locale().toString(self.minimum()), f"{self.maximum():,.0f}"
        self.nonsense = "" if good else f"“{text}” is not a size: expected a number from {least} to {most}"
