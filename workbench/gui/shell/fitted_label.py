"""A line of text that shows as much as fits, and all of it in its tooltip.

Why not superqt's QElidingLabel: it cuts a text where this one first tries shorter wordings, and importing superqt takes
0.45 CPU seconds (PySide6 6.11, superqt 0.7, measured), a third of the time in which the window starts.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

from workbench.gui.shell.foreign import as_line, as_tip
from workbench.gui.shell.words import tr


class FittedLabel(QLabel):
    """Shows the first of several wordings that fits its width; if none does, the last one with an ellipsis.

    The first wording is the whole: it is ``text()``, what screen readers hear and, where something else is shown, the
    beginning of the tooltip.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._wordings: tuple[str, ...] = (text,)
        self._explained = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.say(text)

    def say(self, *wordings: str) -> None:
        """Show one of ``wordings``, from the longest to the shortest."""
        self._wordings = tuple(as_line(tr(wording)) for wording in wordings)
        self.setAccessibleDescription(self.text())
        self._fit()

    def setText(self, text: str) -> None:
        """Show ``text``, or as much of it as fits."""
        self.say(text)

    def text(self) -> str:
        """Return the whole text, even where only a part is visible."""
        return self._wordings[0]

    @property
    def shown(self) -> str:
        """The visible part of the text."""
        return super().text()

    def setToolTip(self, text: str) -> None:
        """Explain the text; the tooltip begins with the whole text if the label shows less."""
        self._explained = tr(text)
        self._fit()

    def clear(self) -> None:
        self.say("")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def sizeHint(self) -> QSize:
        """The whole text, where the label's policy asks for room."""
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + 1, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Any width will do."""
        return QSize(0, super().minimumSizeHint().height())

    def _fit(self) -> None:
        room, metrics = self.contentsRect().width() - max(self.indent(), 0), self.fontMetrics()
        fitting = [text for text in self._wordings if metrics.horizontalAdvance(text) <= room]
        fitted = fitting[0] if fitting else metrics.elidedText(self._wordings[-1], Qt.TextElideMode.ElideRight, room)
        if fitted != self.shown:
            super().setText(fitted)
        whole = "" if fitted == self.text() else self.text()
        super().setToolTip(as_tip("\n\n".join(filter(None, (whole, self._explained)))))
