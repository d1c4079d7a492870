"""The docks, made from PANELS: where they stand at first, how large they are, and which of them have a title."""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from workbench.gui import settings
from workbench.gui.desk import Desk
from workbench.gui.panels import PANELS
from workbench.gui.panels.panel import Panel
from workbench.gui.theme import Colours

LEFT = Qt.DockWidgetArea.LeftDockWidgetArea
RIGHT = Qt.DockWidgetArea.RightDockWidgetArea
CORNERS = ("left top", "left bottom", "right top", "right bottom")


class Docks(QMainWindow):
    """The area below the toolbar; ``panels`` and ``docks`` by their id."""

    def __init__(self, desk: Desk, colours: Colours) -> None:
        super().__init__()
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        option = QMainWindow.DockOption
        self.setDockOptions(option.AllowNestedDocks | option.AllowTabbedDocks | option.GroupedDragging)
        self.tabifiedDockWidgetActivated.connect(lambda _: self.show_titles())
        self.setTabPosition(LEFT | RIGHT, self.tabPosition(LEFT).North)
        self.panels: dict[str, Any] = {}
        self.docks: dict[str, QDockWidget] = {}
        for spec in PANELS:
            panel: Panel = spec.make(desk, colours)
            dock = QDockWidget(spec.title)
            dock.setObjectName(spec.id)
            dock.setWidget(panel)
            dock.setAccessibleName(spec.title)
            dock.setFeatures(dock.DockWidgetFeature.DockWidgetMovable | dock.DockWidgetFeature.DockWidgetFloatable)
            dock.topLevelChanged.connect(self.show_titles)
            dock.visibilityChanged.connect(partial(_seen, panel))
            self.panels[spec.id], self.docks[spec.id] = panel, dock
        self._place()
        self._first = self.saveState(settings.LAYOUT_VERSION)

    def reset(self) -> None:
        """Put the docks where they were at first."""
        self.restoreState(self._first, settings.LAYOUT_VERSION)
        self.size_docks()

    def size_docks(self) -> None:
        """Give the layers 40 % of the width, and what is above a little more of the height."""
        layers, plan, above, below = self._corners
        width, height = self.width(), self.height()
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self.resizeDocks([layers, above], [round(0.4 * width), round(0.6 * width)], across)
        self.resizeDocks([layers, plan], [round(0.68 * height), round(0.32 * height)], down)
        self.resizeDocks([above, below], [round(0.56 * height), round(0.44 * height)], down)
        self.show_titles()

    def show_titles(self) -> None:
        """A tab says the panel's name already: a docked panel among tabs has no title of its own."""
        for dock in self.docks.values():
            bare = bool(self.tabifiedDockWidgets(dock)) and not dock.isFloating()
            held = dock.titleBarWidget()
            if bare and held is None:
                dock.setTitleBarWidget(QWidget())
            elif not bare and held is not None:
                dock.setTitleBarWidget(None)  # type: ignore[arg-type]
                held.deleteLater()

    def _place(self) -> None:
        corners: dict[str, QDockWidget] = {}
        for spec in PANELS:
            dock = self.docks[spec.id]
            if spec.place in corners:
                self.tabifyDockWidget(corners[spec.place], dock)
            else:
                self.addDockWidget(LEFT if spec.place.startswith("left") else RIGHT, dock, Qt.Orientation.Vertical)
                corners[spec.place] = dock
        for dock in corners.values():
            dock.raise_()
        self._corners = [corners[place] for place in CORNERS]
        self.size_docks()


def _seen(panel: Panel, seen: bool) -> None:
    if seen:
        panel.catch_up()
