"""The stages of the work as a row of buttons: a mark says whether each is done, runs, comes next or has to wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QIcon, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QToolButton, QWidget

from workbench.gui.shell.foreign import as_spoken
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.widgets import label, named, row, set_role
from workbench.gui.shell.words import tr

SIDE, SCALE = 16, 3
"""Pixels of a mark, and how many of the screen each of them may become."""


class StageStatus(StrEnum):
    """Where a stage is."""

    DONE = "done"
    RUNNING = "running"
    NEXT = "next"
    LATER = "not yet"


@dataclass(frozen=True, slots=True)
class Mark:
    """What a stage shows; ``tip`` is its result, or why it is not possible yet."""

    title: str
    status: StageStatus
    tip: str


class Stepper(QWidget):
    """``chosen(place)`` is called for a click on the stage at that place."""

    def __init__(self, titles: Sequence[str], chosen: Callable[[int], object], colours: Colours) -> None:
        super().__init__()
        self._colours = colours
        self.marks: tuple[Mark, ...] = ()
        self._is_narrow = False
        self.buttons = [QToolButton(self) for _ in titles]
        items: list[QWidget] = []
        onwards = "‹" if self.isRightToLeft() else "›"
        for place, button in enumerate(self.buttons):
            button.setText(titles[place])
            button.setIconSize(QSize(SIDE, SIDE))
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(partial(lambda place, _checked=False: chosen(place), place))
            items += [label(onwards, "muted"), button] if place else [button]
        content = row(*items)
        content.setSpacing(0)
        self.setLayout(content)

    def show_marks(self, marks: tuple[Mark, ...]) -> None:
        """Show where every stage is."""
        old, self.marks = self.marks, marks
        for place, (button, mark) in enumerate(zip(self.buttons, marks, strict=True)):
            if not old or mark != old[place]:
                tip = f"{mark.title}: {mark.tip}" if mark.tip else mark.title
                named(button, f"{mark.title}: {tr(mark.status)}", tip)
                button.setAccessibleDescription(as_spoken(tr(mark.tip)))
                self._draw(place)
        self._show_titles()

    def fit(self, room: int) -> None:
        """Show all titles, or where they need more than ``room`` pixels only that of the stage that is next or runs."""
        self._is_narrow = False
        self._show_titles()
        if self.sizeHint().width() > room:
            self._is_narrow = True
            self._show_titles()

    def _show_titles(self) -> None:
        style = Qt.ToolButtonStyle
        for button, mark in zip(self.buttons, self.marks, strict=False):
            whole = not self._is_narrow or mark.status in (StageStatus.NEXT, StageStatus.RUNNING)
            button.setToolButtonStyle(style.ToolButtonTextBesideIcon if whole else style.ToolButtonIconOnly)

    def recolour(self, colours: Colours) -> None:
        self._colours = colours
        for place in range(len(self.marks)):
            self._draw(place)

    def _draw(self, place: int) -> None:
        status = self.marks[place].status
        self.buttons[place].setIcon(_icon(status, str(place + 1), self._colours))
        set_role(self.buttons[place], status.name.lower())


def _icon(status: StageStatus, number: str, colours: Colours) -> QIcon:
    """Return a check in a disc, a part of a ring, or the stage's number in a disc or ring."""
    picture = QPixmap(SIDE * SCALE, SIDE * SCALE)
    picture.setDevicePixelRatio(SCALE)
    picture.fill(Qt.GlobalColor.transparent)
    area = QRectF(1, 1, SIDE - 2, SIDE - 2)
    filled = {StageStatus.DONE: colours.good, StageStatus.NEXT: colours.accent}.get(status)
    with QPainter(picture) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if filled:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(filled))
            painter.drawEllipse(area)
        elif status is StageStatus.RUNNING:
            painter.setPen(QPen(QColor(colours.accent), 2.5))
            painter.drawArc(area, 90 * 16, -270 * 16)
        else:
            painter.setPen(QPen(QColor(colours.muted), 1))
            painter.drawEllipse(area)
        painter.setPen(QPen(QColor(colours.on_accent if filled else colours.muted), 1.8))
        if status is StageStatus.DONE:
            painter.drawPolyline([QPointF(4.5, 8.3), QPointF(7.2, 11), QPointF(11.8, 5.4)])
        elif status is not StageStatus.RUNNING:
            font = QFont()
            font.setPixelSize(10)
            painter.setFont(font)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, number)
    return QIcon(picture)
