"""Who draws when: one visible panel gets the newest state in each turn of the event loop, so that no turn is long."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from workbench.gui.docks import Docks
from workbench.session.workspace import State


class PanelUpdates:
    """``turn_page(force)`` returns whether it laid out another page, ``show_frame(state)`` draws around the panels."""

    def __init__(
        self, parent: QObject, area: Docks, newest: Callable[[], State], turn_page: Callable[[bool], bool],
        show_frame: Callable[[State], None],
    ) -> None:  # fmt: skip
        self._area, self._newest, self._turn_page, self._show_frame = area, newest, turn_page, show_frame
        self._is_outdated = False  # whether there is a newer state than the one that is being drawn
        self._due: list[str] = []  # the panels that have not been given it
        self._had_turn = False
        self._soon = QTimer(parent, singleShot=True, interval=0)
        self._soon.timeout.connect(self.draw)

    @property
    def is_drawn(self) -> bool:
        """Whether every panel that is seen shows the newest state."""
        return not (self._is_outdated or self._due or any(panel.is_busy for panel in self._area.panels.values()))

    def outdate(self) -> None:
        """Draw in the next turn: there is a newer state."""
        self._is_outdated = True
        self._soon.start()

    def stop(self) -> None:
        """Draw no more."""
        self._soon.stop()

    def keep_up(self) -> None:
        """Draw where there was no turn since the last call, as while the mouse moves: timers of 0 ms wait for it."""
        if not self._had_turn and self._soon.isActive():
            self.draw()  # else two panels would be drawn between the same two frames
        self._had_turn = False

    def draw(self) -> None:
        """Draw what is due in one turn."""
        self._had_turn = True
        if self._turn_page(False):
            self._soon.start()  # laying out the page is enough for one turn of the event loop
            return
        try:
            if self._is_outdated:
                self._begin()
            else:
                self._next_panel()
        finally:  # a panel that fails leaves the others their turns
            if self._due:
                self._soon.start()

    def draw_all(self) -> None:
        """Draw everything at once."""
        self._turn_page(True)
        self._begin()
        while self._due:
            self._next_panel()

    def _begin(self) -> None:
        self._is_outdated = False
        self._area.follow(self._newest())
        self._show_frame(self._newest())
        self._due = self._by_interest()

    def _by_interest(self) -> list[str]:
        """Return the panels in the reverse order of drawing: hidden, visible, the one with the keyboard."""
        focus = QApplication.focusWidget()
        panels = self._area.panels

        def interest(name: str) -> tuple[bool, bool]:
            return panels[name].is_seen, focus is not None and panels[name].isAncestorOf(focus)

        return sorted(reversed(list(panels)), key=interest)

    def _next_panel(self) -> None:
        """Give panels the newest state until one of them has had to draw."""
        state = self._newest()
        while self._due:
            panel = self._area.panels[self._due.pop()]
            panel.show_state(state)
            if panel.is_seen:
                return
