"""The main window: docks from PANELS, menus and toolbar from ACTIONS.  No domain logic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QKeyEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QMainWindow, QMessageBox, QScrollArea, QStackedWidget, QWidget

from workbench.engine.engine import CANCELLED
from workbench.engine.jobs import JobStatus, JobView
from workbench.errors import DataError
from workbench.gui.commands import run
from workbench.gui.commands.action import Action, ActionState, has_session, plain
from workbench.gui.commands.actions import ACTIONS
from workbench.gui.commands.closing import may_leave_jobs, unfinished
from workbench.gui.commands.command import Command
from workbench.gui.commands.document import Document, is_plan
from workbench.gui.commands.stages import STAGES, Stages
from workbench.gui.context.context import Context
from workbench.gui.context.messages import Message, Notices
from workbench.gui.context.runner import running_steps
from workbench.gui.docks import Docks
from workbench.gui.menus import Menus
from workbench.gui.panel_updates import PanelUpdates
from workbench.gui.panels.jobs import JobsPanel
from workbench.gui.panels.panel import Coloured, Panel
from workbench.gui.shell import dialogs, icons, settings, theme
from workbench.gui.shell.foreign import as_line
from workbench.gui.shell.forms import dropped
from workbench.gui.shell.presets import PRESETS
from workbench.gui.shell.start_page import StartPage
from workbench.gui.shell.status_bar import StatusBar
from workbench.gui.shell.stepper import StageStatus, Stepper
from workbench.gui.shell.words import tr
from workbench.insight.roles import Role, role
from workbench.models.placement import Placement
from workbench.sensitivity.table import Sensitivity
from workbench.session.budget import Budget
from workbench.session.session import Session
from workbench.session.workspace import State

if TYPE_CHECKING:
    from workbench.gui.panels.sensitivity import SensitivityPanel

P = TypeVar("P", bound=Panel)

POLL_MS = 33
SIZE = QSize(1440, 900)
"""The window's first size, in pixels."""


