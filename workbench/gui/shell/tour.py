"""A tour of the demo on the first run: a short text beside each panel; Esc skips it, and it is not shown again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from workbench.gui.context.context import Context
from workbench.gui.shell import dialogs, settings
from workbench.session.workspace import State
from workbench.steps.files.first_look import is_first_look

WIDTH = 380
SETTLE_SECONDS = 0.05
GAP = 12
"""Pixels between the panel and the text about it."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A panel's id, and the text beside it."""

    panel: str
    title: str
    text: str


STOPS = (
    Stop("layers", "The layers",
         "Every block and layer with its scheme, the histogram of its weights, its size and its loss. Select some, "
         "then press F2 or use the panel below to give them another number format."),
    Stop("distributions", "What the numbers look like",
         "Weights, inputs and outputs of the selected layer. Calibrate (F5) to see inputs; then drag the shaded range "
         "and watch how much is clipped."),
    Stop("sensitivity", "What each format would cost",
         "After Sensitivity (F6): layers down, schemes across, the colour is the loss. A click gives the layer that "
         "scheme, a drag paints, a right click locks."),
    Stop("plan", "The plan",
         "The size, the bits per weight and the predicted loss of the whole model. Search (F7) finds the best plan "
         "within a budget; a target limits it to what your runtime can run. Every edit can be undone."),
    Stop("pareto", "Size against loss",
         "Every best plan, from the smallest to the most accurate. Move the slider, or click a point to use its plan."),
    Stop("accuracy", "Is it good enough?",
         "Evaluate (F8) measures the plan against the floating-point model, with intervals. Save with Ctrl+S, export "
         "with Ctrl+Shift+E; Ctrl+K finds every command, F1 the guide."),
)  # fmt: skip


class TourWindow(Protocol):
    """What the tour needs of the window."""

    @property
    def widget(self) -> QWidget:
        """The window itself."""
        ...

    @property
    def is_drawn(self) -> bool:
        """Whether every panel that is seen shows the newest state."""
        ...

    @property
    def panels(self) -> Mapping[str, QWidget]:
        """The panels that have been made, by their id."""
        ...

    def reveal(self, panel: str) -> None:
        """Bring a panel to the front."""
        ...


class Tour(QDialog):
    """A non-modal text beside one panel at a time, and a frame around the panel."""

    def __init__(self, window: TourWindow) -> None:
        super().__init__(window.widget)
        self.setObjectName("tour")
        self.setWindowTitle("A short tour")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self.setFixedWidth(WIDTH)
        self._window, self.at = window, 0
        self._watched: QWidget | None = None
        self._mark = QFrame(window.widget)
        self._mark.setObjectName("tour-mark")
        self._mark.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._title, self._text, self._count = QLabel(), QLabel(), QLabel()
        self._title.setProperty("role", "heading")
        self._count.setProperty("role", "muted")
        self._text.setWordWrap(True)
        self.back, self.skip, self.next = QPushButton("&Back"), QPushButton("&Skip the Tour"), QPushButton("&Next")
        self.next.setProperty("role", "primary")
        self.next.setDefault(True)
        self.back.clicked.connect(lambda: self._go(-1))
        self.skip.clicked.connect(self.reject)
        self.next.clicked.connect(lambda: self._go(1))
        buttons, layout = QHBoxLayout(), QVBoxLayout(self)
        buttons.addWidget(self._count)
        buttons.addStretch(1)
        for button in (self.skip, self.back, self.next):
            buttons.addWidget(button)
        for widget in (self._title, self._text):
            layout.addWidget(widget)
        layout.addLayout(buttons)
        self.finished.connect(lambda _: self._end())
        dialogs.framed(self)
        self._show()

    def _go(self, step: int) -> None:
        self.at += step
        if self.at == len(STOPS):
            self.accept()
        else:
            self._show()

    def _show(self) -> None:
        step = STOPS[self.at]
        self._window.reveal(step.panel)
        self._title.setText(step.title)
        self._text.setText(step.text)
        self._count.setText(f"{self.at + 1} of {len(STOPS)}")
        self.back.setEnabled(self.at > 0)
        self.next.setText("&Done" if self.at == len(STOPS) - 1 else "&Next")
        self._watch(self._window.panels[step.panel])
        self._place()
        self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def _watch(self, panel: QWidget | None) -> None:
        """Follow a panel, which the layout moves after it was made."""
        if self._watched is not None:
            self._watched.removeEventFilter(self)
        self._watched = panel
        if panel is not None:
            panel.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move along with the panel."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            QTimer.singleShot(0, self, self._place)
        return False

    def _place(self) -> None:
        """Move the text and the frame to the panel."""
        self.adjustSize()
        step = STOPS[min(self.at, len(STOPS) - 1)]
        area = _area(self._window.panels[step.panel], self._window.widget)
        self._mark.setGeometry(area)
        self._mark.show()
        self._mark.raise_()
        spot = beside(area, self.width(), self.height(), self._window.widget.rect())
        self.move(self._window.widget.mapToGlobal(spot))

    def _end(self) -> None:
        settings.end_tour()
        self._watch(None)
        self._mark.hide()
        self._mark.deleteLater()


class FirstRun:
    """Starts the tour when this user opens the demo for the first time."""

    def __init__(self, context: Context, window: TourWindow) -> None:
        self._context, self._window = context, window
        self.end = context.workspace.subscribe(self._changed)

    def _changed(self, old: State, new: State) -> None:
        opened = new.session is not None and (old.session is None or old.session.model is not new.session.model)
        if not opened or new.session is None or is_first_look(new.session):
            return
        if new.session.model.source.path.startswith("demo:") and not settings.tour_ended():
            self._context.tasks.start(self._begin())

    async def _begin(self) -> None:
        while not self._window.is_drawn:
            await asyncio.sleep(SETTLE_SECONDS)
        Tour(self._window).show()


def beside(area: QRect, width: int, height: int, room: QRect) -> QPoint:
    """Return where a text of that size goes: right of the panel, else left of it, else inside its lower edge."""
    top = min(max(area.top() + GAP, room.top()), max(room.bottom() - height, room.top()))
    if area.right() + GAP + width <= room.right():
        return QPoint(area.right() + GAP, top)
    if area.left() - GAP - width >= room.left():
        return QPoint(area.left() - GAP - width, top)
    return QPoint(max(area.center().x() - width // 2, room.left()), area.bottom() - GAP - height)


def _area(panel: QWidget, window: QWidget) -> QRect:
    return QRect(panel.mapTo(window, QPoint(0, 0)), panel.size())
