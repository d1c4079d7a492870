"""Background jobs with progress, cancel and retry, and the log of messages."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionProgressBar, QStyleOptionViewItem, QWidget

from workbench.engine.jobs import JobView
from workbench.gui.context.messages import Message, without_title
from workbench.gui.panels.panel import Panel
from workbench.gui.shell.copying import put
from workbench.gui.shell.widgets import button, label, row, splitter, tabs
from workbench.gui.shell.words import tr
from workbench.gui.tables.copying import Index
from workbench.gui.tables.fields import Field, Number
from workbench.gui.tables.records import RecordsView
from workbench.insight import quantities
from workbench.memory import resident
from workbench.session.workspace import State
from workbench.steps.step import SESSION_LINE, Request

GAP = 6
"""Pixels between two buttons."""

PROGRESS = 2

JOBS = (
    Field("Job", lambda view: view.title, words=True),
    Field("Status", lambda view: str(view.status), words=True, tip="queued, running, done, failed or cancelled"),
    Field("Progress", lambda view: view.fraction, lambda fraction: f"{fraction * 100:.0f} %", unit="share",
          tip="Share of the work that is done"),
    Number("Took", lambda view: None if view.started is None else view.took, quantities.duration, unit="s",
           tip="Since the job began, without its time in the queue"),
    Number("Estimated", lambda view: view.estimate and view.estimate.seconds, quantities.duration, unit="s",
           tip="What the job was estimated to take before it began; short jobs are not"),
    Number("Left", lambda view: view.left, quantities.duration, unit="s",
           tip="Time left: by the estimate at first, then by the share that is done"),
)  # fmt: skip


def _what(view: JobView) -> str:
    return without_title(view.error, view.title) or view.text


STEPS = (
    Number("After", lambda step: step.after, quantities.duration, unit="s", tip="Since the job began"),
    Field("What", lambda step: step.text, words=True),
)

MAX_STEPS = 500
"""Lines of a job's log; older ones are dropped."""

ACTIVE, ENDED = ("running", "queued"), ("failed", "cancelled")


class Step(NamedTuple):
    """What a job did ``after`` so many seconds."""

    after: float
    text: str


@dataclass(slots=True)
class Track:
    """A job's log, and the most memory of the engine while it ran, in bytes."""

    steps: list[Step] = field(default_factory=list)
    peak: int = 0

    def follow(self, view: JobView, memory: int | None) -> None:
        """Record how the job is now."""
        self.peak = max(self.peak, memory or 0)
        text = _what(view)
        if text and (not self.steps or self.steps[-1].text != text):
            self.steps = [*self.steps[-MAX_STEPS + 1 :], Step(view.took, text)]


def _line(message: Message) -> str:
    return f"{tr(message.title)}: {tr(message.text)}" if message.text else tr(message.title)


MESSAGES = (
    Field("Time", lambda message: time.strftime("%H:%M:%S", time.localtime(message.when))),
    Field("Message", _line,
          text=lambda message: f"{'⚠ ' if message.level != 'info' else ''}{_line(message)}"),
)  # fmt: skip


class ProgressDelegate(QStyledItemDelegate):
    """Paints a bar; a finished job only says so."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint the row's background and the bar."""
        view = index.model().record(index.row())  # type: ignore[attr-defined]
        if view.status != "running":
            super().paint(painter, option, index)
            return
        bar = QStyleOptionProgressBar()
        bar.rect = option.rect.adjusted(3, 4, -3, -4)
        bar.minimum, bar.maximum, bar.progress = 0, 1000, round(view.fraction * 1000)
        bar.text, bar.textVisible = f"{view.fraction * 100:.0f} %", True
        bar.palette = option.palette
        bar.state = QStyle.StateFlag.State_Enabled | QStyle.StateFlag.State_Horizontal
        option.widget.style().drawControl(QStyle.ControlElement.CE_ProgressBar, bar, painter)


