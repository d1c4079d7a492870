"""A tour of the finished demo on the first run: a short text beside each panel; Esc skips it, once and for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QPropertyAnimation, QRect, QSize, Qt, QTimer
from PySide6.QtWidgets import QFrame, QStyle, QWidget

from workbench.gui.commands.command import MainWindow
from workbench.gui.context.context import Context
from workbench.gui.shell import settings
from workbench.gui.shell.dialogs import Popup
from workbench.gui.shell.widgets import button, fill_dialog, label, row, set_role
from workbench.gui.shell.words import tr
from workbench.session.workspace import State
from workbench.steps.files.first_session import is_first_look

WIDTH = 440
SETTLE_SECONDS = 0.05
SECONDS_BETWEEN_JOBS = 1.0
"""How long no job runs until it is clear that no other one follows."""
MOTION_MS = 120
"""How long the frame takes from one panel to the next, where the system does not ask for less motion."""
GAP = 12
"""Pixels between the panel and the text about it."""


@dataclass(frozen=True, slots=True)
class TourStop:
    """A panel's id, and the text beside it."""

    panel: str
    title: str
    text: str


STOPS = (
    TourStop("layers", "Layers",
         "All blocks and layers with their scheme, weight histogram, size and loss. To change the number format, "
         "select layers, then press F2 or use the Plan panel."),
    TourStop("distributions", "Distributions",
         "Histograms of the selected layer's weights, inputs and outputs. Calibrate (F5) to see inputs and outputs, "
         "then drag the shaded range to see how much it clips."),
    TourStop("sensitivity", "Sensitivity",
         "Sensitivity (F6) fills this map: rows are layers, columns are schemes, and the colour is the loss. Click a "
         "cell to assign its scheme, drag to assign several, right-click to lock a layer."),
    TourStop("plan", "Plan",
         "Size, bits per weight and predicted loss of the whole model. Search (F7) finds the best plan "
         "within a budget; a target limits it to the schemes that your runtime can run. You can undo every edit."),
    TourStop("pareto", "Size against loss",
         "The best plans, from the smallest to the most accurate. Move the slider or click a point to use a plan."),
    TourStop("accuracy", "Accuracy",
         "Evaluate (F8) compares the plan with the floating-point model and shows confidence intervals. Save with "
         "Ctrl+S and export with Ctrl+Shift+E. Ctrl+K lists all commands; F1 opens the guide."),
)  # fmt: skip


class Tour(Popup):
    """A non-modal text beside one panel at a time, and a frame around the panel."""

    def __init__(self, window: MainWindow, fill: Callable[[], object] | None = None) -> None:
        """``fill`` fills empty panels and begins the tour again; None where they are full."""
        super().__init__(window.widget, "tour", "A short tour")
        self.setWindowFlag(Qt.WindowType.Tool)  # the window's shortcuts, which the text names, work in it
        self.setFixedWidth(WIDTH)
        self._window, self.at = window, 0
        self._panel: QWidget | None = None
        self._mark = QFrame(window.widget)
        self._mark.setObjectName("tour-mark")
        self._mark.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._motion = QPropertyAnimation(self._mark, b"geometry", self)
        self._title, self._text, self._count = label(role="heading"), label(wrap=True), label(role="muted")
        self.back, self.skip = button("&Back", lambda: self._go(-1)), button("&Skip the Tour", self.reject)
        self.next = button("&Next", lambda: self._go(1))
        tip = "Calibrate, score, search a plan and evaluate it now; the tour begins again on the results"
        self.fill = button("&Fill the Panels", self.reject, tip)
        self.fill.setVisible(bool(fill))
        if fill is not None:
            self.fill.clicked.connect(fill)
        line = row(self._count, None, self.fill, self.skip, self.back, self.next)
        fill_dialog(self, self._title, self._text, line)
        self.finished.connect(lambda _: self._end())
        self._show()

    def _go(self, step: int) -> None:
        self.at += step
        if self.at == len(STOPS):
            self.accept()
        else:
            self._show()

    def _show(self) -> None:
        stop = STOPS[self.at]
        self._window.reveal(stop.panel)
        self._title.setText(stop.title)
        self._text.setText(stop.text)
        self._count.setText(f"{self.at + 1} of {len(STOPS)}")
        self.back.setEnabled(self.at > 0)
        self.next.setText(tr("&Done" if self.at == len(STOPS) - 1 else "&Next"))
        self._panel = self._window.panels[stop.panel]
        self._panel.installEventFilter(self)  # the layout may still move it
        self._place()
        self._offer()

    def _offer(self) -> None:
        """Offer first to fill the panels, then to go on."""
        first = self.fill if self.at == 0 and not self.fill.isHidden() else self.next
        for each in (self.fill, self.next):
            set_role(each, "primary" if each is first else "")
        first.setDefault(True)
        first.setFocus(Qt.FocusReason.OtherFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._panel and event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            QTimer.singleShot(0, self, self._place)
        return False

    def _place(self) -> None:
        """Move the text and the frame to the panel."""
        if self._panel is None:
            return
        self.adjustSize()
        window = self._window.widget
        area = QRect(self._panel.mapTo(window, QPoint(0, 0)), self._panel.size())
        self._surround(area)
        self._mark.show()
        self._mark.raise_()
        screen = window.screen().availableGeometry()  # the text may stand beside the window as well
        room = QRect(window.mapFromGlobal(screen.topLeft()), screen.size())
        self.move(window.mapToGlobal(beside(area, self.width(), self.height(), room)))

    def _surround(self, area: QRect) -> None:
        """Move the frame to ``area``, animated unless motion is turned off."""
        motion = min(MOTION_MS, self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration))
        self._motion.stop()
        if motion <= 0 or self._mark.isHidden():
            self._mark.setGeometry(area)
            return
        self._motion.setDuration(motion)
        self._motion.setEndValue(area)
        self._motion.start()

    def _end(self) -> None:
        settings.end_tour()
        self._panel = None
        self._mark.hide()
        self._mark.deleteLater()


