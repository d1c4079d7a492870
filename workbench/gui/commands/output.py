"""Pictures, tables and the report of what the window shows, as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QAbstractItemView, QApplication, QTableView, QTreeView, QWidget

from workbench.errors import WorkbenchError
from workbench.gui.commands.command import Command
from workbench.gui.panels.panel import Panel
from workbench.gui.shell import dialogs
from workbench.gui.tables.files import save_csv

TABLES = (QTableView, QTreeView)
PICTURES = "Portable pictures (*.png);;Drawings (*.svg)"


def save_picture(command: Command) -> None:
    """Save the plot that has the keyboard, or the first one of its panel, as PNG or SVG."""
    from workbench.gui.plots.heatmap import Heatmap
    from workbench.gui.plots.multiples import Multiples
    from workbench.gui.plots.plot import Plot
    from workbench.gui.report.pictures import save_picture  # pyqtgraph is loaded when there is a plot, not before

    widget = _focused(command, (Plot, Heatmap, Multiples))
    if widget is None:
        reason = "No plot is shown; go to a panel that has one"
        command.context.messages.say("Save the picture: not now", reason, "warning")
        return
    command.context.tasks.start(_save(command, "Save the picture", widget, PICTURES, "png", save_picture))


def save_table(command: Command) -> None:
    """Save the table that has the keyboard, or the first one of its panel, as comma-separated values."""
    widget = _focused(command, TABLES)
    if not isinstance(widget, QAbstractItemView):
        reason = "No table is shown; go to a panel that has one"
        command.context.messages.say("Save the table: not now", reason, "warning")
        return
    model = widget.model()
    command.context.tasks.start(
        _save(command, "Save the table", widget, "Tables (*.csv)", "csv", lambda _, path: save_csv(model, path))
    )


async def report(command: Command) -> None:
    """Save everything as one HTML file, and open it in the browser."""
    from workbench.gui.report import report

    path = await _place(command, "Save the report", "Pages (*.html)", "report", "html")
    if path is None:
        return
    try:
        report.write(command.context.workspace.state, path)
    except WorkbenchError as error:
        command.context.messages.report("Report", error)
        return
    command.context.messages.say("Report saved", str(path))
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))


def compare(command: Command) -> None:
    """Choose another session to compare the open one with."""
    from workbench.gui.panels.compare import ComparePanel

    command.window.reveal("compare")
    command.window.panel(ComparePanel).choose()


async def _save(
    command: Command, title: str, widget: QWidget, filters: str, suffix: str, save: Callable[[QWidget, Path], None]
) -> None:
    path = await _place(command, title, filters, widget.accessibleName() or "window", suffix)
    if path is None:
        return
    try:
        save(widget, path)
    except WorkbenchError as error:
        command.context.messages.report(title, error)
        return
    command.context.messages.say(f"Saved {path.name}", str(path))


async def _place(command: Command, title: str, filters: str, name: str, suffix: str) -> Path | None:
    start = f"{'-'.join(name.lower().split())[:48]}.{suffix}"
    return await dialogs.ask_save_path(command.window.widget, title, filters, start, suffix)


def _focused(command: Command, kinds: tuple[type[QWidget], ...]) -> QWidget | None:
    """Return the widget of a kind that has the keyboard, else the first that is seen in its panel, else any."""
    focus = QApplication.focusWidget()
    while focus is not None and not isinstance(focus, (*kinds, Panel)):
        focus = focus.parentWidget()
    if isinstance(focus, kinds):
        return focus
    panels = [focus] if isinstance(focus, Panel) else []
    for panel in [*panels, *command.window.panels.values()]:
        for widget in panel.findChildren(QWidget):
            if isinstance(widget, kinds) and not widget.visibleRegion().isEmpty():
                return widget
    return None
