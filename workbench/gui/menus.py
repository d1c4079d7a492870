"""Menus, toolbar and shortcuts, made from ACTIONS and PANELS, and when each of them can be done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QToolBar, QToolButton

from workbench.gui.commands.action import Action, ActionState, plain
from workbench.gui.commands.actions import ACTIONS, MENUS
from workbench.gui.panels import PANELS
from workbench.gui.shell import icons, settings
from workbench.gui.shell.foreign import as_entry, as_tip, isolated, not_isolated
from workbench.gui.shell.stepper import Stepper
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.words import tr


class Menus:
    """``actions`` by their id, ``panel_actions`` in the order of PANELS.

    ``do(action)`` carries one out, ``reveal(id)`` goes to a panel, ``open_path(path)`` opens a recent file; ``stepper``
    stands on the toolbar.
    """

    def __init__(
        self, window: QMainWindow, colours: Colours, do: Callable[[Action], None], reveal: Callable[[str], None],
        open_path: Callable[[str], None], stepper: Stepper,
    ) -> None:  # fmt: skip
        self._window, self._do, self._open_path, self._stepper = window, do, open_path, stepper
        self.actions: dict[str, QAction] = {}
        self.menus = {title: window.menuBar().addMenu(tr(title)) for title in MENUS}
        style = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        self._bar = QToolBar(tr("Actions"), iconSize=QSize(18, 18), movable=False, toolButtonStyle=style)
        self._bar.setObjectName("toolbar")
        for spec in ACTIONS:
            self._add(spec)
        self.recolour(colours)
        window.addToolBar(self._bar)
        self.recent_menu = QMenu(tr("Open &Recent"), window)
        self.recent_menu.aboutToShow.connect(self._fill_recent)
        self.menus["&File"].insertMenu(self.actions["save"], self.recent_menu)
        self.panel_actions = self._panels(reveal)

    def fit(self) -> None:
        """Give the stages what the buttons leave of the toolbar."""
        others = self._bar.sizeHint().width() - self._stepper.sizeHint().width()
        self._stepper.fit(self._bar.width() - others)

    def recolour(self, colours: Colours) -> None:
        """Draw the icons in other colours."""
        for spec in ACTIONS:
            if spec.icon:
                self.actions[spec.id].setIcon(icons.icon(spec.icon, colours))
        for button in self._bar.findChildren(QToolButton, "qt_toolbar_ext_button"):
            button.setIcon(icons.icon("more", colours))

    def enable(self, now: ActionState) -> None:
        """Grey what cannot be done, and say why in its tooltip; name the steps of undo and redo."""
        for spec in ACTIONS:
            action, reason = self.actions[spec.id], spec.why_not(now)
            action.setEnabled(reason is None)
            tip = tr(spec.tip) or plain(tr(spec.text))
            keys = f" ({action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)})" if spec.shortcut else ""
            action.setToolTip(f"{tip}{keys}" if reason is None else f"{tip}\n{tr('Not now: {}').format(tr(reason))}")
        for name, step in (("undo", now.state.undo_name), ("redo", now.state.redo_name)):
            title = tr(f"&{name.capitalize()}")
            _say(self.actions[name], f"{title} {as_entry(tr(step))}".strip())
            self.actions[name].setIconText(plain(title))

    def titled(self) -> list[tuple[str, QAction]]:
        """Return everything that can be done with a title to search in: the menus' actions, then the panels."""
        actions = [(f"{plain(tr(spec.menu))}: {plain(tr(spec.text))}", self.actions[spec.id]) for spec in ACTIONS
                   if spec.id != "palette"]  # fmt: skip
        panels = ((tr("Go to {}").format(not_isolated(action.text())), action) for action in self.panel_actions)
        return [*actions, *panels]

    def _add(self, spec: Action) -> None:
        action = QAction(self._window)
        action.setObjectName(spec.id)
        action.setShortcuts([QKeySequence(keys) for keys in (spec.shortcut, spec.also) if keys])
        _say(action, tr(spec.text))
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.triggered.connect(lambda _=False: self._do(spec))
        self._window.addAction(action)
        self.actions[spec.id] = action
        if spec.separated:
            self.menus[spec.menu].addSeparator()
        self.menus[spec.menu].addAction(action)
        if spec.icon:
            action.setIconText(tr("Open") if spec.id == "open_file" else plain(tr(spec.text)))
            self._bar.addAction(action)
            if spec.id in ("export", "redo"):
                self._bar.addSeparator()
            if spec.id == "redo":
                self._bar.addWidget(self._stepper)
                self._bar.addSeparator()

    def _panels(self, reveal: Callable[[str], None]) -> list[QAction]:
        menu, actions = self.menus["&View"], []
        menu.addSeparator()
        for spec in PANELS:
            action = QAction(tr(spec.title), self._window)
            action.setShortcut(QKeySequence(spec.key))
            action.setToolTip(tr("Go to the panel {}").format(tr(spec.title)))
            action.triggered.connect(lambda _=False, panel=spec.id: reveal(panel))
            menu.addAction(action)
            self._window.addAction(action)
            actions.append(action)
        return actions

    def _fill_recent(self) -> None:
        self.recent_menu.clear()
        for path in settings.recent():
            name = isolated(as_entry(Path(path).name))
            action = self.recent_menu.addAction(name, partial(self._open_path, path))
            action.setToolTip(as_tip(path))
        if self.recent_menu.isEmpty():
            self.recent_menu.addAction(tr("Nothing yet")).setEnabled(False)
            return
        self.recent_menu.addSeparator()
        self.recent_menu.addAction(tr("&Clear"), settings.forget_recent)


def _say(action: QAction, text: str) -> None:
    """Give an action its text; in a window from right to left Qt would show its keys as ``.+Ctrl``."""
    keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    action.setText(isolated(text) + (f"\t{isolated(keys)}" if isolated(keys) != keys else ""))
