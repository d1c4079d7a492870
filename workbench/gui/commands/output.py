"""Pictures, tables and the report of what the window shows, as files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QAbstractItemView, QApplication, QTableView, QTreeView, QWidget

from workbench.errors import ExportError, WorkbenchError
from workbench.gui.commands.command import Command
from workbench.gui.panels.panel import Panel
from workbench.gui.shell import dialogs
from workbench.gui.shell.copying import Lines, copy_lines
from workbench.gui.tables import copying
from workbench.gui.tables.files import csv_lines, save_csv

TABLES = (QTableView, QTreeView)
PICTURES = "PNG pictures (*.png);;SVG drawings (*.svg)"


async def save_picture(command: Command) -> None:
    """Save the plot that has the keyboard, or the first one of its panel, as PNG or SVG."""
    from workbench.gui.report.pictures import save_picture  # loads pyqtgraph, which the first window does not need

    widget = _focused(command, _figures())
    if widget is None:
        _say_missing(command, "Save the picture: not now")
    else:
        await _save(command, "Save the picture", widget, PICTURES, "png", partial(save_picture, widget))


async def save_table(command: Command) -> None:
    """Save the table that has the keyboard, or the first one of its panel, as comma-separated values."""
    widget = _focused(command, TABLES)
    if isinstance(widget, QAbstractItemView):
        await _save(command, "Save the table", widget, "Tables (*.csv)", "csv", partial(_save_table, widget))
    else:
        _say_missing(command, "Save the table: not now")


def copy_picture(command: Command) -> None:
    """Copy the plot or table that has the keyboard, or the first plot of its panel, as a picture."""
    widget = _focused(command, _figures())
    if widget is None:
        _say_missing(command, "Copy the picture: not now")
        return
    QApplication.clipboard().setPixmap(widget.grab())
    command.context.messages.say("Copied the picture", widget.accessibleName())


def copy_table(command: Command) -> None:
    """Copy the table, heatmap or plot that has the keyboard, or the first one of its panel, as plain numbers."""
    widget = _focused(command, (*TABLES, *_figures()))
    if widget is None:
        _say_missing(command, "Copy the table: not now")
        return
    said = partial(command.context.messages.say, "Copied the numbers", widget.accessibleName())
    if isinstance(widget, QAbstractItemView):
        copying.copy_table(widget, said)
    else:
        copy_lines(widget, widget.data_lines, said)


async def report(command: Command) -> None:
    """Save everything as one HTML file or PDF, and open it."""
    from workbench.gui.report.step import WRITE_REPORT, ReportOptions

    context = command.context
    title, filters = WRITE_REPORT.title, "Pages (*.html);;Documents (*.pdf)"
    path = await dialogs.ask_save_path(command.window.widget, title, filters, "report.html", "html")
    if path is None:
        return

    async def write() -> None:
        state = context.workspace.state
        options = ReportOptions(path=str(path), view=replace(state, session=None, ledger=None))
        request = WRITE_REPORT.request(state.session, options)
        written = await context.runner.run(request, lambda: context.tasks.start(write()))
        if written is not None:
            context.messages.say(f"Saved {path.name}", str(path))
            QDesktopServices.openUrl(QUrl.fromLocalFile(written))

    await write()


def compare(command: Command) -> None:
    """Choose another session to compare the open one with."""
    from workbench.gui.panels.compare import ComparePanel

    command.window.reveal("compare")
    command.window.panel(ComparePanel).choose()


def _figures() -> tuple[type[QWidget], ...]:
    from workbench.gui.plots.heatmap import Heatmap
    from workbench.gui.plots.multiples import Multiples
    from workbench.gui.plots.plot import Plot

    return Plot, Heatmap, Multiples


def _say_missing(command: Command, title: str) -> None:
    command.context.messages.say(title, "nothing of that kind is visible; go to a panel that has one", "warning")


async def _save_table(view: QAbstractItemView, path: Path) -> None:
    """Write a table, which is worked out between frames, in a thread: the disk may take longer than a frame.

    Raises ExportError where the table goes meanwhile.
    """
    made = asyncio.get_running_loop().create_future()

    def gone() -> None:
        if not made.done():
            made.set_exception(ExportError("the table was closed before it was saved; open it and save it again"))

    lines = Lines(view, lambda: csv_lines(view.model()), made.set_result)
    lines.destroyed.connect(gone)
    copying.follow(view, lines)
    await asyncio.to_thread(save_csv, await made, path)


async def _save(
    command: Command, title: str, source: QWidget, filters: str, suffix: str,
    save: Callable[[Path], Awaitable[None] | None],
) -> None:  # fmt: skip
    """Ask for a file that is named like ``source``, and write it."""
    name = source.accessibleName() or "window"
    start = f"{'-'.join(name.lower().split())[:48]}.{suffix}"
    path = await dialogs.ask_save_path(command.window.widget, title, filters, start, suffix)
    if path is None:
        return
    try:
        if writing := save(path):
            await writing
    except WorkbenchError as error:
        command.context.messages.report(title, error)
        return
    command.context.messages.say(f"Saved {path.name}", str(path))


def _focused(command: Command, kinds: tuple[type[QWidget], ...]) -> Any:
    """Return the widget of a kind that has the keyboard, else the first visible one in its panel, else any."""
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
