"""What every panel is: a widget that gets states and redraws what differs, but only while it can be seen."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from PySide6.QtCore import QObject, QSize, Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QAbstractButton, QVBoxLayout, QWidget

from workbench.gui.context.worker import Worker
from workbench.gui.shell.foreign import isolated, not_isolated
from workbench.gui.shell.isolated_layout import IsolatedPages
from workbench.gui.shell.step_keys import BUTTONS
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.widgets import Item, button, column, label, page, row
from workbench.gui.shell.words import tr
from workbench.session.workspace import State

if TYPE_CHECKING:
    from workbench.gui.context.context import Context


@runtime_checkable
class Coloured(Protocol):
    """What draws in colours of its own."""

    def recolour(self, colours: Colours) -> None:
        """Redraw in other colours."""
        ...


@cache
def _draws_colours(kind: type) -> bool:
    """Return whether objects of ``kind`` are :class:`Coloured`; asked once for each type, as it takes 0.4 ms."""
    return issubclass(kind, Coloured)


class Drawn:
    """What draws the document: ``_build`` makes its parts; ``redraw(old, new)`` compares two snapshots."""

    context: Context
    _drawn: State

    @property
    def state(self) -> State:
        """The document as it is now, for handlers; what is drawn may be older by a turn of the event loop."""
        return self.context.workspace.state

    def _build(self) -> None:
        """Make the parts."""

    def redraw(self, old: State, new: State) -> None:
        """Redraw what differs between the two snapshots."""
        raise NotImplementedError


class Panel(IsolatedPages, Drawn):
    """A dock's content; ``say_empty(text, step)`` covers its parts.

    A panel may ask for at least ``smallest``, and squeezes what it holds where it gets no more.
    """

    smallest = QSize(430, 200)

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__()
        self.context = context
        self.colours = colours
        self.body = QWidget()
        self._hint = label(role="empty", wrap=True)
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._hint.setMargin(24)
        self._hint.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a screen reader reads what has the keyboard
        self._action = self._step = ""
        self._running: Collection[str] = ()
        self._own: QAbstractButton | None = None
        self.next_step = button("", self._take_step, name="Next step")
        self.show_pages(self.body, page(None, self._hint, row(None, self.next_step, None), None))
        self._is_empty = self._recolour_due = self._is_due = False
        self._drawn = State()
        self._build()

    def minimumSizeHint(self) -> QSize:
        """Return the least size, small enough that four panels fit a screen of 1920 x 1080 at 200 %."""
        return super().minimumSizeHint().boundedTo(self.smallest)

    def column(self, *items: Item, stretch: Item = None, focus: tuple[QWidget, ...] = ()) -> QVBoxLayout:
        """Return the body's layout with ``items`` below each other; the first of ``focus`` that is seen gets keys."""
        layout = column(*items, stretch=stretch)
        layout.setContentsMargins(6, 4, 6, 6)
        layout.setSpacing(4)
        self.body.setLayout(layout)
        self._focus = focus  # no focus proxy: Tab would go past what stands above it
        return layout

    def take_keyboard(self) -> None:
        """Give the keyboard to what the panel is about, in an empty one to its button or words."""
        for part in (*self._focus, self.next_step, self._hint):
            if part.isVisibleTo(self) and part.isEnabled():
                part.setFocus(Qt.FocusReason.ShortcutFocusReason)
                return

    def wait_for_state(self) -> None:
        """Draw nothing until the state comes, in a turn of its own: what would be drawn by then is out of date."""
        self._is_due = True
        self.setUpdatesEnabled(False)

    def show_state(self, state: State) -> None:
        """Show ``state``, the newest, where the panel is seen; else what is newest when it is."""
        self._is_due = False
        self.setUpdatesEnabled(True)
        if self.is_seen:
            self._draw(state)

    @property
    def is_seen(self) -> bool:
        """Whether any of the panel is on the screen; Qt moves docks behind other tabs aside and calls them visible."""
        return self.isVisible() and not self.visibleRegion().isEmpty()

    @property
    def is_busy(self) -> bool:
        """Whether something of what is seen is still being worked out."""
        return self.is_seen and any(worker.is_busy for worker in self.findChildren(Worker))

    def catch_up(self) -> None:
        """Draw what happened while the panel was not seen."""
        if self.isVisible() and not self._is_due:
            self._draw(self.state)

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up with what happened while the panel was hidden."""
        super().showEvent(event)
        if self.is_seen and not self._is_due:
            self._draw(self.state)

    def say_empty(self, text: str, step: str = "", own: QAbstractButton | None = None) -> None:
        """Cover the body with ``text``, or uncover it if the text is empty; below it stands the button of ``step``, or
        ``own``, one of the covered ones."""
        waits = self.window().focusWidget() in (self._hint, self.next_step)
        self._hint.setText(text)
        self._step, self._own = step, own
        self._show_step()
        if bool(text) != self._is_empty:
            self._is_empty = bool(text)
            self.turn_to(int(self._is_empty))
        kept = (each.hasFocus() for each in (self._hint, self.next_step) if each.isVisibleTo(self) and each.isEnabled())
        if waits and not any(kept):
            QTimer.singleShot(0, self, self.take_keyboard)  # once all is drawn: Qt gives it to another panel

    def show_running(self, steps: Collection[str]) -> None:
        """State in the button of an empty panel whether its step is among those that run or wait."""
        if self._running != steps:
            self._running = steps
            self._show_step()

    def _show_step(self) -> None:
        self._action, title = BUTTONS.get(self._step, ("", ""))
        title = not_isolated(self._own.text()) if self._own is not None else title
        runs = self._step in self._running
        self.next_step.setText(isolated(tr("Running…" if runs and title else title)))
        if runs and self.window().focusWidget() is self.next_step:
            self._hint.setFocus()
        self.next_step.setEnabled(not runs)
        self.next_step.setAccessibleName(tr(title).rstrip("…").replace("&", "") or tr("Next step"))
        self.next_step.setVisible(bool(title))

    def _take_step(self) -> None:
        if self._own is not None:
            self._own.click()
        else:
            self.context.trigger(self._action)

    def recolour(self, colours: Colours) -> None:
        """Redraw every part that has colours of its own: at once where the panel is seen, else when it is."""
        self.colours = colours
        self._recolour_due = not self.is_seen
        if not self._recolour_due:
            self._recolour_parts(colours)

    def _recolour_parts(self, colours: Colours) -> None:
        for part in self.findChildren(QObject):
            kind: type = type(part)
            if _draws_colours(kind):
                cast(Coloured, part).recolour(colours)

    def _draw(self, state: State) -> None:
        if self._recolour_due:
            self._recolour_due = False
            self._recolour_parts(self.colours)
        if state is self._drawn:
            return
        old, self._drawn = self._drawn, state
        self.redraw(old, state)


class PanelPart(QWidget, Drawn):
    """A part of a panel in a file of its own."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        self._drawn = State()
        self._build()

    def show_state(self, state: State) -> None:
        """Show a snapshot."""
        old, self._drawn = self._drawn, state
        self.redraw(old, state)
