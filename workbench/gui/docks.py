"""The docks, made from PANELS: where they stand at first, how large they are, and which of them have a title.

A panel is made when it is first shown or needed; the others follow one by one while the window is idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TypeVar

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractSpinBox, QDockWidget, QMainWindow, QSplitter, QTabBar, QTabWidget, QWidget

from workbench.gui.context.context import Context
from workbench.gui.panels import PANELS
from workbench.gui.panels.panel import Panel
from workbench.gui.shell import settings
from workbench.gui.shell.forms import PathField
from workbench.gui.shell.presets import PRESETS, Preset
from workbench.gui.shell.theme import Colours
from workbench.gui.shell.widgets import named
from workbench.gui.shell.words import tr
from workbench.session.workspace import State

LEFT = Qt.DockWidgetArea.LeftDockWidgetArea
RIGHT = Qt.DockWidgetArea.RightDockWidgetArea
CORNERS = ("left top", "left bottom", "right top", "right bottom")

P = TypeVar("P", bound=Panel)


class Panels(dict[str, Panel]):
    """The panels by their id; looking one up makes it, iterating gives those that exist."""

    def __init__(self, make: Callable[[str], Panel]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Panel:
        panel = self[name] = self._make(name)
        return panel


LEAST_FOR_BOTH = 520
"""Pixels of height below which the plan lies behind the tree: beside each other the tree would show three layers."""


class Docks(QMainWindow):
    """The area below the toolbar; ``panels`` and ``docks`` by their id.

    ``state`` and ``colours`` are what a panel that is made later begins with.
    """

    def __init__(self, context: Context, colours: Colours) -> None:
        super().__init__()
        self._context, self.colours, self.state = context, colours, State()
        self._document = context.workspace.document
        self._specs = {spec.id: spec for spec in PANELS}
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        option = QMainWindow.DockOption
        self.setDockOptions(option.AllowNestedDocks | option.AllowTabbedDocks | option.GroupedDragging)
        self.tabifiedDockWidgetActivated.connect(lambda _: self.show_titles())
        self.setTabPosition(LEFT | RIGHT, self.tabPosition(LEFT).North)
        self.panels = Panels(self._make)
        self.docks: dict[str, QDockWidget] = {}
        for spec in PANELS:
            dock = named(QDockWidget(tr(spec.title)), tr(spec.title))
            dock.setObjectName(spec.id)
            dock.setWidget(QWidget())
            dock.setFeatures(dock.DockWidgetFeature.DockWidgetMovable | dock.DockWidgetFeature.DockWidgetFloatable)
            dock.topLevelChanged.connect(self._moved)
            dock.visibilityChanged.connect(partial(self._visibility_changed, spec.id))
            self.docks[spec.id] = dock
        self._preset: Preset | None = None  # what shares the room out, until the user does
        self._place()
        self._preset = None
        self._first = self.saveState(settings.LAYOUT_VERSION)
        self._idle = QTimer(self, interval=0)  # ends with the docks, unlike a chain of single shots
        self._idle.timeout.connect(self._make_next)

    def panel(self, kind: type[P]) -> P:
        """Return the panel of a class, made if need be."""
        panel = self.panels[next(spec.id for spec in PANELS if spec.makes(kind))]
        assert isinstance(panel, kind)
        return panel

    def make_missing(self) -> None:
        """Make the missing panels, one for each turn of the event loop."""
        self._idle.start()

    def _make_next(self) -> None:
        missing = [name for name in (*self._fronts, *self._specs) if name not in self.panels]
        if missing:
            self.panels[missing[0]]
            return
        self._idle.stop()
        self._order_keyboard()
        parent, layout = self.parentWidget(), self.layout()
        if parent and layout and not self.isVisible():  # nor does the first model wait for the layout
            self.resize(parent.size())
            layout.activate()

    def _order_keyboard(self) -> None:
        """Let Tab go from panel to panel as they are listed, whichever was made first."""
        parts = (part for name in self._specs for part in _as_read(self.panels[name]))
        takers = (
            part for part in parts if part.focusPolicy() & Qt.FocusPolicy.TabFocus
            and not isinstance(part, QTabWidget) and not isinstance(part.parent(), QAbstractSpinBox)  # have proxies
        )  # fmt: skip
        for before, part in pairwise(takers):
            QWidget.setTabOrder(before, part)

    def _make(self, name: str) -> Panel:
        panel = self._specs[name].make(self._context, self.colours)
        dock = self.docks[name]
        before = dock.widget()
        policy = panel.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        panel.setSizePolicy(policy)
        dock.setWidget(panel)
        for part in panel.findChildren(QWidget):  # a file that is dropped on a field is for the window
            if part.acceptDrops() and not isinstance(part, PathField):
                part.setAcceptDrops(False)
        panel.setVisible(_in_front(dock))
        before.deleteLater()
        panel.show_state(self.state)
        return panel

    def front(self, name: str) -> str:
        """Return the panel that is in front of those that share the place of a panel."""
        dock = self.docks[name]
        return next((each.objectName() for each in (dock, *self.tabifiedDockWidgets(dock)) if _in_front(each)), name)

    def bring_to_front(self, name: str) -> None:
        """Show a panel, drawn as things are now."""
        self.docks[name].show()
        self.docks[name].raise_()
        self.panels[name].show()
        self.panels[name].catch_up()

    def show_result(self, name: str, before: str) -> None:
        """Bring a panel to the front where ``before`` still is, else mark its tab until it is seen."""
        if self.front(name) in (before, name):
            self.bring_to_front(name)
        else:
            self.docks[name].setWindowTitle(tr("{} (new)").format(tr(self._specs[name].title)))

    def follow(self, state: State) -> None:
        """Take over the newest state; results of a document that was closed are not new any more."""
        self.state, before, self._document = state, self._document, self._context.workspace.document
        if before != self._document:
            for name, dock in self.docks.items():
                dock.setWindowTitle(tr(self._specs[name].title))

    def _visibility_changed(self, name: str, visible: bool) -> None:
        """Hide a panel behind another tab: Qt only moves its dock aside, and its mnemonic keys would still count."""
        if visible:
            self.docks[name].setWindowTitle(tr(self._specs[name].title))
            self.panels[name].show()
            self.panels[name].catch_up()
        elif name in self.panels:
            self.panels[name].setVisible(_in_front(self.docks[name]))

    def reset(self) -> None:
        """Put the docks where they were at first."""
        floated = [dock for dock in self.docks.values() if dock.isFloating()]
        self.restoreState(self._first, settings.LAYOUT_VERSION)
        for dock in (*floated, *self._corners):  # Qt leaves one that moves behind another tab in a corner
            dock.raise_()
        self.size_docks()

    def arrange(self, preset: Preset) -> None:
        """Put the docks where they were at first, those of the preset in front and as large as it says."""
        self.reset()
        for name in reversed(preset.fronts):
            self.docks[name].raise_()
        self.size_docks(preset)

    def size_docks(self, preset: Preset | None = None) -> None:
        """Share width and height out as a preset says, by default the first one."""
        preset = self._preset = preset or next(iter(PRESETS.values()))
        layers, plan, above, below = self._corners
        if self.isVisible() and self.height() < LEAST_FOR_BOTH and plan not in self.tabifiedDockWidgets(layers):
            self.tabifyDockWidget(layers, plan)
            layers.raise_()
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        for pair, share, room, along in (
            ((layers, above), preset.left, self.width(), across), ((layers, plan), preset.layers, self.height(), down),
            ((above, below), preset.above, self.height(), down),
        ):  # fmt: skip
            self.resizeDocks(list(pair), [round(share * room), round((1 - share) * room)], along)
        self.show_titles()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the new room out as before: Qt would keep what the least heights of a small window came to."""
        super().resizeEvent(event)
        if self._preset is not None:
            self.size_docks(self._preset)

    def event(self, event: QEvent) -> bool:
        """Leave the sizes to the user from the first press between docks on, where there is no widget."""
        if isinstance(event, QMouseEvent) and event.type() is QEvent.Type.MouseButtonPress:
            self._preset = self._preset if self.childAt(event.position().toPoint()) else None
        return super().event(event)

    def _moved(self) -> None:
        self._preset = None
        self.show_titles()

    def show_titles(self) -> None:
        """Hide the titles of docked panels among tabs: the tab shows the name already, and whole, or is scrolled to."""
        for tabs in self.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            tabs.setElideMode(Qt.TextElideMode.ElideNone)
            tabs.setUsesScrollButtons(True)
        for dock in self.docks.values():
            bare = bool(self.tabifiedDockWidgets(dock)) and not dock.isFloating()
            bar = dock.titleBarWidget()
            if bare and bar is None:
                dock.setTitleBarWidget(QWidget())
            elif not bare and bar is not None:
                dock.setTitleBarWidget(None)  # type: ignore[arg-type]
                bar.deleteLater()

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
        self._fronts = [dock.objectName() for dock in self._corners]
        self.size_docks()


def _as_read(widget: QWidget) -> Iterator[QWidget]:
    """Yield what is in a widget, in the order in which it is read: Qt lists parts of some the other way round."""
    parts = widget.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
    if isinstance(widget, QSplitter):
        parts = [part for place in range(widget.count()) if (part := widget.widget(place))]
    for part in sorted(parts, key=lambda part: not isinstance(part, QTabBar)):
        if not part.isWindow():
            yield part
            yield from _as_read(part)


def _in_front(dock: QDockWidget) -> bool:
    """Whether a dock is where it can be seen; Qt moves those behind other tabs to negative places."""
    return bool(dock.isFloating() or (dock.geometry().right() >= 0 and dock.geometry().bottom() >= 0))