class FirstRun:
    """Finishes the demo when this user opens it for the first time, and shows the tour on what that gave."""

    def __init__(self, context: Context, window: MainWindow) -> None:
        self._context, self._window = context, window
        self._looked_at = 0  # the last document, whose model a calibration opens again
        self.end = context.workspace.subscribe(self._changed)

    def _changed(self, old: State, new: State) -> None:
        session, document = new.session, self._context.workspace.document
        if session is None or is_first_look(session) or document == self._looked_at:
            return
        self._looked_at = document
        if session.model.source.path.startswith("demo:") and not settings.tour_ended():
            self._context.tasks.start(begin_on_results(self._context, self._window))


async def begin_on_results(context: Context, window: MainWindow) -> None:
    """Show the tour once the open model is evaluated, which is done first if need be; not if that is not finished."""
    document = context.workspace.document

    def is_idle() -> bool:
        return window.is_drawn and all(view.status.over for view in context.jobs.views)

    while not is_idle():
        await asyncio.sleep(SETTLE_SECONDS)
    if not _is_evaluated(context):
        context.messages.say("The demo is calibrated, scored, planned and evaluated now", "then a short tour begins")
        context.trigger("run_all")
        idle = 0.0
        while idle < SECONDS_BETWEEN_JOBS and not _is_evaluated(context):
            await asyncio.sleep(SETTLE_SECONDS)
            idle = idle + SETTLE_SECONDS if is_idle() else 0.0
    if context.workspace.document != document:
        return
    if _is_evaluated(context):
        begin(context, window)
    else:
        context.messages.say("The tour has not begun", "it needs the demo's results: Help > Tour of the Demo begins it")


def _is_evaluated(context: Context) -> bool:
    session = context.workspace.state.session
    return session is not None and bool(session.evaluations)


def begin(context: Context, window: MainWindow) -> None:
    """Show the tour; it offers to fill the panels where nothing is scored yet."""
    session = context.workspace.state.session
    empty = session is not None and not session.sensitivities
    tour = Tour(window, (lambda: context.tasks.start(begin_on_results(context, window))) if empty else None)
    forget = context.workspace.subscribe(lambda old, new: tour.reject() if new.session is None else None)
    tour.finished.connect(lambda _: forget())
    tour.show()


def beside(area: QRect, width: int, height: int, room: QRect) -> QPoint:
    """Return where in ``room`` a text of that size goes: right of the panel, left of it, below or above it.

    Where it fits nowhere, it goes where it covers least of the panel.
    """
    across = min(max(area.left(), room.left()), max(room.right() - width, room.left()))
    down = min(max(area.top() + GAP, room.top()), max(room.bottom() - height, room.top()))
    right, left = QPoint(area.right() + GAP, down), QPoint(area.left() - GAP - width, down)
    below, above = QPoint(across, area.bottom() + GAP), QPoint(across, area.top() - GAP - height)
    corners = (QPoint(x, y) for y in (room.bottom() - height, room.top()) for x in (room.left(), room.right() - width))
    size = QSize(width, height)
    places = [place for place in (right, left, below, above) if room.contains(QRect(place, size))]
    return min((*places, *corners), key=lambda place: _covered(area, QRect(place, size)))


def _covered(area: QRect, text: QRect) -> int:
    """Return how many pixels of ``area`` lie below a text."""
    both = area.intersected(text)
    return max(both.width(), 0) * max(both.height(), 0)