class JobsPanel(Panel):
    """Newest first."""

    def _build(self) -> None:
        self._tracks: dict[int, Track] = {}
        self._views: tuple[JobView, ...] = ()
        self._shown = 0.0  # when the table was last filled
        memory = Number(
            "Memory", lambda view: self._peak(view) or None, quantities.data_size, unit="bytes",
            tip="The most that the engine process used while the job ran",
        )  # fmt: skip
        what = Field("What", _what, words=True, tip="What the job does now, did last, or why it failed")
        self.jobs = RecordsView("Jobs", (*JOBS, memory, what), lambda view: view.id)
        self._progress = ProgressDelegate(self.jobs)
        self.jobs.setItemDelegateForColumn(PROGRESS, self._progress)
        self.log, self.steps = RecordsView("Messages", MESSAGES), RecordsView("Log of the job", STEPS)
        self.pages = tabs("Messages and log", (("Messages", self.log), ("Log of the job", self.steps)))
        self.pages.setElideMode(Qt.TextElideMode.ElideRight)
        self.pages.setUsesScrollButtons(False)
        self.pages.setCornerWidget(self._buttons())
        parts = splitter(self.jobs, self.pages, vertical=True)
        self.column(parts, stretch=parts, focus=(self.jobs,))
        for table in (self.jobs, self.log, self.steps):
            table.horizontalHeader().setStretchLastSection(True)
        for place, width in enumerate((210, 70, 90, 84, 84, 84, 76)):
            self.jobs.setColumnWidth(place, width)
        self.jobs.selectionModel().selectionChanged.connect(lambda: self._selected())
        self._enable()

    def _buttons(self) -> QWidget:
        """Return what stands beside the tabs, where it takes no room from the tables."""
        jobs = self.context.jobs
        self.memory = label(
            role="muted", tip="Resident memory of the engine process, which holds the model, and of this window"
        )
        self.cancel = button(
            "&Cancel", lambda: self._act(ACTIVE, jobs.cancel), "Cancel the selected job, or the running one"
        )
        self.retry = button(
            "Re&try", lambda: self._act(ENDED, jobs.retry), "Start the selected failed or cancelled job again"
        )
        self.python = button("Copy as &Python", self.copy_python, "Copy a script that does what the selected job does")
        corner = QWidget()
        line = row(self.memory, self.cancel, self.retry, self.python)
        line.setContentsMargins(0, 0, 0, 2)
        corner.setLayout(line)
        return corner

    def redraw(self, old: State, new: State) -> None:
        """Jobs do not depend on the document."""

    def show_jobs(self, views: tuple[JobView, ...]) -> None:
        """Show the jobs as they are now."""
        self._views = tuple(reversed(views))
        engine = resident(self.context.engine_pid())
        for view in views:
            running = view.status == "running"
            if running or view.id in self._tracks:
                self._tracks.setdefault(view.id, Track()).follow(view, engine if running else None)
        self._tracks = {view.id: self._tracks[view.id] for view in views if view.id in self._tracks}
        if self.is_seen:
            self._show()

    def tick(self) -> None:
        """Let the times of a running job go on between its messages, twice a second."""
        now = time.monotonic()
        if now - self._shown > 0.5 and self.is_seen and any(view.status == "running" for view in self._views):
            self._show()

    def catch_up(self) -> None:
        super().catch_up()
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        self.jobs.show_records(self._views)
        self._selected()
        sizes = (("Engine", resident(self.context.engine_pid())), ("Window", resident(os.getpid())))
        self.memory.setText(" · ".join(f"{name} {quantities.data_size(size)}" for name, size in sizes if size))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Hide the memory where it would push the tabs away."""
        buttons = sum(each.sizeHint().width() + GAP for each in (self.memory, self.cancel, self.retry, self.python))
        self.memory.setVisible(self.pages.tabBar().sizeHint().width() + buttons <= self.width())

    def _candidates(self) -> tuple[JobView, ...]:
        """Return the selected jobs, then all, the newest first."""
        return (*self.jobs.selected(), *self._views)

    def _selected(self) -> None:
        """Show the log of the selected job, or the newest one."""
        self._enable()
        view = next(iter(self._candidates()), None)
        track = self._tracks.get(view.id) if view is not None else None
        self.steps.show_records(tuple(track.steps) if track else ())

    def _peak(self, view: JobView) -> int:
        track = self._tracks.get(view.id)
        return track.peak if track else 0

    def copy_python(self) -> None:
        """Copy the selected job, or the newest one, as Python."""
        for view in self._candidates():
            request = self.context.jobs.request(view.id)
            if isinstance(request, Request):
                session = self.state.session
                put(request.python(self.state.path, None if session is None else session.plan))
                unsaved = SESSION_LINE in request.python() and (self.state.path is None or self.state.dirty)
                first = "save the session before it runs: the script reads its file" if unsaved else ""
                self.context.messages.say(f"Copied {view.title} as Python", first)
                return

    def show_messages(self) -> None:
        """Show the message log."""
        self.log.show_records(tuple(reversed(self.context.messages.entries)))

    def _target(self, statuses: tuple[str, ...]) -> int | None:
        return next((view.id for view in self._candidates() if view.status in statuses), None)

    def _enable(self) -> None:
        self.python.setEnabled(bool(self._views))
        self.cancel.setEnabled(self._target(ACTIVE) is not None)
        self.retry.setEnabled(self._target(ENDED) is not None)

    def _act(self, statuses: tuple[str, ...], action: Callable[[int], None]) -> None:
        """Cancel or retry the job that the button is for."""
        target = self._target(statuses)
        if target is not None:
            action(target)