class Window(QMainWindow):
    """The frame around the panels: pages, menus, stages, status bar, and what the whole window answers to."""

    def __init__(self, context: Context, colours: theme.Colours, *, keep_layout: bool = True) -> None:
        super().__init__()
        self._keeps_layout = keep_layout
        self.context = context
        self.colours = colours
        self.document = Document(context, self)
        self.command = Command(context, self, self.document)
        self.closed = self._asking = False
        self.on_closed: Callable[[], None] = lambda: None
        self._statuses: list[JobStatus] = []
        self._fruitless: set[int] = set()
        self.setAcceptDrops(True)
        self.setWindowIcon(icons.icon("workbench", colours))
        self.area = Docks(context, colours)
        self.panels, self.docks = self.area.panels, self.area.docks
        self.start_page = StartPage(colours, self.trigger, self.document.open_path, self._choose_role)
        self.pages = QStackedWidget()
        start = QScrollArea(widgetResizable=True)  # on a small screen
        start.setFrameShape(QScrollArea.Shape.NoFrame)
        start.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        start.setWidget(self.start_page)
        self.pages.addWidget(start)
        self.pages.addWidget(self.area)
        self.setCentralWidget(self.pages)
        self.stages = Stages(context.jobs)
        self.stepper = Stepper([tr(stage.title) for stage in STAGES], self._choose_stage, colours)
        self.bars = Menus(self, colours, self._do, self.reveal, self.document.open_path, self.stepper)
        self.actions_by_id, self.menus, self.recent_menu = self.bars.actions, self.bars.menus, self.bars.recent_menu
        self.status = StatusBar(context.jobs.cancel, context.jobs.retry, lambda: self.trigger("device"), self)
        self.use_placement(settings.placement(), settings.cluster())
        self.setStatusBar(self.status)
        self._turns = PanelUpdates(self, self.area, lambda: context.workspace.state, self._turn_page, self._show_frame)
        self.notices = Notices(context.messages, self)
        self._connect()
        room = self.screen().availableSize()
        self.resize(SIZE.boundedTo(room))
        self._sized = keep_layout and self._restore_layout()
        if keep_layout and not self._sized and (room.width() < SIZE.width() or room.height() < SIZE.height()):
            self.setWindowState(Qt.WindowState.WindowMaximized)  # its title bar would push the last line off the screen
        if settings.role():
            self._choose_role(role(settings.role()))
        self._turns.draw_all()

    def _choose_role(self, chosen: Role) -> None:
        """Set target, budget and metric to what the user came for, and remember it."""
        settings.role.save(chosen.name)
        workspace = self.context.workspace
        workspace.show_target(chosen.target)
        workspace.show_budget(Budget(amount=chosen.bits))
        workspace.show_metric(chosen.metric)

    def use_placement(self, placement: Placement, cluster: str) -> None:
        """Let models run there from the next job on, and pieces of steps on the ``cluster`` where there is one."""
        runner = self.context.runner
        runner.placement, runner.cluster = placement, cluster
        self.status.show_placement(placement, cluster)

    def _connect(self) -> None:
        context = self.context
        context.runner.ask_trust = lambda file: dialogs.ask_trust(self, file)
        context.messages.show_error = partial(dialogs.show_error, self)
        context.messages.on_message = self._say
        context.trigger, context.save = self.trigger, self.document.save
        context.may_discard = self.document.may_discard
        self._unsubscribe: list[Callable[[], object]] = [
            context.workspace.subscribe(lambda old, new: self._turns.outdate()),
            context.jobs.subscribe(self._jobs_changed),
        ]
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._poll)
        self._timer.start()
        hints = QApplication.styleHints()
        for changed in (hints.colorSchemeChanged, hints.accessibility().contrastPreferenceChanged):
            changed.connect(self._system_colours)
            self._unsubscribe.append(partial(changed.disconnect, self._system_colours))
        self.setStyleSheet(theme.style_sheet(self.colours))

    def _poll(self) -> None:
        self.context.jobs.poll()
        if "jobs" in self.panels:
            self.panel(JobsPanel).tick()
        self._turns.keep_up()

    @property
    def is_drawn(self) -> bool:
        """Whether every panel that is seen shows the newest state."""
        return self._turns.is_drawn

    def _turn_page(self, force: bool) -> bool:
        """Show the docks where there is a model, else the start page; returns whether the page was turned."""
        page = 1 if self.context.workspace.state.session else 0
        if self.pages.currentIndex() == page and not force:
            return False
        if self.pages.currentIndex() != page and (popup := QApplication.activePopupWidget()):
            popup.close()  # a menu of the page that goes would stay over the next one
        for panel in self.panels.values():
            panel.wait_for_state()  # all at once would take three frames
        self.pages.setCurrentIndex(page)
        self.start_page.show_recent(settings.recent())
        if page == 1:
            self.panels["layers"].take_keyboard()  # else Qt gives it to the tabs
        if page == 1 and not self._sized:
            self._sized = True
            QTimer.singleShot(0, self, self.area.size_docks)
        return True

    def _show_frame(self, state: State) -> None:
        """Show the figures of the status bar, the actions and the title."""
        self.status.show_state(state)
        self._enable()
        self._show_title(state)

    def _action_state(self) -> ActionState:
        views = [view for view in self.context.jobs.views if view.listed]
        return ActionState(
            state=self.context.workspace.state,
            running=any(view.status in ("running", "queued") for view in views),
            failed=any(view.status in ("failed", "cancelled") for view in views),
        )

    def _enable(self) -> None:
        """Show what can be done now, and where each stage of the work is."""
        now = self._action_state()
        self.bars.enable(now)
        running = running_steps(self.context.jobs)
        self.stepper.show_marks(self.stages.marks(now, running))
        for panel in self.panels.values():
            panel.show_running(running)

    def _choose_stage(self, place: int) -> None:
        """Start a stage, show the result of one that is done, or say why it is not possible yet."""
        stage, mark = STAGES[place], self.stepper.marks[place]
        if mark.status is StageStatus.RUNNING:
            self.reveal("jobs")
        elif mark.status is StageStatus.LATER and (has_session(now := self._action_state()) or stage.why_not(now)):
            self.context.messages.say(stage.title, mark.tip, "warning")
        elif mark.status is StageStatus.DONE or not stage.action:
            self.reveal(stage.panel)
        else:
            self.trigger(stage.action)

    def _do(self, spec: Action) -> None:
        """Do an action, or say why it is not possible now."""
        reason = spec.why_not(self._action_state())
        if reason is None:
            work = spec.run(self.command)
            if work is not None:
                self.context.tasks.start(work)
        else:
            self.context.messages.say(f"{plain(tr(spec.text))}: not now", reason, "warning")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Say why what a key stands for is not possible now: to Qt that is a key like any other."""
        for spec in ACTIONS:
            if event.keyCombination() in self.bars.actions[spec.id].shortcuts():
                self._do(spec)
        super().keyPressEvent(event)

    def _show_title(self, state: State) -> None:
        session, name = state.session, state.path.name if state.path else ""
        title = f"{as_line(name or session.model.name)[:200]}[*] – " if session else ""
        title, modified = f"{title}Quantization Workbench", session is not None and state.dirty
        if (title, modified) != (self.windowTitle(), self.isWindowModified()):  # each takes a millisecond
            self.setWindowTitle(title)
            self.setWindowModified(modified)

    def _jobs_changed(self, views: tuple[JobView, ...]) -> None:
        views = tuple(view for view in views if view.listed)
        self.status.show_jobs(views)
        self.panel(JobsPanel).show_jobs(views)
        self.notices.look(views)
        statuses = [view.status for view in views]
        if statuses != self._statuses:
            self._statuses = statuses
            self._enable()
            fruitless = {view.id for view in views if view.status in ("failed", "cancelled")}
            if fruitless - self._fruitless and "sensitivity" in self.panels:
                self._panel_of_scores().forget_partial()  # what a job kept becomes the session's
            self._fruitless = fruitless
        self.start_page.show_opening(self.stages.opening())
        for view in views:
            if view.status == "running":
                self._show_partial(self.context.jobs.partial(view.id))

    def _say(self, message: Message) -> None:
        self.status.say(message)
        self.panel(JobsPanel).show_messages()

    def _panel_of_scores(self) -> SensitivityPanel:
        from workbench.gui.panels.sensitivity import SensitivityPanel  # loads pyqtgraph

        return self.panel(SensitivityPanel)

    def _show_partial(self, partial: object) -> None:
        if isinstance(partial, Sensitivity):
            self._panel_of_scores().show_partial(partial)
        elif isinstance(partial, Session):
            self.document.show_first_look(partial)

    def engine_event(self, event: str, text: str) -> None:
        """Log an event of the engine process: ``started``, ``died``, ``restarted`` or ``failed`` to start."""
        messages = self.context.messages
        if event == "died" and text == CANCELLED:  # as the user asked: no fault
            next_one = "the engine starts again for the next one; nothing is lost"
            if not messages.after_cancel(next_one):
                messages.say("The job is cancelled", next_one)
        elif event == "died":
            messages.say("The engine process ended", f"{text}; it is being restarted, and nothing is lost", "error")
        elif event == "failed":
            messages.say("The engine process does not start", f"{text}; the next job tries it again", "error")
        elif event == "restarted" and not messages.after_cancel("the engine is running again; nothing is lost"):
            messages.say("The engine process is running again", text)

    @property
    def widget(self) -> QWidget:
        """The window itself, as the parent of dialogs."""
        return self

    def panel(self, kind: type[P]) -> P:
        """Return the panel of a class, made if need be."""
        return self.area.panel(kind)

    def quit(self) -> None:
        """Close the window, after asking about unsaved work."""
        self.close()

    def trigger(self, action: str) -> None:
        """Do an action by its id, or say why it is not possible now."""
        self._do(next(spec for spec in ACTIONS if spec.id == action))

    def titled_actions(self) -> list[tuple[str, QAction]]:
        """Return everything that the user can do, with a title to search in."""
        return self.bars.titled()

    def reveal(self, panel: str) -> None:
        """Bring a panel to the front and give it the keyboard, which stays where it is within the panel."""
        self.area.bring_to_front(panel)
        focus = QApplication.focusWidget()
        if focus is None or not self.panels[panel].isAncestorOf(focus):
            self.panels[panel].take_keyboard()

    def revealing(self, panel: str) -> Callable[[], None]:
        """Return what shows a job's panel at its end; the keyboard stays where the user types."""
        return partial(self.area.show_result, panel, self.area.front(panel))

    def recolour(self, colours: theme.Colours) -> None:
        """Draw everything in other colours."""
        self.colours = colours
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self.setStyleSheet("")  # a palette and a sheet upon an old sheet take a fifth longer
        theme.apply(app, colours)
        self.setStyleSheet(theme.style_sheet(colours))
        self.area.colours = colours
        parts: list[Coloured] = [self.bars, self.stepper, self.start_page, *self.panels.values()]
        for part in parts:
            part.recolour(colours)
        self._turns.draw_all()

    def reset_layout(self) -> None:
        """Put the docks where they were at first."""
        self.area.reset()

    def arrange(self, preset: str) -> None:
        """Arrange the docks by a preset."""
        self.area.arrange(PRESETS[preset])

    def showEvent(self, event: QShowEvent) -> None:
        """Make the panels that are not there yet, once the window is visible."""
        super().showEvent(event)
        self.area.make_missing()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the toolbar."""
        super().resizeEvent(event)
        self.bars.fit()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files, and say what dropping them does; what cannot be opened is said when they are dropped."""
        if event.mimeData().hasUrls():
            event.acceptProposedAction()
            path = dropped(event.mimeData())
            words = "Drop to open {}" if path else "Drop one file or folder of this computer"
            words = "Drop to calibrate on {}" if run.is_data(path) else words
            words = "Drop to make {} the plan" if is_plan(path) else words
            self.status.showMessage(tr(words).format(as_line(Path(path).name)))

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """Say no more what dropping would do."""
        self.status.clearMessage()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what was dropped; data to calibrate on open the form with them."""
        event.acceptProposedAction()
        self.status.clearMessage()
        self.activateWindow()  # what comes next is done here, not where the file came from
        path = dropped(event.mimeData())
        if not path:
            reason, count = "it is not on this computer; save it first", len(event.mimeData().urls())
            if count > 1:
                reason = "several files were dropped; drop one"
            elif not count:  # the program that the file came from has ended
                reason = "the program that it came from did not say which file it is; drop it again"
            self.context.messages.report("Nothing opened", DataError(reason))
        elif run.is_data(path) and self.actions_by_id["calibrate"].isEnabled():
            self.context.tasks.start(run.calibrate_on(self.command, path))
        elif run.is_data(path) and self.context.workspace.state.session is None:
            reason = f"{path} holds data, not a model; open the model that reads them, then drop them again"
            self.context.messages.report("Nothing to calibrate", DataError(reason))
        else:
            self.document.open_path(path)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask about running jobs and unsaved work; the window closes once that is answered."""
        if self.closed or not (self.context.workspace.state.dirty or unfinished(self.context)):
            self._end()
            event.accept()
            return
        event.ignore()
        if not self._asking:
            self._asking = True
            self.context.tasks.start(self._ask_and_close())

    async def _ask_and_close(self) -> None:
        try:
            if await may_leave_jobs(self, self.context) and await self.document.may_discard():
                self.closed = True
                self.close()
        finally:
            self._asking = False

    def _end(self) -> None:
        self.closed = True
        if self._keeps_layout:
            settings.save_layout(self.saveGeometry(), self.area.saveState(settings.LAYOUT_VERSION))
        self.on_closed()

    def dispose(self) -> None:
        """End timers, subscriptions and dialogs; the next turn of the event loop deletes the window."""
        self._timer.stop()
        self._turns.stop()
        for end in self._unsubscribe:
            end()
        for box in self.findChildren(QMessageBox):
            box.close()
        self.closed = True
        self.close()
        self.deleteLater()

    def _system_colours(self) -> None:
        if (colours := theme.choose(settings.theme())) != self.colours:
            self.recolour(colours)

    def _restore_layout(self) -> bool:
        layout = settings.layout()
        if layout is None:
            return False
        self.restoreGeometry(layout[0])
        restored = bool(self.area.restoreState(layout[1], settings.LAYOUT_VERSION))
        self.area.show_titles()
        return restored


async def until_closed(window: Window) -> None:
    """Wait until the user has closed the window."""
    closed = asyncio.Event()
    window.on_closed = closed.set
    await closed.wait()
